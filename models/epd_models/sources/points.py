"""Measured points of a worker's stages, as ratios to the analytic model, and the curves through them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from epd_models.provenance import FittedError
from epd_models.ratios import Curve, LanguageRatios, Surface, rounded
from epd_models.stages.decode import decode_seconds
from epd_models.stages.prefill import analytic_prefill
from epd_models.worker import Worker

_SAME_CONTEXT = 1.25
"""Contexts within a quarter of each other make one curve over the batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """Ratio of an iteration over ``batch`` sequences of a lane with ``context`` tokens each."""

    batch: float
    context: float
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """Ratio of a prompt of so many new tokens, or of an image of so many megapixels."""

    size: float
    ratio: float


def iteration_ratio(worker: Worker, *, batch: float, context: float, seconds: float) -> float:
    """Measured seconds of an iteration over those of the model; the worker has no source."""
    return rounded(seconds / float(decode_seconds(worker, np.array([batch]), np.array([context]))[0]))


def prompt_ratio(worker: Worker, *, new: float, cached: float, prompts: float, seconds: float) -> float:
    """Measured seconds of reading prompts together over those of the model: of one prompt by itself at the least, of the
    device's work for all of them, and of the iterations that they take; the worker has no source."""
    time, tokens = analytic_prefill(worker), np.array([new])
    alone = float(time.own_s(tokens, cached)[0]) - time.per_prompt
    together = prompts * float(time.busy_s(tokens, cached)[0])
    return rounded(seconds / (max(alone, together) + time.per_chunk * _chunks(worker, prompts * new)))


def _chunks(worker: Worker, tokens: float) -> float:
    return math.ceil(tokens / worker.engine.max_batched_tokens)


def language_ratios(
    worker: Worker, iterations: Sequence[Iteration], prompts: Sequence[Sized], *, strict: bool
) -> LanguageRatios:
    """Curves through the points of one worker."""
    prefill = curve(prompts)
    if prefill is None:
        return LanguageRatios(decode=surface(iterations), strict=strict)
    # Prompts take device work and the overheads of iterations. Overheads get the smallest ratio and device work what is
    # left, so that both stay positive and together meet every point.
    least = min(prefill.ratios)
    time, sizes = analytic_prefill(worker), np.array(prefill.at)
    work = time.own_s(sizes) - time.per_prompt
    overhead = time.per_chunk * np.array([_chunks(worker, size) for size in prefill.at])
    left = (np.array(prefill.ratios) * (work + overhead) - least * overhead) / work
    return LanguageRatios(
        decode=surface(iterations),
        prefill=Curve(at=prefill.at, ratios=tuple(rounded(ratio) for ratio in left.tolist())),
        per_chunk=least,
        strict=strict,
    )


def curve(points: Iterable[Sized]) -> Curve | None:
    """The curve through points, those of one size merged; None without any."""
    by_size: dict[float, list[float]] = {}
    for point in points:
        by_size.setdefault(point.size, []).append(point.ratio)
    sizes = sorted(by_size)
    return Curve(at=tuple(sizes), ratios=tuple(_middle(by_size[size]) for size in sizes)) if sizes else None


def surface(points: Iterable[Iteration]) -> Surface | None:
    """The surface through points, those of similar contexts on one curve; None without any."""
    groups: list[list[Iteration]] = []
    for point in sorted(points, key=lambda point: (point.context, point.batch)):
        if groups and point.context <= groups[-1][0].context * _SAME_CONTEXT:
            groups[-1].append(point)
        else:
            groups.append([point])
    curves = [curve(Sized(size=point.batch, ratio=point.ratio) for point in group) for group in groups]
    contexts = [_middle([point.context for point in group]) for group in groups]
    return Surface(contexts=tuple(contexts), curves=tuple(found for found in curves if found)) if groups else None


def _middle(values: Sequence[float]) -> float:
    """Geometric mean; of equal values exactly that value."""
    return values[0] if min(values) == max(values) else math.exp(math.fsum(map(math.log, values)) / len(values))


def left_out_error(curves: Iterable[Curve], quantity: Literal["itl", "ttft", "image"]) -> FittedError | None:
    """How far each point lies from where its neighbours on a curve would put it; None where no point has two."""
    off = []
    for one in curves:
        for i in range(1, len(one.at) - 1):
            others = Curve(at=one.at[:i] + one.at[i + 1 :], ratios=one.ratios[:i] + one.ratios[i + 1 :])
            off.append(abs(float(others(np.array([one.at[i]]))[0]) / one.ratios[i] - 1.0))
    if not off:
        return None
    median, p90 = np.percentile(off, [50, 90]).tolist()
    return FittedError(quantity=quantity, median=rounded(median), p90=rounded(p90), points=len(off))
