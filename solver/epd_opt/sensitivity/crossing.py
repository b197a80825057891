"""Where the best plan begins or ends to use something: at the crossing of two plans' costs, or by bisection."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from epd_opt.sensitivity.trial import Trials, Tried

Outcome = Literal["found", "always", "never", "no_plan", "unknown"]
Method = Literal["lines", "bisection"]

_MOST_STEPS = 60
"""Plans tried on the way to where two lines cross; a handful is usual."""
_SAME = 1e-9
"""Relative difference of costs that counts as none."""
_TIED = 1e-6
"""The same between plans that the solver found by themselves, at its exactness."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """What a search has come to.

    Attributes
    ----------
    below, above : Tried
        Plans on the two sides of the value, or at the two ends of the range.
    at : float or None
        The value, where there is one.
    bounds : tuple of float or None
        Between which it lies for certain; None where that is not proved.
    """

    outcome: Outcome
    method: Method
    below: Tried
    above: Tried
    at: float | None = None
    bounds: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Search:
    """A search between two values, past what the instance states where that lies between them.

    Attributes
    ----------
    width : float
        Relative width to which bisection brings the sides together.
    whole : bool
        Whether only whole numbers are values.
    """

    trials: Trials
    low: float
    high: float
    stated: float | None
    width: float
    whole: bool
    notes: list[str] = field(default_factory=list)

    def run(self) -> Crossing:
        """Find the value."""
        values = [self.low, self.high]
        if self.stated is not None and self.low < self.stated < self.high:
            values.insert(1, self.stated)
        ends = [self.trials.best(value) for value in values]
        straight = self.trials.straight(self.low, self.high) and all(one.spending is not None for one in ends)
        found = [(one, other) for one, other in itertools.pairwise(ends) if _differ(one, other)]
        if not found:
            crossing = self._same_ends(ends[0], ends[-1], "lines" if straight else "bisection")
        else:
            if len(found) > 1:
                self.notes.append(f"it changes above {self.stated:g} too: look there with --low {self.stated:g}")
            crossing = self._lines(*found[0]) if straight else self._bisection(*found[0])
        return replace(crossing, notes=tuple(dict.fromkeys(self.notes)))

    def _lines(self, first: Tried, last: Tried) -> Crossing:
        """Where costs are straight lines in the value."""
        used, unused = (first, last) if first.uses else (last, first)
        ends = (used, unused)
        value, bound = used.value, used.bound
        for _ in range(_MOST_STEPS):
            value = _meeting(used, unused)
            tried = self.trials.best(value)
            bound = tried.bound
            if tried.spending is None:
                self.notes.append("the time passed where two plans cost the same: there may be a cheaper one")
                break
            if tried.usd_per_hour >= used.at(tried.resolved) * (1.0 - _SAME):
                break
            used, unused = (tried, unused) if tried.uses else (used, tried)
        below, above = (used, unused) if used.value < unused.value else (unused, used)
        if value in (self.low, self.high) and value in (one.value for one in ends):
            self.notes.append(f"at {value:g} itself plans with it cost the same as plans without it")
            outcome: Outcome = "always" if value == ends[1].value else "never"
            return Crossing(outcome=outcome, method="lines", below=below, above=above)
        edges = (self._edge(used, ends[0], value, bound), self._edge(unused, ends[1], value, bound))
        bounds = None if edges[0] is None or edges[1] is None else (min(edges[0], edges[1]), max(edges[0], edges[1]))
        return Crossing(outcome="found", method="lines", below=below, above=above, at=value, bounds=bounds)

    def _edge(self, plan: Tried, end: Tried, value: float, bound: float) -> float | None:
        """The value nearest to the crossing up to which the plan's side is proved to be its side.

        The best cost of the other kind of plan is concave in the value, so it lies above the chord between what is proved of
        it at two values; where the chord lies above the plan's own line, no plan of the other kind is cheaper.
        """
        behind = min(bound - plan.at(self.trials.resolved(value)), 0.0)
        for start in (plan, end):
            other = self.trials.without(start.value) if plan.uses else self.trials.having(start.value)
            ahead = other.bound - plan.at(start.resolved)
            if ahead == math.inf:
                return value
            if ahead > 0.0 and other.usd_per_hour > plan.at(start.resolved) * (1.0 + _TIED):
                return start.value + (value - start.value) * ahead / (ahead - behind)
        side = "below" if plan.value < value else "above"
        if other.usd_per_hour <= plan.at(start.resolved) * (1.0 + _TIED):
            self.notes.append(f"{side} it, plans with it cost the same as plans without it")
        else:
            self.notes.append("the gaps of the solves are too wide to say within which bounds it lies")
        return None

    def _bisection(self, below: Tried, above: Tried) -> Crossing:
        """Where the value moves more than prices."""
        self.notes.append("found by bisection between values that were solved: changes that cancel out go unseen")
        while (middle := self._middle(below.value, above.value)) is not None:
            tried = self.trials.best(middle)
            if tried.document is None:
                why = "nothing serves the instance" if tried.infeasible else "the time passed"
                self.notes.append(f"{why} at {middle:.6g}, between the two sides")
                break
            below, above = (tried, above) if tried.uses == below.uses else (below, tried)
        proved = all(list(self._proved(one)) for one in (below, above))
        ends = (below.value, above.value)
        return Crossing(
            outcome="found",
            method="bisection",
            below=below,
            above=above,
            at=ends[1] if self.whole else sum(ends) / 2.0,
            bounds=ends if proved else None,
        )

    def _proved(self, plan: Tried) -> Iterator[bool]:
        """Something, where no plan of the other kind is as cheap as one at its own value."""
        other = self.trials.without(plan.value) if plan.uses else self.trials.having(plan.value)
        if other.bound > plan.usd_per_hour * (1.0 + _SAME):
            yield True
        elif other.usd_per_hour <= plan.usd_per_hour * (1.0 + _TIED):
            self.notes.append(f"at {plan.value:.6g} plans with it cost the same as plans without it")
        else:
            self.notes.append(
                f"at {plan.value:.6g} the gaps of the solves are too wide to tell plans with and without it apart"
            )

    def _middle(self, low: float, high: float) -> float | None:
        if self.whole:
            middle = float((math.floor(low) + math.floor(high)) // 2)
            return middle if low < middle < high else None
        return (low + high) / 2.0 if high - low > self.width * max(abs(low), abs(high)) else None

    def _same_ends(self, below: Tried, above: Tried, method: Method) -> Crossing:
        """Both ends use it, or neither does, or one has no plan."""
        none = [one for one in (below, above) if one.document is None]
        if none:
            outcome: Outcome = "no_plan" if all(one.infeasible for one in none) else "unknown"
        else:
            outcome = "always" if below.uses else "never"
            if method == "bisection" or not self._apart(below, above):
                self.notes.append("that this holds all the way between is not proved")
        return Crossing(outcome=outcome, method=method, below=below, above=above)

    def _apart(self, below: Tried, above: Tried) -> bool:
        """Whether the cheaper of two plans lies below all of the other kind between their values: below the chord between
        what is proved of those, at both values and where their own lines cross."""
        others = [self.trials.without(one.value) if below.uses else self.trials.having(one.value) for one in (below, above)]
        if any(other.infeasible for other in others):
            return True
        part = (_meeting(below, above) - below.value) / (above.value - below.value)
        crossing = below.usd_per_hour + part * (below.at(above.resolved) - below.usd_per_hour)
        low, high = (other.bound for other in others)
        return below.usd_per_hour < low and above.usd_per_hour < high and crossing < low + part * (high - low)


def _differ(one: Tried, other: Tried) -> bool:
    return one.document is not None and other.document is not None and one.uses != other.uses


def _meeting(one: Tried, other: Tried) -> float:
    """The value at which two fleets cost the same, each the cheaper at its own; at an end where they never do between."""
    gained = max(0.0, other.at(one.resolved) - one.usd_per_hour)
    lost = max(0.0, one.at(other.resolved) - other.usd_per_hour)
    if gained == 0.0 or lost == 0.0:
        return other.value if lost == 0.0 and gained > 0.0 else one.value
    return one.value + gained / (gained + lost) * (other.value - one.value)
