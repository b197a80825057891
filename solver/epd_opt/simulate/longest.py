"""The longest iteration since any earlier one."""

from __future__ import annotations

from bisect import bisect_right

_MANY = 512


class Longest:
    """Iterations that no later one has outlasted, in order; their lengths fall, so the first one after an iteration is the
    longest since.

    Examples
    --------
    >>> longest = Longest()
    >>> for iteration, seconds in enumerate([0.1, 0.4, 0.2, 0.3], start=1):
    ...     _ = longest.add(iteration, seconds)
    >>> longest.since(0), longest.since(2), longest.since(4)
    (0.4, 0.3, 0.0)
    """

    __slots__ = ("_at", "_seconds")

    def __init__(self) -> None:
        self._at: list[int] = []
        self._seconds: list[float] = []

    def add(self, iteration: int, seconds: float) -> bool:
        """One has ended; says whether it is time to forget the oldest."""
        at, lasting = self._at, self._seconds
        while lasting and lasting[-1] <= seconds:
            lasting.pop()
            at.pop()
        at.append(iteration)
        lasting.append(seconds)
        return len(at) > _MANY

    def forget(self, iteration: int) -> None:
        """Nobody will ask for what ended until then."""
        oldest = bisect_right(self._at, iteration)
        del self._at[:oldest], self._seconds[:oldest]

    def since(self, iteration: int) -> float:
        """Seconds of the longest that ended after ``iteration``; 0 where none has."""
        found = bisect_right(self._at, iteration)
        return self._seconds[found] if found < len(self._seconds) else 0.0
