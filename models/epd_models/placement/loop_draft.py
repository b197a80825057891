"""What pools of decode loops on an entry and cut share, at whatever level the loops run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from epd_models.candidate import State
from epd_models.entry import Entry
from epd_models.parallelism import Parallelism
from epd_models.placement import parts
from epd_models.placement.context import Context
from epd_models.placement.language import Language, Prompts, language
from epd_models.pool import Queue, Settings
from epd_models.queueing import ServiceMoments
from epd_models.request import RequestLoad
from epd_models.risk import Promise, RiskShares
from epd_models.row import Row
from epd_models.stages.encode import EncodeTime

Encode = Literal["none", "in_line", "beside"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """What a class does to the loops of an entry and cut, at whatever level they run; arrays have shape (sizes,).

    Attributes
    ----------
    busy, stalls : Floats
        Lane seconds of prefill, and of encoding in line before it.
    unhindered : ServiceMoments or None
        The service of prefill where decode takes no time and nothing is encoded in line.
    encoding : ServiceMoments or None
        The service of encoder processes beside the loop.
    prefill, encode, second : float
        Mean seconds for which a request stalls decode, and the mean square of them all.
    own_s : float
        Seconds before the loop, waits left out.
    receives, received : float
        Bytes handed over on arrival: at the class's size quantile, and on average.
    compute, host : float
        Replica-seconds of compute where encoders run beside the loop, and core-seconds of image processing.
    """

    load: RequestLoad
    promise: Promise
    shares: RiskShares
    prompt: Prompts
    start: State
    queues: tuple[str, ...]
    busy: parts.Floats
    stalls: parts.Floats
    unhindered: ServiceMoments | None
    encoding: ServiceMoments | None
    prefill: float
    encode: float
    second: float
    own_s: float
    receives: float
    received: float
    compute: float
    host: float
    held: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What pools of a placement on an entry and cut share at all levels.

    Attributes
    ----------
    memory, peak : float
        KV bytes of a logical device, and of a very long request on it.
    """

    base: Language
    memory: float
    peak: float
    processes: int
    passages: tuple[Passage, ...]
    rows: tuple[Row, ...]
    encoding: Queue | None


def draft_of(context: Context, entry: Entry, cut: Parallelism, chosen: Settings, *, encode: Encode, prefills: bool) -> Draft:
    """What all levels share; of ``chosen`` only the way of sharing end-to-end targets matters.

    Raises
    ------
    NotBuildable
        Weights, encoders or a very long request do not fit.
    """
    base = language(context, entry, cut)
    images = any(load.has_vision for load in context.loads)
    processes = parts.encoder_processes(context, entry) if encode == "beside" else 0
    if encode == "beside":
        free = 1.0 - context.engine.shared_memory_fraction
        parts.check_encoder_memory(context, entry, processes=processes, fraction=free)
    elif encode == "in_line" and images:
        parts.check_encoder_formats(entry)
    memory = parts.kv_budget(
        context,
        base.worker,
        encodes=encode == "in_line" and images,
        beside_encoders=encode == "beside",
        images=images and prefills,
    )
    times = parts.encode_times(context, entry) if encode != "none" else {}
    passages, peak = [], 0.0
    for load in context.loads:
        kept = parts.promise(load, chosen)
        passages.append(
            _passage(context, entry, base, load, kept, times, encode=encode, prefills=prefills, processes=processes)
        )
        peak = max(peak, parts.check_peak(load, base.kv, memory, entry, cut))
    encoding = tuple(passage.encoding for passage in passages if passage.encoding is not None)
    rows = []
    if encoding:
        compute = [(p.load.name, p.compute) for p in passages]
        rows.append(Row(kind="compute", load=tuple(compute)))
    if host := tuple((p.load.name, p.host) for p in passages if p.load.name in times):
        rows.append(Row(kind="host", load=host))
    link = parts.link_row([(p.load.name, p.received) for p in passages], base.bandwidth, entry)
    rows += [link] if link else []
    return Draft(
        base=base,
        memory=memory,
        peak=peak,
        processes=processes,
        passages=tuple(passages),
        rows=tuple(rows),
        encoding=Queue(name="encode", servers_per_replica=processes, services=encoding) if encoding else None,
    )


def _passage(
    context: Context,
    entry: Entry,
    base: Language,
    load: RequestLoad,
    kept: Promise,
    times: dict[str, EncodeTime],
    *,
    encode: Encode,
    prefills: bool,
    processes: int,
) -> Passage:
    """``times`` are those of the images that the pool encodes, by class."""
    time = times.get(load.name)
    engine, pipeline = context.engine, base.worker.cut.pipeline
    shares = parts.shares(context, load, kept, alone=encode == "in_line")
    size = shares.size_probability
    prompt = base.prompts[load.name]
    nothing = np.zeros_like(load.image_counts)
    busy = prompt.busy if prefills else nothing
    in_line = parts.in_line_encode(load, times) if encode == "in_line" else nothing
    start: State = "prefilled"
    queues: tuple[str, ...] = ()
    own_s, receives, received = 0.0, 0.0, 0.0
    if prefills:
        start = "raw" if load.has_vision and encode != "none" else "encoded"
        queues = ("prefill",)
        own_s = engine.request_overhead_s
        if time is not None:
            own_s += load.quantile(parts.decoding_s(time, entry, load.image_counts, max(1, processes)), size)
        if load.has_vision and encode == "none":
            embeddings = parts.embedding_bytes(load)
            receives, received = load.quantile(embeddings, size), float(embeddings @ load.weights)
    else:
        receives, received = load.quantile(prompt.crossing, size), prompt.mean_crossing
    compute, stalls, encoding = float(busy @ load.weights) / pipeline, in_line, None
    encoded = load.encoded_share * load.mean_images
    if encode == "beside" and time is not None:
        image_s = parts.process_seconds(time, processes, engine.shared_slowdown)
        encoding = parts.service(load, nothing, load.image_counts * image_s)
        stalls = engine.shared_stall * time.device_s * load.image_counts
        count = load.quantile(load.image_counts, size)
        own_s += image_s * (1.0 + (count - 1.0) / processes) if count > 0 else 0.0
        queues = ("encode", *queues)
        compute += encoded * time.device_s
    return Passage(
        load=load,
        promise=kept,
        shares=shares,
        prompt=prompt,
        start=start,
        queues=queues,
        busy=busy,
        stalls=in_line,
        unhindered=parts.service(load, busy, in_line) if prefills and not in_line.any() else None,
        encoding=encoding,
        prefill=float(busy @ load.weights),
        encode=load.encoded_share * float(stalls @ load.weights),
        second=_second(load, busy, stalls),
        own_s=own_s,
        receives=receives,
        received=received,
        compute=compute,
        host=0.0 if time is None else encoded * time.host_s / parts.host_cores(entry),
        held=float(prompt.held @ load.weights),
    )


def _second(load: RequestLoad, busy: parts.Floats, stalls: parts.Floats) -> float:
    """Mean square of the seconds for which a request stalls decode; images found in the encoder cache stall nothing."""
    share = load.encoded_share
    return float((share * (busy + stalls) ** 2 + (1.0 - share) * busy**2) @ load.weights)
