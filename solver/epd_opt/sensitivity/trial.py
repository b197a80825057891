"""The best plan at a value of one input, and the best one with or without a use, from the same candidates wherever the value
leaves them untouched."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from epd_opt.backends import OutOfTime
from epd_opt.document import PlanDocument, Reason
from epd_opt.infeasible import unservable
from epd_opt.instance import Instance
from epd_opt.offering import planning_problem
from epd_opt.pipeline import search
from epd_opt.prune import connected, prune
from epd_opt.resolve import Resolved, resolve
from epd_opt.scaling import plain
from epd_opt.sensitivity.point import clocked
from epd_opt.sensitivity.reuse import Candidates, same_candidates
from epd_opt.sensitivity.shift import Dimension, shifted
from epd_opt.sensitivity.spending import Spending, straight
from epd_opt.sensitivity.use import Use

Kind = Literal["best", "with", "without"]
_THIRD = 0.375
"""Where between two values prices are compared with the straight line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A plan at a value, or that there is none.

    Attributes
    ----------
    document : PlanDocument or None
        None where there is no plan, or no time to look for one.
    bound : float
        No plan of its kind costs less, US dollars per hour; infinite where there is none.
    uses : bool
        Whether the plan uses what is asked about.
    spending : Spending or None
        What its fleet is paid for; None where it has none, or where its cost is not made of prices alone.
    reasons : tuple of Reason
        Why there is none, as far as known.
    """

    value: float
    resolved: Resolved
    document: PlanDocument | None
    bound: float
    uses: bool
    spending: Spending | None
    reasons: tuple[Reason, ...] = ()

    @property
    def usd_per_hour(self) -> float:
        """Cost of the plan; infinite where there is none."""
        if self.document is None or self.document.cost is None:
            return math.inf
        return self.document.cost.usd_per_hour

    @property
    def infeasible(self) -> bool:
        """Whether there is no plan for certain."""
        return self.bound == math.inf

    def at(self, other: Resolved) -> float:
        """What the same fleet costs at other prices."""
        assert self.spending is not None
        return self.spending.usd_per_hour(other.offers)


class Trials:
    """Plans at values of one input.

    Parameters
    ----------
    document : mapping
        The instance as stated.
    moved : Dimension
        The input.
    use : Use
        What plans are asked to have, or to do without.
    """

    def __init__(
        self, document: Mapping[str, Any], moved: Dimension, use: Use, say: Callable[[str], None] = lambda _: None
    ) -> None:
        self.moved, self.use, self.solves = moved, use, 0
        self._document, self._say = document, say
        self._candidates = Candidates()
        self._resolved: dict[float, Resolved] = {}
        self._tried: dict[tuple[Kind, float], Tried] = {}

    def resolved(self, value: float) -> Resolved:
        """The instance at a value.

        Raises
        ------
        InvalidInput
            The instance takes no such value.
        """
        if value not in self._resolved:
            self._resolved[value] = resolve(Instance(**shifted(self._document, [(self.moved, plain(value))])))
        return self._resolved[value]

    def straight(self, low: float, high: float) -> bool:
        """Whether the value moves prices alone between two values, in proportion, so that every fleet costs a straight line
        and is feasible at all of them or at none."""
        if self.moved.whole:
            return False
        ends = (self.resolved(low), self.resolved(low + _THIRD * (high - low)), self.resolved(high))
        first, *others = ends
        if any(one.limits != first.limits or not same_candidates(first, one) for one in others):
            return False
        return first.limits.usd_per_hour is None and straight(ends[0].offers, ends[1].offers, ends[2].offers, _THIRD)

    def all_meant(self, device: str, value: float) -> bool:
        """Whether every pool on offer on a device entry is one that is asked about."""
        offered, _ = self._candidates.of(self.resolved(value))
        return all(self.use.means(candidate) for candidate in offered.problem.candidates if candidate.device == device)

    def best(self, value: float) -> Tried:
        """The best plan."""
        return self._of("best", value)

    def without(self, value: float) -> Tried:
        """The best plan that does without the use."""
        return self._of("without", value)

    def having(self, value: float) -> Tried:
        """The best plan in which one of the pools meant stands."""
        return self._of("with", value)

    def _of(self, kind: Kind, value: float) -> Tried:
        if (kind, value) not in self._tried:
            self._say(f"{kind} at {value:.6g}")
            self._tried[kind, value] = self._search(kind, value)
        return self._tried[kind, value]

    def _search(self, kind: Kind, value: float) -> Tried:
        resolved = self.resolved(value)
        solver = clocked(resolved)

        def nothing(bound: float, *reasons: Reason) -> Tried:
            return Tried(
                value=value, resolved=resolved, document=None, bound=bound, uses=False, spending=None, reasons=reasons
            )

        try:
            offered, pruned = self._candidates.of(resolved, each=solver.clock.check)
            if kind == "without":
                left = [candidate for candidate in offered.problem.candidates if not self.use.means(candidate)]
                offered = replace(offered, problem=planning_problem(resolved, left))
                pruned = prune(offered.problem)
            why = unservable(resolved, offered)
            if why is not None:
                return nothing(math.inf, *why.reasons)
            if kind == "with" and not any(self.use.means(c) for c in connected(pruned.candidates)):
                return nothing(math.inf, Reason(limit="parallelism", text=f"{self.use} is not on offer for this workload"))
            self.solves += 1
            questions = [self.use.question()] if kind == "with" else []
            start = time.perf_counter()
            plan = search(
                resolved, offered, solver, start=start, questions=questions, pruned=pruned, diagnose=False
            ).document
        except OutOfTime:
            return nothing(0.0)
        finally:
            if solver.clock.stopped:
                raise KeyboardInterrupt
        if plan.cost is None:
            return nothing(math.inf if plan.status == "infeasible" else 0.0)
        keys = {candidate.key for candidate in offered.problem.candidates if self.use.means(candidate)}
        return Tried(
            value=value,
            resolved=resolved,
            document=plan,
            bound=plan.cost.bound_usd_per_hour,
            uses=any(pool.key in keys and pool.serves for pool in plan.pools),
            spending=Spending.of(plan, offered.problem),
        )
