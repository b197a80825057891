"""How a trace's requests came, beside what the plan was made for: why a fleet that holds on paper may fall short."""

from __future__ import annotations

from collections.abc import Mapping

from epd_models.workload import RequestClass
from epd_opt.simulate.document import ClassOutcome, TraceTraffic
from epd_opt.simulate.run import Run
from epd_opt.simulate.traffic import CLUSTER_S, tick, traffic

_MORE = 1.1
"""Rates above the planned one by this factor are told as a reason."""
_BURSTIER = 2.0
"""Variation above the stated one by this factor is."""


def traffic_of(request: RequestClass, label: int, run: Run) -> TraceTraffic | None:
    """The arrivals of a class that count; None where they are too few to tell. Of very many only the rates are told."""
    times = run.times[label].arrival - run.start_s
    span_s = run.end_s - run.start_s
    if len(times) < 2 or span_s <= 0.0:
        return None
    found = traffic(times, span_s, tick_s=tick(times))
    each = run.times[label].each
    return TraceTraffic(
        rate_per_s=run.times[label].requests / span_s,
        busiest_rate_per_s=found.peak_rate * each,
        busiest_window_s=found.window_s,
        planned_rate_per_s=request.rate,
        gaps_scv=found.scv if found.known and each == 1 else None,
        counts_dispersion=found.dispersion if each == 1 else None,
        stated_scv=request.interarrival_scv,
    )


def reasons(classes: Mapping[str, ClassOutcome]) -> list[str]:
    """Of each class that misses a target, what its trace brought that the plan was not made for."""
    said = []
    for name, outcome in classes.items():
        if outcome.target_met or outcome.traffic is None:
            continue
        because = _excesses(outcome.traffic)
        cause = "; ".join(because) or "its own traffic is as planned: sizes, or what other classes bring, explain it"
        said.append(f"{name} misses a target: {cause}")
    return said


def _excesses(seen: TraceTraffic) -> list[str]:
    found = []
    if seen.busiest_rate_per_s > _MORE * seen.planned_rate_per_s:
        where = f"in the busiest {seen.busiest_window_s:,.0f} s" if seen.busiest_window_s else "on average"
        found.append(f"{seen.busiest_rate_per_s:.3g} requests/s {where}, planned for {seen.planned_rate_per_s:.3g}")
    stated = max(seen.stated_scv, 1.0)
    for value, what in ((seen.gaps_scv, "gaps vary"), (seen.counts_dispersion, f"counts of {CLUSTER_S:g} s vary")):
        if value is not None and value > _BURSTIER * stated:
            found.append(f"{what} {value:.3g} times as Poisson, where the instance states {seen.stated_scv:.3g}")
    return found
