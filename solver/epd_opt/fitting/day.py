"""Demand by the hour of the day, as far as a trace covers the day."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from epd_opt.fitting.sample import Floats
from epd_opt.instance import HOURS
from epd_opt.simulate.traffic import WINDOW_REQUESTS, WINDOW_S

HOUR_S = 3600.0
DAY_S = HOURS * HOUR_S

LEAST_COVERED_S = HOUR_S / 2
"""Seconds of an hour of the day, over all days, from which a trace covers it."""

WHOLE_S = 60.0
"""Seconds by which an hour may be short and count as whole."""

_SLACK_S = 1e-6


def clock(seconds: float) -> str:
    """Seconds from midnight as hours, minutes and seconds.

    >>> clock(66_323.9)
    '18:25:23'
    """
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{rest:02d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """The hours of the day in which a trace stands.

    Attributes
    ----------
    start_s : float
        Seconds from midnight to the first request of the trace.
    span_s : float
        Seconds from the first request to the last.
    """

    start_s: float
    span_s: float

    @property
    def end_s(self) -> float:
        """Seconds from midnight, modulo a day, to the last request."""
        return (self.start_s + self.span_s) % DAY_S

    def pieces(self) -> list[tuple[int, float, float]]:
        """Stretches of the trace by hour of the day: the hour, and seconds since the first request at begin and end."""
        first, last = math.floor(self.start_s / HOUR_S), math.ceil((self.start_s + self.span_s) / HOUR_S)
        found = []
        for count in range(first, last):
            begin, end = max(count * HOUR_S - self.start_s, 0.0), min((count + 1) * HOUR_S - self.start_s, self.span_s)
            if end > begin:
                found.append((count % HOURS, begin, end))
        return found

    def seconds(self) -> tuple[float, ...]:
        """Of each hour of the day, over all days."""
        total = [0.0] * HOURS
        for hour, begin, end in self.pieces():
            total[hour] += end - begin
        return tuple(total)

    def uncovered(self) -> tuple[int, ...]:
        """Hours of which the trace holds less than half an hour."""
        return tuple(hour for hour, seconds in enumerate(self.seconds()) if seconds < LEAST_COVERED_S - _SLACK_S)

    def partly(self) -> tuple[int, ...]:
        """Covered hours of which the trace holds less than the whole, over all days."""
        left_out = self.uncovered()
        return tuple(
            hour for hour, seconds in enumerate(self.seconds()) if seconds < HOUR_S - WHOLE_S and hour not in left_out
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HourlyTraffic:
    """Arrivals of one class by the hour of the day, from midnight; None where the trace does not cover the hour.

    Attributes
    ----------
    busiest : tuple of float or None
        Requests/s in the busiest window of the hour, over all days.
    mean : tuple of float or None
        Requests/s in the hour on average over all days.
    window_s : tuple of float or None
        Length of the windows of the hour.
    """

    busiest: tuple[float | None, ...]
    mean: tuple[float | None, ...]
    window_s: tuple[float | None, ...]

    @property
    def peak(self) -> float:
        """Requests/s in the busiest window of all hours."""
        return max(rate for rate in self.busiest if rate is not None)

    @property
    def peak_hour(self) -> int:
        """The first hour in which it lies."""
        return self.busiest.index(self.peak)

    @property
    def peak_window_s(self) -> float:
        """Length of that window."""
        return self.window_s[self.peak_hour] or HOUR_S

    def quiet(self) -> tuple[int, ...]:
        """Covered hours without a single request."""
        return tuple(hour for hour, rate in enumerate(self.mean) if rate == 0.0)

    def factors(self) -> tuple[float | None, ...]:
        """Shares of the peak, to three digits, up to 1."""
        peak = self.peak
        return tuple(None if rate is None else min(float(f"{rate / peak:.3g}"), 1.0) for rate in self.busiest)

    def mean_of_day(self, elsewhere: float | None) -> float | None:
        """Requests/s over the day, with a share of the peak in the hours that are not covered; None where it is open."""
        rates = [elsewhere if rate is None else rate / self.peak for rate in self.mean]
        known = [rate for rate in rates if rate is not None]
        return self.peak * math.fsum(known) / HOURS if len(known) == HOURS else None


def by_the_hour(times: Floats, day: Day, *, window_s: float | None = None) -> HourlyTraffic:
    """Read off how many requests of a class come in each hour of the day.

    Parameters
    ----------
    times : array
        Arrival times of the class in order, seconds since the first request of the trace.
    window_s : float, optional
        Length of the windows in place of ``WINDOW_S`` and ``WINDOW_REQUESTS``; an hour at most.

    Notes
    -----
    Windows lie within their hour, so that no request of one hour counts in another. A quiet hour has longer ones, of
    ``WINDOW_REQUESTS`` on average up to the whole hour: the busiest of many short ones would be chance.
    """
    left_out = day.uncovered()
    seconds = day.seconds()
    stretches: dict[int, list[tuple[float, float]]] = {hour: [] for hour in range(HOURS)}
    for hour, begin, end in day.pieces():
        stretches[hour].append((begin, end))
    busiest: list[float | None] = [None] * HOURS
    mean: list[float | None] = [None] * HOURS
    windows: list[float | None] = [None] * HOURS
    for hour in set(range(HOURS)) - set(left_out):
        count = sum(_count(times, begin, end, day.span_s) for begin, end in stretches[hour])
        rate = count / seconds[hour]
        window = min(window_s or max(WINDOW_S, WINDOW_REQUESTS / rate if rate else HOUR_S), HOUR_S)
        highest = max((_busiest(times, begin, end, window) for begin, end in stretches[hour]), default=0.0)
        busiest[hour], mean[hour], windows[hour] = max(highest, rate), rate, window
    return HourlyTraffic(busiest=tuple(busiest), mean=tuple(mean), window_s=tuple(windows))


def _count(times: Floats, begin: float, end: float, span_s: float) -> int:
    """Requests in a stretch; its end counts where the last request of the trace stands at it."""
    return int(np.searchsorted(times, end, side="right" if end >= span_s else "left") - np.searchsorted(times, begin))


def _busiest(times: Floats, begin: float, end: float, window: float) -> float:
    """Requests/s in the busiest window of a stretch; 0 where it is too short to hold one."""
    if end - begin < window - _SLACK_S:
        return 0.0
    starts = begin + np.arange(0.0, end - begin - window + _SLACK_S, window / 4.0)
    counts = np.searchsorted(times, starts + window) - np.searchsorted(times, starts)
    return float(counts.max()) / window
