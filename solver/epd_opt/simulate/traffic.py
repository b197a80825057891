"""How often and how unevenly requests arrive: peak and mean rates, burstiness apart from drift."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WINDOW_S = 300.0
"""Length of the window whose busiest place is the peak, unless a class is rarer."""

WINDOW_REQUESTS = 400
"""Requests that a window holds on average at least: a count of 400 is off by 5 per cent by chance alone."""

LEAST_IN_WINDOW = 20
"""Requests that a window asked for holds on average at least: of fewer, the busiest is chance."""

LEAST_WINDOWS = 4
"""Windows that a trace is cut into at least before they are made longer for rare classes."""

LEAST_GAPS = 50
"""Gaps below which burstiness cannot be told."""

CLUSTER_S = 10.0
"""Length of the counts that show bursts of many requests, which gaps one by one do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Arrivals of one class.

    Attributes
    ----------
    mean_rate : float
        Requests/s over the whole trace.
    peak_rate, peak_start_s, window_s : float
        Requests/s in the busiest window, when it starts, and how long it is; mean rate and whole trace where the trace is
        shorter than two windows.
    scv : float
        Squared coefficient of variation of the gaps within windows.
    dispersion : float or None
        Variance over mean of the counts in ``CLUSTER_S`` within windows: 1 is Poisson; for independent gaps it comes near
        ``scv``. None where it cannot be told.
    known : bool
        Whether there were enough gaps; ``scv`` is 1 otherwise.
    """

    mean_rate: float
    peak_rate: float
    peak_start_s: float
    window_s: float
    scv: float
    dispersion: float | None
    known: bool

    @property
    def has_peak(self) -> bool:
        """Whether the trace is long enough to show one."""
        return self.window_s > 0.0

    @property
    def peak_error(self) -> float:
        """Standard error of the peak rate as a share of it, from its count and the burstiness."""
        return self.error_of(self.peak_rate * self.window_s)

    def error_of(self, count: float) -> float:
        """The same of a rate that was read off so many requests."""
        return math.sqrt(max(self.scv, self.dispersion or 0.0, 1.0) / max(count, 1.0))


def traffic(
    times: Floats, span_s: float, *, window_s: float | None = None, tick_s: float = 0.0, burst_s: float | None = None
) -> Traffic:
    """Read off the arrivals of one class.

    Parameters
    ----------
    times : array
        Arrival times in order, seconds.
    span_s : float
        Length of the whole trace, which rates refer to.
    window_s : float, optional
        Length of the peak window in place of ``WINDOW_S`` and ``WINDOW_REQUESTS``.
    tick_s : float
        Resolution of the times; requests of one tick are spread over it at random (with a fixed seed), since their own order
        is lost.
    burst_s : float, optional
        Take ``scv`` from counts of this length in place of gaps.

    Notes
    -----
    Burstiness is measured within windows: each window's gaps relative to their own mean, so that rates that drift from one
    window to the next do not count. The squared variation s of n gaps relative to their mean is too small by the spread of
    that mean; for gamma gaps s / (1 - s / n), with s averaged over windows, is free of this. Counts are compared with their
    window's mean in the same way.
    """
    mean_rate = len(times) / span_s
    window = window_s or max(WINDOW_S, min(WINDOW_REQUESTS / mean_rate, span_s / LEAST_WINDOWS))
    if tick_s > 0.0:
        times = np.sort(times + np.random.default_rng(0).uniform(0.0, tick_s, len(times)))
    scv = _gap_scv(times, min(window, span_s))
    dispersion = _dispersion(times, span_s, min(window, span_s), CLUSTER_S)
    if burst_s is not None:
        scv = _dispersion(times, span_s, min(window, span_s), burst_s)
    peak, start = mean_rate, 0.0
    if span_s < 2.0 * window:
        window = 0.0
    else:
        peak, start = _peak(times, span_s, window)
        peak = max(peak, mean_rate)
    return Traffic(
        mean_rate=mean_rate,
        peak_rate=peak,
        peak_start_s=start,
        window_s=window,
        scv=1.0 if scv is None else scv,
        dispersion=dispersion,
        known=scv is not None,
    )


def tick(times: Floats) -> float:
    """Resolution of times that stand many to a tick; 0 where ties are so few that they do not matter."""
    gaps = np.diff(times)
    positive = gaps[gaps > 0]
    if not len(positive) or np.mean(gaps == 0) < 0.25:
        return 0.0
    smallest = float(np.quantile(positive, 0.01))
    return smallest if smallest * len(times) > 0.25 * float(times[-1] - times[0]) else 0.0


def _peak(times: Floats, span_s: float, window: float) -> tuple[float, float]:
    """Rate and start of the busiest window; windows start every quarter of their length."""
    starts = np.arange(0.0, span_s - window + 1e-9, window / 4.0)
    counts = np.searchsorted(times, starts + window) - np.searchsorted(times, starts)
    best = int(np.argmax(counts))
    return float(counts[best]) / window, float(starts[best])


def _gap_scv(times: Floats, window: float) -> float | None:
    gaps = np.diff(times)
    if len(gaps) < LEAST_GAPS:
        return None
    place = (times[1:] // window).astype(np.int64)
    place -= place[0]
    count = np.bincount(place).astype(float)
    mean = np.bincount(place, weights=gaps) / np.maximum(count, 1.0)
    square = np.bincount(place, weights=(gaps - mean[place]) ** 2)
    full = (count >= LEAST_GAPS) & (mean > 0)
    if not full.any():
        return None
    count, mean, square = count[full], mean[full], square[full]
    spread = square / (count - 1.0) / mean**2
    typical, size = float(np.average(spread, weights=count)), float(np.average(count, weights=count))
    return typical / max(1.0 - typical / size, 1e-3)


def _dispersion(times: Floats, span_s: float, window: float, length: float) -> float | None:
    per_window = int(window // length)
    windows = int(span_s // (per_window * length)) if per_window >= 2 else 0
    if windows == 0:
        return None
    edges = np.arange(windows * per_window + 1) * length
    counts = np.diff(np.searchsorted(times, edges))
    table = counts.reshape(windows, per_window)
    mean = float(table.mean())
    return float(table.var(axis=1, ddof=1).mean()) / mean if mean > 0 else None
