"""From runs to the report."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from epd_models.workload import Targets
from epd_opt._version import __version__
from epd_opt.document import PlanDocument, Pool
from epd_opt.resolve import Resolved
from epd_opt.simulate import document as doc
from epd_opt.simulate.failures import Failure
from epd_opt.simulate.fleet import stated_targets
from epd_opt.simulate.replayed import reasons, traffic_of
from epd_opt.simulate.run import PoolTrace, Run
from epd_opt.simulate.statistics import Seconds, Times, attainment, quantiles_ms

Kept = dict[str, NDArray[np.bool_]]


def simulation_document(
    plan: PlanDocument,
    resolved: Resolved,
    runs: Sequence[Run],
    *,
    seeds: Sequence[int],
    arrivals: str,
    replayed: bool,
    routing: str,
    failures: Sequence[Failure],
    notes: Sequence[str],
) -> doc.SimulationDocument:
    """The report of one or several runs of a plan."""
    spans = [_phases(failures, run) for run in runs] if failures else []
    classes = {}
    on_target = served = 0
    targets = stated_targets(resolved)
    untimed = [pool.name for pool in plan.pools if pool.provenance == "measured"]
    for label, request in enumerate(resolved.requests):
        judged = targets[request.name]
        times = [run.times[label] for run in runs]
        passed = {name for route in plan.classes[request.name].routes for name in route.pools}
        outcome = _class(judged, times, [name for name in untimed if name in passed], timed=not passed <= set(untimed))
        if spans:
            phases = {
                name: _phase(judged, [t.between(*span[name]) for t, span in zip(times, spans, strict=True)])
                for name in ("before", "during", "after")
                if all(name in span for span in spans)
            }
            outcome = outcome.model_copy(update={"phases": phases})
        if replayed:
            outcome = outcome.model_copy(update={"traffic": traffic_of(request, label, runs[0])})
        classes[request.name] = outcome
        on_target += sum(round(float(_kept(t, judged)["both"].mean()) * t.requests) for t in times if t.requests)
        served += outcome.requests - outcome.missed
    seconds = math.fsum(run.end_s - run.start_s for run in runs)
    pools = {
        pool.name: _pool(pool, resolved, [run.pools[i] for run in runs], runs, seconds) for i, pool in enumerate(plan.pools)
    }
    usd_per_hour = 0.0 if plan.cost is None else plan.cost.usd_per_hour
    spent = usd_per_hour * seconds / 3600.0
    power = [pool.energy_kwh_per_hour for pool in pools.values()]
    energy = None if None in power else math.fsum(p for p in power if p is not None) * 1e3 * seconds / 3600.0
    said = [*notes, *([_of_measured(untimed, len(plan.pools))] if untimed else [])]
    said += reasons(classes)
    said += [f"no request of {name} counted: nothing is known of it" for name, o in classes.items() if not o.requests]
    longest = max(run.end_s - run.start_s for run in runs)
    said += [
        f"never came: {failure.text}; the longest run ends after {longest:.4g} s"
        for failure in failures
        if failure.start_s > longest
    ]
    refused, unfinished = sum(run.refused for run in runs), sum(run.unfinished for run in runs)
    said += [f"{refused} requests did not fit the KV memory even alone"] if refused else []
    said += [f"{unfinished} requests never ended: a pool that they need stayed dead"] if unfinished else []
    return doc.SimulationDocument(
        instance=plan.instance,
        instance_sha256=plan.provenance.instance_sha256,
        arrivals=arrivals,
        routing=routing,
        seeds=list(seeds),
        simulated_requests=sum(run.simulated for run in runs),
        seconds=seconds,
        failures=[failure.text for failure in failures],
        target_met=all(outcome.target_met for outcome in classes.values()),
        untimed=untimed,
        classes=classes,
        pools=pools,
        spending=doc.Spending(
            usd_per_hour=usd_per_hour,
            usd_per_served_request=spent / served if served else None,
            usd_per_request_on_target=spent / on_target if on_target else None,
            energy_wh_per_request=energy / served if served and energy is not None else None,
        ),
        notes=said,
        epd_opt=__version__,
    )


def _kept(times: Times, targets: Targets) -> Kept:
    """Which requests keep which target. Without a target, all that were served by workers within their rates; a request
    without intervals keeps theirs."""
    kept = {
        "ttft": times.ttft <= (math.inf if targets.ttft_s is None else targets.ttft_s),
        "itl": np.isnan(times.itl) | (times.itl <= (math.inf if targets.itl_s is None else targets.itl_s)),
    }
    late = np.isinf(times.itl) | np.isinf(times.ttft)
    kept = {name: which & ~late for name, which in kept.items()}
    kept["both"] = kept["ttft"] & kept["itl"]
    if targets.e2e_s is not None:
        kept["e2e"] = (np.isnan(times.e2e) | (times.e2e <= targets.e2e_s)) & ~late
        kept["both"] = kept["both"] & kept["e2e"]
    return kept


def _shares(times: Sequence[Times], targets: Targets) -> tuple[doc.Shares, doc.Intervals]:
    runs = [_kept(one, targets) for one in times]
    found = {name: attainment([run[name] for run in runs]) for name in runs[0]}
    shares = {name: None if value is None else value[0] for name, value in found.items()}
    intervals = {name: None if value is None else value[1] for name, value in found.items()}
    return doc.Shares(**shares), doc.Intervals(**intervals)


def _percentiles(times: Sequence[Times], pick: Callable[[Times], Seconds]) -> doc.Percentiles:
    return doc.Percentiles(**quantiles_ms([pick(one) for one in times]))


def _of_measured(names: Sequence[str], pools: int) -> str:
    which = "any pool of this plan" if len(names) == pools else ", ".join(names)
    return (
        f"nothing about {which} is timed: measured workers are taken to meet every target up to the rate that was measured; "
        "beyond it every request waits for the work that outgrows it and counts as missing its targets"
    )


def _class(targets: Targets, times: Sequence[Times], untimed: list[str], *, timed: bool) -> doc.ClassOutcome:
    shares, intervals = _shares(times, targets)
    wanted = (
        (intervals.ttft, targets.ttft_probability),
        (intervals.itl, targets.itl_probability),
        (intervals.e2e, targets.e2e_probability),
    )
    return doc.ClassOutcome(
        requests=sum(one.requests for one in times),
        missed=sum(one.missed for one in times),
        ttft_ms=_percentiles(times, lambda one: one.ttft) if timed else doc.Percentiles(**quantiles_ms([])),
        itl_ms=_percentiles(times, lambda one: one.itl),
        longest_gap_ms=_percentiles(times, lambda one: one.gap),
        e2e_ms=_percentiles(times, lambda one: one.e2e),
        attainment=shares,
        attainment_ci95=intervals,
        target_met=all(interval is None or interval[1] >= probability for interval, probability in wanted),
        untimed=untimed,
    )


def _phase(targets: Targets, times: Sequence[Times]) -> doc.Phase:
    shares, intervals = _shares(times, targets)
    return doc.Phase(
        requests=sum(one.requests for one in times),
        ttft_ms=_percentiles(times, lambda one: one.ttft),
        itl_ms=_percentiles(times, lambda one: one.itl),
        attainment=shares,
        attainment_ci95=intervals,
    )


def _phases(failures: Sequence[Failure], run: Run) -> Mapping[str, tuple[float, float]]:
    """When requests of each phase arrive: before the first failure, until the last one is mended, and after that."""
    first = run.start_s + min(failure.start_s for failure in failures)
    last = run.start_s + max(failure.start_s + failure.length_s for failure in failures)
    spans = {"before": (-math.inf, first), "during": (first, last)}
    return spans | ({"after": (last, math.inf)} if math.isfinite(last) else {})


def _pool(
    pool: Pool, resolved: Resolved, traces: Sequence[PoolTrace], runs: Sequence[Run], seconds: float
) -> doc.PoolOutcome:
    busy = math.fsum(trace.busy_s for trace in traces) / seconds / pool.replicas
    entry = next((entry for entry in resolved.entries if entry.name == pool.device), None)
    energy = None
    if entry is not None:
        working = pool.devices * pool.replicas / (pool.replicas + pool.spare_replicas)
        energy = (pool.devices * entry.idle_w + working * min(busy, 1.0) * (entry.power_w - entry.idle_w)) / 1e3
    queued = [value for trace in traces for value in trace.queued]
    kv = [value for trace in traces for value in trace.kv]
    holds = pool.provenance != "measured" and pool.placement != "encoder_pool"
    first = traces[0]
    return doc.PoolOutcome(
        placement=pool.placement,
        replicas=pool.replicas,
        utilisation=busy,
        queue=_gauge(queued),
        kv_memory=_gauge(kv) if holds else None,
        preemptions=sum(trace.preemptions for trace in traces),
        served_per_s=sum(trace.served for trace in traces) / seconds,
        energy_kwh_per_hour=energy,
        over_time=doc.OverTime(
            time_s=[round(at - runs[0].start_s, 6) for at in runs[0].sampled_s],
            working=_rounded(first.working),
            queued=_rounded(first.queued),
            kv_memory=_rounded(first.kv),
        ),
    )


def _gauge(values: Sequence[float]) -> doc.Gauge:
    return doc.Gauge(mean=math.fsum(values) / len(values), max=max(values)) if values else doc.Gauge(mean=0.0, max=0.0)


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 6) for value in values]
