"""What requests got: times in compact arrays while the run goes on, quantiles and confidence afterwards."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from epd_opt.simulate.job import Job

_BATCHES = 20
"""Batches of a run, in order of arrival, whose means are taken to be independent."""
Floats = NDArray[np.float64]


class Recorder:
    """Times of the requests that count, 24 bytes each: arrival (double), TTFT, mean interval, longest gap and
    end-to-end time (single precision); nan where a request has none, infinite where it was refused."""

    def __init__(self, classes: int) -> None:
        self._arrival = [array("d") for _ in range(classes)]
        self._times = [array("f") for _ in range(classes)]

    def record(self, time: float, job: Job, *, refused: bool) -> None:
        """A request has ended; ``late`` ones met measured workers over their rate."""
        self._arrival[job.label].append(job.arrival_s)
        if refused:
            found = (math.inf, math.inf, math.inf, math.inf)
        elif job.excused:
            found = (job.first_s - job.arrival_s, math.inf if job.late else math.nan, math.nan, math.nan)
        else:
            interval = job.interval_s(time)
            gap = job.gap_s if job.output > 1.0 else math.nan
            found = (job.first_s - job.arrival_s, interval, gap, time - job.arrival_s)
        self._times[job.label].extend(found)

    def of_class(self, label: int) -> Times:
        """All times of a class in order of arrival."""
        arrival = np.frombuffer(self._arrival[label], dtype=np.float64) if self._arrival[label] else np.zeros(0)
        order = np.argsort(arrival, kind="stable")
        table = np.array(self._times[label], dtype=np.float32).reshape(-1, 4)[order].astype(np.float64)
        return Times(arrival[order], table[:, 0], table[:, 1], table[:, 2], table[:, 3])


class Times:
    """Seconds of the requests of one class and run, in order of arrival."""

    def __init__(self, arrival: Floats, ttft: Floats, itl: Floats, gap: Floats, e2e: Floats) -> None:
        self.arrival = arrival
        self.ttft = ttft
        self.itl = itl
        self.gap = gap
        self.e2e = e2e

    def between(self, start: float, end: float) -> Times:
        """Those that arrived from ``start`` until before ``end``."""
        kept = (self.arrival >= start) & (self.arrival < end)
        return Times(self.arrival[kept], self.ttft[kept], self.itl[kept], self.gap[kept], self.e2e[kept])


def quantiles_ms(seconds: Sequence[Floats], points: Sequence[float] = (50, 90, 95, 99)) -> dict[str, float | None]:
    """Percentiles and mean in milliseconds over all runs together, None where there is nothing or only refusals."""
    all_of = np.concatenate(list(seconds)) if seconds else np.zeros(0)
    all_of = all_of[~np.isnan(all_of)]
    found: dict[str, float | None] = {}
    for point in points:
        value = float(np.quantile(all_of, point / 100.0, method="higher")) if len(all_of) else math.nan
        found[f"p{point:g}"] = value * 1e3 if math.isfinite(value) else None
    mean = float(all_of.mean()) if len(all_of) else math.nan
    found["mean"] = mean * 1e3 if math.isfinite(mean) else None
    return found


def attainment(kept: Sequence[NDArray[np.bool_]]) -> tuple[float, tuple[float, float]] | None:
    """Share of requests that kept a target, with its 95 % confidence interval; None without requests.

    The wider of two intervals: Student's over the means of twenty batches of each run (requests near each other fare
    alike), and Wilson's for independent requests (which does not close where all kept it).

    Parameters
    ----------
    kept : sequence of arrays
        One for each run, in order of arrival.
    """
    count = sum(len(run) for run in kept)
    if count == 0:
        return None
    share = sum(int(run.sum()) for run in kept) / count
    z = NormalDist().inv_cdf(0.975)
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    low, high = middle - half, middle + half
    means = [batch.mean() for run in kept for batch in np.array_split(run, _BATCHES) if len(run) >= _BATCHES]
    if len(means) > 1:
        spread = student(len(means) - 1) * float(np.std(means, ddof=1)) / math.sqrt(len(means))
        low, high = min(low, share - spread), max(high, share + spread)
    return share, (max(low, 0.0), min(high, 1.0))


def student(degrees: int) -> float:
    """The 97.5 % quantile of Student's distribution (Cornish and Fisher's expansion, within 0.3 % from 5 degrees on).

    >>> round(student(19), 3)
    2.093
    """
    z = NormalDist().inv_cdf(0.975)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / degrees + second / degrees**2 + third / degrees**3
