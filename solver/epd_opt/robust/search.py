"""The best fleet for all scenarios, and how it serves each of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pulp

from epd_opt import document as doc
from epd_opt.assemble import with_all_rows
from epd_opt.backends import HIGHS, Clock, Outcome
from epd_opt.bound import proved_over_occasions
from epd_opt.formulation import Formulation, OccasionsFormulation, build, build_occasions
from epd_opt.formulation.objective import served_objective, total
from epd_opt.formulation.occasions import expected_terms, tie_terms
from epd_opt.infeasible import Relaxation, relaxations, unservable
from epd_opt.keeping import Fleet
from epd_opt.keeping.fleet import free_of_limits, serving, within
from epd_opt.predict import reinforced
from epd_opt.problem import Aim, Limits, Occasion, PlanningProblem
from epd_opt.prune import prune
from epd_opt.robust.apart import Apart, Together, carried
from epd_opt.robust.scene import Physical, Scene, Scenes, restricted
from epd_opt.search import NoPlan, Task, cheapest_of
from epd_opt.search.task import Means
from epd_opt.solution import PoolSolution, Solution, replica_counts, route
from epd_opt.verify import VerificationError

_ALL = 1e-6
"""Share of a scenario's demand that may be missing for it to count as served in full: what solvers cannot tell from none."""


@dataclass(frozen=True, kw_only=True)
class Served:
    """A scenario and how the fleet serves it.

    Attributes
    ----------
    solution : Solution or None
        Over candidates with all their rows; None where targets are not met.
    share : float
        Of the demand that is served within all targets.
    """

    scene: Scene
    solution: Solution | None
    share: float = 1.0


@dataclass(frozen=True, kw_only=True)
class FleetFound:
    """A fleet for all scenarios.

    Attributes
    ----------
    formulation : OccasionsFormulation or Formulation
        The model that it is a solution of; with a single scenario that of a plan for it.
    stands : Mapping
        Replicas of each physical pool, spares among them.
    hired : tuple of Mapping
        Replicas of each physical pool that every scenario hires by the hour beside them, spares among them.
    unchanged : bool
        Whether it is the fleet that the solver found; predictions at the real load may ask for more.
    bound_usd_per_hour : float
        On what is minimised over all fleets, beside that of the outcome.
    whole : bool
        Whether the model is over all that may be served by, so that the bound of the outcome holds.
    """

    formulation: OccasionsFormulation | Formulation
    outcome: Outcome
    served: tuple[Served, ...]
    stands: Mapping[Physical, int]
    hired: tuple[Mapping[Physical, int], ...]
    unchanged: bool
    bound_usd_per_hour: float = 0.0
    whole: bool = True


@dataclass(frozen=True, kw_only=True)
class NoFleet:
    """The end of a search without a fleet: infeasible, with reasons, or stopped.

    Attributes
    ----------
    raised : tuple of (str, float)
        Limits that all scenarios share, by their paths, and what each would have to be, if it alone were another.
    """

    why: doc.Infeasibility | None = None
    outcome: Outcome | None = None
    raised: tuple[tuple[str, float], ...] = ()


_NOTHING = doc.Infeasibility(reasons=[], mends=[])


def best_fleet(scenes: Scenes, aim: Aim, means: Means, *, diagnose: bool = True) -> FleetFound | NoFleet:
    """The fleet that is best over the scenarios by an aim.

    Parameters
    ----------
    diagnose : bool
        Whether to look for the reasons where nothing is feasible.

    Raises
    ------
    OutOfTime
        The clock ended before there was a model.
    SolverFailed
        See :meth:`epd_opt.search.task.Means.solve`.
    """
    lost = [(scene, why) for scene in scenes.each if (why := unservable(scene.resolved, scene.offered)) is not None]
    if math.fsum(scene.case.weight for scene, _ in lost) > 1.0 - aim.held_share + 1e-9:
        return NoFleet(why=_named((scene, why.reasons) for scene, why in lost))
    if len(scenes.each) == 1:
        return _only_one(scenes, means)
    occasions = [scene.occasion for scene in scenes.each]
    many = sum(len(occasion.problem.candidates) for occasion in occasions) > FEW
    if many and aim.held_share == 1.0:
        found = _apart(scenes, aim, means)
        if found is not None:
            return found
    formulation = build_occasions(occasions, aim, scenes.hired)
    outcome = means.solve(formulation)
    if outcome.termination == "infeasible":
        return (
            replace(_why(scenes, occasions, aim, means), outcome=outcome)
            if diagnose
            else NoFleet(why=_NOTHING, outcome=outcome)
        )
    if outcome.values is None:
        return NoFleet(outcome=outcome)
    outcome = replace(outcome, values=_least_energy(formulation, outcome.values, means) or outcome.values)
    found = _found(scenes, formulation, outcome, list(_planned(scenes, formulation, outcome, means)), means)
    return replace(found, whole=not scenes.reduced)


FEW = 600
"""Candidates of all scenarios together up to which one model of all of them is solved at once."""


def _apart(scenes: Scenes, aim: Aim, means: Means) -> FleetFound | None:
    """The best fleet, found scenario by scenario; None where none was in its part of the time.

    What is not proved then is left to the model of all scenarios, which starts from what was found.
    """
    left = means.clock.left_s
    if left == 0.0:
        return None
    part = Clock(left * (_PART_HOURS if scenes.hired else _PART_APART))
    search = Apart(scenes=scenes, aim=aim, means=replace(means, solver=replace(means.solver, clock=part)))
    search.run()
    if part.stopped:
        means.clock.stop()
    best, bound = search.best, search.bound_on_all(means.clock)
    if best is None:
        return None
    whole = False
    if best.value - bound > means.settings.gap * best.value and means.clock.left_s > 0.0:
        formulation = build_occasions([scene.occasion for scene in scenes.each], aim, scenes.hired)
        outcome = means.solve(formulation, replace(means.settings, start=carried(best, formulation)))
        found = None if outcome.values is None else Together(formulation=formulation, outcome=outcome)
        if found is not None and found.value <= best.value * (1.0 + 1e-9):
            best, whole = found, not scenes.reduced
        elif not scenes.reduced:
            bound = max(bound, proved_over_occasions(formulation, outcome, best.value)[0])
    outcome = best.outcome if whole else replace(best.outcome, termination="time_limit", bound=None)
    assert outcome.values is not None
    outcome = replace(outcome, values=_least_energy(best.formulation, outcome.values, means) or outcome.values)
    planned = list(_planned(scenes, best.formulation, outcome, means))
    fleet = _found(scenes, best.formulation, outcome, planned, means)
    return replace(fleet, bound_usd_per_hour=bound, whole=whole)


_PART_APART, _PART_HOURS = 0.4, 0.95
"""Share of the time for which a fleet is looked for scenario by scenario, where nothing is hired by the hour, and where
something is: the model of all hours then seldom finds more."""


def _only_one(scenes: Scenes, means: Means) -> FleetFound | NoFleet:
    """The fleet of a plan for the only scenario."""
    (scene,) = scenes.each
    found = cheapest_of(Task(resolved=scene.resolved, means=means), scene.offered)
    if isinstance(found, NoPlan):
        why = None if found.why is None else _named([(scene, found.why.reasons)])
        return NoFleet(why=why, outcome=found.outcome)
    solution = _routed(scene, found.formulation, replica_counts(found.formulation, found.outcome), means)
    return _found(scenes, found.formulation, found.outcome, [solution], means)


def _least_energy(
    formulation: OccasionsFormulation, values: Mapping[str, float], means: Means
) -> Mapping[str, float] | None:
    """The same fleet with each occasion served at least cost, where the aim left that open; None where it did not, or there
    is no time."""
    if formulation.aim.minimise == "expected_cost" or not any(_metered(o.problem) for o in formulation.occasions):
        return None
    again = build_occasions(formulation.occasions, formulation.aim)
    fleet = again.fleet.variables
    fixed = [*fleet.replicas, *fleet.used.values(), *fleet.lots.values(), *fleet.owned.values()]
    fixed += [part.variables.unserved for part in again.parts if part.variables.unserved is not None]
    for variable in fixed:
        variable.lowBound = variable.upBound = float(round(values[variable.name]))
    again.model.setObjective(total([*expected_terms(again), *tie_terms(again)]))
    return means.solver.solve(again.model, replace(means.settings, start=values)).values


def _metered(problem: PlanningProblem) -> bool:
    """Whether work costs anything beside the units that do it."""
    return any(offer.busy_usd_per_unit_second for offer in problem.offers)


def _planned(scenes: Scenes, formulation: OccasionsFormulation, outcome: Outcome, means: Means) -> Iterator[Solution | None]:
    """How a solution serves each scenario; None where it does not."""
    assert outcome.values is not None
    for scene, part in zip(scenes.each, formulation.parts, strict=True):
        left = part.variables.unserved
        if left is not None and outcome.values[left.name] > 0.5:
            yield None
        else:
            yield _routed(scene, build(part.sets.problem), replica_counts(part, outcome), means)


def _routed(scene: Scene, formulation: Formulation, counts: Mapping[int, int], means: Means) -> Solution:
    found = route(formulation, counts, HIGHS, means.settings)
    if found is None:
        raise VerificationError(f"the fleet found by the solver cannot route the demand of scenario {scene.case.name!r}")
    return with_all_rows(found, scene.offered)


def _found(
    scenes: Scenes,
    formulation: OccasionsFormulation | Formulation,
    outcome: Outcome,
    planned: Sequence[Solution | None],
    means: Means,
) -> FleetFound:
    """The fleet that stands for all scenarios, with the replicas that predictions ask for, and how it serves each."""
    stands: dict[Physical, int] = {}
    for scene, solution in zip(scenes.each, planned, strict=True):
        _raise_to(stands, scene, solution, scenes.hired)
    before = dict(stands)
    real = [
        None if solution is None else _as_predicted(scene, solution, before, means, alone=len(planned) == 1)
        for scene, solution in zip(scenes.each, planned, strict=True)
    ]
    for scene, solution in zip(scenes.each, real, strict=True):
        _raise_to(stands, scene, solution, scenes.hired)
    unchanged = stands == before and all(
        hired_by(scene, one, scenes.hired) == hired_by(scene, other, scenes.hired)
        for scene, one, other in zip(scenes.each, planned, real, strict=True)
    )
    served: list[Served] = []
    for scene, solution in zip(scenes.each, real, strict=True):
        one = Served(scene=scene, solution=solution) if solution is not None else _partly(scene, stands, means)
        served_after_all = solution is None and one.solution is not None
        unchanged = unchanged and not (served_after_all and _metered(scene.problem))
        served.append(one)
    return FleetFound(
        formulation=formulation,
        outcome=outcome,
        served=tuple(served),
        stands=dict(sorted(stands.items())),
        hired=tuple(hired_by(one.scene, one.solution, scenes.hired) for one in served),
        unchanged=unchanged,
    )


def _raise_to(stands: dict[Physical, int], scene: Scene, solution: Solution | None, hired: Collection[str]) -> None:
    """Let at least as many replicas stand as a scenario runs, with its spares; what is hired does not stand."""
    for physical, count in running(scene, solution).items():
        if physical[0] in hired:
            continue
        stands[physical] = max(stands.get(physical, 0), count)


def running(scene: Scene, solution: Solution | None) -> dict[Physical, int]:
    """Replicas of each physical pool that a scenario runs, spares among them."""
    counts: dict[Physical, int] = {}
    pools: Sequence[PoolSolution] = () if solution is None else solution.pools
    for pool in pools:
        physical = pool.candidate.physical
        counts[physical] = counts.get(physical, 0) + pool.replicas
    return {physical: count + scene.problem.standing_by(count) for physical, count in counts.items()}


def hired_by(scene: Scene, solution: Solution | None, hired: Collection[str]) -> dict[Physical, int]:
    """Replicas of each physical pool that a scenario hires by the hour, spares among them."""
    return {physical: count for physical, count in running(scene, solution).items() if physical[0] in hired}


def _as_predicted(
    scene: Scene, solution: Solution, stands: Mapping[Physical, int], means: Means, *, alone: bool
) -> Solution:
    """A solution with the replicas that predictions at its load ask for; where those are more than stand, another one over
    the same fleet, if there is one. A plan for one scenario ``alone`` has what predictions ask for."""
    real = reinforced(scene.offered, solution)
    if alone or all(count <= stands.get(physical, count) for physical, count in running(scene, real).items()):
        return real
    other = serving(_fleet(stands, scene), scene.resolved, restricted(scene.offered, stands), means.solver)
    return other if isinstance(other, Solution) else real


def _fleet(stands: Mapping[Physical, int], scene: Scene) -> Fleet:
    sizes = {one.physical: one for one in scene.offered.problem.candidates}
    placements = {sizes[physical].placement for physical in stands if physical in sizes}
    return Fleet(
        replicas=dict(sorted(stands.items())),
        placements=tuple(sorted(placements)),
        units={},
        sizes={physical: sizes[physical].units for physical in sorted(stands) if physical in sizes},
    )


def _partly(scene: Scene, stands: Mapping[Physical, int], means: Means) -> Served:
    """How far the fleet serves a scenario that it was not planned to serve; in full, if it can."""
    if unservable(scene.resolved, restricted(scene.offered, stands)) is not None:
        return Served(scene=scene, solution=None, share=0.0)
    fleet = _fleet(stands, scene)
    offered = restricted(scene.offered, stands)
    whole = serving(fleet, scene.resolved, offered, means.solver)
    if isinstance(whole, Solution):
        return Served(scene=scene, solution=whole)
    problem = replace(free_of_limits(prune(offered.problem)), least_served=0.0)
    formulation = build(problem, [within(fleet)])
    formulation.model.setObjective(served_objective(formulation.sets, formulation.variables))
    values = means.solver.solve(formulation.model, replace(means.settings, gap=max(means.settings.gap, 1e-3))).values
    assert formulation.variables.unserved is not None
    share = 0.0 if values is None else 1.0 - values[formulation.variables.unserved.name]
    return Served(scene=scene, solution=None, share=min(max(0.0, share), 1.0 - _ALL))


def _named(found: Iterable[tuple[Scene, Sequence[doc.Reason]]]) -> doc.Infeasibility:
    """Reasons of scenarios, each with its scenario's name before it."""
    reasons = [
        reason.model_copy(update={"text": f"scenario {scene.case.name!r}: {reason.text}"})
        for scene, own in found
        for reason in own
    ]
    return doc.Infeasibility(reasons=reasons, mends=[], note=ONE_BY_ONE)


ONE_BY_ONE = "solve --scenario NAME looks for mends of one scenario alone."


def _why(scenes: Scenes, occasions: Sequence[Occasion], aim: Aim, means: Means) -> NoFleet:
    """Reasons of the scenarios that no fleet serves even alone; else the limits that leave no room for one fleet for all."""
    alone = []
    for scene in scenes.each:
        found = cheapest_of(Task(resolved=scene.resolved, means=means), scene.offered)
        if isinstance(found, NoPlan) and found.why is not None:
            alone.append((scene, found.why.reasons))
    enough = list(_enough(scenes, occasions, aim, means))
    raised = tuple((limit.path, value) for limit, value in enough)
    if math.fsum(scene.case.weight for scene, _ in alone) > 1.0 - aim.held_share + 1e-9:
        return NoFleet(why=_named(alone), raised=raised)
    reasons = [
        doc.Reason(
            limit=limit.limit,
            wanted=limit.wanted,
            best_reachable=value,
            text=f"{limit.label} is {limit.wanted:g}; {_ALL_OF_THEM[bool(scenes.hired)]} about {value:.4g}",
        )
        for limit, value in enough
    ]
    if not reasons:
        text = "each scenario has a fleet by itself; no one fleet keeps all limits together in all of them"
        reasons.append(doc.Reason(limit=_some_limit(occasions[0].problem.limits), text=text))
    return NoFleet(why=doc.Infeasibility(reasons=reasons, mends=[], note=ONE_BY_ONE), raised=raised)


_ALL_OF_THEM = {False: "one fleet for all scenarios needs", True: "a plan for all hours needs"}


def _enough(scenes: Scenes, occasions: Sequence[Occasion], aim: Aim, means: Means) -> Iterator[tuple[Relaxation, float]]:
    """Limits each of which, taken away alone, leaves room for one fleet, with the least that would do."""
    for relaxed in zip(*(relaxations(occasion.problem) for occasion in occasions), strict=True):
        free = [replace(o, problem=own.problem) for o, own in zip(occasions, relaxed, strict=True)]
        limit = relaxed[0]
        built = build_occasions(free, aim, scenes.hired)
        level = built.model.add_variable("enough", 0)
        for index, part in enumerate([built.fleet] if limit.limit in ("skus", "racks") else built.parts):
            row = pulp.LpAffineExpression([*merged(limit.least(part)), (level, -1.0)]) <= 0
            built.model.addConstraint(row, f"enough_{index}")
        built.model.setObjective(total([(level, 1.0)]))
        outcome = means.solver.solve(built.model, means.settings)
        if outcome.values is not None and outcome.objective is not None:
            yield limit, outcome.objective


def merged(terms: Iterable[tuple[pulp.LpVariable, float]]) -> list[tuple[pulp.LpVariable, float]]:
    """Terms of which no two have the same variable."""
    return list(total(terms).items())


def _some_limit(limits: Limits) -> str:
    if limits.usd_per_hour is not None:
        return "usd_per_hour"
    return "devices" if limits.devices is not None else "power_kw" if limits.power_w is not None else "stock"
