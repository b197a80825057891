"""Numbers as people type them, and the search for the nearest one that works."""

from __future__ import annotations

import math
from collections.abc import Callable

_PER_DECADE = 180
"""Rungs per decade: three digits, the last one 0 or 5."""
_FARTHEST = 3 * _PER_DECADE


def rung_above(value: float) -> int:
    """Number of the lowest rung at or above a value.

    >>> on_rung(rung_above(602.3)), on_rung(rung_above(40.8632)), on_rung(rung_above(500))
    (605.0, 41.0, 500.0)
    """
    decade = math.floor(math.log10(value))
    steps = value / 10.0**decade * 20.0
    return decade * _PER_DECADE + math.ceil(steps * (1 - 1e-12)) - 20


def rung_below(value: float) -> int:
    """Number of the highest rung at or below a value.

    >>> on_rung(rung_below(40_760)), on_rung(rung_below(500))
    (40500.0, 500.0)
    """
    above = rung_above(value)
    return above if on_rung(above) <= value * (1 + 1e-12) else above - 1


def on_rung(number: int) -> float:
    """The value of a rung."""
    decade, step = divmod(number, _PER_DECADE)
    return float(f"{(20 + step) / 20.0 * 10.0**decade:.6g}")


def nearest(
    now: float,
    works: Callable[[float], bool],
    *,
    up: bool,
    guess: float | None = None,
    loosest: float | None = None,
    within: float = 1.0,
) -> float | None:
    """The rung nearest to a value, on one side of it, that works; None where none within three decades does.

    Parameters
    ----------
    now : float
        The value that does not work.
    works : callable
        Whether a value does; taken to be true of all values beyond one that is.
    up : bool
        Whether larger values are tried.
    guess : float, optional
        Where to begin: nothing nearer is expected to work.
    loosest : float, optional
        A value beyond which nothing is tried; it is tried first.
    within : float
        Ratio to the nearest rung that works within which another one is near enough.
    """
    sign = 1 if up else -1
    number = rung_above if up else rung_below
    fails = sign * (rung_below(now) if up else rung_above(now))
    first = fails + 1 if guess is None else max(fails + 1, sign * number(guess))
    if loosest is None:
        found = _climb(first, fails, fails + _FARTHEST, lambda rung: works(on_rung(sign * rung)))
        if found is None:
            return None
        fails, at = found
    else:
        at = sign * number(loosest)
        if at <= fails or not works(on_rung(sign * at)):
            return None
        fails = max(fails, first - 1)
    while at - fails > 1 and at > first and _ratio(on_rung(sign * at), on_rung(sign * fails)) > within:
        middle = max(first, (at + fails) // 2)
        fails, at = (fails, middle) if works(on_rung(sign * middle)) else (middle, at)
    return on_rung(sign * at)


def _climb(at: int, fails: int, last: int, works: Callable[[int], bool]) -> tuple[int, int] | None:
    """The last rung that fails and the first that works, going up in ever longer steps; None where none works."""
    step = 1
    while not works(at):
        if at >= last:
            return None
        fails, at, step = at, min(last, at + step), step * 2
    return fails, at


def _ratio(one: float, other: float) -> float:
    return max(one, other) / min(one, other)
