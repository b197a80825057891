"""A trace to the classes of a workload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epd_opt.fitting.clusters import Box, boxes
from epd_opt.fitting.sample import Sample
from epd_opt.fitting.sizes import FittedSize, fit_size
from epd_opt.simulate.traffic import LEAST_IN_WINDOW, WINDOW_S, Traffic, tick, traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a user may want otherwise.

    Attributes
    ----------
    classes : int or None
        Number of classes; None leaves it to the trace.
    window_s, burst_s : float or None
        Length of the peak window; length of the counts to take the burstiness from, in place of gaps.
    scale : float
        Factor on all rates.
    image_size : (int, int) or None
        Width and height of the images in pixels, in place of their tokens.
    cached : bool
        Whether hits of the trace's prefix cache become cached tokens.
    """

    classes: int | None = None
    window_s: float | None = None
    burst_s: float | None = None
    scale: float = 1.0
    image_size: tuple[int, int] | None = None
    cached: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedClass:
    """One class with what it was read from."""

    name: str
    box: Box
    requests: int
    share: float
    traffic: Traffic
    text: FittedSize
    output: FittedSize
    images: FittedSize | None
    tokens_per_image: float | None
    megapixels_per_image: float | None
    cached_tokens: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The classes of a trace, most requests first.

    Attributes
    ----------
    next_gain : float
        Nats per request that one class more would have gained.
    peak_of_all : float
        Requests/s of the trace as a whole in its busiest window; classes peak at times of their own, and add up to more.
    tick_s : float
        Resolution of the times where it matters, else 0.
    """

    classes: tuple[FittedClass, ...]
    requests: int
    span_s: float
    next_gain: float
    peak_of_all: float
    tick_s: float


def fit(sample: Sample, settings: Settings) -> Fit:
    """Find the classes of a trace and their parameters.

    Raises
    ------
    ValueError
        The trace is too short for a rate or for the windows asked for, its images have neither tokens nor a size, or fewer
        classes can be told apart than are asked for.
    """
    if len(sample) < 2 or sample.span_s <= 0:
        raise ValueError(f"found {len(sample)} requests over {sample.span_s:g} s, too few to tell a rate")
    _check_windows(sample, settings)
    found, next_gain = boxes(sample, classes=settings.classes)
    tick_s = tick(sample.time)
    whole = traffic(sample.time, sample.span_s, window_s=settings.window_s, tick_s=tick_s)
    parts = [sample.part(box.chosen) for box in found]
    names = _names(found, parts)
    classes = [
        _fitted(name, box, part, sample, settings, tick_s) for name, box, part in zip(names, found, parts, strict=True)
    ]
    return Fit(
        classes=tuple(sorted(classes, key=lambda one: (-one.requests, one.name))),
        requests=len(sample),
        span_s=sample.span_s,
        next_gain=next_gain,
        peak_of_all=whole.peak_rate,
        tick_s=tick_s,
    )


def _check_windows(sample: Sample, settings: Settings) -> None:
    rate = len(sample) / sample.span_s
    if settings.window_s is not None and settings.window_s * rate < LEAST_IN_WINDOW:
        raise ValueError(
            f"windows of {settings.window_s:g} s hold {settings.window_s * rate:.2g} requests on average; "
            f"a peak cannot be told below {LEAST_IN_WINDOW}"
        )
    window = min(settings.window_s or WINDOW_S, sample.span_s)
    if settings.burst_s is not None and settings.burst_s * 2.0 > window:
        raise ValueError(f"counts of {settings.burst_s:g} s cannot be compared within windows of {window:g} s")


def _fitted(name: str, box: Box, part: Sample, sample: Sample, settings: Settings, tick_s: float) -> FittedClass:
    images = int(part.images.sum())
    tokens, pixels = float(part.image_tokens.sum()), float(part.image_pixels.sum())
    has_tokens, has_pixels = images > 0 and np.isfinite(tokens), images > 0 and np.isfinite(pixels)
    if images and not has_tokens and not has_pixels and settings.image_size is None:
        raise ValueError("the trace gives images neither tokens nor a size")
    return FittedClass(
        name=name,
        box=box,
        requests=len(part),
        share=len(part) / len(sample),
        traffic=traffic(part.time, sample.span_s, window_s=settings.window_s, tick_s=tick_s, burst_s=settings.burst_s),
        text=fit_size(part.text),
        output=fit_size(part.output),
        images=fit_size(part.images) if images else None,
        tokens_per_image=tokens / images if has_tokens else None,
        megapixels_per_image=pixels / images / 1e6 if has_pixels else None,
        cached_tokens=float(part.cached.mean()) if settings.cached else 0.0,
    )


def _names(found: list[Box], parts: list[Sample]) -> list[str]:
    """Names from medians: ``text``, ``image`` and, where there are several of a kind, sizes behind them."""
    kinds = ["image" if box.with_images or (box.with_images is None) else "text" for box in found]
    names = []
    for kind, part in zip(kinds, parts, strict=True):
        name = kind
        if kinds.count(kind) > 1:
            many = f"{_short(float(np.median(part.images)))}-" if kind == "image" else ""
            name = f"{many}{kind}-{_short(float(np.median(part.text)))}-in-{_short(float(np.median(part.output)))}-out"
        names.append(name)
    return [name if names.count(name) == 1 else f"{name}-{names[: i + 1].count(name)}" for i, name in enumerate(names)]


def _short(value: float) -> str:
    """Two digits, no dot: names are parts of paths.

    >>> _short(94), _short(1463), _short(33190)
    ('94', '1500', '33000')
    """
    return f"{float(f'{value:.2g}'):.0f}"


def stated(fitted: FittedClass, settings: Settings) -> dict[str, Any]:
    """A class as an instance holds it."""
    rates = fitted.traffic
    entry: dict[str, Any] = {
        "name": fitted.name,
        "rate_per_s": _digits(rates.peak_rate * settings.scale),
        "mean_rate_per_s": _digits(rates.mean_rate * settings.scale),
        "text_tokens": fitted.text.stated,
    }
    if fitted.cached_tokens:
        entry["cached_tokens"] = round(fitted.cached_tokens, 1)
    if fitted.images is not None:
        entry["images"] = _images(fitted, settings)
    entry["output_tokens"] = fitted.output.stated
    entry["interarrival_scv"] = float(f"{rates.scv:.3g}")
    return entry


def _images(fitted: FittedClass, settings: Settings) -> dict[str, Any]:
    assert fitted.images is not None
    images: dict[str, Any] = {"count": fitted.images.stated}
    if settings.image_size is not None:
        images["width_px"], images["height_px"] = settings.image_size
    elif fitted.tokens_per_image is not None:
        images["tokens"] = _digits(fitted.tokens_per_image)
    else:
        assert fitted.megapixels_per_image is not None
        side = max(1, round((fitted.megapixels_per_image * 1e6) ** 0.5))
        images["width_px"] = images["height_px"] = side
    return images


def _digits(value: float) -> float:
    return float(f"{value:.4g}")
