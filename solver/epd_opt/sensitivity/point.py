"""One point of a study, solved by itself in whatever process."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from epd_opt.backends import Clock, Clocked, OutOfTime, backend
from epd_opt.document import Cost, PlanDocument
from epd_opt.errors import EpdError
from epd_opt.infeasible import without_way
from epd_opt.instance import Instance
from epd_opt.keeping.breaks import breaks
from epd_opt.keeping.fleet import Fleet, Kept, among, kept, offered_to, serving
from epd_opt.offering import Offering
from epd_opt.pipeline import search
from epd_opt.resolve import Resolved, resolve
from epd_opt.sensitivity.document import KeptFleet, Point
from epd_opt.sensitivity.neighbours import informed
from epd_opt.sensitivity.rates import Rates, with_rates
from epd_opt.sensitivity.reuse import Candidates
from epd_opt.sensitivity.serving import Servings
from epd_opt.sensitivity.spending import Spending
from epd_opt.solution import Solution


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A point to solve; it can be sent to another process.

    Attributes
    ----------
    at : dict
        Value, or factor, on each dimension.
    document : dict
        The instance at the point.
    fleet : Fleet or None
        Today's, where there is one.
    cards : mapping, optional
        Cards of an earlier plan, used in place of the catalogue's.
    made_for : tuple of Rates
        Rates that operating points are made for; its own where there are none.
    below, above : mapping, optional
        Points that are known, with operating points for the same rates, where no class has more demand, or none has less.
    """

    at: dict[str, Any]
    document: dict[str, Any]
    fleet: Fleet | None
    cards: Mapping[str, Any] | None = None
    made_for: tuple[Rates, ...] = ()
    below: Mapping[str, Any] | None = None
    above: Mapping[str, Any] | None = None

    def resolved(self, rates: Rates | None = None) -> Resolved:
        """The instance at the point, or at other rates."""
        document = self.document if rates is None else with_rates(self.document, rates)
        return resolve(Instance(**document), cards=self.cards)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A point as plain data, and what its plan and the fleet that is kept there are paid for, where there are any."""

    point: dict[str, Any]
    plan: Spending | None = None
    kept: Spending | None = None


_CANDIDATES = Candidates()
"""What the points solved in this process found on offer, for those that differ from them in prices and limits alone."""
_SERVINGS = Servings()
"""How the fleets kept in this process served."""


def solved(job: Job) -> dict[str, Any]:
    """The point as plain data; see :func:`answered`."""
    return answered(job).point


def answered(job: Job) -> Answer:
    """A point. Whatever goes wrong is told in it, so that one point fails alone.

    Raises
    ------
    KeyboardInterrupt
        Somebody interrupted one of its solves, which by itself ends that solve alone.
    """
    try:
        return _answered(job)
    except EpdError as error:
        return Answer(point=failed(job.at, " ".join(str(error).split())))
    except Exception as error:
        return Answer(point=failed(job.at, f"{type(error).__name__}: {error}"))


def failed(at: Mapping[str, Any], error: str) -> dict[str, Any]:
    """A point that could not be solved."""
    point = Point(at=dict(at), status="failed", cost=None, pools=[], kept_fleet=None, regret_usd_per_hour=None, error=error)
    return point.model_dump(mode="json", by_alias=True)


def _answered(job: Job) -> Answer:
    resolved = job.resolved()
    plan, offered, found = _plan(job, resolved)
    fleet, spent = (None, None) if job.fleet is None else _kept(job.fleet, job, resolved, offered)
    status, cost = ("stopped", None) if plan is None else (plan.status, plan.cost)
    why = None if plan is None else plan.infeasibility
    point = Point(
        at=job.at,
        status=status,
        cost=cost,
        pools=[] if plan is None else plan.pools,
        kept_fleet=fleet,
        regret_usd_per_hour=regret(fleet, cost),
        reasons=[] if why is None else why.reasons,
        found=found,
    )
    return Answer(
        point=point.model_dump(mode="json", by_alias=True),
        plan=None if plan is None or cost is None or offered is None else Spending.of(plan, offered.problem),
        kept=spent,
    )


def regret(fleet: KeptFleet | None, cost: Cost | None) -> float | None:
    """Cost of a fleet that is kept less that of a point's plan, where there are both."""
    if cost is None or fleet is None or fleet.usd_per_hour is None:
        return None
    more = fleet.usd_per_hour - cost.usd_per_hour
    return 0.0 if abs(more) <= 1e-9 * cost.usd_per_hour else more


def _plan(job: Job, resolved: Resolved) -> tuple[PlanDocument | None, Offering | None, Literal["solved", "between"]]:
    """The best plan, all that was on offer, and how it was found; None where there was no time to look for them."""
    start = time.perf_counter()
    solver = clocked(resolved)
    offered: Offering | None = None
    try:
        made_for = {rates: partial(job.resolved, rates) for rates in job.made_for}
        offered, problem = _CANDIDATES.of(resolved, made_for, each=solver.clock.check)
        pruned = None if without_way(resolved, replace(offered, problem=problem)) else problem
        scout = None
        if pruned is not None and (job.below is not None or job.above is not None):
            scout = informed(pruned, resolved, solver, job.below, job.above)
        plan = search(resolved, offered, solver, start=start, pruned=pruned, diagnose=False, scout=scout).document
        if scout is None or not scout.settled:
            return plan, offered, "solved"
        if plan.status == "optimal":
            return plan, offered, "between"
        scout.settled = False
        plan = search(resolved, offered, solver, start=start, pruned=pruned, diagnose=False, scout=scout).document
        return plan, offered, "solved"
    except OutOfTime:
        return None, offered, "solved"
    finally:
        _go_on(solver)


def _go_on(solver: Clocked) -> None:
    if solver.clock.stopped:
        raise KeyboardInterrupt


def _suspects(below: Mapping[str, Any] | None) -> list[tuple[str | None, str]] | None:
    """Targets that may be what breaks where a fleet does not serve less demand already: no others than there. None where
    it serves that, or not all that breaks there is known."""
    kept_there = None if below is None else below["kept_fleet"]
    if kept_there is None or kept_there["feasible"] is not False:
        return None
    reasons = kept_there["breaks"]
    if not reasons or reasons[-1]["limit"] != "replicas":
        return None
    return [(reason["class"], reason["limit"]) for reason in reasons]


def clocked(resolved: Resolved) -> Clocked:
    """The instance's solver, with all of its time limit."""
    wanted = resolved.instance.solver
    return Clocked(solver=backend(wanted.name), clock=Clock(wanted.time_limit_s))


def _kept(fleet: Fleet, job: Job, resolved: Resolved, offered: Offering | None) -> tuple[KeptFleet, Spending | None]:
    """What becomes of a fleet that is kept, within the time limit, and what it is paid for where it serves; ``offered``:
    all that is on offer, if known."""
    solver = clocked(resolved)
    ours = None if offered is None or fleet.points_for != (1.0,) else among(fleet, offered)
    if ours is not None and {candidate.physical for candidate in ours.problem.candidates} != set(fleet.replicas):
        # What is on offer leaves out placements that others make needless; the fleet has them all the same.
        ours = None

    suspects = _suspects(job.below)

    def serve() -> Solution | Kept:
        if suspects is not None:
            return Kept(feasible=False)
        return serving(fleet, resolved, ours or offered_to(fleet, resolved, solver), solver)

    try:
        found = kept(fleet, resolved, solver, serve=lambda: _SERVINGS.of(fleet, resolved, job.made_for, serve))
        why = breaks(fleet, resolved, found, solver, ours, suspects) if found.feasible is False else []
    except OutOfTime:
        found, why = Kept(feasible=None), []
    _go_on(solver)
    shown = KeptFleet(usd_per_hour=found.usd_per_hour, feasible=found.feasible, breaks=why)
    return shown, Spending.of_kept(found)
