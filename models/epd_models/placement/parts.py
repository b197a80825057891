"""Pieces that several placements are made of: memory budgets, the loop, prefill and encode as services of a queue."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from epd_models.candidate import Rejection
from epd_models.entry import Entry
from epd_models.memory import (
    KvShape,
    activation_bytes,
    encoder_activation_bytes,
    encoder_weights_bytes,
    kv_shape,
    language_weights_bytes,
)
from epd_models.parallelism import IllegalParallelism, Parallelism
from epd_models.placement.context import Context, NotBuildable
from epd_models.pool import Settings
from epd_models.precision import UnsupportedPrecision, check_supported, compute_format
from epd_models.queueing import ServiceMoments
from epd_models.ratios import ImageRatios
from epd_models.request import RequestLoad
from epd_models.risk import Promise, RiskShares, promises, risk_shares
from epd_models.row import Row
from epd_models.stages.decode import DecodeTime, StepTime
from epd_models.stages.encode import EncodeTime, encode_time, received_megapixels
from epd_models.stages.prefill import PrefillTime
from epd_models.transfer import LINK_LOAD_LIMIT, Network
from epd_models.worker import Worker

Floats = NDArray[np.float64]
EMBEDDING_BYTES = 2.0
"""Of one value of an image embedding: 16 bits."""
_GIB = 2.0**30


def language_worker(context: Context, entry: Entry, cut: Parallelism) -> Worker:
    """A checked worker; :class:`NotBuildable` says why there is none."""
    try:
        return Worker.checked(
            model=context.model,
            device=entry.device,
            cut=cut,
            precision=entry.precision,
            engine=context.engine,
            source=entry.source,
        )
    except (IllegalParallelism, UnsupportedPrecision) as error:
        limit = "parallelism" if isinstance(error, IllegalParallelism) else "precision"
        raise NotBuildable(Rejection(limit=limit, device=entry.name, pool=cut.label, text=str(error))) from None


def promise(load: RequestLoad, settings: Settings) -> Promise:
    """The promise of a class under the settings' way of sharing end-to-end targets."""
    ways = promises(load)
    return ways[min(settings.portion, len(ways) - 1)]


def shares(context: Context, load: RequestLoad, kept: Promise, *, alone: bool) -> RiskShares:
    """Risk shares of a class; ``alone`` where one queue is all it meets before its first token."""
    steps = 1 if alone or not load.has_vision else 2
    key = ("shares", load.name, kept.ttft_eps, steps)
    return context.once(key, lambda: risk_shares(load, kept.ttft_eps, queues=steps, pools=steps))


def kv_budget(context: Context, worker: Worker, *, encodes: bool, beside_encoders: bool, images: bool) -> float:
    """KV bytes of one logical device after weights, activations, runtime, vision tower and encoder cache.

    Raises
    ------
    NotBuildable
        Nothing is left.
    """
    engine, device = context.engine, worker.device
    fraction = engine.shared_memory_fraction if beside_encoders else engine.memory_fraction
    parts = {
        "weights": language_weights_bytes(context.model, worker.precision, worker.cut),
        "activations": activation_bytes(context.model, engine, worker.cut),
        "runtime": engine.runtime_bytes,
    }
    if encodes:
        parts["vision tower"] = encoder_weights_bytes(context.model, worker.precision)
        parts["vision activations"] = encoder_activation_bytes(context.model, _positions(context))
    if images:
        parts["encoder cache"] = engine.encoder_cache_bytes
    left = device.memory_bytes * fraction - sum(parts.values())
    if left <= 0:
        need = ", ".join(f"{name} {size / _GIB:.1f}" for name, size in parts.items())
        raise NotBuildable(
            Rejection(
                limit="memory",
                device=worker.device.sku,
                pool=worker.cut.label,
                wanted=sum(parts.values()),
                best_reachable=device.memory_bytes * fraction,
                text=f"{worker.device.sku} {worker.cut.label}: needs {sum(parts.values()) / _GIB:.1f} GiB per device "
                f"before any KV cache ({need}) of {device.memory_bytes * fraction / _GIB:.1f} GiB "
                f"({fraction:.0%} of the memory)",
            )
        )
    return left


def encoder_processes(context: Context, entry: Entry) -> int:
    """Encoder processes beside a language model: the engine's, as far as the host has a core for each."""
    return max(1, min(context.engine.encoder_processes, math.floor(host_cores(entry))))


def pool_processes(context: Context, entry: Entry) -> int:
    """Encoder processes of a logical device that does nothing else: the engine's, as far as cores and memory go."""
    room = entry.device.memory_bytes * context.engine.memory_fraction
    fitting = math.floor(room / encoder_process_bytes(context, entry))
    return max(1, min(context.engine.pool_processes, math.floor(host_cores(entry)), fitting))


def encoder_process_bytes(context: Context, entry: Entry) -> float:
    """Device memory of one encoder process with a runtime of its own."""
    return (
        encoder_weights_bytes(context.model, entry.precision)
        + encoder_activation_bytes(context.model, _positions(context))
        + context.engine.runtime_bytes
    )


def host_cores(entry: Entry) -> float:
    """CPU cores that one logical device may use for image processing."""
    return max(1.0, entry.device.host_cores / entry.device.logical_per_unit)


def process_seconds(time: EncodeTime, processes: int, slowdown: float = 0.0) -> float:
    """Seconds that one of several encoder processes on a device takes per image: the others use the device for part of
    the time, and a language model beside them slows it down."""
    contention = 1.0 + slowdown + (processes - 1) * time.device_s / time.serial_s
    return time.process_s + time.device_s * contention


DECODERS = 2
"""Sources that one process decodes at once: four images of 38 ms each were gathered in 82 ms (public attribution of a
first token's time, docs/accuracy.md)."""


def decoding_s(time: EncodeTime, entry: Entry, images: Floats, processes: int) -> Floats:
    """Seconds until the sources of a request's images are decoded by so many processes, as far as there are cores; shape
    of ``images``."""
    return time.decode_s * np.ceil(images / max(1, min(DECODERS * processes, math.floor(host_cores(entry)))))


def bandwidth(network: Network, entry: Entry, units: Fraction) -> float:
    """Network bytes/s of a replica that takes so many sold units."""
    per_unit = network.bandwidth_per_unit
    return float(units) * (entry.device.nic_bandwidth if per_unit is None else per_unit)


def check_encoder_memory(context: Context, entry: Entry, *, processes: int, fraction: float) -> None:
    """Raise :class:`NotBuildable` unless so many encoder processes, each with a runtime of its own, fit into this share
    of a logical device."""
    check_encoder_formats(entry)
    need = processes * encoder_process_bytes(context, entry)
    have = entry.device.memory_bytes * fraction
    if need > have:
        raise NotBuildable(
            Rejection(
                limit="memory",
                device=entry.name,
                wanted=need,
                best_reachable=have,
                text=f"{entry.name}: {processes} encoder processes need {need / _GIB:.1f} GiB, {have / _GIB:.1f} GiB "
                "are free for them",
            )
        )


def check_encoder_formats(entry: Entry) -> None:
    """Raise :class:`NotBuildable` unless the device stores and multiplies the encoder's format."""
    try:
        check_supported(entry.device.sku, "the encoder", entry.precision.encoder, entry.device.weight_formats)
        compute_format(entry.precision.encoder, entry.device.peaks)
    except UnsupportedPrecision as error:
        raise NotBuildable(Rejection(limit="precision", device=entry.name, text=str(error))) from None


def _positions(context: Context) -> float:
    return max((float(load.image.positions) for load in context.loads if load.image is not None), default=0.0)


def encode_times(context: Context, entry: Entry) -> dict[str, EncodeTime]:
    """Seconds per image of every class that has images, on one logical device of an entry."""
    return context.once(("encode", entry.name), lambda: _encode_times(context, entry))


def _encode_times(context: Context, entry: Entry) -> dict[str, EncodeTime]:
    result = {}
    ratios = image_ratios(context, entry)
    for load in context.loads:
        if load.image is not None:
            assert context.model.vision is not None
            time = encode_time(
                context.model.vision,
                entry.device,
                context.engine,
                load=load.image,
                megapixels=load.megapixels,
                encoder_format=entry.precision.encoder,
            )
            received = received_megapixels(context.model.vision, load.image)
            result[load.name] = time.corrected(ratios, received=received, uploaded=load.megapixels)
    return result


def image_ratios(context: Context, entry: Entry) -> ImageRatios:
    """What multiplies the analytic times of an entry's images."""
    return ImageRatios() if entry.source is None else entry.source.images(encoder(context, entry))


def encoder(context: Context, entry: Entry) -> Worker:
    """One logical device of an entry that encodes."""
    return Worker(
        model=context.model,
        device=entry.device,
        cut=Parallelism(),
        precision=entry.precision,
        engine=context.engine,
        source=entry.source,
    )


def service(load: RequestLoad, work: Floats, images: Floats | None = None) -> ServiceMoments:
    """A class's service: ``work`` always, ``images`` unless they are found in the encoder cache; shape (sizes,)."""
    share = load.encoded_share if images is not None else 1.0
    seconds, weights = work if images is None else work + images, load.weights
    if share < 1.0:
        seconds, weights = np.concatenate((seconds, work)), np.concatenate((weights * share, weights * (1.0 - share)))
    values, at = np.unique(seconds, return_inverse=True)
    merged = np.bincount(at, weights=weights)
    kept = merged > 0
    return ServiceMoments(
        name=load.name,
        values=tuple(values[kept].tolist()),
        weights=tuple(merged[kept].tolist()),
        scv=load.request.interarrival_scv,
    )


def check_peak(load: RequestLoad, kv: KvShape, memory: float, entry: Entry, cut: Parallelism) -> float:
    """KV bytes on one logical device of a very long request of the class.

    Raises
    ------
    NotBuildable
        It does not fit.
    """
    peak = kv.held(load.peak_context, images=load.has_vision)
    if peak > memory:
        raise NotBuildable(
            Rejection(
                limit="memory",
                device=entry.name,
                pool=cut.label,
                request_class=load.name,
                wanted=peak,
                best_reachable=memory,
                text=f"{entry.name} {cut.label}: a long request of class {load.name!r} "
                f"({load.peak_context:.0f} tokens) holds {peak / _GIB:.2f} GiB of KV cache per device; "
                f"{memory / _GIB:.2f} GiB are left",
            )
        )
    return peak


def portions(context: Context) -> int:
    """Number of ways to share end-to-end targets: the most that any class has."""
    return max((len(promises(load)) for load in context.loads), default=1)


def embedding_bytes(load: RequestLoad) -> Floats:
    """Bytes of the image embeddings that a request hands over, shape (sizes,)."""
    return load.image_counts * (load.tokens_per_image * load.model.hidden * EMBEDDING_BYTES)


def prompt_kv_bytes(load: RequestLoad, kv: KvShape, tokens: Floats) -> Floats:
    """KV bytes of prompts on one logical device, shape of ``tokens``."""
    windows = sum((size * np.minimum(tokens, window) for window, size in kv.windows), np.zeros_like(tokens))
    fixed = kv.fixed + (kv.per_image_sequence if load.has_vision else 0.0)
    return kv.per_token * tokens + windows + fixed


def kv_transfer_bytes(worker: Worker, load: RequestLoad, tokens: Floats) -> Floats:
    """KV bytes of prompts over a whole replica: what crosses the network between prefill and decode."""
    whole = kv_shape(worker.model, worker.precision, Parallelism())
    return prompt_kv_bytes(load, whole, tokens)


def link_row(flows: list[tuple[str, float]], bandwidth: float, entry: Entry) -> Row | None:
    """``link``: hand-overs take at most their planned share of a replica's network bandwidth.

    Raises
    ------
    NotBuildable
        There is something to hand over and no network.
    """
    if bandwidth <= 0 and any(size > 0 for _, size in flows):
        text = f"{entry.name} has no network card to hand over through; give network.gbit_per_s_per_device"
        raise NotBuildable(Rejection(limit="parallelism", device=entry.name, text=text))
    load = tuple((name, size / (bandwidth * LINK_LOAD_LIMIT)) for name, size in flows if size > 0)
    return Row(kind="link", load=load) if load else None


def chunks(context: Context, tokens: Floats) -> Floats:
    """Iterations that prompts of ``tokens`` tokens take, shape of ``tokens``."""
    return np.ceil(tokens / context.engine.max_batched_tokens)


def in_line_encode(load: RequestLoad, times: dict[str, EncodeTime]) -> Floats:
    """Seconds for which encoding holds up a loop that does it itself: host work on decoded sources and transformer, image
    by image, shape (sizes,)."""
    if load.name not in times:
        return np.zeros_like(load.image_counts)
    return load.image_counts * times[load.name].serial_s


def step_time(context: Context, entry: Entry, worker: Worker, settings: Settings) -> StepTime:
    """Iteration time linearised at the batch that fills four fifths of the level, or at the compiled batch."""
    key = ("step", entry.name, worker.cut, settings.batch, settings.itl_level_s)
    return context.once(key, lambda: _step_time(context, entry, worker, settings))


def _step_time(context: Context, entry: Entry, worker: Worker, settings: Settings) -> StepTime:
    times = context.once(("steps", entry.name, worker.cut), lambda: DecodeTime(worker, contexts=contexts(context)))
    if settings.batch:
        return times.at(settings.batch)
    context_tokens = max((load.mean_prompt for load in context.loads), default=0.0)
    low, high = 1.0, float(context.engine.max_sequences * worker.cut.attention_data)
    for _ in range(10):
        middle = math.sqrt(low * high)
        if times.at(middle).seconds(middle, context_tokens) > 0.8 * settings.itl_level_s:
            high = middle
        else:
            low = middle
    return times.at(low)


def contexts(context: Context) -> tuple[float, float]:
    """Shortest and longest mean context of a sequence among the classes: that of its first token, and of its last."""
    first = min((load.mean_prompt for load in context.loads), default=1.0)
    last = max((load.mean_prompt + load.request.output_tokens.mean for load in context.loads), default=1.0)
    return first, last


def prefill_busy(load: RequestLoad, prefill: PrefillTime) -> Floats:
    """Replica seconds of prefill of each size, iteration overheads left out, shape (sizes,)."""
    return prefill.busy_s(load.new_tokens, load.request.cached_tokens)


def upper_new_tokens(load: RequestLoad) -> Floats:
    """Upper edges of new prompt tokens, shape (sizes,)."""
    return np.maximum(load.prompt_uppers - load.request.cached_tokens, 1.0)
