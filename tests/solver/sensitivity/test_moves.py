"""Tornados and marginal values are what solving every moved instance by itself gives."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import epd_opt
from epd_opt.paths import set_value
from epd_opt.resolve import resolve
from epd_opt.sensitivity import Marginal, Tornado
from epd_opt.sensitivity.inputs import inputs
from support.documents import measured, modelled

CHAT = "workload.classes.chat.rate_per_s"


@pytest.fixture(scope="module")
def storm() -> Tornado:
    """The tornado of measured workers."""
    return epd_opt.tornado(measured())


@pytest.fixture(scope="module")
def steps() -> Marginal:
    """Marginal values of measured workers whose budget and power are tight."""
    return epd_opt.marginal(measured(limits={"usd_per_hour": 30, "power_kw": 40, "devices": 30}))


def _usd(document: dict[str, Any]) -> float:
    usd = epd_opt.solve(document).cost.usd_per_hour
    assert isinstance(usd, float)
    return usd


def test_ends_equal_separate_solves(storm: Tornado) -> None:
    """The ends of a price, of a stock and of a rate cost what the moved instance costs; means move with their rates."""
    found = {one.path: one for one in storm.inputs}
    price = found["devices.big.price.usd_per_hour"]
    assert price.low.usd_per_hour == pytest.approx(_usd(set_value(measured(), price.path, 3.6)), rel=1e-9)
    stock = found["devices.big.stock"]
    assert (stock.low.value, stock.high.value) == (13, 19)
    assert stock.low.usd_per_hour == pytest.approx(_usd(set_value(measured(), stock.path, 13)), rel=1e-9)
    document = set_value(set_value(measured(), CHAT, 14.4), "workload.classes.chat.mean_rate_per_s", 8.4)
    assert found[CHAT].high.usd_per_hour == pytest.approx(_usd(document), rel=1e-9)
    assert found[CHAT].high.usd_per_request == pytest.approx(_usd(document) / 3600 / 11.4, rel=1e-9)


def test_the_largest_effect_comes_first(storm: Tornado) -> None:
    """Inputs stand in the order of their spread, and every kind of input of the instance is among them."""
    spreads = [one.spread_usd_per_request for one in storm.inputs]
    assert None not in spreads
    assert spreads == sorted(spreads, reverse=True)
    assert {one.path for one in storm.inputs} >= {
        "workload.classes.*.rate_per_s",
        "devices.small.price.purchase_usd",
        "workers.whole.max_rate_per_s.album",
        "workers.encoder.max_rate_per_s",
        "cost.electricity_usd_per_kwh",
        "cost.life_years",
    }


def test_todays_fleet_never_costs_less_than_the_best(storm: Tornado) -> None:
    """At every end the kept fleet costs at least what the best plan does, or something breaks."""
    kept = 0
    for one in storm.inputs:
        for end in (one.low, one.high):
            assert (end.kept_usd_per_request is None) == bool(end.kept_breaks)
            if end.kept_usd_per_request is not None:
                assert end.kept_usd_per_request >= end.usd_per_request * (1 - 1e-9)
                kept += 1
    assert kept >= 10


def test_limits_are_moved_where_they_are_stated() -> None:
    """Every limit of the fleet that has a number is an input of its own; counts move by one at least."""
    limits = {"usd_per_hour": 90, "devices": 60, "power_kw": 40, "skus": 2, "rack_kw": 30, "racks": 4}
    stated = epd_opt.read(measured(limits=limits))
    found = {one.path: one for one in inputs(stated, resolve(stated)) if one.path.startswith("limits.")}
    assert {path.removeprefix("limits.") for path in found} == set(limits)
    value, document = found["limits.skus"].at(stated.document(), 0.9)
    assert (value, document["limits"]["skus"]) == (1, 1)


def test_inputs_of_a_modelled_instance() -> None:
    """Images and targets move too; inputs alone that are named are moved, images by parts of one."""
    document = modelled(placements=["integrated"])
    document["workload"]["classes"] = document["workload"]["classes"][1:]
    found = epd_opt.tornado(document, ["workload.classes.photo.images.count", "workload.classes.photo.slo.itl_ms"], by=0.25)
    assert {one.path: (one.low.value, one.high.value) for one in found.inputs} == {
        "workload.classes.photo.images.count": (1.5, 2.5),
        "workload.classes.photo.slo.itl_ms": (60, 100),
    }


def test_steps_equal_separate_solves(steps: Marginal) -> None:
    """Every step saves what solving with it and without it differ by; none costs anything; the dearest comes first."""
    stated = measured(limits={"usd_per_hour": 30, "power_kw": 40, "devices": 30})
    before = _usd(stated)
    assert steps.usd_per_hour == pytest.approx(before, rel=1e-9)
    assert {move.path for move in steps.moves} == {
        "limits.usd_per_hour",
        "limits.power_kw",
        "limits.devices",
        "devices.big.stock",
        "devices.big.price.usd_per_hour",
        "devices.small.price.purchase_usd",
    }
    for move in steps.moves:
        assert move.saves_usd_per_hour == pytest.approx(before - _usd(set_value(stated, move.path, move.to)), abs=1e-7)
        assert move.bounds[0] - 1e-9 <= move.saves_usd_per_hour <= move.bounds[1] + 1e-9
        assert move.saves_usd_per_hour >= 0.0
    saves = [move.saves_usd_per_hour for move in steps.moves]
    assert saves == sorted(saves, reverse=True)


def test_a_binding_stock_has_a_price() -> None:
    """Where cheap units run out, one more of them is worth what it replaces: 4 - 0.5 $/h."""
    worker = {"devices": 1, "stages": ["encode", "prefill", "decode"], "max_rate_per_s": 1}
    document = {
        "schema": "epd-opt/instance/v1",
        "candidates": {"modelled": False},
        "workload": {"classes": [{"name": "chat", "rate_per_s": 5}]},
        "devices": [
            {"sku": "old", "price": {"usd_per_hour": 0.5}, "stock": 3},
            {"sku": "new", "price": {"usd_per_hour": 4}},
        ],
        "workers": [{"name": "a", "sku": "old", **worker}, {"name": "b", "sku": "new", **worker}],
    }
    first = epd_opt.marginal(document).moves[0]
    assert (first.path, first.to) == ("devices.old.stock", 4)
    assert first.saves_usd_per_hour == pytest.approx(3.5)
    assert first.changes_plan


def test_steps_out_of_infeasibility_show_their_cost() -> None:
    """An instance without a plan has marginal values where a step gives it one."""
    short = measured()
    short["devices"][0]["stock"] = 0
    found = epd_opt.marginal(short)
    assert found.usd_per_hour is None
    assert all(move.saves_usd_per_hour is None for move in found.moves)
    assert "no plan" in found.notes[0]


def test_a_plan_stands_for_its_instance_and_its_fleet() -> None:
    """From a plan come the instance, the cards and today's fleet."""
    plan = epd_opt.solve(measured())
    assert epd_opt.tornado(plan, [CHAT]).to_json() == epd_opt.tornado(measured(), [CHAT]).to_json()
    assert epd_opt.marginal(plan).to_json() == epd_opt.marginal(measured()).to_json()


def test_executors_find_the_same(storm: Tornado, steps: Marginal) -> None:
    """Whatever solves the moves, the documents are the same."""
    with ThreadPoolExecutor(2) as executor:
        assert epd_opt.tornado(measured(), executor=executor).to_json() == storm.to_json()


def test_what_cannot_be_moved_is_refused() -> None:
    """Open rates, names that name nothing, and instances without a plan."""
    with pytest.raises(epd_opt.InvalidInput, match="objective=cost_per_request"):
        epd_opt.tornado(measured(objective="goodput"))
    with pytest.raises(epd_opt.InvalidInput, match="chatt"):
        epd_opt.tornado(measured(), ["workload.classes.chatt.rate_per_s"])
    with pytest.raises(epd_opt.InvalidInput, match="infeasible"):
        epd_opt.tornado(measured(limits={"usd_per_hour": 1}))


def test_they_show_themselves(storm: Tornado, steps: Marginal) -> None:
    """Text, HTML, tables, pictures and strict JSON."""
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib")
    assert "█" in str(storm)
    assert "saves $/h" in str(steps)
    for held in (storm, steps):
        assert "<pre" in held._repr_html_()
        assert len(held.plot().axes) == 1
        json.loads(held.to_json(), parse_constant=lambda _: pytest.fail("not strict"))
    assert list(storm.to_frame()["path"]) == [one.path for one in storm.inputs]
    assert len(steps.to_frame()) == len(steps.moves)
