"""From a fleet for all scenarios to the plan document."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from epd_opt import document as doc
from epd_opt.accounting import Holding, pool_units, total_usd_per_hour
from epd_opt.assemble import device_uses, plan_document, standing_pools, what_serves
from epd_opt.bound import counts_as_proved, proved_bound, proved_over_occasions
from epd_opt.document import HOURS_PER_MONTH, PlanDocument
from epd_opt.economics import Served as Service
from epd_opt.economics import prices_dated, unit_costs
from epd_opt.economics import served as service_of
from epd_opt.formulation import Formulation
from epd_opt.instance import Instance
from epd_opt.problem import Aim, PlanningProblem, measured
from epd_opt.resolve import Resolved
from epd_opt.robust.hours import hours_result
from epd_opt.robust.money import Running, held_in_each, requests_per_hour, shared_costs, sizes_of
from epd_opt.robust.scene import Physical
from epd_opt.robust.search import FleetFound, Served, running

LEFT_OUT = "Pools that no scenario would use if it were alone are left out for their number; the bound holds for them too."


def robust_document(
    instance: Instance,
    found: FleetFound,
    aim: Aim,
    *,
    singles: Sequence[doc.SinglePlan],
    single_tariffs: Sequence[doc.SingleTariff] = (),
    reduced: bool,
    note: str,
    start: float,
) -> PlanDocument:
    """The document of a plan for several scenarios, or for the hours of a day.

    Parameters
    ----------
    singles : sequence of SinglePlan
        Plans for one workload alone, without what they compare with.
    reduced : bool
        Whether the solver's bound is one over some of the pools alone; then those of the single plans must do.
    """
    first = found.served[0].scene.resolved
    held = held_in_each(found, aim)
    results = [_result(served, own, first) for served, own in zip(found.served, held, strict=True)]
    costs = [(result.weight, result.usd_per_hour) for result in results]
    value, expected = measured(aim, costs), measured(Aim(), costs)
    bound, gap = _proved(found, aim, singles, value)
    wanted = instance.solver.gap
    proved = (counts_as_proved(found.outcome, gap - wanted) and found.unchanged and found.whole) or gap <= wanted
    pools, sized_by = _standing(found, results, held)
    requests = math.fsum(s.scene.case.weight * requests_per_hour(s.scene.offered.problem) for s in found.served)
    lower = bound if aim.minimise == "expected_cost" else _alone(singles, found, Aim(held_share=aim.held_share), expected)
    problem = found.served[0].scene.offered.problem
    average = _over_all(found, held)
    sizes = sizes_of(found)
    names = _names(_most(found))
    standing: dict[str, list[tuple[str, Fraction, int]]] = {}
    for physical, count in found.stands.items():
        standing.setdefault(physical[0], []).append((names[physical], sizes[physical], count))
    devices = device_uses(problem, average, standing)
    power_kw = [_power_kw(problem, own) for own in held]
    document = plan_document(
        replace(first, instance=instance, warnings=_common_warnings(found)),
        found.outcome,
        start,
        status="optimal" if proved else "feasible",
        cost=doc.Cost(
            usd_per_hour=expected,
            usd_per_request=expected / requests if requests > 0 else None,
            usd_per_month=expected * HOURS_PER_MONTH,
            capex_usd=math.fsum(problem.offer(name).capex_usd * way.bought for name, way in average.items()),
            power_kw=max(power_kw),
            bound_usd_per_hour=min(lower, expected),
            gap=gap,
            billed_usd_per_hour=math.fsum(use.billed_usd_per_hour or 0.0 for use in devices.values()),
            upfront_usd=math.fsum(problem.offer(name).upfront_usd * way.bought for name, way in average.items()),
        ),
        pools=pools,
        devices=devices,
        costs=unit_costs(expected, _expected_service(found)),
        prices=prices_dated(first, average),
        scenarios=results,
        robust=doc.RobustResult(
            minimise=aim.minimise,
            cvar_level=aim.level if aim.minimise == "cvar" else None,
            served_share=aim.held_share,
            held_share=math.fsum(result.weight for result in results if result.targets_met),
            objective_usd_per_hour=value,
            bound_usd_per_hour=bound,
            gap=gap,
            expected_usd_per_hour=expected,
            worst_usd_per_hour=max(cost for _, cost in costs),
            sized_by=sized_by,
            single_plans=[_compared(single, aim, results, value) for single in singles],
            note=" ".join(text for text in (note, LEFT_OUT if reduced else "") if text),
        ),
    )
    document = document.model_copy(update={"cards": _cards(found)})
    if not instance.workload.by_the_hour:
        return document
    told = [r.model_copy(update={"power_kw": own}) for r, own in zip(results, power_kw, strict=True)]
    hours = hours_result(instance, document, problem, single_tariffs)
    return document.model_copy(update={"scenarios": told, "hours": hours})


def _over_all(found: FleetFound, held: Sequence[Mapping[str, Holding]]) -> dict[str, Holding]:
    """Units of every entry at their mean cost; of hired ones, the most that some scenario holds."""
    weights = [served.scene.case.weight for served in found.served]
    average = {}
    for name in sorted({name for own in held for name in own}):
        ways = [own[name] for own in held if name in own]
        costs = [(w, own[name].usd_per_hour if name in own else 0.0) for w, own in zip(weights, held, strict=True)]
        average[name] = Holding(
            used=max(way.used for way in ways),
            owned=max(way.owned for way in ways),
            bought=max(way.bought for way in ways),
            usd_per_hour=measured(Aim(), costs),
        )
    return average


def _power_kw(problem: PlanningProblem, held: Mapping[str, Holding]) -> float:
    return math.fsum(problem.offer(name).power_w * way.installed for name, way in held.items()) / 1e3


def _expected_service(found: FleetFound) -> Service:
    """What is served in an hour on average; unknown where one scenario does not tell."""
    pairs = [(served.scene.case.weight, service_of(served.scene.resolved)) for served in found.served]

    def mean(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return measured(Aim(), list(zip((w for w, _ in pairs), known, strict=True))) if len(known) == len(pairs) else None

    return Service(
        requests=mean([service.requests for _, service in pairs]) or 0.0,
        images=mean([service.images for _, service in pairs]) or 0.0,
        input_tokens=mean([service.input_tokens for _, service in pairs]),
        output_tokens=mean([service.output_tokens for _, service in pairs]),
    )


def _result(served: Served, held: Mapping[str, Holding], first: Resolved) -> doc.ScenarioResult:
    """What one scenario gets."""
    scene = served.scene
    cost = total_usd_per_hour(held)
    requests = requests_per_hour(scene.offered.problem)
    pools: list[doc.Pool] = []
    classes: dict[str, doc.ClassResult] = {}
    warnings = [text for text in scene.resolved.warnings if text not in first.warnings]
    runs_in: dict[str, list[tuple[str, Fraction, int]]] = {}
    if served.solution is not None:
        runs_in = standing_pools(scene.offered.problem, served.solution)
        units = pool_units(scene.offered.problem, served.solution.pools)
        runs = [
            Running(device=pool.candidate.device, units=float(unit))
            for pool, unit in zip(served.solution.pools, units, strict=True)
        ]
        what = what_serves(scene.resolved, scene.offered, served.solution, shared_costs(runs, held))
        pools, classes = what.pools, what.classes
        warnings += dict.fromkeys(what.warnings)
    return doc.ScenarioResult(
        name=scene.case.name,
        weight=scene.case.weight,
        targets_met=served.solution is not None,
        served_share=served.share,
        usd_per_hour=cost,
        usd_per_request=cost / requests if requests > 0 else None,
        pools=pools,
        classes=classes,
        devices=device_uses(scene.offered.problem, held, runs_in),
        unit_costs=unit_costs(cost, service_of(scene.resolved)),
        warnings=warnings,
    )


def _common_warnings(found: FleetFound) -> tuple[str, ...]:
    """Warnings of the first scenario; those of others that it has not stand with them."""
    return found.served[0].scene.resolved.warnings


def _standing(
    found: FleetFound, results: Sequence[doc.ScenarioResult], held: Sequence[Mapping[str, Holding]]
) -> tuple[list[doc.Pool], dict[str, str]]:
    """The physical pools that stand or are hired, each as it runs in the scenario that asks for the most of it, and those
    scenarios."""
    most = _most(found)
    chosen: dict[Physical, tuple[doc.ScenarioResult, doc.Pool]] = {}
    spare: dict[Physical, int] = {}
    for physical, count in most.items():
        asking = [
            (result, served)
            for result, served in zip(results, found.served, strict=True)
            if running(served.scene, served.solution).get(physical) == count
        ]
        result, served = max(asking, key=lambda pair: pair[0].weight)
        assert served.solution is not None
        points = [
            pool for pool, own in zip(result.pools, served.solution.pools, strict=True) if own.candidate.physical == physical
        ]
        spare[physical] = count - sum(pool.replicas for pool in points)
        chosen[physical] = result, max(points, key=lambda pool: pool.replicas)
    size = {p: pool.devices / (pool.replicas + pool.spare_replicas) for p, (_, pool) in chosen.items()}
    names = _names(most)
    paid = dict.fromkeys(most, 0.0)
    for scenario, holds, hires in zip(results, held, found.hired, strict=True):
        here = {p: count for p, count in most.items() if p in found.stands} | dict(hires)
        runs = [Running(device=p[0], units=count * size[p]) for p, count in here.items()]
        for p, usd in zip(here, shared_costs(runs, holds), strict=True):
            paid[p] += scenario.weight * usd
    pools, sized_by = [], {}
    for physical, count in most.items():
        result, pool = chosen[physical]
        taken = count * size[physical]
        sized_by[names[physical]] = result.name
        pools.append(
            pool.model_copy(
                update={
                    "name": names[physical],
                    "replicas": count - spare[physical],
                    "spare_replicas": spare[physical],
                    "devices": int(taken) if taken == int(taken) else taken,
                    "usd_per_hour": paid[physical],
                }
            )
        )
    return pools, sized_by


def _most(found: FleetFound) -> dict[Physical, int]:
    """Replicas of the physical pools that stand, and the most that some scenario hires of others."""
    most = dict(found.stands)
    for own in found.hired:
        most |= {physical: max(count, most.get(physical, 0)) for physical, count in own.items()}
    return dict(sorted(most.items()))


def _names(pools: Iterable[Physical]) -> dict[Physical, str]:
    """Names of physical pools, with the device entry where two share one."""
    pools = list(pools)
    several = [name for _, name in pools]
    return {
        physical: f"{physical[1]} on {physical[0]}" if several.count(physical[1]) > 1 else physical[1] for physical in pools
    }


def _proved(found: FleetFound, aim: Aim, singles: Sequence[doc.SinglePlan], value: float) -> tuple[float, float]:
    """Bound on what is minimised, and the relative gap."""
    bound = max(_alone(singles, found, aim, value), min(value, found.bound_usd_per_hour))
    if isinstance(found.formulation, Formulation):
        bound = max(bound, proved_bound(found.formulation, found.outcome, value)[0])
    elif found.whole:
        bound = max(bound, proved_over_occasions(found.formulation, found.outcome, value)[0])
    return bound, 0.0 if value == 0.0 else (value - bound) / value


def _alone(singles: Sequence[doc.SinglePlan], found: FleetFound, aim: Aim, value: float) -> float:
    """What no fleet has less of, because none serves any scenario for less than the best one for it alone; 0 where that is
    not known."""
    bounds = {single.planned_for: single.bound_usd_per_hour for single in singles}
    each = [(served.scene.case.weight, bounds.get(served.scene.case.name)) for served in found.served]
    known = [(weight, bound) for weight, bound in each if bound is not None]
    if len(known) < len(each):
        return 0.0
    apart = 0.0 if aim.held_share < 1.0 else measured(aim, known)
    return min(value, max(apart, _alike(found, known, aim)))


def _alike(found: FleetFound, known: Sequence[tuple[float, float]], aim: Aim) -> float:
    """What no fleet costs less than anywhere, where each costs the same in every scenario: nothing is hired, no price
    differs and no work is metered. Then it costs as much as the best fleet for any scenario that it serves; at least that
    of the dearest one of the cheapest that make up the share to be served. 0 elsewhere."""
    offers = found.served[0].scene.resolved.offers
    metered = any(offer.busy_usd_per_unit_second for offer in offers)
    hiring = not isinstance(found.formulation, Formulation) and any(part.sets.offers for part in found.formulation.hired)
    if metered or hiring or any(served.scene.resolved.offers != offers for served in found.served):
        return 0.0
    held = 0.0
    for weight, bound in sorted(known, key=lambda pair: pair[1]):
        held += weight
        if held >= aim.held_share - 1e-9:
            return bound
    return 0.0


def _compared(single: doc.SinglePlan, aim: Aim, results: Sequence[doc.ScenarioResult], value: float) -> doc.SinglePlan:
    """A single plan with what is minimised over the scenarios for its fleet, where it holds in as many as must."""
    if not single.scenarios:
        return single
    costs = [(result.weight, single.scenarios[result.name].usd_per_hour) for result in results]
    known = [(weight, cost) for weight, cost in costs if cost is not None]
    if len(known) < len(costs) or single.held_share < aim.held_share - 1e-9:
        return single
    own = measured(aim, known)
    regret = own - value
    return single.model_copy(
        update={
            "objective_usd_per_hour": own,
            "regret_usd_per_hour": 0.0 if abs(regret) <= 1e-9 * max(1.0, value) else regret,
        }
    )


def _cards(found: FleetFound) -> dict[str, Any]:
    """Cards of all scenarios, with all that their sources of times were told."""
    merged: dict[str, Any] = {}
    for served in found.served:
        resolved = served.scene.resolved
        told = {e.name: dict(e.source.embedded()) for e in resolved.entries if e.source is not None and e.source.embedded()}
        merged = _joined(merged, {**resolved.cards, **({"performance": told} if told else {})})
    return merged


def _joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(one)
    for key, value in other.items():
        inner = result.get(key)
        result[key] = _joined(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return result
