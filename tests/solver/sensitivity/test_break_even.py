"""A break-even parts the values at which the best plan has the use from those at which it has not, as enumeration finds
them."""

from __future__ import annotations

import json
from typing import Any

import pytest

import epd_opt
from epd_opt.offering import offering, planning_problem
from epd_opt.paths import set_value
from epd_opt.resolve import resolve
from epd_opt.sensitivity.use import Use
from support.documents import measured, modelled
from support.enumeration import cheapest


def desk(**changes: Any) -> dict[str, Any]:
    """Whole workers on big cards, or language workers on them beside encoders on small ones; hand-solved."""
    document: dict[str, Any] = {
        "schema": "epd-opt/instance/v1",
        "name": "desk",
        "candidates": {"modelled": False},
        "workload": {
            "classes": [
                {"name": "chat", "rate_per_s": 9},
                {"name": "album", "rate_per_s": 3, "images": {"count": 10, "tokens": 256}},
            ]
        },
        "devices": [
            {"sku": "big", "price": {"usd_per_hour": 4}, "stock": 8},
            {"sku": "small", "price": {"usd_per_hour": 0.5}, "stock": 16},
        ],
        "workers": [
            _worker("whole", "big", ["encode", "prefill", "decode"], {"chat": 4, "album": 0.6}),
            _worker("language", "big", ["prefill", "decode"], {"chat": 4, "album": 1.5}),
            _worker("encoder", "small", ["encode"], 1),
        ],
        "solver": {"gap": 0, "threads": 1},
    }
    return {**document, **changes}


def _worker(name: str, sku: str, stages: list[str], rate: Any) -> dict[str, Any]:
    return {"name": name, "sku": sku, "devices": 1, "stages": stages, "max_rate_per_s": rate}


def _enumerated(document: dict[str, Any], path: str, value: float, use: Use) -> tuple[float | None, float | None]:
    """Least cost of all plans, and of those that do without the use, by enumeration."""
    resolved = resolve(epd_opt.Instance(**set_value(document, path, value)))
    problem = offering(resolved).problem
    left = [candidate for candidate in problem.candidates if not use.means(candidate)]
    return cheapest(problem), cheapest(planning_problem(resolved, left))


def test_a_hand_solved_price() -> None:
    """Five language workers and three encoders cost 20 + 3 p, eight whole workers 32: encoders pay below 4."""
    found = epd_opt.break_even(desk(), "small")
    assert (found.outcome, found.used, found.method) == ("found", "below", "lines")
    assert found.at == pytest.approx(4.0, rel=1e-9)
    assert found.bounds == pytest.approx([4.0, 4.0], rel=1e-5)
    assert found.below.usd_per_hour == found.above.usd_per_hour == pytest.approx(32.0)
    assert (found.below.usd_per_hour_per_unit, found.above.usd_per_hour_per_unit) == (3.0, 0.0)
    assert [(pool.name, pool.replicas) for pool in found.above.pools] == [("whole-big", 8)]
    assert found.stated.without_usd_per_hour - found.stated.usd_per_hour == pytest.approx(10.5)
    assert found.text == "small pays below $4/h; at the stated $0.5/h it saves $10.50/h"


QUESTIONS: list[tuple[dict[str, Any], str, dict[str, str]]] = [
    (desk(), "devices.small.price.usd_per_hour", {"sku": "small"}),
    (desk(), "devices.big.price.usd_per_hour", {"sku": "small"}),
    (measured(), "devices.big.price.usd_per_hour", {"placement": "prefill"}),
    (measured(), "devices.small.price.purchase_usd", {"placement": "decode"}),
    (measured(), "cost.electricity_usd_per_kwh", {"placement": "decode", "sku": "small"}),
]


@pytest.mark.parametrize(("document", "path", "what"), QUESTIONS)
def test_prices_part_what_enumeration_parts(document: dict[str, Any], path: str, what: dict[str, str]) -> None:
    """Just on the side where it pays no plan without the use is as cheap as the best one; just on the other side one is.
    Where it always or never pays, that holds at both ends."""
    found = epd_opt.break_even(document, path, **what)
    use = Use(placement=found.placement, device=found.sku, stage=found.stage)
    assert found.method == "lines"
    if found.outcome == "found":
        assert found.bounds is not None
        assert found.bounds[0] <= found.at * (1 + 1e-12)
        assert found.bounds[1] >= found.at * (1 - 1e-12)
        below, above = found.at * (1 - 1e-3), found.at * (1 + 1e-3)
        pays, idles = (below, above) if found.used == "below" else (above, below)
    else:
        assert found.outcome in ("always", "never")
        pays = idles = found.high
    best, without = _enumerated(document, path, pays, use)
    assert best is not None
    if found.outcome != "never":
        assert without is None or best < without * (1 - 1e-7)
    if found.outcome != "always":
        best, without = _enumerated(document, path, idles, use)
        assert best == pytest.approx(without, rel=1e-7)


def test_both_kinds_are_among_those_compared() -> None:
    """Some of the questions have a break-even."""
    assert sum(epd_opt.break_even(document, path, **what).outcome == "found" for document, path, what in QUESTIONS) >= 3


def test_a_rate_is_found_by_bisection_and_its_sides_are_solved() -> None:
    """Encoders pay from 0.45 albums/s on: three whole workers carry 9 chats and 0.45 albums; both sides are proved apart."""
    found = epd_opt.break_even(desk(), "workload.classes.album.rate_per_s", sku="small", high=6)
    assert (found.outcome, found.used, found.method) == ("found", "above", "bisection")
    low, high = found.bounds
    assert low <= 0.45 <= high
    assert high - low <= 1e-3 * high
    assert [side.uses for side in (found.below, found.above)] == [False, True]


def test_whole_numbers_are_parted_to_neighbours() -> None:
    """At a stock of 7 big cards encoders are needed, at 8 they are not wanted where they cost 5."""
    document = set_value(desk(), "devices.small.price.usd_per_hour", 5)
    found = epd_opt.break_even(document, "devices.big.stock", sku="small", low=5)
    assert found.bounds == [7, 8]
    assert (found.at, found.used) == (8, "below")


def test_never_and_always_are_said_in_words() -> None:
    """What nothing serves without is always used; what cannot be used never pays; with owned units a price never ends it."""
    assert epd_opt.break_even(desk(), "big").text.endswith("without it nothing serves the instance")
    nothing = epd_opt.break_even(desk(), "small", placement="prefill_decode")
    assert nothing.outcome == "never"
    assert "not on offer" in nothing.text
    assert epd_opt.break_even(measured(), "small", placement="encoder_pool").outcome == "always"


def test_no_plan_at_an_end() -> None:
    """A budget that nothing fits in has no side."""
    found = epd_opt.break_even(desk(), "limits.usd_per_hour", sku="small", low=1, high=30)
    assert found.outcome == "no_plan"
    assert "$1/h" in found.text


def test_gaps_widen_the_bounds_and_do_not_break_them() -> None:
    """Solved within 30 %, the exact break-even still lies within the bounds, if they are stated."""
    found = epd_opt.break_even(desk(), "small", gap=0.3)
    assert found.outcome == "found"
    assert found.bounds is None or found.bounds[0] - 1e-9 <= 4.0 <= found.bounds[1] + 1e-9


def test_modelled_encoders_stop_paying_where_the_study_says() -> None:
    """The price at which a modelled card stops paying is where a study finds the plan to change."""
    document = modelled(placements=["integrated", "encoder_pool", "prefill_decode"])
    document["workload"]["classes"] = document["workload"]["classes"][1:]
    document = set_value(document, "workload.classes.photo.images.count", 10)
    found = epd_opt.break_even(document, "L4")
    assert found.outcome == "found"
    low, high = found.at * 0.999, found.at * 1.001
    study = epd_opt.sensitivity(document, {"devices.L4.price.usd_per_hour": [low, high]}, switches=False)
    below, above = ({pool.sku for pool in point.pools} for point in study.points)
    assert ("L4" in below, "L4" in above) == (True, False)


@pytest.mark.parametrize(
    ("path", "what", "message"),
    [
        ("small", {"placement": "encoder_pol"}, "did you mean encoder_pool"),
        ("workload.classes.chat.rate_per_s", {}, "what is to pay"),
        ("network.gbit_per_s_per_device", {"sku": "small"}, "give --low and --high"),
        ("small", {"low": 3, "high": 2}, "the lower end first"),
    ],
)
def test_questions_that_cannot_be_meant(path: str, what: dict[str, Any], message: str) -> None:
    """Unknown names, nothing to pay, no range."""
    with pytest.raises(epd_opt.UsageError, match=message):
        epd_opt.break_even(desk(), path, **what)


def test_objectives_that_leave_the_rates_open_are_refused() -> None:
    """Goodput has no price per fleet to compare."""
    with pytest.raises(epd_opt.InvalidInput, match="objective=cost_per_request"):
        epd_opt.break_even(desk(objective="goodput"), "small")


def test_it_shows_itself() -> None:
    """Text, HTML, table, picture and strict JSON."""
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib")
    found = epd_opt.break_even(desk(), "small")
    assert "8 x whole-big" in str(found)
    assert "whole-big" in found._repr_html_()
    assert list(found.to_frame()["side"]) == ["below", "below", "above"]
    assert len(found.plot().axes[0].lines) == 3
    assert json.loads(found.to_json(), parse_constant=lambda _: pytest.fail("not strict"))["at"] == found.at
