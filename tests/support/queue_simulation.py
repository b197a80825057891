"""A GI/G/n queue served in order of arrival, one customer at a time: the judge of the staffing rows."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Sampler = Callable[[np.random.Generator, int], Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Arrivals of one class: ``rate`` per second, gaps gamma distributed with this squared coefficient of variation."""

    rate: float
    service: Sampler
    scv: float = 1.0

    def arrivals(self, rng: np.random.Generator, horizon: float) -> Array:
        """Arrival times before ``horizon`` seconds."""
        expected = self.rate * horizon
        count = int(expected + 8.0 * math.sqrt(expected * max(self.scv, 1.0)) + 20.0)
        gaps = rng.gamma(1.0 / self.scv, self.scv / self.rate, count)
        times = np.cumsum(gaps)
        return times[times < horizon]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Waits in order of arrival, with the index of the stream each belongs to; the warm-up is cut off."""

    stream: NDArray[np.int64]
    seconds: Array

    def tail(self, wait: float, stream: int | None = None) -> tuple[float, float]:
        """P(W > wait), and two standard errors of it from 25 batches."""
        seconds = self.seconds if stream is None else self.seconds[self.stream == stream]
        late = (seconds > wait + 1e-12).astype(float)
        size = max(len(late) // 25, 1)
        batches = late[: size * (len(late) // size)].reshape(-1, size).mean(axis=1)
        return float(late.mean()), float(2.0 * batches.std() / math.sqrt(len(batches)))


def simulate(
    streams: Sequence[Stream], servers: int, customers: int, seed: int, *, route_to_least_work: bool = False
) -> Waits:
    """Waits of about ``customers`` customers.

    ``route_to_least_work`` sends each arrival at once to the server with the least work left, instead of keeping one
    line for all.
    """
    rng = np.random.default_rng(seed)
    horizon = customers / sum(stream.rate for stream in streams)
    times = [stream.arrivals(rng, horizon) for stream in streams]
    services = [stream.service(rng, len(t)) for stream, t in zip(streams, times, strict=True)]
    label = np.concatenate([np.full(len(t), i) for i, t in enumerate(times)])
    order = np.argsort(np.concatenate(times), kind="stable")
    arrival, service = np.concatenate(times)[order], np.concatenate(services)[order]
    run = _least_work if route_to_least_work else _one_line
    waits = np.array(run(arrival.tolist(), service.tolist(), servers))
    kept = len(waits) // 20
    return Waits(stream=label[order][kept:], seconds=waits[kept:])


def _one_line(arrivals: list[float], services: list[float], servers: int) -> list[float]:
    free = [0.0] * servers
    waits = []
    for arrival, service in zip(arrivals, services, strict=True):
        start = max(free[0], arrival)
        waits.append(start - arrival)
        heapq.heapreplace(free, start + service)
    return waits


def _least_work(arrivals: list[float], services: list[float], servers: int) -> list[float]:
    work, before = np.zeros(servers), 0.0
    waits = []
    for arrival, service in zip(arrivals, services, strict=True):
        work = np.maximum(work - (arrival - before), 0.0)
        before = arrival
        chosen = int(np.argmin(work))
        waits.append(float(work[chosen]))
        work[chosen] += service
    return waits
