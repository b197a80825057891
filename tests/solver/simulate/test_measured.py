"""Measured workers have no times: no report may read as if targets had been seen to be met there."""

from __future__ import annotations

from functools import cache

import epd_opt
from epd_opt.closing import solve_and_simulate
from epd_opt.report import report_html
from epd_opt.simulate import Arrival
from support.documents import measured


@cache
def plan() -> epd_opt.Plan:
    return epd_opt.solve(measured())


def test_a_plan_of_measured_workers_is_not_said_to_meet_its_targets() -> None:
    """Text, JSON and page say that nothing is timed; no time stands in the report."""
    found = epd_opt.simulate(plan(), requests=300)
    document = found.to_dict()
    assert document["untimed"] == [pool.name for pool in plan().pools]
    assert "all targets met" not in str(found)
    assert "nothing is timed" in str(found)
    assert "nothing about any pool of this plan is timed" in " ".join(document["notes"])
    for outcome in document["classes"].values():
        assert outcome["untimed"]
        assert set(outcome["ttft_ms"].values()) == set(outcome["itl_ms"].values()) == {None}
    assert "of which nothing is timed" in report_html(plan().document, simulation=document)


def test_requests_beyond_the_measured_rate_are_seen() -> None:
    """Three times the requests are more than the workers were measured with, which is all that can be seen of them."""
    chat = 3 * plan().classes["chat"].rate_per_s
    found = epd_opt.simulate(plan(), trace=[Arrival(i / chat, "chat", 100.0, 100.0) for i in range(4000)])
    assert not found.target_met
    assert "targets missed" in str(found)


def test_the_certificate_names_what_is_taken_at_its_word() -> None:
    """Closing the loop proves nothing about measured workers but that requests come within their rates."""
    certificate = solve_and_simulate(measured(), requests=300).plan.simulated.certificate
    assert "within the rates of its workers" in certificate
    assert "none is timed" in certificate
    assert "met" not in certificate
