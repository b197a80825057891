"""One run: arrivals in, times out."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from epd_models.distribution import Distribution
from epd_models.request import RequestLoad
from epd_opt.document import PlanDocument
from epd_opt.offering import loads_of
from epd_opt.resolve import Resolved
from epd_opt.simulate.arrivals import Arrival, Source, drawn
from epd_opt.simulate.clock import Clock
from epd_opt.simulate.failures import Failure, plan_failures
from epd_opt.simulate.fleet import Fleet
from epd_opt.simulate.job import Job
from epd_opt.simulate.router import Policy
from epd_opt.simulate.sizing import Sizing
from epd_opt.simulate.statistics import Recorder, Times

_SAMPLES = 200
_MOST_WARM_UP = 1.0
"""Warm-up requests, as a share of those that count, at the most."""
_LIVES = 2.0
"""Lives of the longest class that pass before requests count."""
_REPORT_EVERY = 500
_INSTANT_S = 1e-9
"""Length of a run whose requests all come, and end, at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTrace:
    """What was seen of a pool over the time that counts.

    Attributes
    ----------
    busy : float
        Share of the replicas' time at work.
    working, queued, kv : list of float
        Shares of replicas at work, requests waiting and share of KV memory taken, at the sample times.
    """

    busy: float
    busy_s: float
    served: int
    preemptions: int
    working: list[float]
    queued: list[float]
    kv: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run.

    Attributes
    ----------
    times : tuple of Times
        By class.
    start_s, end_s : float
        Of the time that counts.
    sampled_s : list of float
        Times at which pools were looked at, from the start of the run.
    refused, unfinished : int
        Requests that fitted nowhere, and that had not ended when nothing more could happen; both miss every target.
    simulated : int
        Requests sent, those that do not count included.
    """

    times: tuple[Times, ...]
    pools: tuple[PoolTrace, ...]
    start_s: float
    end_s: float
    sampled_s: list[float]
    refused: int
    unfinished: int
    simulated: int


@dataclass(kw_only=True)
class _Watch:
    """Samples of the pools."""

    fleet: Fleet
    times: list[float] = field(default_factory=list)
    working: list[list[float]] = field(default_factory=list)
    queued: list[list[float]] = field(default_factory=list)
    kv: list[list[float]] = field(default_factory=list)

    def look(self, time: float) -> None:
        pools = self.fleet.pools
        self.times.append(time)
        self.working.append([pool.working() for pool in pools])
        self.queued.append([float(pool.queued) for pool in pools])
        self.kv.append([pool.kv_share() for pool in pools])


def sources_of(resolved: Resolved, loads: dict[str, RequestLoad]) -> list[Source]:
    """The plan's classes as streams of requests, in the order of their labels."""
    return [Source.of_class(request, loads.get(request.name)) for request in resolved.requests]


def life_s(document: PlanDocument, resolved: Resolved) -> float:
    """Seconds that a long request of the slowest class is expected to stay."""
    lives = [0.0]
    for request in resolved.requests:
        result = document.classes[request.name]
        tokens = _long(request.output_tokens)
        lives.append((result.ttft_ms or 0.0) / 1e3 + tokens * (result.itl_ms or 0.0) / 1e3)
    return max(lives)


def _long(sizes: Distribution) -> float:
    return sizes.quantile(0.9)


def run(
    document: PlanDocument,
    resolved: Resolved,
    *,
    requests: int,
    seed: int,
    trace: Iterable[Arrival] | None,
    policy: Policy,
    failures: Sequence[Failure],
    progress: Callable[[int], None],
) -> Run:
    """Send requests through the fleet until all that count have ended.

    Where all requests come at once, the time that counts lasts until the last of them has ended.

    Of drawn arrivals, ``requests`` count after a warm-up of two lives of the slowest class, and the stream goes on until
    the last of them has ended. Of the first ``requests`` of a trace, those count that come after a tenth of its time or two
    lives, whichever is less.

    Parameters
    ----------
    trace : iterable or None
        In order of time; it is read twice, to know how long it is.
    """
    loads = {load.name: load for load in loads_of(resolved)[0]}
    sources = sources_of(resolved, loads)
    clock = Clock()
    recorder = Recorder(len(sources))
    pending: dict[Job, None] = {}
    refused = 0
    ended_s = 0.0

    def finished(time: float, job: Job) -> None:
        nonlocal refused, ended_s
        ended_s = time
        if job.measured:
            bad = math.isinf(job.last_s)
            refused += bad
            del pending[job]
            recorder.record(time, job, refused=bad)

    fleet = Fleet(document, resolved, clock, finished, policy=policy, seed=seed)
    sizing = Sizing(resolved.requests, loads, seed)
    life = life_s(document, resolved)
    rate = sum(source.rate for source in sources)
    if trace is None:
        arrivals: Iterator[Arrival] = drawn(sources, seed)
        warm_up = min(math.ceil(_LIVES * life * rate), math.ceil(_MOST_WARM_UP * requests))
        span = (warm_up + requests) / rate
        start_s = warm_up / rate
    else:
        arrivals = itertools.islice(trace, requests)
        early, rows, span = _measured(itertools.islice(trace, requests), _LIVES * life)
        start_s = min(_LIVES * life, span / 10.0)
        warm_up = bisect_left(early, start_s)
        requests = rows - warm_up
    plan_failures(failures, fleet, start_s)
    watch = _Watch(fleet=fleet)
    every = (span - start_s) / _SAMPLES
    next_look = start_s + every / 2.0
    before: list[tuple[float, int, int]] = []
    after: list[tuple[float, int, int]] = []
    came = 0
    last = warm_up + requests
    end_s = span
    for arrival in arrivals:
        now = arrival.time_s
        if now >= next_look:
            while next_look <= now and len(watch.times) < _SAMPLES:
                clock.run_until(next_look)
                watch.look(next_look)
                next_look += every
        clock.run_until(now)
        if came == warm_up:
            before = _counters(fleet, now)
            begun_s = now
        if came == last:
            after, end_s = _counters(fleet, now), now
        if came >= last and not pending:
            break
        measured = warm_up <= came < last
        job = sizing.job(arrival, measured=measured)
        if measured:
            pending[job] = None
        fleet.enter(now, job)
        came += 1
        if came % _REPORT_EVERY == 0:
            progress(min(came, last))
        if came > 2 * last + 1000:
            break
    begun_s = start_s if not before else begun_s
    if not after:
        end_s = max(end_s, begun_s)
        clock.run_until(end_s)
        after = _counters(fleet, end_s)
    while pending and clock.step():
        pass
    for job in pending:
        recorder.record(end_s, job, refused=True)
    if end_s <= begun_s:
        end_s = max(ended_s, begun_s + _INSTANT_S)
        after = _counters(fleet, end_s)
    before = before or [(0.0, 0, 0)] * len(fleet.pools)
    seconds = end_s - begun_s
    return Run(
        times=tuple(recorder.of_class(label) for label in range(len(sources))),
        pools=tuple(
            PoolTrace(
                busy=(a[0] - b[0]) / seconds / pool.planned.replicas,
                busy_s=(a[0] - b[0]),
                served=a[1] - b[1],
                preemptions=a[2] - b[2],
                working=[row[i] for row in watch.working],
                queued=[row[i] for row in watch.queued],
                kv=[row[i] for row in watch.kv],
            )
            for i, (pool, b, a) in enumerate(zip(fleet.pools, before, after, strict=True))
        ),
        start_s=begun_s,
        end_s=end_s,
        sampled_s=watch.times,
        refused=refused,
        unfinished=len(pending),
        simulated=came,
    )


def _measured(trace: Iterable[Arrival], long_s: float) -> tuple[list[float], int, float]:
    """Arrival times up to ``long_s``, the number of rows and the time of the last one."""
    early, rows, last_s = [], 0, 0.0
    for arrival in trace:
        rows += 1
        last_s = arrival.time_s
        if last_s <= long_s:
            early.append(last_s)
    return early, rows, last_s


def _counters(fleet: Fleet, time: float) -> list[tuple[float, int, int]]:
    return [(pool.busy_s(time), pool.served, pool.preemptions) for pool in fleet.pools]
