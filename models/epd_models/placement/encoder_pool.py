"""Encoder pool: E alone, on devices of its own; embeddings cross the network."""

from __future__ import annotations

import numpy as np

from epd_models.candidate import Stage
from epd_models.entry import Entry
from epd_models.parallelism import Parallelism
from epd_models.placement import parts
from epd_models.placement.context import Context
from epd_models.pool import Hop, Pool, Queue, Settings
from epd_models.row import Row
from epd_models.stages.encode import EncodeTime

STAGES: tuple[Stage, ...] = ("encode",)
_FAN_OUTS = (1, 2, 4, 8)


def settings(context: Context, entry: Entry, cut: Parallelism) -> list[Settings]:
    """Fan-outs up to the images of the largest request."""
    most = max((load.image_counts.max() for load in context.loads if load.has_vision), default=0)
    return [Settings(fan_out=fan_out) for fan_out in _FAN_OUTS if fan_out <= max(1, most)] if most else []


def build(context: Context, entry: Entry, cut: Parallelism, chosen: Settings) -> Pool:
    """Each logical device runs a few encoder processes; each process takes the images of a request one by one, once their
    sources are decoded.

    A process works on the host and then on the device; while one waits for its host another may use the device, so an
    image takes ``host + device * (1 + (processes - 1) * device / (host + device))`` seconds, and the device and the
    cores have rows of their own. A fan-out shortens a request's own time; staffing counts its whole work on one process.
    """
    processes = parts.pool_processes(context, entry)
    parts.check_encoder_memory(context, entry, processes=processes, fraction=context.engine.memory_fraction)
    times = parts.encode_times(context, entry)
    bandwidth = parts.bandwidth(context.network, entry, entry.device.units(1))
    hops, services, compute, host, sent = [], [], [], [], []
    for load in context.loads:
        if load.name not in times:
            continue
        time = times[load.name]
        image_s = parts.process_seconds(time, processes)
        kept = parts.promise(load, chosen)
        shares = parts.shares(context, load, kept, alone=False)
        count = load.quantile(load.image_counts, shares.size_probability)
        size = parts.embedding_bytes(load)
        rate = load.encoded_share * load.mean_images
        services.append(parts.service(load, np.zeros_like(load.image_counts), load.image_counts * image_s))
        compute.append((load.name, rate * time.device_s))
        host.append((load.name, rate * time.host_s / parts.host_cores(entry)))
        mean_size = float(size @ load.weights)
        sent.append((load.name, mean_size))
        hops.append(
            Hop(
                load=load,
                promise=kept,
                shares=shares,
                start="raw",
                end="encoded",
                own_s=_own_s(time, entry, image_s, count, chosen.fan_out, processes),
                queues=("encode",),
                sends=load.quantile(size, shares.size_probability),
            )
        )
    rows = [Row(kind="compute", load=tuple(compute)), Row(kind="host", load=tuple(host))]
    link = parts.link_row(sent, bandwidth, entry)
    rows += [link] if link else []
    if chosen.fan_out > processes:
        rows.append(Row(kind="fan_out", load=(), setup=chosen.fan_out / processes))
    return Pool(
        placement="encoder_pool",
        stages=STAGES,
        entry=entry,
        cut=cut,
        settings=chosen,
        bandwidth=bandwidth,
        hops=tuple(hops),
        queues=(Queue(name="encode", servers_per_replica=processes, services=tuple(services)),),
        rows=tuple(rows),
        loop=None,
        busy_s=dict(compute),
        kv_bytes=0.0,
        max_batched_tokens=0,
        memory_fraction=context.engine.memory_fraction,
        encoder_processes=processes,
    )


def _own_s(time: EncodeTime, entry: Entry, image_s: float, count: float, fan_out: int, processes: int) -> float:
    """Seconds of a request of ``count`` images that waits for nothing."""
    if count == 0:
        return 0.0
    decoding = float(parts.decoding_s(time, entry, np.array([count]), processes)[0])
    return decoding + image_s * (1.0 + (count - 1.0) / fan_out)
