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
    now: float, works: Callable[[float], bool], *, up: bool, guess: float | None = None, loosest: float | None = None
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
    """
    sign = 1 if up else -1
    number = rung_above if up else rung_below
    fails = sign * (rung_below(now) if up else rung_above(now))
    last = fails + _FARTHEST
    if loosest is not None:
        last = min(last, sign * number(loosest))
        if last <= fails or not works(on_rung(sign * last)):
            return None
    at = fails + 1 if guess is None else max(fails + 1, sign * number(guess))
    step = 1
    while at < last and not works(on_rung(sign * at)):
        fails, at, step = at, at + step, step * 2
    if at >= last:
        if loosest is None and not works(on_rung(sign * last)):
            return None
        at = last
    while at - fails > 1 and (guess is None or fails >= sign * number(guess)):
        middle = (at + fails) // 2
        fails, at = (fails, middle) if works(on_rung(sign * middle)) else (middle, at)
    return on_rung(sign * at)
