"""From a solution to the plan document."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction

from epd_models.placement.origins import checked_origins
from epd_models.source import TimeOrigin
from epd_opt import document as doc
from epd_opt._version import __version__
from epd_opt.accounting import (
    Holding,
    billed_usd_per_hour,
    busy_units,
    holdings,
    pool_units,
    spares,
    total_usd_per_hour,
)
from epd_opt.backends import Outcome
from epd_opt.bound import counts_as_proved, proved_bound
from epd_opt.document import HOURS_PER_MONTH, PlanDocument
from epd_opt.economics import prices_dated, served, tariffs, unit_costs
from epd_opt.instance import Instance, instance_sha256
from epd_opt.offering import Offering, context_of, loads_of
from epd_opt.predict import ClassTimes, class_times, reinforced
from epd_opt.problem import Offer, PlanningProblem
from epd_opt.resolve import Resolved
from epd_opt.search import Found
from epd_opt.solution import PoolSolution, Solution
from epd_opt.standing import nodes_in_use


def feasible_document(resolved: Resolved, found: Found, solution: Solution, start: float) -> PlanDocument:
    """The document of a plan.

    Parameters
    ----------
    resolved : Resolved
        The instance at the rates that are planned for.
    solution : Solution
        The fleet that was found, and its routing.
    start : float
        Time (``time.perf_counter``) at which solving began.
    """
    offered, outcome = found.offered, found.outcome
    problem = found.formulation.sets.problem
    planned = {pool.candidate.key: pool.replicas for pool in solution.pools}
    solution = reinforced(offered, with_all_rows(solution, offered))
    unchanged = all(planned[pool.candidate.key] == pool.replicas for pool in solution.pools)
    fleet = holdings(problem, solution)
    cost = total_usd_per_hour(fleet)
    requests = sum(demand.mean_rate for demand in problem.demands) * 3600.0
    bounding = found.bounded_by or found
    bound, gap = proved_bound(bounding.formulation, bounding.outcome, cost, whole=bounding.whole)
    searched = found.rate_multiple
    if searched is not None:
        least = max(searched.bound_usd_per_request, bound / requests)
        searched = searched.model_copy(update={"bound_usd_per_request": min(least, cost / requests)})
        bound = min(least * requests, cost)
        gap = 0.0 if cost == 0.0 else (cost - bound) / cost
    wanted = resolved.instance.solver.gap
    proved = (counts_as_proved(outcome, gap - wanted) and unchanged and bounding is found) or gap <= wanted
    if found.proved is not None:
        proved = found.proved and (unchanged or found.goodput is not None)
    standing = standing_pools(problem, solution)
    devices = device_uses(problem, fleet, standing)
    units = [float(unit) for unit in pool_units(problem, solution.pools)]
    entries = [pool.candidate.device for pool in solution.pools]
    serving = what_serves(resolved, offered, solution, pool_costs(entries, units, fleet))
    return plan_document(
        resolved,
        outcome,
        start,
        status="optimal" if proved else "feasible",
        cost=fleet_cost({name: problem.offer(name) for name in fleet}, fleet, requests, bound, gap),
        pools=serving.pools,
        classes=serving.classes,
        devices=devices,
        costs=unit_costs(cost, served(resolved)),
        offered_tariffs=tariffs(resolved, fleet, busy_units(problem, solution)),
        prices=prices_dated(resolved, fleet),
        goodput=found.goodput,
        rate_multiple=searched,
        warnings=[*found.warnings, *serving.warnings],
    )


def fleet_cost(
    offers: Mapping[str, Offer], fleet: Mapping[str, Holding], requests_per_hour: float, bound: float, gap: float
) -> doc.Cost:
    """What a fleet costs, as documents have it.

    Parameters
    ----------
    offers, fleet : mapping
        Terms and holdings by device entry.
    requests_per_hour : float
        Of all classes, on average.
    bound : float
        US dollars per hour that no plan costs less than.
    """
    cost = total_usd_per_hour(fleet)
    return doc.Cost(
        usd_per_hour=cost,
        usd_per_request=cost / requests_per_hour if requests_per_hour > 0 else None,
        usd_per_month=cost * HOURS_PER_MONTH,
        capex_usd=math.fsum(offers[name].capex_usd * held.bought for name, held in fleet.items()),
        power_kw=math.fsum(offers[name].power_w * held.installed for name, held in fleet.items()) / 1e3,
        bound_usd_per_hour=bound,
        gap=gap,
        billed_usd_per_hour=math.fsum(
            billed_usd_per_hour(offers[name], held.bought, held.usd_per_hour) for name, held in fleet.items()
        ),
        upfront_usd=math.fsum(offers[name].upfront_usd * held.bought for name, held in fleet.items()),
    )


@dataclass(frozen=True, kw_only=True)
class Serving:
    """What serves a workload, as documents have it: pools, what classes get, and warnings."""

    pools: list[doc.Pool]
    classes: dict[str, doc.ClassResult]
    warnings: list[str]


def what_serves(resolved: Resolved, offered: Offering, solution: Solution, pool_cost: list[float]) -> Serving:
    """The pools of a solution, and what the classes get of them.

    Parameters
    ----------
    solution : Solution
        Over candidates with all their rows, and with the replicas that predictions ask for.
    pool_cost : list of float
        What each pool costs per hour.
    """
    problem = offered.problem
    names = _unique_names(solution.pools)
    units = pool_units(problem, solution.pools)
    times = class_times(resolved, offered, solution)
    origins = [pool_times(resolved, offered, pool) for pool in solution.pools]
    pools = [
        _pool(pool, name, spare, float(unit), usd, origin)
        for pool, name, spare, unit, usd, origin in zip(
            solution.pools, names, spares(problem, solution.pools), units, pool_cost, origins, strict=True
        )
    ]
    return Serving(
        pools=pools,
        classes=_classes(resolved, solution, names, pool_cost, times),
        warnings=[
            f"{name}: {time.warning}" for name, origin in zip(names, origins, strict=True) for time in origin if time.warning
        ],
    )


def standing_pools(problem: PlanningProblem, solution: Solution) -> dict[str, list[tuple[str, Fraction, int]]]:
    """Name, units per replica, and replicas with spares of each pool, by device entry."""
    found: dict[str, list[tuple[str, Fraction, int]]] = {}
    counts = zip(solution.pools, _unique_names(solution.pools), spares(problem, solution.pools), strict=True)
    for pool, name, spare in counts:
        found.setdefault(pool.candidate.device, []).append((name, pool.candidate.units, pool.replicas + spare))
    return found


def device_uses(
    problem: PlanningProblem,
    fleet: Mapping[str, Holding],
    standing: Mapping[str, Sequence[tuple[str, Fraction, int]]] | None = None,
) -> dict[str, doc.DeviceUse]:
    """Units of each entry, as documents have them; with what stands in them where ``standing`` tells (see
    :func:`standing_pools`)."""
    return {
        name: doc.DeviceUse(
            used=held.used,
            owned=held.owned,
            bought=held.bought,
            stock=problem.offer(name).stock,
            usd_per_hour=held.usd_per_hour,
            basis=problem.offer(name).basis if problem.offer(name).for_sale else "owned",
            billed_usd_per_hour=billed_usd_per_hour(problem.offer(name), held.bought, held.usd_per_hour),
            nodes=[] if standing is None else nodes_in_use(problem.offer(name), held, standing.get(name, [])),
            racks=None
            if problem.limits.units_per_rack(problem.offer(name)) is None
            else problem.limits.racks_of(problem.offer(name), held.installed),
        )
        for name, held in fleet.items()
    }


def pool_times(resolved: Resolved, offered: Offering, pool: PoolSolution) -> tuple[TimeOrigin, ...]:
    """Where the times of a planned pool come from, with warnings where it asks beyond what they cover; empty for measured
    workers."""
    behaviour = offered.behaviours.get(pool.candidate.key)
    if behaviour is None:
        return ()
    context = context_of(resolved, loads_of(resolved)[0])
    return checked_origins(context, behaviour.pool, pool.candidate.times, pool.serves(), pool.replicas)


def with_all_rows(solution: Solution, offered: Offering) -> Solution:
    """The solution over candidates with all their rows, those that pruning leaves out included."""
    whole = {candidate.key: candidate for candidate in offered.problem.candidates}
    pools = tuple(
        replace(pool, candidate=replace(pool.candidate, rows=whole[pool.candidate.key].rows)) for pool in solution.pools
    )
    return replace(solution, pools=pools)


def infeasible_document(resolved: Resolved, why: doc.Infeasibility, outcome: Outcome | None, start: float) -> PlanDocument:
    """The document of an instance that cannot be served."""
    return plan_document(resolved, outcome, start, status="infeasible", infeasibility=why)


def stopped_document(resolved: Resolved, outcome: Outcome, start: float) -> PlanDocument:
    """The document of a solve that ended without any plan: no numbers."""
    return plan_document(resolved, outcome, start, status="stopped")


def plan_document(
    resolved: Resolved,
    outcome: Outcome | None,
    start: float,
    *,
    status: doc.Status,
    cost: doc.Cost | None = None,
    pools: Iterable[doc.Pool] = (),
    classes: Mapping[str, doc.ClassResult] | None = None,
    devices: Mapping[str, doc.DeviceUse] | None = None,
    costs: Iterable[doc.UnitCost] = (),
    offered_tariffs: Iterable[doc.Tariff] = (),
    prices: str = "as stated in the instance",
    goodput: doc.Goodput | None = None,
    rate_multiple: doc.RateMultiple | None = None,
    scenarios: list[doc.ScenarioResult] | None = None,
    robust: doc.RobustResult | None = None,
    infeasibility: doc.Infeasibility | None = None,
    warnings: Iterable[str] = (),
) -> PlanDocument:
    """The document of a plan, or of the end without one."""
    instance = resolved.instance
    pools = list(pools)
    used = {pool.device for pool in pools}
    kept = [a for a in resolved.assumptions if a.text.split(":")[0] not in _entry_names(resolved) - used or not pools]
    return PlanDocument(
        instance=instance.name,
        status=status,
        cost=cost,
        pools=pools,
        classes=dict(classes or {}),
        devices=dict(devices or {}),
        retired={} if cost is None else _retired(instance, devices or {}),
        unit_costs=list(costs),
        tariffs=list(offered_tariffs),
        goodput=goodput,
        rate_multiple=rate_multiple,
        scenarios=scenarios,
        robust=robust,
        infeasibility=infeasibility,
        assumptions=[
            doc.Assumption(text=a.text, value=a.value, unit=a.unit, source=a.source, confidence=a.confidence) for a in kept
        ],
        warnings=[*resolved.warnings, *dict.fromkeys(warnings)],
        instance_document=instance.document(),
        cards={**resolved.cards, **_embedded(resolved)},
        provenance=doc.Provenance(
            epd_opt=__version__,
            instance_sha256=instance_sha256(instance),
            solver=outcome.solver if outcome is not None else "none needed",
            threads=instance.solver.threads,
            seconds=round(time.perf_counter() - start, 3),
            prices_dated=prices,
        ),
    )


def _retired(instance: Instance, devices: Mapping[str, doc.DeviceUse]) -> dict[str, int]:
    used = {name: use.owned for name, use in devices.items()}
    left = {entry.name: entry.owned - used.get(entry.name, 0) for entry in instance.devices}
    return {name: count for name, count in sorted(left.items()) if count > 0}


def _embedded(resolved: Resolved) -> dict[str, dict[str, dict[str, object]]]:
    """What the sources of times were told from outside the instance, for later commands on the plan."""
    kept = {e.name: dict(e.source.embedded()) for e in resolved.entries if e.source is not None and e.source.embedded()}
    return {"performance": kept} if kept else {}


def _entry_names(resolved: Resolved) -> set[str]:
    return {entry.name for entry in resolved.instance.devices}


def _unique_names(pools: Iterable[PoolSolution]) -> list[str]:
    seen: dict[str, int] = {}
    names = []
    for pool in pools:
        base = pool.candidate.pool
        seen[base] = seen.get(base, 0) + 1
        names.append(base if seen[base] == 1 else f"{base}-{seen[base]}")
    return names


def pool_costs(entries: Sequence[str], units: Sequence[float], fleet: Mapping[str, Holding]) -> list[float]:
    """Each entry's cost, idle and unused units included, shared over its pools by the units they take.

    Parameters
    ----------
    entries, units : sequence
        Device entry, and units with those of spares, of each pool.
    """
    total: dict[str, float] = {}
    for entry, unit in zip(entries, units, strict=True):
        total[entry] = total.get(entry, 0.0) + unit
    return [fleet[entry].usd_per_hour * unit / total[entry] for entry, unit in zip(entries, units, strict=True)]


def _pool(
    pool: PoolSolution, name: str, spare: int, units: float, usd_per_hour: float, times: tuple[TimeOrigin, ...]
) -> doc.Pool:
    candidate = pool.candidate
    serves = pool.serves()
    need: dict[str, float] = {}
    for row in candidate.rows:
        need[row.kind] = max(need.get(row.kind, 0.0), row.need(serves))
    point = candidate.operating_point
    return doc.Pool(
        name=name,
        key=candidate.key,
        placement=candidate.placement,
        stages=list(candidate.stages),
        sku=candidate.sku,
        device=candidate.device,
        parallelism=doc.ParallelDegrees(
            tensor=candidate.parallelism.tensor,
            pipeline=candidate.parallelism.pipeline,
            attention_data=candidate.parallelism.attention_data,
            expert=candidate.parallelism.expert,
        ),
        replicas=pool.replicas,
        spare_replicas=spare,
        devices=int(units) if units == int(units) else units,
        serves=serves,
        utilisation={kind: value / pool.replicas for kind, value in sorted(need.items()) if kind != "minimum"},
        binding=sorted(kind for kind, value in need.items() if value > (pool.replicas - 1) * (1 + 1e-9)),
        usd_per_hour=usd_per_hour,
        operating_point=doc.OperatingPoint(
            max_sequences=point.max_sequences,
            max_batched_tokens=point.max_batched_tokens,
            memory_fraction=point.memory_fraction,
            max_context_tokens=point.max_context_tokens,
            encoder_processes=point.encoder_processes,
            fan_out=point.fan_out,
            batch=point.batch,
            portion=point.portion,
            design_itl_ms=point.design_itl_s * 1e3,
            wait_ms=max((s * 1e3 for s in point.wait_s.values()), default=0.0),
            waits_ms={served: s * 1e3 for served, s in sorted(point.wait_s.items())},
            itl_promised_ms={served: s * 1e3 for served, s in sorted(point.itl_promised_s.items())},
            staffing=dict(point.staffing),
        ),
        provenance=candidate.provenance,
        confidence=min([candidate.confidence, *(time.confidence for time in times)]).label,
        times=[
            doc.StageTimes(
                stage=time.stage,
                source=time.source,
                confidence=time.confidence.label,
                fitted_error=None if time.fitted_error is None else doc.FittedError(**asdict(time.fitted_error)),
                note="; ".join(part for part in (time.note, time.warning) if part),
            )
            for time in times
        ],
    )


def class_shares(pool: PoolSolution) -> dict[str, float]:
    """What share of a pool each class pays: its part of the load on the rows that bind, each row counting as much as it
    asks for."""
    serves = pool.serves()
    needs = [(row, row.need(serves)) for row in pool.candidate.rows]
    paid = dict.fromkeys(serves, 0.0)
    for row, need in needs:
        parts = {name: load * serves.get(name, 0.0) for name, load in row.load}
        total = sum(parts.values())
        if total > 0 and need > (pool.replicas - 1) * (1 + 1e-9):
            for name, part in parts.items():
                paid[name] = paid.get(name, 0.0) + need * part / total
    whole = sum(paid.values())
    if not whole:
        paid, whole = dict(serves), sum(serves.values())
    return {name: part / whole for name, part in paid.items()} if whole else {}


def _classes(
    resolved: Resolved,
    solution: Solution,
    names: list[str],
    pool_cost: list[float],
    times: Mapping[str, ClassTimes],
) -> dict[str, doc.ClassResult]:
    paid: dict[str, float] = {}
    for pool, usd in zip(solution.pools, pool_cost, strict=True):
        for name, share in class_shares(pool).items():
            paid[name] = paid.get(name, 0.0) + share * usd
    planned = {request.name: request for request in resolved.requests}
    result = {}
    for stated in sorted(resolved.instance.workload.classes, key=lambda c: c.name):
        request = planned.get(stated.name)
        if request is None:
            result[stated.name] = doc.ClassResult(
                rate_per_s=0.0, ttft_ms=None, itl_ms=None, slo_met=True, usd_per_request=None, routes=[]
            )
            continue
        merged: dict[tuple[str, ...], float] = {}
        for way in solution.ways[stated.name]:
            pools = tuple(names[p] for p, _ in way.steps)
            merged[pools] = merged.get(pools, 0.0) + way.rate
        found = times[stated.name]
        result[stated.name] = doc.ClassResult(
            rate_per_s=request.rate,
            ttft_ms=None if found.ttft_s is None else found.ttft_s * 1e3,
            itl_ms=None if found.itl_s is None else found.itl_s * 1e3,
            e2e_ms=None if found.e2e_s is None else found.e2e_s * 1e3,
            slo_met=found.slo_met,
            usd_per_request=paid.get(stated.name, 0.0) / (request.mean_rate * 3600.0) if request.mean_rate else None,
            routes=[doc.Route(pools=list(pools), rate_per_s=rate) for pools, rate in sorted(merged.items())],
        )
    return result
