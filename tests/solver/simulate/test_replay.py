"""Plans made from traces are judged by those traces, and what the instance did not state is told."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from simulated.replay import IMAGES, TEXTS, Case, planned

import epd_opt
from epd_opt.simulate.arrivals import Arrival
from epd_opt.simulate.traces import Trace, merged
from support.fleets import plan_of

TRACES = Path(__file__).parents[4] / "shared" / "traces"
SECONDS = 120.0


def test_a_plan_from_a_public_trace_holds_when_the_trace_is_sent() -> None:
    """Two minutes of image requests with conversation merged in: fitted, planned and replayed, all targets are met."""
    files = [TRACES / f"{name}.csv.gz" for name in (IMAGES, TEXTS)]
    if not all(file.is_file() for file in files):
        pytest.skip(f"{TRACES} holds no public traces")
    stream = merged([Trace(source=file) for file in files])
    sent = list(itertools.takewhile(lambda one: one.time_s < SECONDS, stream))
    case = Case(title="images and conversation", traces=(IMAGES, TEXTS), ttft_ms=2500, itl_ms=40, classes=2)
    found = epd_opt.simulate(planned(case, sent), trace=sent)
    assert found.target_met
    assert sum(outcome.requests for outcome in found.classes.values()) > 0.8 * len(sent)


def test_a_shortfall_is_explained_by_what_the_instance_did_not_state() -> None:
    """Chat at its planned rate, but in bursts of 900: targets are missed, and the report says how much burstier it came."""
    plan = plan_of("shared")
    rate = plan.classes["chat"].rate_per_s
    sent = [Arrival(i // 900 * 900 / rate + 1e-3 * (i % 900), "chat", 500.0, 60.0) for i in range(9000)]
    found = epd_opt.simulate(plan, trace=sent)
    chat = found.to_dict()["classes"]["chat"]
    assert not chat["target_met"]
    assert chat["traffic"]["stated_scv"] == 1.0
    assert chat["traffic"]["planned_rate_per_s"] == rate
    assert chat["traffic"]["counts_dispersion"] > 100
    assert any("chat misses a target" in note and "as Poisson, where the instance states 1" in note for note in found.notes)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ([], "found no request"),
        ([Arrival(1.0, None, 9.0, 9.0), Arrival(0.5, None, 9.0, 9.0)], "0.5 after 1"),
        ([Arrival(-1.0, None, 9.0, 9.0)], "time_s: found -1.0"),
        ([Arrival(float("nan"), None, 9.0, 9.0)], "time_s: found nan"),
        ([Arrival(0.0, None, float("inf"), 9.0)], "text_tokens: found inf"),
        ([Arrival(0.0, None, 9.0, 0.0)], "output_tokens: found 0.0"),
    ],
)
def test_requests_that_make_no_sense_are_refused(wrong: list[Arrival], told: str) -> None:
    """Requests given in Python are checked as rows of a file are."""
    with pytest.raises(epd_opt.InvalidInput, match=told):
        epd_opt.simulate(plan_of("shared"), trace=wrong)


@pytest.mark.parametrize("count", [1, 40])
def test_requests_that_come_at_once_are_timed(count: int) -> None:
    """A trace of no length: every request is answered, and the class without any is said to be unknown."""
    found = epd_opt.simulate(plan_of("shared"), trace=[Arrival(0.0, "chat", 500.0, 60.0)] * count)
    assert (found.classes["chat"].requests, found.classes["chat"].missed) == (count, 0)
    assert found.seconds > 0.1
    assert found.notes == ["no request of photo counted: nothing is known of it"]


def test_a_faster_trace_is_told_by_its_rate() -> None:
    """Three times the planned rate is a reason of its own; requests that are drawn carry no such figures."""
    plan = plan_of("shared")
    rng = np.random.default_rng(5)
    streams = [
        [Arrival(at, name, text, out, images) for at in np.cumsum(rng.exponential(1 / 3 / rate, count)).tolist()]
        for name, text, out, images, rate, count in (
            ("chat", 500.0, 60.0, 0, plan.classes["chat"].rate_per_s, 4000),
            ("photo", 100.0, 100.0, 3, plan.classes["photo"].rate_per_s, 2000),
        )
    ]
    found = epd_opt.simulate(plan, trace=sorted(itertools.chain(*streams)))
    assert any(" requests/s on average, planned for " in note for note in found.notes)
    drawn = epd_opt.simulate(plan, requests=100).to_dict()
    assert all("traffic" not in outcome for outcome in drawn["classes"].values())
