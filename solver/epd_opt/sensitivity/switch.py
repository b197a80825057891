"""Where along one dimension the structure of the best plan changes, by bisection."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from epd_opt.scaling import plain
from epd_opt.sensitivity.document import SwitchPoint
from epd_opt.sensitivity.shift import Dimension

TOLERANCE = 1e-3
"""Share of a dimension's range within which a switch is found."""
_MOST_POINTS = 400
"""Points solved in search of switches, all together."""

Solve = Callable[[Sequence[float]], Sequence[Mapping[str, Any]]]
"""Solves the points at some values."""


def structure(point: Mapping[str, Any]) -> str | None:
    """Placements on SKUs of a point's plan, in words; None where there is nothing to say of it."""
    if point["status"] in ("failed", "stopped"):
        return None
    if point["cost"] is None:
        return "no plan"
    uses = sorted({(pool["placement"], pool["sku"]) for pool in point["pools"]})
    return " + ".join(f"{placement} on {sku}" for placement, sku in uses) or "nothing to serve"


@dataclass(frozen=True, slots=True)
class _Bracket:
    low: float
    high: float
    below: str
    above: str


def switch_points(
    moved: Dimension, points: Sequence[Mapping[str, Any]], solve: Solve, *, tolerance: float = TOLERANCE
) -> list[SwitchPoint]:
    """Values at which the set of placements on SKUs changes, from neighbouring points that differ.

    Between two neighbours with the same structure none is looked for; where a third structure shows between two, both of
    its ends are found. The points on both sides of every switch were solved. They stay further apart than asked where a
    point between them could not be solved, or where too many had to be.

    Parameters
    ----------
    solve : callable
        Called with the middles of all intervals that are still too wide, so that they may be solved side by side.
    tolerance : float
        As a share of the range from the lowest to the highest value; where only whole numbers are allowed, 1.
    """
    known = sorted((float(point["at"][moved.path]), structure(point)) for point in points)
    known = [(value, found) for value, found in known if found is not None]
    if len(known) < 2:
        return []
    width = 1.0 if moved.whole else tolerance * (known[-1][0] - known[0][0])
    wide = list(_brackets(known))
    narrow: list[_Bracket] = []
    solved = 0
    while wide:
        narrow += [b for b in wide if _enough(b, width)]
        wide = [b for b in wide if not _enough(b, width)]
        room = max(0, _MOST_POINTS - solved)
        narrow += wide[room:]
        wide = wide[:room]
        middles = [_middle(b, moved.whole) for b in wide]
        solved += len(middles)
        found = [structure(point) for point in solve(middles)] if middles else []
        halves: list[_Bracket] = []
        for bracket, middle, between in zip(wide, middles, found, strict=True):
            if between is None:
                narrow.append(bracket)
                continue
            ends = [(bracket.low, bracket.below), (middle, between), (bracket.high, bracket.above)]
            halves += _brackets(ends)
        wide = halves
    return [
        SwitchPoint(path=moved.path, at=b.high, below=b.below, above=b.above, below_at=b.low, tolerance=width)
        for b in sorted(narrow, key=lambda b: b.low)
    ]


def _brackets(known: Sequence[tuple[float, str | None]]) -> Iterator[_Bracket]:
    for (low, below), (high, above) in itertools.pairwise(known):
        if below is not None and above is not None and below != above:
            yield _Bracket(low, high, below, above)


def _enough(bracket: _Bracket, width: float) -> bool:
    return bracket.high - bracket.low <= width * (1 + 1e-9)


def _middle(bracket: _Bracket, whole: bool) -> float:
    middle = (bracket.low + bracket.high) / 2.0
    return math.floor(middle) if whole else plain(middle)
