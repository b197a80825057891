"""Pools that read prompts and hand the KV cache on: prefill, and encode-prefill."""

from __future__ import annotations

import numpy as np

from epd_models.candidate import Stage, State
from epd_models.entry import Entry
from epd_models.parallelism import Parallelism
from epd_models.placement import parts
from epd_models.placement.context import Context
from epd_models.placement.language import language
from epd_models.pool import Hop, Pool, Queue, Settings
from epd_models.row import Row
from epd_models.transfer import transfer_s


def prompt_pool(
    context: Context,
    entry: Entry,
    cut: Parallelism,
    chosen: Settings,
    *,
    placement: str,
    stages: tuple[Stage, ...],
) -> Pool:
    """One queue of prompts; an encode-prefill worker does the images of a prompt in the same loop, before it.

    A replica holds the KV cache of a prompt from the start of its service until it is handed over; ``kv_memory`` counts
    that (Little's law), and one more prompt for what is being received by a slow peer.
    """
    encodes = "encode" in stages
    base = language(context, entry, cut)
    worker, prefill, kv, bandwidth = base.worker, base.prefill, base.kv, base.bandwidth
    images = any(load.has_vision for load in context.loads)
    memory = parts.kv_budget(context, worker, encodes=encodes and images, beside_encoders=False, images=images)
    times = parts.encode_times(context, entry) if encodes else {}
    capacity = memory * cut.attention_data
    hops, services, busy, held, sent = [], [], [], [], []
    for load in context.loads:
        kept = parts.promise(load, chosen)
        shares = parts.shares(context, load, kept, alone=encodes)
        prompt = base.prompts[load.name]
        work = prompt.busy + prefill.per_chunk * parts.chunks(context, load.new_tokens)
        stalls = parts.in_line_encode(load, times)
        decoding = parts.decoding_s(times[load.name], entry, load.image_counts, 1) if load.name in times else 0.0
        own = decoding + stalls + prompt.read + prefill.per_chunk * prompt.chunks
        received = parts.embedding_bytes(load) if load.has_vision and not encodes else np.zeros_like(load.image_counts)
        service = parts.service(load, work, stalls)
        size = shares.size_probability
        handing = transfer_s(prompt.mean_crossing, bandwidth, float(worker.units) * context.slowest_bandwidth, 0.0)
        services.append(service)
        busy.append((load.name, service.mean / cut.pipeline))
        held.append((load.name, float((prompt.held * (work + handing)) @ load.weights) / capacity))
        sent.append((load.name, prompt.mean_crossing + float(received @ load.weights)))
        parts.check_peak(load, kv, memory, entry, cut)
        state: State = "raw" if load.has_vision and encodes else "encoded"
        hops.append(
            Hop(
                load=load,
                promise=kept,
                shares=shares,
                start=state,
                end="prefilled",
                own_s=context.engine.request_overhead_s + load.quantile(own, size),
                queues=("prefill",),
                receives=load.quantile(received, size),
                sends=load.quantile(prompt.crossing, size),
            )
        )
    link = parts.link_row(sent, bandwidth, entry)
    return Pool(
        placement=placement,
        stages=stages,
        entry=entry,
        cut=cut,
        settings=chosen,
        bandwidth=bandwidth,
        hops=tuple(hops),
        queues=(Queue(name="prefill", servers_per_replica=cut.pipeline, services=tuple(services)),),
        rows=(Row(kind="kv_memory", load=tuple(held)), *([link] if link else [])),
        loop=None,
        busy_s=dict(busy),
        kv_bytes=capacity,
        max_batched_tokens=context.engine.max_batched_tokens,
        memory_fraction=context.engine.memory_fraction,
        encoder_processes=0,
    )


def one_way(context: Context, entry: Entry, cut: Parallelism) -> list[Settings]:
    """These pools have one setting for each way of sharing end-to-end targets."""
    return [Settings(portion=portion) for portion in range(parts.portions(context))]
