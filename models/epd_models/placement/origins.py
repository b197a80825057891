"""Where the times of a pool come from, and what a plan asks beyond what was measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from epd_models.entry import Entry
from epd_models.loop import predicted_occupancy
from epd_models.placement import parts
from epd_models.placement.context import Context
from epd_models.pool import Pool
from epd_models.ratios import Curve, Surface
from epd_models.request import RequestLoad
from epd_models.source import TimeOrigin
from epd_models.sources.analytic import Analytic
from epd_models.stages.encode import received_megapixels

Floats = NDArray[np.float64]


def origins(context: Context, pool: Pool) -> tuple[TimeOrigin, ...]:
    """Where the times of each stage of a pool come from."""
    return context.once(("origins", pool.entry.name, pool.cut, pool.stages), lambda: _origins(context, pool))


def _origins(context: Context, pool: Pool) -> tuple[TimeOrigin, ...]:
    source = Analytic() if pool.entry.source is None else pool.entry.source
    found = []
    for stage in pool.stages:
        if stage == "encode" and not any(load.has_vision for load in context.loads):
            continue
        alone = stage == "encode"
        worker = parts.encoder(context, pool.entry) if alone else parts.language_worker(context, pool.entry, pool.cut)
        found.append(source.origin(worker, stage))
    return tuple(found)


def checked_origins(
    context: Context, pool: Pool, times: Sequence[TimeOrigin], flows: Mapping[str, float], replicas: int
) -> tuple[TimeOrigin, ...]:
    """The same with a warning on each stage whose source was measured over less than these flows ask for.

    Parameters
    ----------
    times : sequence of TimeOrigin
        Of :func:`origins`.
    flows : Mapping[str, float]
        Requests/s of each class through the pool.
    replicas : int
        Replicas that serve.
    """
    if pool.entry.source is None:
        return tuple(times)
    loads = [hop.load for hop in pool.hops if flows.get(hop.name, 0.0) > 0]
    result = []
    for time in times:
        beyond: list[str] = []
        if time.stage == "encode":
            beyond = list(images_beyond(context, pool.entry, loads))
        else:
            ratios = parts.language_worker(context, pool.entry, pool.cut).ratios
            if time.stage == "prefill" and ratios.prefill is not None:
                beyond = list(prompts_beyond(ratios.prefill, loads))
            elif time.stage == "decode" and ratios.decode is not None:
                beyond = list(_batch_beyond(ratios.decode, pool, loads, flows, replicas))
        result.append(_warned(context, pool, time, beyond) if beyond else time)
    return tuple(result)


def _warned(context: Context, pool: Pool, time: TimeOrigin, beyond: list[str]) -> TimeOrigin:
    analytic = Analytic().origin(parts.encoder(context, pool.entry), time.stage)
    text = (
        f"{time.stage} asks beyond what its {time.source} covers: {'; '.join(beyond)}; there the analytic model stands in, "
    )
    text += "or what the nearest measurement says where that is slower"
    return replace(
        time,
        confidence=min(time.confidence, analytic.confidence),
        warning="; ".join(part for part in (time.warning, text) if part),
    )


def images_beyond(context: Context, entry: Entry, loads: Sequence[RequestLoad]) -> Iterator[str]:
    """Sizes of images that an entry's source does not cover, in words."""
    ratios = parts.image_ratios(context, entry)
    tower = context.model.vision
    for load in loads:
        if load.image is None or tower is None:
            continue
        received = received_megapixels(tower, load.image)
        for curve, size, what in ((ratios.device, received, "received"), (ratios.host, load.megapixels, "uploaded")):
            if curve is not None and not curve.covers(size):
                measured = f"{_from_to(curve.range)} were measured"
                yield f"images of {size:.3g} megapixels as {what} (class {load.name!r}), {measured}"


def prompts_beyond(curve: Curve, loads: Sequence[RequestLoad]) -> Iterator[str]:
    """Prompts that a curve does not cover, in words."""
    for load in loads:
        outside = np.array([not curve.covers(float(tokens)) for tokens in load.new_tokens])
        share = float(load.weights[outside].sum())
        if share > 0.0:
            asked = _from_to((float(load.new_tokens.min()), float(load.new_tokens.max())))
            part = "" if share > 1 - 1e-9 else f", {share:.0%} of them outside"
            yield f"prompts of {asked} new tokens (class {load.name!r}{part}), {_from_to(curve.range)} were measured"


def _batch_beyond(
    surface: Surface, pool: Pool, loads: Sequence[RequestLoad], flows: Mapping[str, float], replicas: int
) -> Iterator[str]:
    if pool.loop is None or not any(load.averaging_steps > 0 for load in loads):
        return
    batch = pool.settings.batch or predicted_occupancy(pool.loop, flows, replicas).sequences / pool.cut.pipeline
    if not math.isfinite(batch):
        return
    for load in loads:
        if load.averaging_steps <= 0:
            continue
        contexts = load.mean_prompt, load.mean_prompt + load.request.output_tokens.mean
        if not all(surface.covers(max(1.0, batch), context) for context in contexts):
            measured = f"batches of {_from_to(surface.batches)} at contexts of {_from_to(surface.ends)}"
            yield (
                f"a batch of {max(1.0, batch):.3g} sequences at {_from_to(contexts)} tokens of context "
                f"(class {load.name!r}), {measured} were measured"
            )


def _from_to(sizes: tuple[float, float]) -> str:
    low, high = (f"{size:.3g}" if size < 1000 else f"{size:.0f}" for size in sizes)
    return low if low == high else f"{low} to {high}"
