"""Pools whose replicas run a decode loop: integrated, shared, prefill-decode and decode."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from epd_models.candidate import Rejection, Stage
from epd_models.entry import Entry
from epd_models.loop import (
    IntervalTarget,
    Loop,
    LoopClass,
    LoopPoint,
    behind_s,
    best_levels,
    dispersion,
    memory_headroom,
    prefill_service,
)
from epd_models.memory import KvShape
from epd_models.parallelism import Parallelism
from epd_models.placement import parts
from epd_models.placement.context import Context, NotBuildable
from epd_models.placement.loop_draft import Draft, Encode, draft_of
from epd_models.pool import Behind, Hop, Pool, Queue, Settings
from epd_models.request import RequestLoad
from epd_models.stages.decode import StepTime
from epd_models.transfer import transfer_s

Build = Callable[[Context, Entry, Parallelism, Settings], Pool]


def loop_pool(
    context: Context,
    entry: Entry,
    cut: Parallelism,
    chosen: Settings,
    *,
    placement: str,
    stages: tuple[Stage, ...],
    encode: Encode,
    prefills: bool,
) -> Pool:
    """A pool of decode loops, with what its placement adds to them.

    Parameters
    ----------
    encode : {"none", "in_line", "beside"}
        Whether images are encoded elsewhere, in the loop itself, or by processes beside it.
    prefills : bool
        Whether prompts are read in the loop, or arrive as KV caches.
    """
    draft = context.once(
        ("draft", placement, entry.name, cut, chosen.portion),
        lambda: draft_of(context, entry, cut, chosen, encode=encode, prefills=prefills),
    )
    engine, base, level = context.engine, draft.base, chosen.itl_level_s
    step = parts.step_time(context, entry, base.worker, chosen)
    if encode == "beside":
        step = step.slower(1.0 + engine.shared_drag)
    chunk = base.chunk_s if prefills else math.inf
    loop = Loop(classes=(), step=fixed_s(context, entry, step, chosen), chunk=chunk, lanes=cut.pipeline)
    factor = prefill_service(loop, level)

    prompts, classes = [], []
    largest_held = 0.0
    for passage in draft.passages:
        load, prompt = passage.load, passage.prompt
        if prefills:
            free = passage.unhindered
            by_size = parts.service(load, passage.busy * factor, passage.stalls) if free is None else free.times(factor)
            prompts.append(by_size)
            holding_s = by_size.mean
        else:
            holding_s = transfer_s(
                prompt.mean_crossing * context.network.conversion_factor,
                float(base.worker.units) * context.slowest_bandwidth,
                base.bandwidth,
                context.network.latency_s,
            )
        steps = load.decoded[0] / step.tokens
        held = _held(load, base.kv, step, context, entry)
        largest_held = max(largest_held, held / steps if steps else passage.held)
        classes.append(
            LoopClass(
                name=load.name,
                output_tokens=steps + 1.0,
                decode=_decode_s(load, step, entry, chosen),
                prefill=passage.prefill,
                encode=passage.encode,
                burst_second=passage.second,
                held=held + passage.held * (1.0 + holding_s / loop.step),
                scv=load.request.interarrival_scv,
                averaging=load.averaging_steps / step.tokens if load.averaging_steps > 0 else None,
            )
        )
    spread = dispersion(loop, max(level, loop.step), chosen.burst_share, max(_SMOOTHEST, *(c.scv for c in classes)))
    sequences = float(chosen.batch or engine.max_sequences * cut.attention_data)
    overflow = OVERFLOW if prefills else OVERFLOW_OF_DECODE
    each, room = spread / cut.attention_data, draft.memory - draft.peak
    loop = replace(
        loop,
        classes=tuple(classes),
        memory_bytes=cut.attention_data * _usable(room, largest_held, each, overflow),
        max_sequences=_usable(sequences, 1.0, spread, overflow),
    )
    waiting = [] if draft.encoding is None else [draft.encoding]
    if prompts:
        waiting.append(Queue(name="prefill", servers_per_replica=cut.pipeline, services=tuple(prompts)))
    running = 1.0 - loop.step / level if level > loop.step else 1.0
    return Pool(
        placement=placement,
        stages=stages,
        entry=entry,
        cut=cut,
        settings=chosen,
        bandwidth=base.bandwidth,
        hops=tuple(_hops(draft, loop, chosen, prefills=prefills)),
        queues=tuple(waiting),
        rows=draft.rows,
        loop=loop,
        busy_s={c.name: c.seconds / running / cut.pipeline for c in classes},
        kv_bytes=draft.memory * cut.attention_data,
        max_batched_tokens=engine.max_batched_tokens,
        memory_fraction=engine.shared_memory_fraction if encode == "beside" else engine.memory_fraction,
        encoder_processes=draft.processes,
        tokens_per_step=step.tokens,
    )


_SMOOTHEST = 0.1
"""Squared variation of gaps below which occupancy is not taken to spread less: service varies even where arrivals do
not."""
OVERFLOW, OVERFLOW_OF_DECODE = 0.01, 0.001
"""Probability with which the sequences in flight on a replica may outgrow its memory or its limit, at an instant. Where KV
caches arrive ready, no time is planned for prompts that lose theirs and must be read (docs/queueing.md)."""


def _usable(room: float, one: float, spread: float, overflow: float) -> float:
    """What the mean may fill of ``room`` when a sequence takes ``one`` of it and sequences spread by ``spread``."""
    if room <= 0.0 or one <= 0.0:
        return max(room, 0.0) or 1e-9
    return room * memory_headroom(memory_bytes=room, sequence_bytes=one, dispersion=spread, probability=overflow)


def _hops(draft: Draft, loop: Loop, chosen: Settings, *, prefills: bool) -> Iterator[Hop]:
    """How each class passes through the loop: the fixed part of its time there, and the part that grows with its wait."""
    level, share = chosen.itl_level_s, chosen.burst_share
    behind = Behind(share=share, least=behind_s(loop, 0.0), most=behind_s(loop, math.inf)) if prefills else Behind()
    for passage in draft.passages:
        entering, in_loop_s = (0.0, 0.0, 1), 2.0 * level
        if prefills:
            prompt, probability = passage.prompt, passage.shares.size_probability
            at = passage.load.quantile_size(passage.stalls + prompt.read + level * prompt.chunks, probability)
            entering = float(passage.stalls[at]), float(prompt.read[at]), int(prompt.chunks[at])
            encode, prefill, iterations = entering
            in_loop_s = encode + prefill + (iterations + 1) * level
        yield Hop(
            load=passage.load,
            promise=passage.promise,
            shares=passage.shares,
            start=passage.start,
            end="done",
            own_s=passage.own_s + in_loop_s,
            entering=entering,
            behind=behind,
            queues=passage.queues,
            receives=passage.receives,
        )


def fixed_s(context: Context, entry: Entry, step: StepTime, chosen: Settings) -> float:
    """alpha: seconds of an iteration over nothing, or of what a compiled batch takes however many sequences fill it."""
    if not chosen.batch:
        return step.fixed
    compiled = compiled_context(context, entry)
    return step.fixed + chosen.batch * (step.per_sequence + (0.0 if compiled is None else step.context_s(compiled)))


def compiled_context(context: Context, entry: Entry) -> float | None:
    """Smallest compiled context that holds the longest request, or the longest request where none does; None where
    contexts are not compiled."""
    longest = max(load.peak_context for load in context.loads)
    shapes = entry.device.context_shapes
    return float(min((shape for shape in shapes if shape >= longest), default=longest)) if shapes else None


def _decode_s(load: RequestLoad, step: StepTime, entry: Entry, chosen: Settings) -> float:
    """Replica-seconds that decoding one request adds to iterations; what is compiled is in their fixed part."""
    steps, contexts = load.decoded
    seconds = 0.0 if chosen.batch else steps * step.per_sequence
    if not (chosen.batch and entry.device.context_shapes):
        seconds += step.per_context * contexts
        seconds += sum(per_token * load.windowed_context_sum(window) for window, per_token in step.windows)
    return seconds / step.tokens


def _held(load: RequestLoad, kv: KvShape, step: StepTime, context: Context, entry: Entry) -> float:
    """KV bytes of one request on a logical device, summed over its iterations."""
    steps, contexts = load.decoded
    fixed = kv.fixed + (kv.per_image_sequence if load.has_vision else 0.0)
    if entry.device.kv_reservation == "full":
        return steps * kv.held(load.peak_context, images=load.has_vision) / step.tokens
    if context.engine.reserves_output:
        contexts = load.final_context_sum
    held = steps * fixed + kv.per_token * contexts
    held += sum(size * load.windowed_context_sum(window, contexts) for window, size in kv.windows)
    return held / step.tokens


def loop_settings(context: Context, entry: Entry, cut: Parallelism, build: Build) -> list[Settings]:
    """Levels of the mean iteration worth considering, for every way of sharing end-to-end targets and every compiled
    batch of the device.

    Raises
    ------
    NotBuildable
        No class can be served: memory, or an interval below one iteration.
    """
    result: list[Settings] = []
    refused: Rejection | None = None
    draft = context.engine.speculative
    tokens = 1.0 + draft.accepted_tokens if draft else 1.0
    batches = [b for b in entry.device.batch_shapes if b <= context.engine.max_sequences] or [0]
    for portion in range(parts.portions(context)):
        promised = [parts.promise(load, Settings(portion=portion)) for load in context.loads if load.averaging_steps > 0]
        targets = sorted({kept.itl_s * tokens for kept in promised}) or [_UNLIMITED_S]
        for batch in batches:
            for target in targets:
                pool = build(context, entry, cut, Settings(itl_level_s=target, batch=batch, portion=portion))
                points = _levels(pool, target)
                near = points
                for _ in range(_CLOSER):
                    if not near or not _full(pool, near[0]):
                        break
                    # Occupancy spreads less at the level found than at the one it was found for: more sequences fit.
                    pool = build(context, entry, cut, Settings(itl_level_s=near[0].level, batch=batch, portion=portion))
                    near = _levels(pool, target)
                points = list(dict.fromkeys(near + points))
                result += [
                    Settings(
                        itl_level_s=point.level,
                        burst_share=point.share,
                        smallest=point.minimum_replicas,
                        pooled=point.pooled,
                        strictest_s=target,
                        batch=batch,
                        portion=portion,
                    )
                    for point in points
                ]
                if not points and refused is None:
                    refused = _too_slow(entry, cut, pool, target)
    if not result and refused is not None:
        raise NotBuildable(refused)
    return list(dict.fromkeys(result))


_UNLIMITED_S = 10.0
"""Iteration time allowed where no class decodes more than one token."""


def _targets(pool: Pool, strictest_s: float) -> dict[str, IntervalTarget]:
    """Interval targets per iteration of the classes that ask for no less than ``strictest_s``."""
    result = {}
    for hop in pool.hops:
        itl = hop.promise.itl_s if hop.load.averaging_steps > 0 else _UNLIMITED_S
        if itl * pool.tokens_per_step >= strictest_s * (1 - 1e-12):
            target = IntervalTarget(interval=itl * pool.tokens_per_step, probability=1.0 - hop.promise.itl_eps)
            result[hop.name] = target
    return result


def _levels(pool: Pool, strictest_s: float) -> list[LoopPoint]:
    """Levels that keep intervals with fewest replicas, and swifter ones: prompts wait for every iteration, so that where
    TTFT is tight a loop may have to be faster than its intervals ask for."""
    assert pool.loop is not None
    rates = {hop.name: hop.load.request.rate for hop in pool.hops}
    points = best_levels(pool.loop, _targets(pool, strictest_s), rates, limit=_LEVELS)
    step = pool.loop.step
    swifter = []
    for point in points[:1]:
        for part in _SWIFTER:
            level = step + (point.level - step) * part
            share = point.share * (1.0 - step / level) / (1.0 - step / point.level)
            swifter.append(replace(point, level=level, share=share))
    return points + swifter


def _full(pool: Pool, point: LoopPoint) -> bool:
    """Whether it is memory or the number of sequences that asks for most replicas at a point."""
    assert pool.loop is not None
    rates = {hop.name: hop.load.request.rate for hop in pool.hops}
    most = max(point.rows(pool.loop), key=lambda row: row.need(rates))
    return most.kind in ("kv_memory", "sequences")


_CLOSER = 3
"""Times that levels are sought anew for the occupancy at the level found."""
_LEVELS = 4
_SWIFTER = (0.5, 0.2)
"""Levels beside the best one, as shares of its distance from the shortest iteration."""


def loop_point(pool: Pool) -> LoopPoint:
    """The operating point that a pool's settings name."""
    chosen = pool.settings
    return LoopPoint(
        level=chosen.itl_level_s,
        share=chosen.burst_share,
        minimum_replicas=chosen.smallest,
        pooled=chosen.pooled,
        promised=tuple(_targets(pool, chosen.strictest_s).items()),
    )


def _too_slow(entry: Entry, cut: Parallelism, pool: Pool, target: float) -> Rejection:
    assert pool.loop is not None
    fastest = pool.loop.step / pool.tokens_per_step
    wanted = target / pool.tokens_per_step
    return Rejection(
        limit="itl_ms",
        device=entry.name,
        pool=cut.label,
        wanted=wanted * 1e3,
        best_reachable=fastest * 1e3,
        text=f"{entry.name} {cut.label}: one iteration takes {fastest * 1e3:.2f} ms per token, an interval of "
        f"{wanted * 1e3:g} ms is wanted",
    )
