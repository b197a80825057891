"""From pools to candidates: operating points of waits and intervals, and arcs between levels of elapsed time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from epd_models.candidate import Arc, Candidate, Node, OperatingPoint, Rejection, State
from epd_models.entry import Entry
from epd_models.loop import LoopPoint
from epd_models.parallelism import Parallelism
from epd_models.placement.context import Context, NotBuildable
from epd_models.placement.loops import loop_point
from epd_models.placement.measured_only import measured_only
from epd_models.placement.origins import origins
from epd_models.placement.table import PLACEMENTS, Placement
from epd_models.pool import Hop, Pool
from epd_models.provenance import Confidence
from epd_models.request import RequestLoad
from epd_models.risk import LEVEL_SHARES
from epd_models.row import Row
from epd_models.source import WEAKEST_FIRST, TimeOrigin
from epd_models.staffing import StaffedQueue, staffed_queues, strict_tau
from epd_models.transfer import Sender, transfer_s

LAST_LEVEL: Mapping[State, int] = {
    "raw": 0,
    "encoded": len(LEVEL_SHARES["encoded"]) - 1,
    "prefilled": len(LEVEL_SHARES["prefilled"]) - 1,
    "done": 0,
}
"""Highest level of elapsed time at each state."""

_CLOSE = 1.4
"""Waits closer than this ratio to a shorter one that is considered are left out."""
_POINTS = {"queue": 5, "loop": 4, "two queues": 2}
"""Operating points per wait and queue: of pools without a loop, with one, and with two queues beside it."""
Senders = Mapping[tuple[str, State], set[Sender]]
Ends = list[tuple[Node, float]]
"""Where a class enters or leaves a pool, each with the TTFT that has passed, or may have passed, there."""
Choice = Callable[[Sequence[Candidate], Callable[[Collection[str]], list[Candidate]]], Collection[str]]
"""Which pools to staff: given outlines of all of them, candidates that ask for no more than any operating point of the pool,
and a way to staff those of some keys; the keys to staff."""


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """The physics of a candidate: its pool and the points at which its queues and its loop are run."""

    pool: Pool
    waiting: Mapping[str, StaffedQueue]
    loop_point: LoopPoint | None


@dataclass(frozen=True, kw_only=True)
class Modelled:
    """All candidates that the performance models offer.

    Attributes
    ----------
    behaviours : Mapping[str, Behaviour]
        By candidate key.
    senders : Senders
        Who hands each class over at each state, measured workers included.
    fastest : Mapping[str, float]
        Seconds to the first token of each class on its fastest way through modelled pools, without any wait.
    """

    candidates: tuple[Candidate, ...]
    behaviours: Mapping[str, Behaviour]
    rejections: tuple[Rejection, ...]
    senders: Senders
    fastest: Mapping[str, float]


_WITHOUT_IMAGES: Mapping[str, str | None] = {
    "encoder_pool": None,
    "encode_prefill": "prefill",
    "integrated": "prefill_decode",
    "shared": "prefill_decode",
}
"""Where no class has images, placements that add nothing, and the one that does the same."""


def modelled_candidates(
    context: Context,
    entries: Sequence[Entry],
    placements: Iterable[str],
    senders: Senders,
    *,
    each: Callable[[], None] = lambda: None,
    choice: Choice | None = None,
    only: Collection[str] | None = None,
) -> Modelled:
    """Every placement on every entry and cut, at every operating point worth considering.

    Parameters
    ----------
    senders : Senders
        Hand-overs from measured workers.
    each : callable
        Called before each cut of each entry and before each pool is staffed; may raise to end the work.
    choice : callable, optional
        Which pools to find operating points for; without it, all.
    only : collection of str, optional
        Names of the only pools (placement, entry and cut) that are looked at.
    """
    wanted = set(placements)
    if not any(load.has_vision for load in context.loads):
        wanted -= {name for name, same in _WITHOUT_IMAGES.items() if same is None or same in wanted}
    known = {key: set(found) for key, found in senders.items()}
    outlines: dict[str, tuple[Context, Pool, Candidate]] = {}
    rejections: list[Rejection] = []
    reached: dict[tuple[str, State], float] = {
        (load.name, "raw" if load.has_vision else "encoded"): 0.0 for load in context.loads
    }
    for name, placement in PLACEMENTS.items():
        if name not in wanted:
            continue
        for entry in entries:
            if not set(placement.stages) <= set(entry.stages):
                continue
            for cut in placement.cuts(entry):
                if only is not None and f"{name}-{entry.name}-{cut.label}" not in only:
                    continue
                each()
                pools, here = _measured_pools(context, name, placement, entry, cut, rejections)
                rejections += _too_slow_loops(pools)
                barred = _barred(here, pools, known)
                rejections += barred
                for pool in pools:
                    _reach(here, pool, reached, {rejection.request_class for rejection in barred})
                    outline = _outline(here, pool, known)
                    if outline is not None:
                        outlines[outline.key] = here, pool, outline
        for _, _, outline in outlines.values():
            for arc in outline.arcs:
                if arc.end.sender is not None:
                    known.setdefault((arc.request_class, arc.end.state), set()).add(arc.end.sender)
    staffed: dict[str, list[tuple[Candidate, Behaviour]]] = {}

    def staff(keys: Collection[str]) -> list[Candidate]:
        for key in keys:
            if key not in staffed:
                each()
                here, pool, _ = outlines[key]
                staffed[key] = list(_candidates(here, pool, known))
        return [candidate for key in keys for candidate, _ in staffed[key]]

    keys = list(outlines) if choice is None else choice([outline for _, _, outline in outlines.values()], staff)
    staff(keys)
    found = {candidate.key: (candidate, behaviour) for key in keys for candidate, behaviour in staffed[key]}
    return Modelled(
        candidates=tuple(candidate for candidate, _ in found.values()),
        behaviours={key: behaviour for key, (_, behaviour) in found.items()},
        rejections=tuple(dict.fromkeys(rejections)),
        senders=known,
        fastest={name: seconds for (name, state), seconds in reached.items() if state == "done"},
    )


def _admitted(pool: Pool) -> frozenset[str]:
    """Classes that a pool may serve: those of its loop's point where it has one."""
    return frozenset(hop.name for hop in pool.hops) if pool.loop is None else frozenset(loop_point(pool).admitted)


def _too_slow_loops(pools: Sequence[Pool]) -> Iterator[Rejection]:
    """Classes whose interval no loop among the pools of one entry and cut can keep."""
    admitted = frozenset[str]().union(*(_admitted(pool) for pool in pools))
    for hop in {hop.name: hop for pool in pools if pool.loop is not None for hop in pool.hops}.values():
        if hop.name not in admitted:
            pool = min((p for p in pools if p.loop is not None), key=lambda p: p.loop.step if p.loop else math.inf)
            assert pool.loop is not None
            fastest = pool.loop.step / pool.tokens_per_step * 1e3
            label = f"{pool.entry.name} {pool.cut.label}"
            yield Rejection(
                limit="itl_ms",
                device=pool.entry.name,
                pool=pool.name,
                request_class=hop.name,
                wanted=hop.promise.itl_s * 1e3,
                best_reachable=fastest,
                text=f"{label}: one iteration takes {fastest:.2f} ms per token, an interval of "
                f"{hop.promise.itl_s * 1e3:g} ms is wanted",
            )


def _barred(context: Context, pools: Sequence[Pool], known: Senders) -> list[Rejection]:
    """Classes that no sender may hand over to the pools of one entry and cut."""
    result = []
    for hop in pools[0].hops if pools and context.network.forbidden_pairs else ():
        senders = known.get((hop.name, hop.start), ())
        if senders and all(hand_over_s(context, hop.receives, sender, pools[0], hop.start) is None for sender in senders):
            vendors = sorted({sender.vendor for sender in senders})
            label = f"{pools[0].placement} on {pools[0].entry.name}"
            result.append(
                Rejection(
                    limit="parallelism",
                    device=pools[0].entry.name,
                    pool=pools[0].name,
                    request_class=hop.name,
                    text=f"class {hop.name!r} in {label}: network.forbidden_kv_pairs keeps every device that reads its "
                    f"prompts ({', '.join(vendors)}) from handing KV caches over",
                )
            )
    return result


def _reach(context: Context, pool: Pool, reached: dict[tuple[str, State], float], barred: Collection[str | None]) -> None:
    """Lower the shortest times at which classes reach a state by what a pool can do when nobody waits."""
    admitted = _admitted(pool)
    for hop in pool.hops:
        if hop.name not in admitted or hop.name in barred:
            continue
        before = reached.get((hop.name, hop.start))
        if before is not None:
            crossing = transfer_s(hop.receives, pool.bandwidth, pool.bandwidth, context.network.latency_s)
            after = before + hop.delay_s(0.0) + (crossing if before > 0.0 else 0.0)
            key = (hop.name, hop.end)
            reached[key] = min(reached.get(key, math.inf), after)


def _measured_pools(
    context: Context, name: str, placement: Placement, entry: Entry, cut: Parallelism, rejections: list[Rejection]
) -> tuple[list[Pool], Context]:
    """Pools under all settings, and the context that they are built in: what the entry's source of times allows."""
    try:
        here = measured_only(context, entry, cut, placement.stages, rejections)
    except NotBuildable as error:
        rejections.append(replace(error.rejection, pool=f"{name}-{entry.name}-{cut.label}"))
        return [], context
    return list(_pools(here, name, placement, entry, cut, rejections)), here


def _pools(
    context: Context, name: str, placement: Placement, entry: Entry, cut: Parallelism, rejections: list[Rejection]
) -> Iterator[Pool]:
    """Pools of one placement, entry and cut under all settings; classes that do not fit are left out with a reason."""
    while context.loads:
        try:
            for settings in placement.settings(context, entry, cut):
                yield placement.build(context, entry, cut, settings)
        except NotBuildable as error:
            rejected = replace(error.rejection, pool=f"{name}-{entry.name}-{cut.label}")
            rejections.append(rejected)
            if rejected.request_class is None:
                return
            context = replace(context, loads=tuple(load for load in context.loads if load.name != rejected.request_class))
        else:
            return


def levels_s(load: RequestLoad, state: State) -> tuple[float, ...]:
    """Levels of elapsed TTFT of a class at a hand-over state, seconds, ascending."""
    target = load.request.targets.ttft_s
    return tuple(share * (math.inf if target is None else target) for share in LEVEL_SHARES[state])


def _sender(context: Context, pool: Pool, state: State) -> Sender:
    if state == "encoded":
        return Sender(bandwidth=pool.bandwidth)
    names = (pool.entry.name, pool.entry.device.sku, pool.entry.device.vendor)
    named = any(name in pair for name in names for pair in context.network.forbidden_pairs)
    return Sender(
        bandwidth=pool.bandwidth,
        kv_format=pool.entry.precision.kv_cache,
        vendor=pool.entry.device.vendor,
        names=names if named else (),
    )


def hand_over_s(context: Context, size: float, sender: Sender, pool: Pool, state: State) -> float | None:
    """Seconds to receive ``size`` bytes from a sender; None where the pair may not exchange them."""
    if sender.bandwidth == math.inf:
        return 0.0
    if state == "prefilled":
        ours = (pool.entry.name, pool.entry.device.sku, pool.entry.device.vendor)
        pairs = {frozenset((theirs, own)) for theirs in sender.names for own in ours}
        if pairs & context.network.forbidden_pairs:
            return None
        if sender.vendor != pool.entry.device.vendor or sender.kv_format != pool.entry.precision.kv_cache:
            size *= context.network.conversion_factor
    return transfer_s(size, sender.bandwidth, pool.bandwidth, context.network.latency_s)


def _starts(context: Context, hop: Hop, pool: Pool, known: Senders) -> Ends:
    """Where a class may enter a pool, each with the TTFT that has passed once it is there."""
    first: State = "raw" if hop.load.has_vision else "encoded"
    if hop.start == first:
        return [(Node.at(first), 0.0)]
    result = []
    for sender in sorted(known.get((hop.name, hop.start), ())):
        crossing = hand_over_s(context, hop.receives, sender, pool, hop.start)
        if crossing is not None:
            result += [
                (Node.at(hop.start, sender, level), elapsed + crossing)
                for level, elapsed in enumerate(levels_s(hop.load, hop.start))
            ]
    return result


def _deadlines(context: Context, hop: Hop, pool: Pool) -> Ends:
    """Where a class may leave a pool, each with the TTFT that may have passed by then."""
    if hop.end == "done":
        return [(Node.at("done"), hop.promise.ttft_s)]
    sender = _sender(context, pool, hop.end)
    return [
        (Node.at(hop.end, sender, level), elapsed)
        for level, elapsed in enumerate(levels_s(hop.load, hop.end))
        if elapsed <= hop.promise.ttft_s
    ]


def _ends(context: Context, pool: Pool, hop: Hop, known: Senders) -> tuple[Ends, Ends]:
    """Where a class may enter a pool and where it may leave it, the same at all its operating points."""
    senders = len(known.get((hop.name, hop.start), ()))
    key = ("ends", pool.placement, pool.entry.name, pool.cut, hop.name, hop.receives, hop.promise, senders)
    return context.once(key, lambda: (_starts(context, hop, pool, known), _deadlines(context, hop, pool)))


def _arcs(context: Context, pool: Pool, hop: Hop, wait_s: float, known: Senders) -> list[Arc]:
    """Arcs of a class: from every entry to the earliest deadline that it can keep; of those to the same deadline the latest
    from each sender, and none from a sender that may pass for a slower one with an arc as late."""
    best: dict[tuple[Node, Node], list[Arc]] = {}
    delay = hop.delay_s(wait_s)
    starts, deadlines = _ends(context, pool, hop, known)
    for start, elapsed in starts:
        for end, deadline in deadlines:
            if elapsed + delay <= deadline * (1 + 1e-12):
                arcs = best.setdefault((end, start.all_like_senders), [])
                if arcs and arcs[-1].start.sender == start.sender:
                    arcs.pop()
                if not arcs or arcs[-1].start.level < start.level:
                    arcs.append(Arc.of(hop.name, start, end))
                break
    return [arc for arcs in best.values() for arc in arcs]


def _taus(context: Context, pool: Pool, known: Senders) -> list[float]:
    """Waits per factor e worth promising, ascending: those that just keep some class within some deadline, near ones
    merged. For several queues: of all of them together."""
    slack = []
    for hop in pool.hops:
        if not hop.queues:
            continue
        starts, deadlines = _ends(context, pool, hop, known)
        for _, elapsed in starts:
            for _, deadline in deadlines:
                wait = hop.affordable_wait_s(deadline - elapsed)
                if wait > 0 and math.isfinite(wait):
                    slack.append(wait / math.log(1.0 / hop.shares.wait_eps) * (1 - 1e-9))
    result: list[float] = []
    for tau in sorted(slack):
        if not result or tau > result[-1] * _CLOSE:
            result.append(tau)
    return result


def _stricter(pool: Pool, tau: Mapping[str, float], names: frozenset[str]) -> dict[str, float]:
    """The waits that are promised in place of ``tau``: see :func:`epd_models.staffing.strict_tau`."""
    result = {}
    for queue in pool.queues:
        served = queue.served(names)
        result[queue.name] = strict_tau(served, tau[queue.name]) if served else tau[queue.name]
    return result


def _splits(context: Context, pool: Pool, known: Senders) -> list[dict[str, float]]:
    """Waits per factor e for each queue of a pool, the strictest first."""
    if not pool.queues:
        return [{}]
    taus = _taus(context, pool, known)
    if len(pool.queues) == 1:
        return [{pool.queues[0].name: tau} for tau in taus]
    first, second = (queue.name for queue in pool.queues)
    return [{first: tau * part, second: tau * (1.0 - part)} for tau in taus for part in _PARTS]


_PARTS = (0.4, 0.75)
"""Shares of a pool's wait that its encode queue may take, where encoding and prefill have queues of their own."""


def _outline(context: Context, pool: Pool, known: Senders) -> Candidate | None:
    """A candidate that offers all that any operating point of a pool offers and asks for no more; None where no class has a
    way through it."""
    allowed = _admitted(pool)
    arcs = [
        arc for hop in pool.hops if hop.name in allowed for arc in _arcs(context, pool, hop, hop.wait_s(_NO_WAIT), known)
    ]
    names = frozenset(arc.request_class for arc in arcs)
    if not names:
        return None
    point = None if pool.loop is None else loop_point(pool)
    rows = list(pool.rows)
    for queue in pool.queues:
        load = tuple((service.name, service.mean / queue.servers_per_replica) for service in queue.services)
        rows.append(Row(kind=f"{queue.name}_work", load=load))
    if point is not None:
        assert pool.loop is not None
        rows += point.least_rows(pool.loop)
    kept = tuple(row.only(names) for row in rows)
    candidate, _ = _candidate(context, pool, origins(context, pool), point, {}, tuple(sorted(arcs)), kept, _NO_WAIT)
    return candidate


_NO_WAIT: Mapping[str, float] = {"encode": 0.0, "prefill": 0.0}


def _candidates(context: Context, pool: Pool, known: Senders) -> Iterator[tuple[Candidate, Behaviour]]:
    """Candidates of a pool, the strictest waits first; once the waits of a point ask for nothing that its other rows do
    not ask for anyway, looser ones are left out."""
    point = None if pool.loop is None else loop_point(pool)
    allowed = _admitted(pool)
    ways: list[tuple[dict[str, float], tuple[Arc, ...]]] = []
    served: dict[frozenset[str], list[dict[str, float]]] = {}
    for wanted in _splits(context, pool, known):
        tau = _stricter(pool, wanted, allowed)
        arcs = [arc for hop in pool.hops if hop.name in allowed for arc in _arcs(context, pool, hop, hop.wait_s(tau), known)]
        if arcs:
            ways.append((tau, tuple(sorted(arcs))))
            served.setdefault(frozenset(arc.request_class for arc in arcs), []).append(tau)
    others = {names: _other_rows(pool, point, names) for names in served}
    waits = {names: iter(_waiting(pool, taus, names)) for names, taus in served.items() if others[names] is not None}
    times = origins(context, pool)
    for tau, passages in ways:
        names = frozenset(arc.request_class for arc in passages)
        other = others[names]
        if other is None:
            continue
        rates = {hop.name: hop.load.request.rate for hop in pool.hops if hop.name in names}
        free = False
        for waiting in next(waits[names]):
            rows = _waiting_rows(pool, waiting)
            free |= all(row.implied_by(other, rates) for row in rows)
            yield _candidate(context, pool, times, point, waiting, passages, (*rows, *other), tau)
        if free:
            return


def _other_rows(pool: Pool, point: LoopPoint | None, names: frozenset[str]) -> tuple[Row, ...] | None:
    """Rows that do not depend on waits, for the classes that flow; None where the loop's point is out of reach for some
    class."""
    rows = [row.only(names) for row in pool.rows]
    if point is not None:
        assert pool.loop is not None
        served = replace(point, promised=tuple(item for item in point.promised if item[0] in names))
        try:
            rows += served.rows(pool.loop)
        except ValueError:
            return None
    return tuple(row for row in rows if row.load or row.setup)


def _waiting_rows(pool: Pool, waiting: Mapping[str, StaffedQueue]) -> list[Row]:
    return [
        replace(row, kind=f"{queue.name}_{row.kind}")
        for queue in pool.queues
        if queue.name in waiting
        for row in waiting[queue.name].rows
    ]


def _waiting(
    pool: Pool, taus: Sequence[Mapping[str, float]], names: frozenset[str]
) -> Iterator[list[dict[str, StaffedQueue]]]:
    """For each of several waits, every combination of operating points of the pool's queues."""
    found: list[tuple[str, list[list[StaffedQueue]]]] = []
    for queue in pool.queues:
        hops = [hop for hop in pool.hops if hop.name in names and queue.name in hop.queues]
        if not hops:
            continue
        staffed = staffed_queues(
            queue.served(names),
            [tau[queue.name] for tau in taus],
            {hop.name: hop.load.request.rate for hop in hops},
            tail=min(hop.shares.wait_eps for hop in hops),
            servers_per_replica=queue.servers_per_replica,
            limit=_POINTS["two queues" if len(pool.queues) > 1 else "queue" if pool.loop is None else "loop"],
        )
        found.append((queue.name, staffed))
    for i in range(len(taus)):
        options = [[(name, point) for point in staffed[i]] for name, staffed in found]
        yield [dict(combination) for combination in itertools.product(*options)]


def _candidate(
    context: Context,
    pool: Pool,
    times: tuple[TimeOrigin, ...],
    point: LoopPoint | None,
    waiting: Mapping[str, StaffedQueue],
    arcs: tuple[Arc, ...],
    rows: tuple[Row, ...],
    tau: Mapping[str, float],
) -> tuple[Candidate, Behaviour]:
    names = frozenset(arc.request_class for arc in arcs)
    settings = pool.settings
    parts = [pool.name]
    parts += [f"itl={settings.itl_level_s:.6g}"] if settings.itl_level_s else []
    parts += [f"batch={settings.batch}"] if settings.batch else []
    parts += [f"fan={settings.fan_out}"] if settings.fan_out > 1 else []
    parts += [f"portion={settings.portion}"] if settings.portion else []
    if point is not None:
        parts.append(f"loop={point.share:.6g}:{point.minimum_replicas}:{point.pooled:d}:{settings.strictest_s:.6g}")
    for name, staffed in sorted(waiting.items()):
        chosen = staffed.point
        parts.append(
            f"{name}={chosen.kind}:{chosen.tau:.6g}:{chosen.slope:.6g}:{chosen.setup:.6g}:{chosen.theta:.6g}:"
            f"{chosen.minimum_servers}"
        )
    device = pool.entry.device
    units = device.units(pool.cut.logical_devices)
    longest = max((hop.load.peak_context for hop in pool.hops if hop.name in names), default=0.0)
    candidate = Candidate(
        key="|".join(parts),
        pool=pool.name,
        placement=pool.placement,
        stages=pool.stages,
        device=pool.entry.name,
        sku=device.sku,
        parallelism=pool.cut,
        units=units,
        arcs=arcs,
        rows=rows,
        busy_s={name: pool.busy_s.get(name, 0.0) for name in sorted(names)},
        operating_point=OperatingPoint(
            max_sequences=0 if pool.loop is None else settings.batch or context.engine.max_sequences,
            max_batched_tokens=pool.max_batched_tokens,
            memory_fraction=pool.memory_fraction,
            max_context_tokens=math.ceil(longest) if pool.placement != "encoder_pool" else 0,
            encoder_processes=pool.encoder_processes,
            fan_out=settings.fan_out,
            batch=settings.batch,
            portion=settings.portion,
            design_itl_s=settings.itl_level_s / pool.tokens_per_step,
            wait_s={hop.name: hop.wait_s(tau) for hop in pool.hops if hop.name in names},
            staffing={name: staffed.point.kind for name, staffed in sorted(waiting.items())},
            itl_promised_s={}
            if point is None
            else {name: t.interval / pool.tokens_per_step for name, t in point.promised if name in names},
        ),
        provenance=min((time.source for time in times), key=WEAKEST_FIRST.index),
        confidence=Confidence(min(time.confidence for time in times)),
        times=times,
    )
    return candidate, Behaviour(pool=pool, waiting=waiting, loop_point=point)
