"""A trace to the classes of a workload."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from epd_opt.fitting.clusters import Box, boxes
from epd_opt.fitting.day import Day, HourlyTraffic, by_the_hour, clock
from epd_opt.fitting.sample import Sample
from epd_opt.fitting.sizes import FittedSize, fit_size
from epd_opt.instance import HOURS
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
    start_of_day_s : float or None
        Seconds from midnight to the first request, for demand by the hour of the day; None for rates that hold all day.
    elsewhere : float or None
        With it: share of a class's peak in the hours that the trace does not cover; None leaves them open.
    """

    classes: int | None = None
    window_s: float | None = None
    burst_s: float | None = None
    scale: float = 1.0
    image_size: tuple[int, int] | None = None
    cached: bool = False
    start_of_day_s: float | None = None
    elsewhere: float | None = None


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
    hourly: HourlyTraffic | None

    @property
    def peak_rate(self) -> float:
        """Requests/s to plan for: in the busiest window, with demand by the hour one that lies within an hour of the day."""
        return self.traffic.peak_rate if self.hourly is None else self.hourly.peak


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
    day : Day or None
        Where in the day the trace stands, if demand by the hour was asked for.
    """

    classes: tuple[FittedClass, ...]
    requests: int
    span_s: float
    next_gain: float
    peak_of_all: float
    tick_s: float
    day: Day | None


def fit(sample: Sample, settings: Settings) -> Fit:
    """Find the classes of a trace and their parameters.

    Raises
    ------
    ValueError
        The trace is too short for a rate, for the windows asked for or for hours of the day, its images have neither tokens
        nor a size, or fewer classes can be told apart than are asked for.
    """
    if len(sample) < 2 or sample.span_s <= 0:
        raise ValueError(f"found {len(sample)} requests over {sample.span_s:g} s, too few to tell a rate")
    _check_windows(sample, settings)
    day = None if settings.start_of_day_s is None else _day(settings.start_of_day_s, sample)
    found, next_gain = boxes(sample, classes=settings.classes)
    tick_s = tick(sample.time)
    whole = traffic(sample.time, sample.span_s, window_s=settings.window_s, tick_s=tick_s)
    parts = [sample.part(box.chosen) for box in found]
    names = _names(found, parts)
    classes = [
        _fitted(name, box, part, sample, settings, tick_s, day) for name, box, part in zip(names, found, parts, strict=True)
    ]
    return Fit(
        classes=tuple(sorted(classes, key=lambda one: (-one.requests, one.name))),
        requests=len(sample),
        span_s=sample.span_s,
        next_gain=next_gain,
        peak_of_all=whole.peak_rate,
        tick_s=tick_s,
        day=day,
    )


def _day(start_s: float, sample: Sample) -> Day:
    day = Day(start_s=start_s, span_s=sample.span_s)
    if len(day.uncovered()) == HOURS:
        raise ValueError(
            f"the trace stands from {clock(day.start_s)} to {clock(day.end_s)} and holds no hour of the day by half"
        )
    return day


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


def _fitted(
    name: str, box: Box, part: Sample, sample: Sample, settings: Settings, tick_s: float, day: Day | None
) -> FittedClass:
    images = int(part.images.sum())
    tokens, pixels = float(part.image_tokens.sum()), float(part.image_pixels.sum())
    has_tokens, has_pixels = images > 0 and np.isfinite(tokens), images > 0 and np.isfinite(pixels)
    if images and not has_tokens and not has_pixels and settings.image_size is None:
        raise ValueError("the trace gives images neither tokens nor a size")
    hourly = None if day is None else by_the_hour(part.time, day, window_s=settings.window_s)
    if hourly is not None and not any(hourly.busiest):
        raise ValueError(f"no hour that the trace holds by half has a request of class {name}")
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
        hourly=hourly,
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
    entry: dict[str, Any] = {"name": fitted.name, **_rates(fitted, settings), "text_tokens": fitted.text.stated}
    if fitted.cached_tokens:
        entry["cached_tokens"] = round(fitted.cached_tokens, 1)
    if fitted.images is not None:
        entry["images"] = _images(fitted, settings)
    entry["output_tokens"] = fitted.output.stated
    entry["interarrival_scv"] = float(f"{fitted.traffic.scv:.3g}")
    return entry


def _rates(fitted: FittedClass, settings: Settings) -> dict[str, Any]:
    """Rates of a class; with demand by the hour those of the day, whose open hours leave its mean open too."""
    peak, mean = _digits(fitted.peak_rate * settings.scale), fitted.traffic.mean_rate * settings.scale
    if fitted.hourly is None:
        return {"rate_per_s": peak, "mean_rate_per_s": _digits(mean)}
    factors = [settings.elsewhere if factor is None else factor for factor in fitted.hourly.factors()]
    rates = {"rate_per_s": peak, "hourly": factors}
    known = [factor for factor in factors if factor is not None]
    of_day = fitted.hourly.mean_of_day(settings.elsewhere)
    if of_day is None or len(known) < HOURS:
        return rates
    most = peak * math.fsum(known) / HOURS
    return {**rates, "mean_rate_per_s": _digits(min(of_day * settings.scale, most))}


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
