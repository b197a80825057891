"""One scenario of a plan for several: as a plan of its own, and whether all of them hang together."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches

from epd_opt.document import HOURS_PER_MONTH, DeviceUse, PlanDocument, Pool, ScenarioResult
from epd_opt.errors import UsageError
from epd_opt.hours import hours_of
from epd_opt.instance import HOURS, Instance, instance_sha256
from epd_opt.problem import Aim, measured
from epd_opt.scenarios import Case, cases, hired_entries

_RELATIVE = 1e-6


def demand_one_workload(document: PlanDocument) -> None:
    """Refuse a plan for several scenarios, where a plan for one workload is needed.

    Raises
    ------
    UsageError
        It is one; its scenarios are named.
    """
    if document.hours is not None:
        raise UsageError(
            f"demand goes by the hour ({_names(document)}), and each group of hours runs other units: take one, "
            "with --scenario HOURS or plan.in_scenario(HOURS)"
        )
    if document.scenarios is not None:
        raise UsageError(
            f"the plan is for several scenarios ({_names(document)}), each served its own way: take one of them, with "
            "--scenario NAME or plan.in_scenario(NAME)"
        )


def _names(document: PlanDocument) -> str:
    """Names of groups of hours have commas of their own."""
    return "; ".join(result.name for result in document.scenarios or ())


def in_scenario(document: PlanDocument, name: str) -> PlanDocument:
    """The plan in one of its scenarios: what runs there, and all of the fleet at the prices there.

    Raises
    ------
    UsageError
        There is no such scenario, or its targets are not met, so that nothing is planned for it.
    """
    if name not in {result.name for result in document.scenarios or ()}:
        has = f"has {_names(document)}" if document.scenarios else "is for one workload, without scenarios"
        near = get_close_matches(name, [result.name for result in document.scenarios or ()], n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"--scenario: found {name!r}; the plan {has}{hint}")
    result = _named(document, name)
    if not result.targets_met:
        raise UsageError(
            f"in scenario {name!r} the fleet serves {result.served_share:.0%} of the demand within all targets, "
            "so that nothing is planned for it"
        )
    return view(document, name)


def _named(document: PlanDocument, name: str) -> ScenarioResult:
    return next(result for result in document.scenarios or () if result.name == name)


def _cases(document: PlanDocument) -> dict[str, Case]:
    return {case.name: case for case in cases(Instance(**document.instance_document))}


def view(document: PlanDocument, name: str) -> PlanDocument:
    """The same whether or not targets are met; where they are not, nothing runs."""
    result, case = _named(document, name), _cases(document)[name]
    assert document.cost is not None
    assert document.robust is not None
    cost = result.usd_per_hour
    bounds = [s.bound_usd_per_hour for s in document.robust.single_plans if s.planned_for == result.name]
    bound = min(cost, bounds[0] or 0.0) if bounds else 0.0
    return document.model_copy(
        update={
            "instance": case.instance.name,
            "status": "feasible",
            "cost": document.cost.model_copy(
                update={
                    "usd_per_hour": cost,
                    "usd_per_request": result.usd_per_request,
                    "usd_per_month": cost * HOURS_PER_MONTH,
                    "power_kw": document.cost.power_kw if result.power_kw is None else result.power_kw,
                    "bound_usd_per_hour": bound,
                    "gap": 0.0 if cost == 0.0 else (cost - bound) / cost,
                    "billed_usd_per_hour": math.fsum(use.billed_usd_per_hour or 0.0 for use in result.devices.values()),
                }
            ),
            "pools": result.pools,
            "classes": result.classes,
            "devices": result.devices,
            "unit_costs": result.unit_costs,
            "warnings": [*document.warnings, *result.warnings],
            "instance_document": case.instance.document(),
            "provenance": document.provenance.model_copy(update={"instance_sha256": instance_sha256(case.instance)}),
            "scenarios": None,
            "robust": None,
            "hours": None,
        }
    )


def disagreements(document: PlanDocument) -> Iterator[str]:
    """Where the scenarios of a plan and its fleet do not hang together; what a scenario is by itself is checked apart."""
    results, robust, cost = document.scenarios or [], document.robust, document.cost
    if robust is None or cost is None:
        yield "a plan with scenarios has no account of what is minimised over them"
        return
    known = _cases(document)
    hired = hired_entries(Instance(**document.instance_document))
    if [result.name for result in results] != list(known):
        yield "the scenarios are not those of the instance"
        return
    stands = {physical_of(pool): pool.replicas + pool.spare_replicas for pool in document.pools}
    if len(stands) < len(document.pools):
        yield "a physical pool stands twice"
    for result in results:
        if not _close(result.weight, known[result.name].weight):
            yield f"scenario {result.name!r} weighs {result.weight:.6g}, the instance says {known[result.name].weight:.6g}"
        if result.targets_met != (result.served_share >= 1.0):
            yield f"scenario {result.name!r} serves {result.served_share:.6g} of its demand and says otherwise"
        yield from _running(result, stands)
        for name, use in result.devices.items():
            whole = document.devices.get(name)
            if whole is None or (use.used > whole.used if name in hired else _held(use) != _held(whole)):
                yield f"scenario {result.name!r} holds other units of {name} than the fleet"
        if set(document.devices) - hired != set(result.devices) - hired:
            yield f"scenario {result.name!r} holds other devices than the fleet"
        if not _close(math.fsum(use.usd_per_hour for use in result.devices.values()), result.usd_per_hour):
            yield f"the devices of scenario {result.name!r} do not cost {result.usd_per_hour:.6g} USD/h"
        requests = 3600.0 * math.fsum(_means(known[result.name].instance))
        if requests and not _close((result.usd_per_request or 0.0) * requests, result.usd_per_hour):
            yield f"cost per request in scenario {result.name!r} does not follow from its hourly cost"
    yield from _units(document, hired)
    yield from _skus(document)
    yield from _hours(document, hired)
    yield from _values(document, known)


def _held(use: DeviceUse) -> tuple[int, int, int]:
    return use.used, use.owned, use.bought


def physical_of(pool: Pool) -> tuple[object, ...]:
    """What tells physical pools apart: the measured worker, or device entry, placement and degrees."""
    if pool.provenance == "measured":
        return (pool.device, pool.key)
    cut = pool.parallelism
    return (pool.device, pool.placement, cut.tensor, cut.pipeline, cut.attention_data, cut.expert)


def _running(result: ScenarioResult, stands: dict[tuple[object, ...], int]) -> Iterator[str]:
    running: dict[tuple[object, ...], int] = {}
    for pool in result.pools:
        running[physical_of(pool)] = running.get(physical_of(pool), 0) + pool.replicas + pool.spare_replicas
    for physical, count in running.items():
        if count > stands.get(physical, 0):
            what = " ".join(str(part) for part in physical[:2])
            yield f"scenario {result.name!r} runs {count} replicas of {what}, {stands.get(physical, 0)} stand"


def _units(document: PlanDocument, hired: Collection[str]) -> Iterator[str]:
    for name in sorted(({pool.device for pool in document.pools} | set(document.devices)) - set(hired)):
        taken = math.fsum(pool.devices for pool in document.pools if pool.device == name)
        use = document.devices.get(name)
        if use is None or use.used < taken - _RELATIVE or use.bought + use.owned < use.used:
            yield f"the units of {name} do not cover the {taken:g} that the pools take"


def _skus(document: PlanDocument) -> Iterator[str]:
    """Whether the fleet and what is hired in any scenario keep to the number of SKUs that is allowed."""
    limits = Instance(**document.instance_document).limits
    used = {pool.sku for pool in document.pools}
    if limits is not None and limits.skus is not None and len(used) > limits.skus:
        yield f"{len(used)} different SKUs run, the limit is {limits.skus}"


def _means(instance: Instance) -> Iterator[float]:
    for request in instance.workload.classes:
        if request.rate_per_s > 0:
            yield request.rate_per_s if request.mean_rate_per_s is None else request.mean_rate_per_s


def _values(document: PlanDocument, known: dict[str, Case]) -> Iterator[str]:
    """What is said of costs over the scenarios."""
    results, robust, cost = document.scenarios or [], document.robust, document.cost
    assert robust is not None
    assert cost is not None
    costs = [(result.weight, result.usd_per_hour) for result in results]
    expected = measured(Aim(), costs)
    aim = Aim(minimise=robust.minimise, level=robust.cvar_level or 0.0, held_share=robust.served_share)
    said = (
        ("what is minimised", robust.objective_usd_per_hour, measured(aim, costs)),
        ("the expected cost", robust.expected_usd_per_hour, expected),
        ("the largest cost", robust.worst_usd_per_hour, max(value for _, value in costs)),
        ("the cost of the plan", cost.usd_per_hour, expected),
        ("the cost of a month", cost.usd_per_month, expected * HOURS_PER_MONTH),
        ("the cost of the pools", math.fsum(pool.usd_per_hour for pool in document.pools), expected),
        ("what is billed for an hour", cost.billed_usd_per_hour or 0.0, measured(Aim(), _billed(results))),
        ("the cost of the devices", math.fsum(use.usd_per_hour for use in document.devices.values()), expected),
    )
    for what, value, right in said:
        if not _close(value, right):
            yield f"{what} is {right:.6g} USD, the plan says {value:.6g}"
    requests = 3600.0 * math.fsum(result.weight * math.fsum(_means(known[result.name].instance)) for result in results)
    if requests and not _close((cost.usd_per_request or 0.0) * requests, expected):
        yield "cost per request does not follow from the expected cost"
    if not robust.bound_usd_per_hour <= robust.objective_usd_per_hour * (1 + _RELATIVE) + 1e-9:
        yield f"the bound {robust.bound_usd_per_hour:.6g} lies above {robust.objective_usd_per_hour:.6g}"
    if not cost.bound_usd_per_hour <= cost.usd_per_hour * (1 + _RELATIVE) + 1e-9:
        yield f"the bound {cost.bound_usd_per_hour:.6g} lies above the cost {cost.usd_per_hour:.6g}"
    held = math.fsum(result.weight for result in results if result.targets_met)
    if not _close(held, robust.held_share) or held < robust.served_share - 1e-6:
        yield f"targets hold in {held:.6g} of the weight, {robust.served_share:.6g} is wanted"


def _billed(results: Sequence[ScenarioResult]) -> list[tuple[float, float]]:
    return [(r.weight, math.fsum(use.billed_usd_per_hour or 0.0 for use in r.devices.values())) for r in results]


def _hours(document: PlanDocument, hired: Collection[str]) -> Iterator[str]:
    """Whether what is said of each hour follows from its group, and what is said of commitments from the hours."""
    told = document.hours
    groups = {
        hour: group.name
        for instance in [Instance(**document.instance_document)]
        if instance.workload.by_the_hour
        for group in hours_of(instance)
        for hour in group.hours
    }
    if (told is None) != (not groups):
        yield "demand goes by the hour and nothing is said of hours, or the other way round"
    if told is None:
        return
    if {one.hour: one.scenario for one in told.hours} != groups or len(told.hours) != HOURS:
        yield "the hours of the day are not those of the instance"
        return
    if {one.device for one in told.committed} != set(document.devices) - set(hired):
        yield "what is committed to is not what the plan holds at all hours"
    results = {result.name: result for result in document.scenarios or ()}
    for one in told.hours:
        result = results[one.scenario]
        if one.hired != hired_units(result, hired) or not _same(one.idle, idle_units(document, result, hired)):
            yield f"hour {one.hour} does not hire or leave idle what its group of hours does"
        if not _close(one.usd_per_hour, result.usd_per_hour):
            yield f"hour {one.hour} costs {result.usd_per_hour:.6g} USD, the plan says {one.usd_per_hour:.6g}"
    for committed in told.committed:
        use = document.devices.get(committed.device)
        idle = math.fsum(one.idle.get(committed.device, 0.0) for one in told.hours)
        if use is None or committed.units != use.bought + use.owned:
            yield f"{committed.units} units of {committed.device} are committed to, the plan holds others"
        if not _close(idle, committed.idle_unit_hours_per_day):
            yield f"{committed.device} stands idle for {idle:.6g} unit-hours a day, the plan says otherwise"
        if not _close(idle * committed.idle_unit_usd_per_hour, committed.idle_usd_per_day):
            yield f"what idle units of {committed.device} cost does not follow from their hours"


def hired_units(result: ScenarioResult, hired: Collection[str]) -> dict[str, int]:
    """Units of each entry that are hired in a scenario, whole lots; owned ones are not hired."""
    return {name: use.bought for name, use in result.devices.items() if name in hired and use.bought}


def idle_units(document: PlanDocument, result: ScenarioResult, hired: Collection[str]) -> dict[str, float]:
    """Committed units of each entry that run nothing in a scenario."""
    idle = {}
    for name, use in document.devices.items():
        if name not in hired:
            running = math.fsum(pool.devices for pool in result.pools if pool.device == name)
            idle[name] = use.bought + use.owned - running
    return idle


def _same(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    return one.keys() == other.keys() and all(_close(one[name], other[name]) for name in one)


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=_RELATIVE, abs_tol=1e-9)
