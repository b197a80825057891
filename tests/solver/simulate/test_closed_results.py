"""The simulator's parts against queues whose waits are known in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

from epd_opt.simulate.clock import Clock
from epd_opt.simulate.encoders import EncoderBank
from support.lanes import PlainEncoders, PlainTimes, job, through_lane

COUNT = 15_000


def erlang_c(servers: int, load: float) -> float:
    """Probability that an arrival at M/M/n waits."""
    terms = [load**k / math.factorial(k) for k in range(servers)]
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(terms) + last)


@pytest.mark.parametrize("servers", [1, 4])
def test_encoder_processes_wait_like_erlangs(servers: int) -> None:
    """Exponential images at 80 % on n processes: the mean wait of M/M/n within 12 %."""
    rng = np.random.default_rng(servers)
    load = 0.8 * servers
    clock, ends = Clock(), {}
    bank = EncoderBank(clock, PlainEncoders(processes=servers), lambda time, one: ends.update({one: time}))
    arrivals = np.cumsum(rng.exponential(1.0 / load, COUNT)).tolist()
    sent = []
    for at, seconds in zip(arrivals, rng.exponential(1.0, COUNT).tolist(), strict=True):
        clock.run_until(at)
        one = job(at, 1)
        one.megapixels, one.image, one.images = seconds, object(), 1
        sent.append(one)
        bank.submit(at, one, [1])
    while clock.step():
        pass
    waits = np.array([ends[one] - one.arrival_s - one.megapixels for one in sent])[COUNT // 20 :]
    assert waits.mean() == pytest.approx(erlang_c(servers, load) / (servers - load), rel=0.12)


def test_prompts_wait_as_in_m_d_1() -> None:
    """Equal prompts of 1 s, one to an iteration, at 70 %: the mean wait of M/D/1, rho / (2 (1 - rho)), within 6 %."""
    arrivals = np.cumsum(np.random.default_rng(2).exponential(1.0 / 0.7, COUNT)).tolist()
    jobs = [job(at, 10) for at in arrivals]
    seen, lane = through_lane(PlainTimes(per_prompt_token=0.1, budget=10), jobs, decodes=False)
    waits = np.array([seen.read[one] - one.arrival_s - 1.0 for one in jobs])[COUNT // 20 :]
    assert waits.mean() == pytest.approx(0.7 / (2 * 0.3), rel=0.06)
    assert lane.busy_s == pytest.approx(COUNT * 1.0)


def test_sequences_in_flight_are_as_in_m_g_infinity() -> None:
    """Iterations that do not slow down hold a Poisson number of sequences: mean rate * stay, variance as the mean."""
    rng = np.random.default_rng(3)
    arrivals = np.cumsum(rng.exponential(0.1, COUNT)).tolist()
    outputs = rng.choice([11.0, 51.0], COUNT).tolist()
    jobs = [job(at, 1, output) for at, output in zip(arrivals, outputs, strict=True)]
    seen, _ = through_lane(PlainTimes(fixed=0.05), jobs, decodes=True)
    starts = np.array([one.first_s for one in jobs])
    ends = np.sort([seen.done[one] for one in jobs])
    grid = np.linspace(arrivals[500], arrivals[-500], 2000)
    in_flight = np.searchsorted(np.sort(starts), grid, side="right") - np.searchsorted(ends, grid, side="right")
    stay = 0.05 * (10 + 50) / 2
    assert in_flight.mean() == pytest.approx(10 * stay, rel=0.04)
    assert in_flight.var() == pytest.approx(10 * stay, rel=0.15)
