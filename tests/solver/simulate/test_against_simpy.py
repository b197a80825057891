"""The twin gives the times of a plain SimPy model in which every iteration is an event."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import epd_opt
from epd_opt.offering import loads_of
from epd_opt.restore import resolved_plan
from epd_opt.simulate.arrivals import drawn
from epd_opt.simulate.run import sources_of
from support.fleets import photos, run_of

pytest.importorskip("simpy", reason="the plain model is written with SimPy")


def test_every_request_gets_the_times_of_the_plain_model() -> None:
    """Three replicas and two classes of texts: first tokens and ends of all 800 requests agree to six digits."""
    from support.simpy_pool import through_simpy

    document = photos(placements=["prefill_decode"])
    chat, essay = document["workload"]["classes"]
    essay |= {"name": "essay", "rate_per_s": 20, "text_tokens": {"mean": 3000, "p95": 9000}, "output_tokens": 400}
    del essay["images"]
    chat["rate_per_s"] = 40
    plan = epd_opt.solve(document)
    assert [pool.replicas > 1 for pool in plan.pools] == [True]
    resolved = resolved_plan(plan.document)
    sources = sources_of(resolved, {load.name: load for load in loads_of(resolved)[0]})
    sent = list(itertools.islice(drawn(sources, 3), 800))
    answered = sorted(through_simpy(plan, sent).items(), key=lambda item: item[0].arrival_s)
    found = run_of(plan, trace=sent, requests=800)
    for label in range(2):
        mine = [(job.first_s - job.arrival_s, end - job.arrival_s) for job, end in answered if job.label == label]
        times = found.times[label]
        known = np.array(mine[-len(times.ttft) :])
        assert times.ttft == pytest.approx(known[:, 0], rel=1e-6)
        assert times.e2e == pytest.approx(known[:, 1], rel=1e-6)
