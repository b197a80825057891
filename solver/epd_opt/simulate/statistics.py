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
MOST_KEPT = 131_072
"""Requests of a class whose times are kept, at the most: the share of a target's 95 % is then known to 0.06 points."""
Floats = NDArray[np.float64]
Seconds = NDArray[np.float32]


class Recorder:
    """Times of the requests that count, 24 bytes each: arrival (double), TTFT, mean interval, longest gap and
    end-to-end time (single precision); nan where a request has none, infinite where it was refused.

    Of a class with more than `MOST_KEPT` requests every second is kept, then every fourth, and so on: memory does not grow
    with the length of a run.
    """

    def __init__(self, classes: int) -> None:
        self._arrival = [array("d") for _ in range(classes)]
        self._times = [array("f") for _ in range(classes)]
        self._each = [1] * classes
        self._seen = [0] * classes
        self._refused = [0] * classes

    def record(self, time: float, job: Job, *, refused: bool) -> None:
        """A request has ended; ``late`` ones met measured workers over their rate."""
        label = job.label
        seen = self._seen[label]
        self._seen[label] = seen + 1
        self._refused[label] += refused
        if seen % self._each[label]:
            return
        self._arrival[label].append(job.arrival_s)
        if refused:
            found = (math.inf, math.inf, math.inf, math.inf)
        elif job.excused:
            found = (job.first_s - job.arrival_s, math.inf if job.late else math.nan, math.nan, math.nan)
        else:
            interval = job.interval_s(time)
            gap = job.gap_s if job.output > 1.0 else math.nan
            found = (job.first_s - job.arrival_s, interval, gap, time - job.arrival_s)
        self._times[label].extend(found)
        if len(self._arrival[label]) > MOST_KEPT:
            self._thin(label)

    def _thin(self, label: int) -> None:
        self._each[label] *= 2
        self._arrival[label] = self._arrival[label][::2]
        rows = np.frombuffer(self._times[label], dtype=np.float32).reshape(-1, 4)[::2]
        self._times[label] = array("f", rows.tobytes())

    def of_class(self, label: int) -> Times:
        """All times of a class in order of arrival."""
        arrival = np.array(self._arrival[label], dtype=np.float64)
        order = np.argsort(arrival, kind="stable")
        table = np.array(self._times[label], dtype=np.float32).reshape(-1, 4)[order]
        return Times(
            arrival[order],
            *table.T,
            each=self._each[label],
            requests=self._seen[label],
            missed=self._refused[label],
        )


class Times:
    """Seconds of the requests of one class and run, in order of arrival.

    Attributes
    ----------
    each : int
        Requests that one of them stands for; 1 unless there were very many.
    requests, missed : int
        All of them, and those that were refused.
    """

    def __init__(
        self,
        arrival: Floats,
        ttft: Seconds,
        itl: Seconds,
        gap: Seconds,
        e2e: Seconds,
        *,
        each: int,
        requests: int,
        missed: int,
    ) -> None:
        self.arrival = arrival
        self.ttft = ttft
        self.itl = itl
        self.gap = gap
        self.e2e = e2e
        self.each = each
        self.requests = requests
        self.missed = missed

    def between(self, start: float, end: float) -> Times:
        """Those that arrived from ``start`` until before ``end``; how many these are is told to a multiple of ``each``."""
        kept = (self.arrival >= start) & (self.arrival < end)
        return Times(
            self.arrival[kept],
            self.ttft[kept],
            self.itl[kept],
            self.gap[kept],
            self.e2e[kept],
            each=self.each,
            requests=int(kept.sum()) * self.each,
            missed=int(np.isinf(self.ttft[kept]).sum()) * self.each,
        )


def quantiles_ms(seconds: Sequence[Seconds], points: Sequence[float] = (50, 90, 95, 99)) -> dict[str, float | None]:
    """Percentiles and mean in milliseconds over all runs together, None where there is nothing or only refusals."""
    all_of = np.concatenate(list(seconds)) if seconds else np.zeros(0, dtype=np.float32)
    all_of = all_of[~np.isnan(all_of)]
    found: dict[str, float | None] = {}
    for point in points:
        value = float(np.quantile(all_of, point / 100.0, method="higher")) if len(all_of) else math.nan
        found[f"p{point:g}"] = value * 1e3 if math.isfinite(value) else None
    mean = float(all_of.mean(dtype=np.float64)) if len(all_of) else math.nan
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
