"""The whole trip from an instance with scenarios to a verified plan."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace

from epd_opt import document as doc
from epd_opt.assemble import infeasible_document, stopped_document
from epd_opt.backends import Clock, Clocked, OutOfTime, backend, out_of_time
from epd_opt.document import PlanDocument
from epd_opt.instance import Instance, Robust
from epd_opt.plan import Plan
from epd_opt.problem import Aim
from epd_opt.resolve import Resolved, resolve
from epd_opt.robust.assemble import robust_document
from epd_opt.robust.hours import beside_single_tariffs
from epd_opt.robust.mends import with_mends
from epd_opt.robust.scene import scenes_of
from epd_opt.robust.search import FleetFound, NoFleet, best_fleet
from epd_opt.robust.singles import single_plans
from epd_opt.search import Task
from epd_opt.verify import verify


def plan_for_scenarios(
    instance: Instance,
    clock: Clock,
    *,
    start: float,
    say: Callable[[str], None] = lambda _: None,
    mends: bool = True,
) -> Plan:
    """The fleet that is best over the scenarios of an instance, verified in each of them, or why there is none.

    Once there is a plan, it has seven tenths of the time left after gathering candidates, and plans to compare it with what
    is left then.

    Parameters
    ----------
    mends : bool
        Whether to try, where there is no fleet, limits that all scenarios share at values that may be enough; for a few
        seconds at most.

    Raises
    ------
    InvalidInput, SolverFailed, VerificationError
        As :func:`epd_opt.solve`.
    """
    solver = Clocked(solver=backend(instance.solver.name), clock=clock)
    aim = aim_of(instance)

    def task_of(resolved: Resolved, within: Clock = clock) -> Task:
        return Task.of(resolved, replace(solver, clock=within), say)

    try:
        scenes = scenes_of(instance, task_of)
    except OutOfTime:
        return Plan(stopped_document(resolve(instance), out_of_time(solver), start))
    found: FleetFound | NoFleet = NoFleet()
    for share in (_OWN_TIME, 1.0):
        own = Clock(share * clock.left_s)
        with contextlib.suppress(OutOfTime):
            found = best_fleet(scenes, aim, task_of(scenes.each[0].resolved, own).means)
        if own.stopped:
            clock.stop()
        if isinstance(found, FleetFound) or found.why is not None or clock.left_s == 0.0:
            break
    if isinstance(found, NoFleet):
        if found.why is not None:
            why = found.why
            if mends and found.raised:
                why = with_mends(why, found.raised, instance, _trials(Clock(min(clock.left_s, _MENDING_S))))
            return Plan(infeasible_document(resolve(instance), why, found.outcome, start))
        return Plan(stopped_document(resolve(instance), found.outcome or out_of_time(solver), start))
    later = Clock((1.0 - _CHECKING) * clock.left_s)
    singles: list[doc.SinglePlan] = []
    tariffs: list[doc.SingleTariff] = []
    if instance.workload.by_the_hour:
        means = task_of(scenes.each[0].resolved, later).means
        found, tariffs, note = beside_single_tariffs(scenes, found, means)
    else:
        singles, note = single_plans(instance, scenes, lambda resolved: task_of(resolved, later), start)
    document = robust_document(
        instance, found, aim, singles=singles, single_tariffs=tariffs, reduced=scenes.reduced, note=note, start=start
    )
    plan = Plan(document)
    verify(plan)
    return plan


_OWN_TIME, _CHECKING = 0.7, 0.2
"""Shares of the time: for a plan where others are made to compare it with, and of what is left then, for checks."""
_MENDING_S = 10.0
"""Seconds for which limits are tried."""


def _trials(clock: Clock) -> Callable[[Instance], PlanDocument | None]:
    """Plans changed instances while there is time."""

    def plan(changed: Instance) -> PlanDocument | None:
        if clock.left_s == 0.0:
            return None
        began = time.perf_counter()
        brief = changed.model_copy(update={"solver": changed.solver.model_copy(update={"time_limit_s": clock.left_s})})
        found = plan_for_scenarios(brief, clock, start=began, mends=False).document
        return None if found.status == "stopped" else found

    return plan


def aim_of(instance: Instance) -> Aim:
    """What an instance wants to be best at."""
    wanted = instance.robust or Robust()
    level = wanted.level if wanted.minimise == "cvar" else 0.0
    return Aim(minimise=wanted.minimise, level=level, held_share=wanted.served_share)
