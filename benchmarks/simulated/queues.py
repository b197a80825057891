"""Waits and occupancy against closed results."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from epd_opt.simulate.clock import Clock
from epd_opt.simulate.encoders import EncoderBank
from support.lanes import PlainEncoders, PlainTimes, job, through_lane


def queues() -> Iterator[str]:
    """Waits and occupancy, 200,000 customers each (100,000 for M/G/∞)."""
    yield "| queue | quantity | simulated | closed result | off % |"
    yield "|---|---|---|---|---|"
    for servers, use in ((1, 0.5), (1, 0.8), (4, 0.8), (16, 0.9)):
        load = use * servers
        found = _encoder_waits(servers, load)
        known = erlang_c(servers, load)
        yield _compared(f"M/M/{servers}, {use:.0%}", "P(wait)", float((found > 1e-9).mean()), known)
        yield _compared(f"M/M/{servers}, {use:.0%}", "mean wait", float(found.mean()), known / (servers - load))
    for use in (0.5, 0.7, 0.9):
        arrivals = np.cumsum(np.random.default_rng(2).exponential(1.0 / use, 200_000)).tolist()
        jobs = [job(at, 10) for at in arrivals]
        seen, _ = through_lane(PlainTimes(per_prompt_token=0.1, budget=10), jobs, decodes=False)
        waits = np.array([seen.read[one] - one.arrival_s - 1.0 for one in jobs])[10_000:]
        yield _compared(f"M/D/1, {use:.0%}", "mean wait", float(waits.mean()), use / (2 * (1 - use)))
    rng = np.random.default_rng(3)
    arrivals = np.cumsum(rng.exponential(0.1, 100_000)).tolist()
    jobs = [job(at, 1, out) for at, out in zip(arrivals, rng.choice([11.0, 51.0], 100_000).tolist(), strict=True)]
    seen, _ = through_lane(PlainTimes(fixed=0.05), jobs, decodes=True)
    grid = np.linspace(arrivals[1000], arrivals[-1000], 20_000)
    starts, ends = np.sort([one.first_s for one in jobs]), np.sort([seen.done[one] for one in jobs])
    held = np.searchsorted(starts, grid, side="right") - np.searchsorted(ends, grid, side="right")
    yield _compared("M/G/∞", "mean in flight", float(held.mean()), 15.0)
    yield _compared("M/G/∞", "variance in flight", float(held.var()), 15.0)


def _encoder_waits(servers: int, load: float, count: int = 200_000) -> np.ndarray:
    rng = np.random.default_rng(servers)
    clock, ends = Clock(), {}
    times = PlainEncoders(processes=servers)
    bank = EncoderBank(clock, times, lambda at, one: ends.update({one: at}))  # type: ignore[arg-type]
    arrivals = np.cumsum(rng.exponential(1.0 / load, count)).tolist()
    sent = []
    for at, seconds in zip(arrivals, rng.exponential(1.0, count).tolist(), strict=True):
        clock.run_until(at)
        one = job(at, 1)
        one.megapixels, one.image, one.images = seconds, object(), 1  # type: ignore[assignment]
        sent.append(one)
        bank.submit(at, one, [1])
    while clock.step():
        pass
    waits = np.array([ends[one] - one.arrival_s - one.megapixels for one in sent])[count // 20 :]
    return np.where(waits < 1e-7, 0.0, waits)


def erlang_c(servers: int, load: float) -> float:
    """Probability that an arrival at M/M/n waits."""
    terms = [load**k / math.factorial(k) for k in range(servers)]
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(terms) + last)


def _compared(queue: str, quantity: str, found: float, known: float) -> str:
    return f"| {queue} | {quantity} | {found:.4f} | {known:.4f} | {100 * (found / known - 1):+.1f} |"
