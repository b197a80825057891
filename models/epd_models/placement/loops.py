"""Pools whose replicas run a decode loop: integrated, shared, prefill-decode and decode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from epd_models.candidate import Rejection, Stage, State
from epd_models.entry import Entry
from epd_models.loop import Loop, LoopClass, LoopPoint, best_levels
from epd_models.memory import KvShape, kv_shape
from epd_models.parallelism import Parallelism
from epd_models.placement import parts
from epd_models.placement.context import Context, NotBuildable
from epd_models.pool import Hop, Pool, Queue, Settings
from epd_models.request import RequestLoad
from epd_models.row import Row
from epd_models.stages.decode import StepTime
from epd_models.stages.prefill import prefill_time
from epd_models.transfer import transfer_s

Encode = Literal["none", "in_line", "beside"]
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
    engine = context.engine
    worker = parts.language_worker(context, entry, cut)
    images = any(load.has_vision for load in context.loads)
    processes = parts.encoder_processes(context, entry) if encode == "beside" else 0
    if encode == "beside":
        free = 1.0 - engine.shared_memory_fraction
        parts.check_encoder_memory(context, entry, processes=processes, fraction=free)
    elif encode == "in_line" and images:
        parts.check_encoder_formats(entry)
    memory = parts.kv_budget(
        context,
        worker,
        encodes=encode == "in_line" and images,
        beside_encoders=encode == "beside",
        images=images and prefills,
    )
    times = parts.encode_times(context, entry) if encode != "none" else {}
    prefill = prefill_time(worker)
    kv = kv_shape(context.model, entry.precision, cut)
    bandwidth = parts.bandwidth(context.network, entry, worker.units)
    step = parts.step_time(context, worker, chosen)
    level = chosen.itl_level_s
    fixed = _fixed_s(context, entry, step, chosen)
    chunk_s = float(prefill.busy_s(np.array([float(engine.max_batched_tokens)]))[0])
    phi = chunk_s / (chunk_s + level)

    hops, classes, prompts, encodes, received, compute, host = [], [], [], [], [], [], []
    for load in context.loads:
        kept = parts.promise(load, chosen)
        shares = parts.shares(load, kept, alone=encode == "in_line")
        size = shares.size_probability
        nothing = np.zeros_like(load.image_counts)
        busy = parts.prefill_busy(load, prefill) if prefills else nothing
        stalls = parts.in_line_encode(context, load, times) if encode == "in_line" else nothing
        start: State = "prefilled"
        queues: tuple[str, ...] = ()
        receives = 0.0
        if prefills:
            start = "raw" if load.has_vision and encode != "none" else "encoded"
            queues = ("prefill",)
            prompts.append(parts.service(load, busy / phi, stalls))
            upper = parts.upper_new_tokens(load)
            latency = stalls + prefill.latency_factor * parts.prefill_busy(load, prefill, upper)
            own = engine.request_overhead_s + load.quantile(
                latency + level * (1.0 + parts.chunks(context, upper)), size
            )
            holding_s = prompts[-1].mean
            if load.has_vision and encode == "none":
                embeddings = parts.embedding_bytes(load)
                receives = load.quantile(embeddings, size)
                received.append((load.name, float(embeddings @ load.weights)))
        else:
            own = 2.0 * level
            receives = load.quantile(parts.kv_transfer_bytes(worker, load, load.prompt_uppers), size)
            crossing = float(parts.kv_transfer_bytes(worker, load, load.prompt_tokens) @ load.weights)
            received.append((load.name, crossing))
            holding_s = transfer_s(
                crossing * context.network.conversion_factor,
                float(worker.units) * context.slowest_bandwidth,
                bandwidth,
                context.network.latency_s,
            )
        if encode == "beside":
            compute.append((load.name, float(busy @ load.weights) / cut.pipeline))
        if encode == "beside" and load.name in times:
            time = times[load.name]
            image_s = parts.process_seconds(time, processes) * (1.0 + engine.shared_slowdown)
            encodes.append(parts.service(load, nothing, load.image_counts * image_s))
            stalls = engine.shared_stall * time.device_s * load.image_counts
            count = load.quantile(load.image_counts, size)
            own += image_s * (1.0 + (count - 1.0) / processes) if count > 0 else 0.0
            queues = ("encode", *queues)
            encoded = load.encoded_share * load.mean_images
            compute[-1] = (load.name, compute[-1][1] + encoded * time.device_s)
            host.append((load.name, encoded * time.host_s / parts.host_cores(entry)))
        peak = parts.check_peak(load, kv, memory, entry, cut)
        held_prompt = float(parts.prompt_kv_bytes(load, kv, load.prompt_tokens) @ load.weights)
        burst = parts.service(load, busy, stalls)
        steps = load.decoded[0] / step.tokens
        classes.append(
            LoopClass(
                name=load.name,
                steps=steps,
                averaging_steps=load.averaging_steps / step.tokens,
                decode_s=0.0 if chosen.batch else _decode_s(load, step),
                burst_s=burst.mean,
                burst_second=burst.second,
                held=_held(load, kv, step, entry) + held_prompt * holding_s / fixed,
                peak_bytes=peak,
            )
        )
        hops.append(
            Hop(
                load=load,
                promise=kept,
                shares=shares,
                start=start,
                end="done",
                own_s=own,
                queues=queues,
                receives=receives,
            )
        )
    rows = []
    if encodes:
        rows += [Row(kind="compute", load=tuple(compute)), Row(kind="host", load=tuple(host))]
    link = parts.link_row(received, bandwidth)
    rows += [link] if link else []
    sequences = chosen.batch or engine.max_sequences * cut.attention_data
    loop = Loop(
        step_s=fixed,
        classes=tuple(classes),
        kv_bytes=memory * cut.attention_data / cut.pipeline,
        max_sequences=sequences / cut.pipeline,
        lanes=cut.pipeline,
    )
    waiting = [Queue(name="prefill", servers_per_replica=cut.pipeline, services=tuple(prompts))] if prompts else []
    if encodes:
        waiting.insert(0, Queue(name="encode", servers_per_replica=processes, services=tuple(encodes)))
    running = 1.0 - fixed / level if level > fixed else 1.0
    return Pool(
        placement=placement,
        stages=stages,
        entry=entry,
        cut=cut,
        settings=chosen,
        bandwidth=bandwidth,
        hops=tuple(hops),
        queues=tuple(waiting),
        rows=tuple(rows),
        loop=loop,
        busy_s={c.name: c.work_s / running / cut.pipeline for c in classes},
        kv_bytes=memory * cut.attention_data,
        max_batched_tokens=engine.max_batched_tokens,
        memory_fraction=engine.shared_memory_fraction if encode == "beside" else engine.memory_fraction,
        encoder_processes=processes,
        tokens_per_step=step.tokens,
    )


def _fixed_s(context: Context, entry: Entry, step: StepTime, chosen: Settings) -> float:
    """alpha: seconds of an iteration over nothing, or over a full compiled batch at its compiled context."""
    if not chosen.batch:
        return step.fixed
    return step.seconds(chosen.batch, _compiled_context(context, entry))


def _compiled_context(context: Context, entry: Entry) -> float:
    """Smallest compiled context that holds the longest request; the longest request where contexts are not compiled."""
    longest = max(load.peak_context for load in context.loads)
    return float(min((shape for shape in entry.device.context_shapes if shape >= longest), default=longest))


def _decode_s(load: RequestLoad, step: StepTime) -> float:
    """Replica-seconds that decoding one request adds to iterations."""
    steps, contexts = load.decoded
    seconds = steps * step.per_sequence + step.per_context * contexts
    seconds += sum(per_token * load.windowed_context_sum(window) for window, per_token in step.windows)
    return seconds / step.tokens


def _held(load: RequestLoad, kv: KvShape, step: StepTime, entry: Entry) -> float:
    """KV bytes of one request on a logical device, summed over its iterations."""
    steps, contexts = load.decoded
    fixed = kv.fixed + (kv.per_image_sequence if load.has_vision else 0.0)
    if entry.device.kv_reservation == "full":
        return steps * kv.held(load.peak_context, images=load.has_vision) / step.tokens
    held = steps * fixed + kv.per_token * contexts
    held += sum(size * load.windowed_context_sum(window) for window, size in kv.windows)
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
    batches = [b for b in entry.device.batch_shapes if b <= context.engine.max_sequences] or [0]
    for portion in range(parts.portions(context)):
        promised = [
            parts.promise(load, Settings(portion=portion)) for load in context.loads if load.averaging_steps > 0
        ]
        targets = sorted({kept.itl_s for kept in promised}) or [_UNLIMITED_S]
        draft = context.engine.speculative
        targets = [target * (1.0 + draft.accepted_tokens if draft else 1.0) for target in targets]
        for batch in batches:
            for target in targets:
                pool = build(context, entry, cut, Settings(itl_level_s=target, batch=batch, portion=portion))
                points = loop_points(pool)
                result += [Settings(itl_level_s=point.level_s, batch=batch, portion=portion) for point in points]
                if not points and refused is None:
                    refused = _too_slow(entry, cut, pool, target)
    if not result and refused is not None:
        raise NotBuildable(refused)
    return list(dict.fromkeys(result))


_UNLIMITED_S = 10.0
"""Iteration time allowed where no class decodes more than one token."""


def loop_points(pool: Pool) -> list[LoopPoint]:
    """Operating points of a pool's loop for the promises of its classes, intervals counted per iteration."""
    assert pool.loop is not None
    promises = {}
    for hop in pool.hops:
        itl = hop.promise.itl_s if hop.load.averaging_steps > 0 else _UNLIMITED_S
        promises[hop.name] = (itl * pool.tokens_per_step, hop.promise.itl_eps)
    return best_levels(pool.loop, promises)


def _too_slow(entry: Entry, cut: Parallelism, pool: Pool, target: float) -> Rejection:
    assert pool.loop is not None
    fastest = pool.loop.step_s
    return Rejection(
        limit="itl_ms",
        device=entry.name,
        pool=cut.label,
        wanted=target * 1e3,
        best_reachable=fastest * 1e3,
        text=f"{entry.name} {cut.label}: one iteration takes {fastest * 1e3:.2f} ms, an interval of "
        f"{target * 1e3:g} ms is wanted",
    )
