"""Plans that were changed by hand are complained of before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import epd_opt
from epd_opt.errors import InvalidInput
from epd_opt.simulate import Arrival
from support.fleets import plan_of

Document = dict[str, Any]


def _no_spares(plan: Document) -> None:
    plan["pools"][0]["spare_replicas"] = -1


def _a_crowd(plan: Document) -> None:
    plan["pools"][0]["replicas"] = 10_000_000


def _twice(plan: Document) -> None:
    plan["pools"].append(plan["pools"][0])


def _elsewhere(plan: Document) -> None:
    plan["pools"][0]["placement"] = "decode"


def _unknown(plan: Document) -> None:
    plan["pools"][0]["placement"] = "nowhere"


def _nobody_encodes(plan: Document) -> None:
    plan["pools"][0]["operating_point"]["fan_out"] = 0


def _no_way(plan: Document) -> None:
    plan["classes"]["photo"]["routes"] = []


def _backwards(plan: Document) -> None:
    plan["classes"]["photo"]["routes"][0]["pools"].reverse()


def _past_the_encoders(plan: Document) -> None:
    plan["classes"]["photo"]["routes"][0]["pools"].pop(0)


def _at_no_rate(plan: Document) -> None:
    plan["classes"]["photo"]["routes"][0]["rate_per_s"] = -5.0


def _class_gone(plan: Document) -> None:
    del plan["classes"]["chat"]


def _class_new(plan: Document) -> None:
    plan["classes"]["essay"] = plan["classes"]["chat"]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (_no_spares, "pools.encoder_pool-H100-SXM-tp1.spare_replicas"),
        (_a_crowd, "pools"),
        (_twice, "pools.encoder_pool-H100-SXM-tp1"),
        (_elsewhere, "pools.encoder_pool-H100-SXM-tp1.stages"),
        (_unknown, "pools.encoder_pool-H100-SXM-tp1.placement"),
        (_nobody_encodes, "pools.encoder_pool-H100-SXM-tp1.operating_point.fan_out"),
        (_no_way, "classes.photo.routes"),
        (_backwards, "classes.photo.routes.0"),
        (_past_the_encoders, "classes.photo.routes.0"),
        (_at_no_rate, "classes.photo.routes"),
        (_class_gone, "classes.chat"),
        (_class_new, "classes.essay"),
    ],
)
def test_a_changed_plan_says_where_it_breaks(change: Callable[[Document], None], where: str) -> None:
    """Counts, names, placements, routes and classes that cannot be run are named, each with its place."""
    document = plan_of("encoder_pool").to_dict()
    change(document)
    with pytest.raises(InvalidInput) as caught:
        epd_opt.simulate(epd_opt.Plan.load(document), requests=10)
    assert where in [problem.path for problem in caught.value.problems]


def test_what_never_came_is_said() -> None:
    """A failure after the end of every run is a note, and a class of which nothing came is not said to be met."""
    plan = plan_of("encoder_pool")
    late = epd_opt.simulate(plan, requests=20, failures=["A:1@99999s"])
    assert any("never came: 1 replica of A" in note for note in late.notes)
    chats = [Arrival(i / 10, "chat", 100.0, 10.0) for i in range(50)]
    found = epd_opt.simulate(plan, trace=chats)
    assert found.target_met
    assert "nothing came of photo" in str(found)
