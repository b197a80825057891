"""What the seconds before a first token are spent on, pool by pool."""

from __future__ import annotations

from epd_models.placement import parts
from epd_models.placement.context import Context
from epd_models.pool import Hop, Pool
from epd_models.stages.encode import EncodeTime
from epd_models.stages.prefill import prefill_time

Spent = tuple[tuple[str, float], ...]

HOST = "host"
ENCODE = "encode"
SHARING = "encoder_sharing"
PREFILL = "prefill"
STEPS = "steps"
OVERHEAD = "overhead"


def own_time(context: Context, pool: Pool, hop: Hop) -> Spent:
    """A hop's own time, ``hop.own_s``, by what it is spent on, at the sizes that the promise is made for.

    Returns
    -------
    tuple of (str, float)
        Seconds of ``host`` (image processing), ``encode`` (vision transformer), ``encoder_sharing`` (processes of one
        device in each other's way), ``prefill``, ``steps`` (iterations of the loop until the first token) and
        ``overhead`` (the engine's, per request), in this order; zeros are left out and the sum is ``hop.own_s``.
    """
    times = parts.encode_times(context, pool.entry) if "encode" in pool.stages else {}
    time = times.get(hop.name)
    if pool.loop is not None:
        found = _of_loop(context, pool, hop, time)
    elif "prefill" in pool.stages:
        found = _of_prompts(context, pool, hop, time)
    else:
        assert time is not None
        decoding = _decoding_s(pool, hop, time)
        image_s = parts.process_seconds(time, pool.encoder_processes)
        found = _encoded(hop.own_s - decoding, time, image_s, decoding)
    return tuple((what, seconds) for what, seconds in found if seconds > 0.0)


def _decoding_s(pool: Pool, hop: Hop, time: EncodeTime) -> float:
    """Seconds until the sources are decoded."""
    counts, processes = hop.load.image_counts, max(1, pool.encoder_processes)
    return hop.load.quantile(parts.decoding_s(time, pool.entry, counts, processes), hop.shares.size_probability)


def _encoded(seconds: float, time: EncodeTime, image_s: float, decoding: float) -> Spent:
    """Time at an encoder that takes ``image_s`` for an image, after ``decoding``."""
    process, device = seconds * time.process_s / image_s, seconds * time.device_s / image_s
    return (HOST, decoding + process), (ENCODE, device), (SHARING, max(0.0, seconds - process - device))


def _of_loop(context: Context, pool: Pool, hop: Hop, time: EncodeTime | None) -> Spent:
    level = pool.settings.itl_level_s
    if hop.start == "prefilled":
        return ((STEPS, hop.own_s),)
    in_line, prefill, iterations = hop.entering
    steps = (iterations + 1) * level
    overhead = context.engine.request_overhead_s
    decoding = 0.0 if time is None else _decoding_s(pool, hop, time)
    beside = hop.own_s - in_line - prefill - steps - overhead - decoding
    encoding: Spent = ()
    if time is not None and in_line > 0.0:
        encoding = _encoded(in_line, time, time.serial_s, decoding)
    elif time is not None and beside > 1e-12:
        image_s = parts.process_seconds(time, pool.encoder_processes, context.engine.shared_slowdown)
        encoding = _encoded(beside, time, image_s, decoding)
    return (*encoding, (PREFILL, prefill), (STEPS, steps), (OVERHEAD, overhead))


def _of_prompts(context: Context, pool: Pool, hop: Hop, time: EncodeTime | None) -> Spent:
    overhead = context.engine.request_overhead_s
    if time is None:
        return (PREFILL, hop.own_s - overhead), (OVERHEAD, overhead)
    load = hop.load
    prefill = prefill_time(parts.language_worker(context, pool.entry, pool.cut))
    upper = parts.upper_new_tokens(load)
    stalls = parts.in_line_encode(load, {load.name: time})
    decoding = parts.decoding_s(time, pool.entry, load.image_counts, 1)
    own = (
        decoding
        + stalls
        + prefill.own_s(upper, load.request.cached_tokens)
        + prefill.per_chunk * parts.chunks(context, upper)
    )
    at = load.quantile_size(own, hop.shares.size_probability)
    stalled, decoded = float(stalls[at]), float(decoding[at])
    reading = hop.own_s - overhead - stalled - decoded
    return (*_encoded(stalled, time, time.serial_s, decoded), (PREFILL, reading), (OVERHEAD, overhead))
