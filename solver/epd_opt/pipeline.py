"""The whole trip, from an instance to a verified plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from epd_opt.assemble import feasible_document, infeasible_document, stopped_document
from epd_opt.backends import HIGHS, Clock, Clocked, OutOfTime, SolverFailed, backend, out_of_time
from epd_opt.document import PlanDocument
from epd_opt.formulation import Question
from epd_opt.instance import Instance
from epd_opt.mending import mended
from epd_opt.offering import Offering
from epd_opt.plan import Plan
from epd_opt.problem import PlanningProblem
from epd_opt.reading import complaining_in_place, read
from epd_opt.resolve import Resolved, resolve
from epd_opt.robust import plan_for_scenarios
from epd_opt.search import Found, NoPlan, Task, best, cheapest_of
from epd_opt.shortlist import Scout
from epd_opt.solution import replica_counts, route
from epd_opt.verify import VerificationError, verify


@complaining_in_place()
def solve(
    instance: Instance | Mapping[str, Any] | str, *, progress: Callable[[str], None] | None = None, mends: bool = True
) -> Plan:
    """Find the fleet that serves an instance within its targets and is best by its objective.

    Parameters
    ----------
    instance : Instance, mapping or path
        What to plan.
    progress : callable, optional
        Called with one line per step.
    mends : bool
        Whether to look, where nothing is feasible, for the changes after which something is; for a few seconds at most.

    Returns
    -------
    Plan
        With status ``optimal`` (proved within the gap), ``feasible`` (not proved), ``infeasible`` (with reasons) or
        ``stopped`` (the limit passed before any plan was found).

    Raises
    ------
    InvalidInput
        The instance makes no sense.
    SolverFailed
        The solver ended without a plan, and not because of the clock, the keyboard or the instance.
    VerificationError
        The plan failed its own check: a fault of this program, never shown as a plan.
    """
    say = progress or (lambda _: None)
    start = time.perf_counter()
    instance = instance if isinstance(instance, Instance) else read(instance)
    clock = Clock(instance.solver.time_limit_s)
    if instance.scenarios or instance.workload.by_the_hour:
        return plan_for_scenarios(instance, clock, start=start, say=say, mends=mends)
    resolved = resolve(instance)
    plan = planned(resolved, clock, start=start, say=say)
    if plan.status == "infeasible" and mends:
        brief = Clock(min(clock.left_s, _MENDING_S))
        return with_mends(plan, resolved, brief, thorough=False, say=say)
    return plan


_MENDING_S = 5.0
"""Seconds for which solving an infeasible instance looks for mends; explaining it may take longer."""


_ATTEMPT_S, _ATTEMPTS = 2.0, 15
"""What one change may take before it counts as undecided: these seconds, or the time for all of them over so many."""


def planned(resolved: Resolved, clock: Clock, *, start: float, say: Callable[[str], None] = lambda _: None) -> Plan:
    """The best plan by the instance's objective, verified, or why there is none."""
    solver = Clocked(solver=backend(resolved.instance.solver.name), clock=clock)
    task = Task.of(resolved, solver, say)
    try:
        return _plan(task, best(task), start)
    except OutOfTime:
        return Plan(stopped_document(resolved, out_of_time(solver), start))


def with_mends(
    plan: Plan,
    resolved: Resolved,
    clock: Clock,
    *,
    thorough: bool,
    cards: Mapping[str, Any] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Plan:
    """An infeasible plan with changes after which its instance is feasible, as many as are found in time.

    Parameters
    ----------
    thorough : bool
        Whether to look for all of them, or for one per reason.
    cards : mapping, optional
        Cards of an earlier plan, used in place of the catalogue's.
    """

    each_s = max(_ATTEMPT_S, clock.left_s / _ATTEMPTS)

    def attempt(changed: Resolved, offered: Offering) -> PlanDocument:
        own = Clock(min(clock.left_s, each_s))
        start = time.perf_counter()
        solver = Clocked(solver=backend(changed.instance.solver.name), clock=own)
        try:
            if changed.instance.objective != "cost_per_request":
                return planned(changed, own, start=start).document
            return search(changed, offered, solver, start=start, diagnose=False).document
        except (SolverFailed, VerificationError):
            return stopped_document(changed, out_of_time(solver), start)

    solver = Clocked(solver=backend(resolved.instance.solver.name), clock=clock)
    why = mended(resolved, plan.document.infeasibility, attempt, clock, solver, thorough=thorough, cards=cards, say=say)
    return Plan(plan.document.model_copy(update={"infeasibility": why}))


def search(
    resolved: Resolved,
    offered: Offering,
    solver: Clocked,
    *,
    start: float,
    say: Callable[[str], None] = lambda _: None,
    questions: Sequence[Question] = (),
    pruned: PlanningProblem | None = None,
    diagnose: bool = True,
    scout: Scout | None = None,
) -> Plan:
    """The cheapest fleet for the rates as resolved among what is on offer, verified, or why there is none, whatever the
    instance's objective.

    Parameters
    ----------
    solver : Clocked
        A back-end with the time that it may take.
    start : float
        When the work began (``time.perf_counter``).
    questions : sequence of Question
        Constraints that the fleet must keep beside those of every plan.
    pruned : PlanningProblem, optional
        The pruned problem of an earlier search, every class of which has a way to its end.
    diagnose : bool
        Whether to look for the reasons where nothing is feasible.
    scout : Scout, optional
        With what it knows of the offering; without questions only.
    """
    task = Task.of(resolved, solver, say)
    found = cheapest_of(task, offered, questions=questions, pruned=pruned, diagnose=diagnose, scout=scout)
    return _plan(task, found, start)


def _plan(task: Task, found: Found | NoPlan, start: float) -> Plan:
    """The plan of a search, verified."""
    if isinstance(found, NoPlan):
        if found.why is not None:
            return Plan(infeasible_document(task.resolved, found.why, found.outcome, start))
        return Plan(stopped_document(task.resolved, found.outcome or out_of_time(task.means.solver), start))
    solution = route(found.formulation, replica_counts(found.formulation, found.outcome), HIGHS, task.means.settings)
    if solution is None:
        raise VerificationError("the fleet found by the solver cannot route the demand")
    resolved = task.resolved.at(found.multiple)
    plan = Plan(feasible_document(resolved, found, solution, start))
    verify(plan, offered=found.offered, resolved=resolved)
    return plan
