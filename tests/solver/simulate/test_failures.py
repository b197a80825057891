"""What breaks in mid-run is lost, found again elsewhere, and told apart in the report."""

from __future__ import annotations

import math

import pytest

import epd_opt
from epd_opt.errors import UsageError
from epd_opt.simulate.failures import Failure, parse_failure
from epd_opt.simulate.fleet import Fleet
from epd_opt.simulate.run import run
from support.fleets import WAYS, plan_of, run_of


@pytest.mark.parametrize(
    ("spec", "failure"),
    [
        ("A@60", Failure(kind="replica", what="A", amount=1, start_s=60)),
        ("A:2@60s+120s", Failure(kind="replica", what="A", amount=2, start_s=60, length_s=120)),
        ("node=H100-SXM:1@5+10", Failure(kind="node", what="H100-SXM", amount=1, start_s=5, length_s=10)),
        ("link=B:50ms@1s", Failure(kind="link", what="B", amount=0.05, start_s=1)),
    ],
)
def test_what_the_command_line_means(spec: str, failure: Failure) -> None:
    """Replicas, nodes and links, with and without an end."""
    assert parse_failure(spec) == failure


@pytest.mark.parametrize("spec", ["A", "A:1", "A:0@3", "A:1.5@3", "link=A@3", "node=H100-SXM:5ms@3", "@3", "Z@3", "A:99@3"])
def test_failures_that_cannot_be_meant(spec: str) -> None:
    """They are refused before anything runs."""
    with pytest.raises(UsageError):
        epd_opt.simulate(plan_of("shared"), requests=10, failures=[spec])


@pytest.mark.parametrize("way", WAYS)
def test_lost_requests_are_served_all_the_same(way: str) -> None:
    """With every pool dead for a while, one after the other, each request still ends once."""
    plan = plan_of(way)
    failures = [
        Failure(kind="replica", what=pool.name, amount=pool.replicas, start_s=1.0 + i, length_s=0.5)
        for i, pool in enumerate(plan.pools)
    ]
    found = run_of(plan, failures=failures)
    assert sum(len(times.ttft) for times in found.times) == 600
    assert found.unfinished == found.refused == 0
    calm = run_of(plan)
    assert all(broken.ttft.max() > quiet.ttft.max() for broken, quiet in zip(found.times, calm.times, strict=True))


def test_requests_of_a_dead_pool_miss() -> None:
    """Where a pool never comes back, what needs it never ends and misses; what came before was on time."""
    found = epd_opt.simulate(plan_of("encoder_pool"), requests=600, failures=["A:1@3s"])
    photo, chat = found.classes["photo"], found.classes["chat"]
    assert found.pools["encoder_pool-H100-SXM-tp1"].replicas == 1
    assert photo.missed > 0
    assert chat.missed == 0
    assert not photo.target_met
    assert photo.phases["before"].attainment.ttft == 1.0
    assert photo.phases["during"].attainment.ttft < 0.5
    assert "after" not in photo.phases
    assert any("never ended" in note for note in found.notes)


def test_a_lost_replica_shows_in_its_phase() -> None:
    """Two of five replicas fail for two seconds: TTFT rises during and not before."""
    found = epd_opt.simulate(plan_of("integrated"), requests=900, failures=["A:2@3s+2s"])
    phases = found.classes["photo"].phases
    assert phases["during"].ttft_ms.p95 > 1.2 * phases["before"].ttft_ms.p95
    assert sum(phase.requests for phase in phases.values()) == found.classes["photo"].requests


def test_a_slow_link_delays_hand_overs_by_that_much() -> None:
    """Half a second more on every embedding for the whole run: photos come half a second later, chats do not."""
    plan = plan_of("encoder_pool")
    calm, slow = (epd_opt.simulate(plan, requests=400, failures=failures) for failures in ([], ["link=A:500ms@0s"]))
    later = {name: slow.classes[name].ttft_ms.p50 - calm.classes[name].ttft_ms.p50 for name in ("photo", "chat")}
    assert later["photo"] == pytest.approx(500, abs=30)
    assert later["chat"] == pytest.approx(0, abs=30)


def test_a_node_takes_all_its_replicas() -> None:
    """Eight devices share a server: losing one node of the only device kills every replica."""
    found = epd_opt.simulate(plan_of("integrated"), requests=300, failures=["node=H100-SXM@1s+1s"])
    assert max(outcome.phases["during"].ttft_ms.p50 for outcome in found.classes.values()) > 300


def test_spares_take_over() -> None:
    """With one spare replica, losing one changes nothing but the requests that it held."""
    alone = plan_of("shared")
    spared = epd_opt.Plan.load(_with_spare(alone.to_dict()))
    during = {
        name: epd_opt.simulate(plan, requests=900, failures=["A:2@2s+5s"]).classes["photo"].phases["during"].ttft_ms.p50
        for name, plan in (("alone", alone), ("spared", spared))
    }
    assert math.isfinite(during["alone"])
    assert during["spared"] < during["alone"]


def _with_spare(document: dict) -> dict:
    for pool in document["pools"]:
        pool["devices"] *= (pool["replicas"] + 1) / pool["replicas"]
        pool["spare_replicas"] = 1
    return document


def test_failures_at_once_add_up() -> None:
    """Two failures of a replica take two, and a node that fails again while it is down comes back after the later repair."""
    plan = plan_of("integrated")
    same = (
        (["A:2@2s+2s"], ["A:1@2s+2s", "A:1@2s+2s"]),
        (["node=H100-SXM@1s+2s"], ["node=H100-SXM@1s+1s", "node=H100-SXM@1.5s+1.5s"]),
    )
    for together, apart in same:
        one, other = (epd_opt.simulate(plan, requests=400, failures=failures) for failures in (together, apart))
        assert one.to_dict()["classes"] == other.to_dict()["classes"]


def test_a_blink_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where replicas die and are back before prompts under way reach them, prompts begin anew and no load counts twice."""
    made: list[Fleet] = []
    monkeypatch.setitem(run.__globals__, "Fleet", lambda *given, **named: made.append(Fleet(*given, **named)) or made[-1])
    blinks = [Failure(kind="replica", what="A", amount=1, start_s=0.5 + 0.02 * i, length_s=1e-4) for i in range(200)]
    found = run_of(plan_of("shared"), failures=blinks)
    assert found.unfinished == found.refused == 0
    lanes = [lane for pool in made[0].pools for lane in pool.lanes()]
    assert sum(lane.deaths for lane in lanes) == 200
    while made[0].clock.step():
        pass
    assert [(lane.sequences, lane.expected, lane.work_s, lane.slow) for lane in lanes] == [(0, 0, 0.0, 1.0)] * len(lanes)
