"""Continuous batching: one loop that decodes every sequence in flight and slips prefill and encode between.

An iteration lasts ``step`` (streaming the weights, overheads) plus, for every sequence in flight, ``beta + gamma *
context``, plus the chunk of prefill and the encode it carries. At an *operating point* everything that is not linear
is fixed; the point holds as long as these rows do, n replicas of ``lanes`` lanes, R = sum x (decode + prefill + encode):

- ``time``: R / (lanes (1 - step / L)) + setup * y <= n: the mean interval stays at the level L,
- ``kv_memory``: R / lanes + step / memory * sum x held <= n,
- ``sequences``: R / lanes + step / max_sequences * sum x N <= n,
- ``share``: sum x (prefill + encode) <= share * lanes * n,
- ``interval``, one for each class that no other implies: the variance of a request's mean interval fits between
  level and target,
- ``minimum``: minimum_replicas * y <= n.

A request's mean interval spreads around L because of (docs/queueing.md derives and measures it)

1. the prefill and encode bursts that fall into its life, variance L sum x g**2 / ((N - 1)(1 - P)**2),
2. the number of sequences in flight, over-dispersed by L (1 - P) / step and slow: a request does not average it out,
3. both having the same cause, the arrivals.

Least-loaded routing spreads all of it over the pool, so variances fall with n; what stays is the size of one burst.

References
----------
Cohen, "The multiple phase service network with generalized processor sharing", Acta Inf. 12 (1979): the occupancy of a
loop without prefill is negative binomial whatever the output lengths. Whitt, "Asymptotic formulas for Markov processes
with applications to simulation", Oper. Res. 40 (1992): time averages of a slowly varying process.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from epd_models.row import Row

Array = NDArray[np.float64]

#: Levels tried between the shortest interval and the target.
_LEVELS = 40
#: Share by which queueing prompts raise the variance of bursts on a lane by itself (measured, docs/queueing.md).
_ALONE = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopClass:
    """What requests of one class do to a loop.

    Attributes
    ----------
    name : str
        Class.
    output_tokens : float
        Mean output tokens per request, N; the first comes with prefill, the others at one per iteration.
    decode : float
        Replica-seconds of decode per request: mean over requests of the sum of ``beta + gamma * context`` over its
        N - 1 iterations. Where N varies, the context grows with it: use E[N**2], not E[N]**2.
    prefill, encode : float
        Replica-seconds per request that stall decode; prefill is cut into chunks, encode is not.
    burst_second : float
        E[(prefill + encode)**2], s**2.
    held : float
        Byte-tokens per request: sum over its iterations of the KV bytes (and recurrent state) it holds.
    scv : float
        Squared coefficient of variation of the gaps between arrivals.
    averaging : float or None
        Intervals over which a request averages: the harmonic mean of N - 1 where N varies, because short answers see a burst
        undiluted; None where all answers are alike.
    """

    name: str
    output_tokens: float
    decode: float
    prefill: float = 0.0
    encode: float = 0.0
    burst_second: float = 0.0
    held: float = 0.0
    scv: float = 1.0
    averaging: float | None = None

    @property
    def burst(self) -> float:
        """Mean replica-seconds that stall decode, per request."""
        return self.prefill + self.encode

    @property
    def seconds(self) -> float:
        """Replica-seconds per request, r."""
        return self.decode + self.prefill + self.encode

    @property
    def intervals(self) -> float:
        """Intervals between output tokens, N - 1, at least one."""
        return max(self.output_tokens - 1.0, 1.0)

    @property
    def averaged(self) -> float:
        """Intervals over which a request averages, at least one."""
        return self.intervals if self.averaging is None else max(self.averaging, 1.0)

    @property
    def token(self) -> float:
        """Seconds that one sequence adds to an iteration."""
        return self.decode / self.intervals


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """The loop of one replica.

    Attributes
    ----------
    step : float
        Seconds of an iteration that do not depend on the batch, alpha. Where the step is concave in the batch (experts
        streamed), pass the tangent: it is safe at every batch.
    chunk : float
        Seconds of prefill that an iteration carries at the most.
    memory_bytes, max_sequences : float
        Room for KV and sequences of one replica (all its lanes together).
    lanes : int
        Loops that run side by side in one replica (pipeline stages).
    """

    classes: tuple[LoopClass, ...]
    step: float
    chunk: float = math.inf
    memory_bytes: float = math.inf
    max_sequences: float = math.inf
    lanes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalTarget:
    """``interval`` seconds between tokens, held by a request's mean interval with this probability."""

    interval: float
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPoint:
    """An operating point of a loop.

    Attributes
    ----------
    level : float
        Mean interval that the rows keep, s.
    share : float
        Most of a lane's time that prefill and encode may take.
    minimum_replicas : int
        Smallest pool; larger pools spread bursts over more lanes.
    pooled : bool
        Whether bursts count as spread over the pool (plus one burst), or each lane's by themselves.
    promised : tuple of (str, IntervalTarget)
        Targets of the admitted classes; no other class may flow.
    """

    level: float
    share: float
    minimum_replicas: int
    pooled: bool
    promised: tuple[tuple[str, IntervalTarget], ...]

    @property
    def admitted(self) -> tuple[str, ...]:
        """Names of the classes that may flow."""
        return tuple(name for name, _ in self.promised)

    def rows(self, loop: Loop) -> tuple[Row, ...]:
        """Rows on the replicas of the pool, for the admitted classes.

        Raises
        ------
        ValueError
            A target is out of this point's reach.
        """
        names = set(self.admitted)
        classes = [c for c in loop.classes if c.name in names]
        level, share = np.array([self.level]), np.array([self.share])
        if loop.step >= _pace(loop, classes, level, share, float(loop.lanes * self.minimum_replicas))[0]:
            raise ValueError(f"level {self.level:g} s is not above the shortest interval {loop.step:g} s")
        terms = _terms(loop, classes, self.promised, level, share, self.minimum_replicas, pooled=self.pooled)
        for term in terms:
            if not np.isfinite(term.loads).all():
                target = dict(self.promised)[term.judged]
                reach = f"{target.interval:g} s is out of reach at level {self.level:g} s"
                raise ValueError(f"class {term.judged}: {reach}")
        kept: list[Row] = []
        for term in terms:
            load = tuple((c.name, float(value)) for c, value in zip(classes, term.loads[0], strict=True))
            kept.append(Row(kind=term.kind, load=load, setup=float(term.setup[0])))
        rows = [row for row in kept if row.kind != "interval"] + _needed([row for row in kept if row.kind == "interval"])
        if self.minimum_replicas > 1:
            rows.append(Row(kind="minimum", load=(), setup=float(self.minimum_replicas)))
        return tuple(rows)

    def least_rows(self, loop: Loop) -> tuple[Row, ...]:
        """What :meth:`rows` asks for at least, whichever of the admitted classes flow."""
        classes = [c for c in loop.classes if c.name in self.admitted]
        lanes, free = float(loop.lanes), 1.0 - loop.step / self.level
        if free <= 0:
            return ()
        loads = {"time": {c.name: c.seconds / (free * lanes) for c in classes}}
        for kind, room, held in (
            ("kv_memory", loop.memory_bytes, {c.name: c.held for c in classes}),
            ("sequences", loop.max_sequences, {c.name: c.output_tokens for c in classes}),
        ):
            if math.isfinite(room):
                loads[kind] = {c.name: c.seconds / lanes + loop.step * held[c.name] / room for c in classes}
        if any(c.burst > 0 for c in classes):
            loads["share"] = {c.name: c.burst / (self.share * lanes) for c in classes}
        rows = [Row(kind=kind, load=tuple(load.items())) for kind, load in loads.items()]
        return (*rows, Row(kind="minimum", load=(), setup=float(self.minimum_replicas)))


def _needed(rows: list[Row]) -> list[Row]:
    """Interval rows without those that another implies."""
    kept: list[Row] = []
    for candidate in sorted(dict.fromkeys(rows), key=lambda row: -sum(value for _, value in row.load)):
        if not any(all(a[1] >= b[1] for a, b in zip(row.load, candidate.load, strict=True)) for row in kept):
            kept.append(candidate)
    return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class _Term:
    """A row at several levels: loads of shape (levels, classes), setups of shape (levels,); infinite out of reach."""

    kind: str
    loads: Array
    setup: Array
    judged: str = ""


def _terms(
    loop: Loop,
    classes: list[LoopClass],
    promised: tuple[tuple[str, IntervalTarget], ...],
    level: Array,
    share: Array,
    minimum_replicas: Array | int,
    *,
    pooled: bool,
) -> list[_Term]:
    """The rows of operating points at levels, shares and smallest pools of shape (levels,), but for the smallest pool's own.

    ``interval``: the variance is at most w (1 - share)**2 / (1 - P)**2 for every share P up to the point's, and
    (1 - P)**2 lies above its tangent, so that the row is affine.
    """
    lanes, left = float(loop.lanes), 1.0 - share
    smallest = np.asarray(minimum_replicas * lanes)
    none = np.zeros_like(level)
    seconds = np.array([c.seconds for c in classes])
    burst = np.array([c.burst for c in classes])
    pace = _pace(loop, classes, level, share, smallest)
    free = np.maximum(1.0 - loop.step / pace, 0.0)
    free = np.where(free > 0, free, np.nan)
    setup = _extra_sequences(classes, left) * max(c.token for c in classes) / (pace * free * lanes)
    terms = [_Term(kind="time", loads=seconds / (free * lanes)[:, None], setup=setup)]
    for kind, room, held in (
        ("kv_memory", loop.memory_bytes, [c.held for c in classes]),
        ("sequences", loop.max_sequences, [c.output_tokens for c in classes]),
    ):
        if math.isfinite(room):
            load = seconds / lanes + loop.step * np.array(held) / room
            terms.append(_Term(kind=kind, loads=np.tile(load, (len(level), 1)), setup=none))
    if burst.any():
        terms.append(_Term(kind="share", loads=burst / (share * lanes)[:, None], setup=none))
    each = [_variances(loop, c, level, share, smallest) for c in classes]
    bursts, slow = (np.stack([parts[i] for parts in each], axis=1) for i in (0, 1))
    bursts = bursts if pooled else bursts * np.broadcast_to(smallest, level.shape)[:, None]
    largest, names = _largest_burst(classes), [c.name for c in classes]
    stalled = 2.0 * left[:, None] * burst / loop.lanes
    for name, target in promised:
        averaged = classes[names.index(name)].averaged
        allowed = _spread_allowed(level, target) ** 2
        if pooled:
            allowed = allowed - largest**2 / (averaged * left) ** 2
        allowed = np.where(allowed > 0, allowed, np.nan)
        per_spread = left**2 / (smallest * loop.lanes * allowed)
        variance = (bursts / averaged + slow) * per_spread[:, None]
        loads = (variance + stalled) / (left * (1.0 + share))[:, None]
        terms.append(_Term(kind="interval", loads=loads, setup=none, judged=name))
    return terms


def _spread_allowed(level: Array, target: IntervalTarget) -> Array:
    """Standard deviation with which a gamma-like spread around ``level`` still meets the target.

    Solves interval / level - 1 = z cv + (z**2 - 1) cv**2 / 3 (Cornish and Fisher, skewness 2 cv).
    """
    z = NormalDist().inv_cdf(target.probability)
    room = target.interval / level - 1.0
    bend = (z * z - 1.0) / 3.0
    if z <= 0:
        return np.where(room >= 0, np.inf, 0.0)
    if abs(bend) < 1e-9:
        spread = level * room / z
    else:
        spread = level * (np.sqrt(np.maximum(z * z + 4.0 * bend * room, 0.0)) - z) / (2.0 * bend)
    return np.where(room > 0, spread, 0.0)


def _quantile(mean: float, deviation: float, probability: float) -> float:
    z = NormalDist().inv_cdf(probability)
    return max(mean + deviation * (z + (z * z - 1.0) / 3.0 * deviation / mean), 0.0)


def _extra_sequences(classes: list[LoopClass], left: Array) -> Array:
    """Sequences that over-dispersion adds to the mean, over the whole pool; one for Poisson arrivals without prefill."""
    return (max(c.scv for c in classes) / left**2 + 1.0) / 2.0


def _queued_sequences(loop: Loop, interval: Array, share: Array, lanes: Array | float) -> Array:
    """Sequences per lane that join while prefill stalls decode, beyond what time without stalls sees.

    The factor for the size of the pool is measured (docs/queueing.md): prompts queue behind each other mostly where
    few lanes share them.
    """
    chunked = loop.chunk / (loop.chunk + interval * (1.0 - share)) if math.isfinite(loop.chunk) else 1.0
    result: Array = np.minimum(share / chunked, 1.0) * share / (1.0 - share) * (0.6 + 2.2 / lanes)
    return result


def _pace(loop: Loop, classes: list[LoopClass], level: Array, share: Array, lanes: Array | float) -> Array:
    """Interval to plan for so that the mean over requests comes out at ``level``."""
    token = max(c.token for c in classes)
    if token == 0:
        return level
    full = np.maximum((level * (1.0 - share) - loop.step) / token, 1.0)
    return level / (1.0 + _queued_sequences(loop, level, share, lanes) / full)


def _largest_burst(classes: list[LoopClass]) -> float:
    """Seconds of the burst in progress when one of the largest is, over the classes."""
    return max((c.burst_second / c.burst for c in classes if c.burst > 0), default=0.0)


def _variances(loop: Loop, c: LoopClass, interval: Array, share: Array, lanes: Array | float) -> tuple[Array, Array]:
    """What 1 request/s of a class adds to the variance of mean intervals on one lane: bursts (times N - 1), occupancy.

    Linear response of a loop at mean interval ``interval`` to its arrivals: a request brings a stall of g seconds and
    joins a batch that takes a while to forget it. Prompts that queue behind each other on few lanes add to the bursts.
    """
    left = 1.0 - share
    forgetting = np.clip(loop.step / (left * interval), 1e-9, 1.0)
    averaged = 2.0 * (forgetting + np.expm1(-forgetting)) / forgetting**2
    bursts = c.scv * interval * c.burst_second / left**2 * (1.0 + _ALONE / lanes)
    both = c.scv * averaged * interval * c.burst * c.token / left**3
    noise = c.scv * (1.0 / left**3 + 1.0 / left) / 2.0
    occupancy = averaged * interval**2 / loop.step * c.intervals * c.token**2 * noise
    return bursts, both + occupancy


def best_levels(
    loop: Loop, targets: Mapping[str, IntervalTarget], rate_hint: Mapping[str, float], *, limit: int = 6
) -> list[LoopPoint]:
    """A few operating points for pools from one replica up to the whole demand.

    A low level needs replicas to keep the batch small, a high one leaves little room for the spread; the larger the
    pool, the higher the best level. Each point is the best for a smallest pool; some are made for the mix of the hint,
    some for the class that brings most prefill per decode.

    Parameters
    ----------
    targets : Mapping[str, IntervalTarget]
        Targets of the classes to admit.
    rate_hint : Mapping[str, float]
        Full demand of each class, requests/s.
    limit : int
        Most points returned.

    Returns
    -------
    list of LoopPoint
        Empty where no level serves all the classes.
    """
    classes = [c for c in loop.classes if c.name in targets and rate_hint.get(c.name, 0.0) > 0]
    if not classes:
        return []
    promised = tuple((c.name, targets[c.name]) for c in classes)
    flows = {c.name: rate_hint[c.name] for c in classes}
    work = sum(flows[c.name] * c.seconds for c in classes)
    whole = sum(flows[c.name] * c.burst for c in classes) / work if work > 0 else 0.0
    most = max((c.burst / c.seconds for c in classes if c.seconds > 0), default=0.0)
    (first,) = _best(loop, classes, promised, flows, [(whole, 1)])
    largest = 1.0 if first is None else first[0]
    sizes = sorted({1, *(max(1, int(largest**power * 0.9)) for power in (0.25, 0.5, 0.75, 1.0))})
    wanted = [(whole, size) for size in sizes if size > 1]
    if most > 1.2 * whole:
        wanted += [(most, size) for size in (1, sizes[len(sizes) // 2])]
    found = [first, *_best(loop, classes, promised, flows, wanted)]
    points = [point for entry in found if entry is not None for point in (entry[1],)]
    return list(dict.fromkeys(points))[:limit]


def _best(
    loop: Loop,
    classes: list[LoopClass],
    promised: tuple[tuple[str, IntervalTarget], ...],
    flows: Mapping[str, float],
    wanted: list[tuple[float, int]],
) -> list[tuple[float, LoopPoint] | None]:
    """For each share of prefill in the work and each smallest pool: replicas for the whole demand, and the level that needs
    fewest of them; None where no level serves it."""
    top = min(target.interval for _, target in promised)
    if top <= loop.step or not wanted:
        return [None for _ in wanted]
    bursty = any(c.burst > 0 for c in classes)
    levels = loop.step + (top - loop.step) * np.arange(1, _LEVELS + 1) / _LEVELS
    level = np.tile(levels, len(wanted))
    work = np.repeat([share for share, _ in wanted], _LEVELS)
    smallest = np.repeat([size for _, size in wanted], _LEVELS)
    share = np.clip(work * (1.0 - loop.step / level), 1e-6, 0.95) if bursty else np.zeros_like(level)
    through = np.array([flows[c.name] for c in classes])
    ways = (True, False) if bursty else (True,)
    needs = []
    for pooled in ways:
        terms = _terms(loop, classes, promised, level, share, smallest, pooled=pooled)
        need = np.max([term.loads @ through + term.setup for term in terms], axis=0)
        needs.append(np.where(np.isfinite(need), np.maximum(need, np.where(smallest > 1, smallest, 0.0)), np.inf))
    result: list[tuple[float, LoopPoint] | None] = []
    # Of equals a point with pooled bursts, then the lowest level.
    for block in np.stack(needs).reshape(len(ways), len(wanted), _LEVELS).transpose(1, 0, 2):
        way, at = np.unravel_index(int(np.argmin(block)), block.shape)
        if not np.isfinite(block[way, at]):
            result.append(None)
            continue
        i = len(result) * _LEVELS + int(at)
        point = LoopPoint(
            level=float(level[i]),
            share=float(share[i]),
            minimum_replicas=int(smallest[i]),
            pooled=ways[way],
            promised=promised,
        )
        result.append((float(block[way, at]), point))
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Sequences in flight and KV bytes held on one replica: means over time, and variance over mean."""

    sequences: float
    held_bytes: float
    dispersion: float


def predicted_interval(
    loop: Loop, flows: Mapping[str, float], replicas: int, probability: float
) -> dict[str, tuple[float, float]]:
    """Mean interval between tokens of each class that flows, and its quantile over requests, s.

    Infinite where the pool cannot carry the flows. Against simulation (docs/queueing.md): mean within 3 % and 95th
    percentile within 10 % up to three quarters of the replica-seconds, less sharp above where prefill prevails.
    """
    classes = [c for c in loop.classes if flows.get(c.name, 0.0) > 0]
    lanes = float(replicas * loop.lanes)
    busy = sum(flows[c.name] * c.seconds for c in classes) / lanes
    if busy >= 1.0:
        return {c.name: (math.inf, math.inf) for c in classes}
    share = sum(flows[c.name] * c.burst for c in classes) / lanes
    mean = _mean_interval(loop, classes, flows, lanes, busy, share)
    parts = [_variances(loop, c, np.array(mean), np.array(share), lanes) for c in classes]
    bursts = sum(flows[c.name] * float(part[0]) for c, part in zip(classes, parts, strict=True)) / lanes
    slow = sum(flows[c.name] * float(part[1]) for c, part in zip(classes, parts, strict=True)) / lanes**2
    one = _largest_burst(classes) ** 2 * (1.0 - 1.0 / lanes) / (1.0 - share) ** 2
    result = {}
    for c in classes:
        variance = slow + min(bursts / c.averaged, bursts / (c.averaged * lanes) + one / c.averaged**2)
        result[c.name] = mean, _quantile(mean, math.sqrt(variance), probability)
    return result


def _mean_interval(
    loop: Loop, classes: list[LoopClass], flows: Mapping[str, float], lanes: float, busy: float, share: float
) -> float:
    decode = sum(flows[c.name] * c.decode for c in classes)
    left = 1.0 - share
    extra = sum(flows[c.name] * c.decode * c.token * (c.scv / left**2 + 1.0) / 2.0 for c in classes)
    interval = (loop.step + (extra / decode / lanes if decode > 0 else 0.0)) / (1.0 - busy)
    decoding = [c for c in classes if c.output_tokens > 1.0]
    tokens = sum(flows[c.name] * c.output_tokens for c in decoding) / lanes
    if tokens == 0.0:
        return interval
    stay = sum(flows[c.name] for c in decoding) / sum(flows[c.name] for c in classes)
    return interval + stay * float(_queued_sequences(loop, np.array(interval), np.array(share), lanes)) / tokens


def predicted_occupancy(loop: Loop, flows: Mapping[str, float], replicas: int) -> Occupancy:
    """Sequences in flight on one replica at the load the pool really carries; infinite where it cannot."""
    classes = [c for c in loop.classes if flows.get(c.name, 0.0) > 0]
    lanes = float(replicas * loop.lanes)
    busy = sum(flows[c.name] * c.seconds for c in classes) / lanes
    if not classes or busy >= 1.0:
        value = math.inf if classes else 0.0
        return Occupancy(sequences=value, held_bytes=value, dispersion=value)
    share = sum(flows[c.name] * c.burst for c in classes) / lanes
    interval = _mean_interval(loop, classes, flows, lanes, busy, share)
    return Occupancy(
        sequences=interval * sum(flows[c.name] * c.output_tokens for c in classes) / replicas,
        held_bytes=interval * sum(flows[c.name] * c.held for c in classes) / replicas,
        dispersion=dispersion(loop, interval, share, max(c.scv for c in classes)),
    )


def dispersion(loop: Loop, interval: float, share: float, scv: float = 1.0) -> float:
    """Variance over mean of the sequences in flight on one lane by itself: interval / step without prefill.

    The cube is measured, and safe up to a share of 0.7; a pool under least-loaded routing spreads less.
    """
    left = 1.0 - share
    return max(interval * left / loop.step, 1.0) * scv * (1.0 / left**3 + 1.0) / 2.0


def memory_headroom(*, memory_bytes: float, sequence_bytes: float, dispersion: float, probability: float) -> float:
    """Share of a replica's KV memory that the mean may fill so that it overflows with at most this probability.

    Parameters
    ----------
    memory_bytes : float
        Room for KV of one replica, one peak request already taken off.
    sequence_bytes : float
        KV bytes of one sequence in flight (its mean square over its mean, where sequences differ).
    dispersion : float
        Variance over mean of the sequences in flight (`dispersion`; that of a lane by itself is safe for every pool).
    probability : float
        Of finding the memory overflown at an instant.

    Returns
    -------
    float
        In (0, 1). Occupancy is taken as gamma distributed (Wilson and Hilferty's quantile), the continuous companion
        of the negative binomial.
    """
    z = NormalDist().inv_cdf(1.0 - probability)
    grain = sequence_bytes * dispersion / memory_bytes
    low, high = 0.0, 1.0
    while high - low > _HEADROOM_TO * high:
        share = (low + high) / 2.0
        nine = 9.0 * share / grain
        upper = share * max(1.0 - 1.0 / nine + z / math.sqrt(nine), 0.0) ** 3
        low, high = (share, high) if upper <= 1.0 else (low, share)
    return low


_HEADROOM_TO = 1e-6
"""Relative precision of a share of memory, from below."""


def prefill_service(loop: Loop, level: float) -> float:
    """Factor on a prompt's prefill seconds while decode shares the loop: (chunk + level) / chunk."""
    return 1.0 + level / loop.chunk if math.isfinite(loop.chunk) else 1.0


def behind_s(loop: Loop, work: float) -> float:
    """Seconds of prompts that arrive behind a request but enter its last iteration, which all of them leave together.

    With the rest of the iteration under way and the request's own work and iterations, this is what it takes from its
    arrival at the loop to its first token beyond its promised wait. Safe where the waiting rows hold for services
    ``encode + prefill * prefill_service(loop, level)``.

    Parameters
    ----------
    work : float
        Seconds of prefill and encode that arrive during the wait: the loop's share of prefill times the wait.
    """
    behind = max(work, _largest_burst(list(loop.classes)))
    carried = loop.chunk * max(1.0, max((c.burst / c.prefill for c in loop.classes if c.prefill > 0), default=1.0))
    return min(behind, carried)
