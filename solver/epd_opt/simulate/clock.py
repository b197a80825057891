"""Simulated time: what happens next."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

Action = Callable[[float, Any], None]


class Clock:
    """Actions in order of their times; of equal times, the one that was planned first goes first."""

    __slots__ = ("_heap", "_planned")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Action, Any]] = []
        self._planned = 0

    def at(self, time: float, action: Action, argument: Any) -> None:
        """Plan ``action(time, argument)``."""
        self._planned += 1
        heapq.heappush(self._heap, (time, self._planned, action, argument))

    def run_until(self, time: float) -> None:
        """Do all that is planned up to ``time``, and what comes of it."""
        heap, pop = self._heap, heapq.heappop
        while heap and heap[0][0] <= time:
            now, _, action, argument = pop(heap)
            action(now, argument)

    def step(self) -> bool:
        """Do the next thing; False where nothing is planned."""
        if not self._heap:
            return False
        now, _, action, argument = heapq.heappop(self._heap)
        action(now, argument)
        return True
