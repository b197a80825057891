"""Plans for one workload alone, and what becomes of their fleets in the scenarios."""

from __future__ import annotations

from collections.abc import Callable

from epd_opt import document as doc
from epd_opt.assemble import feasible_document
from epd_opt.backends import HIGHS, Clocked, OutOfTime, SolverFailed
from epd_opt.instance import Instance
from epd_opt.keeping import Fleet, kept
from epd_opt.keeping.breaks import missing_replicas
from epd_opt.keeping.fleet import idle_cost
from epd_opt.resolve import Resolved, resolve
from epd_opt.robust.scene import Scene, Scenes, restricted
from epd_opt.search import NoPlan, Task, cheapest_of
from epd_opt.solution import replica_counts, route

TIME_RAN_OUT = "Time ran out before all plans for one workload alone were compared."


def single_plans(
    instance: Instance, scenes: Scenes, task_of: Callable[[Resolved], Task], start: float
) -> tuple[list[doc.SinglePlan], str]:
    """The plan for each scenario alone and, where no scenario is the workload as stated, that for it; and what was left
    undone."""
    found: list[doc.SinglePlan] = []
    try:
        for scene in scenes.each:
            task = task_of(scene.resolved)
            task.means.say(f"planning for scenario {scene.case.name!r} alone")
            found.append(_single(scene.case.name, task, scene, scenes, start))
        if all(scenario.changes for scenario in instance.scenarios or ()):
            stated = {key: value for key, value in instance.document().items() if key not in ("scenarios", "robust")}
            task = task_of(resolve(Instance(**stated)))
            task.means.say("planning for the workload as stated")
            found.append(_single(None, task, None, scenes, start))
    except (OutOfTime, SolverFailed):
        return found, TIME_RAN_OUT
    return found, "" if all(_decided(single) for single in found) else TIME_RAN_OUT


def _decided(single: doc.SinglePlan) -> bool:
    return single.status != "stopped" and all(kept_in.targets_met is not None for kept_in in single.scenarios.values())


def _single(name: str | None, task: Task, scene: Scene | None, scenes: Scenes, start: float) -> doc.SinglePlan:
    offered = task.offering_at([1.0]) if scene is None else scene.offered
    best = cheapest_of(task, offered, diagnose=False)
    if isinstance(best, NoPlan):
        return _without_fleet(name, "infeasible" if best.why is not None else "stopped")
    solution = route(best.formulation, replica_counts(best.formulation, best.outcome), HIGHS, task.means.settings)
    if solution is None:
        return _without_fleet(name, "stopped")
    plan = feasible_document(task.resolved, best, solution, start)
    assert plan.cost is not None
    fleet = Fleet.of(plan)
    under = {other.case.name: _under(fleet, other, task.means.solver) for other in scenes.each}
    held = sum(other.case.weight for other in scenes.each if under[other.case.name].targets_met)
    return doc.SinglePlan(
        planned_for=name,
        status=plan.status,
        usd_per_hour=plan.cost.usd_per_hour,
        bound_usd_per_hour=plan.cost.bound_usd_per_hour,
        fleet=fleet.named(),
        scenarios=under,
        held_share=min(1.0, held),
        objective_usd_per_hour=None,
        regret_usd_per_hour=None,
    )


def _without_fleet(name: str | None, status: doc.Status) -> doc.SinglePlan:
    return doc.SinglePlan(
        planned_for=name,
        status=status,
        usd_per_hour=None,
        bound_usd_per_hour=None,
        fleet={},
        scenarios={},
        held_share=0.0,
        objective_usd_per_hour=None,
        regret_usd_per_hour=None,
    )


def _under(fleet: Fleet, scene: Scene, solver: Clocked) -> doc.KeptIn:
    """What becomes of a fleet in a scenario; where it breaks, what it lacks."""
    known = {one.physical for one in scene.offered.problem.candidates}
    offered = restricted(scene.offered, fleet.replicas) if known >= fleet.replicas.keys() else None
    found = kept(fleet, scene.resolved, solver, offered)
    breaks = list(found.reasons)
    if found.feasible is False and not breaks:
        breaks = list(missing_replicas(fleet, scene.resolved, solver, offered))
    cost = idle_cost(fleet, scene.resolved) if found.usd_per_hour is None else found.usd_per_hour
    return doc.KeptIn(targets_met=found.feasible, usd_per_hour=cost, breaks=breaks)
