"""Shows what every state of a price does on every path, and that nothing without a price is ever planned."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import epd_opt
from epd_models import catalog
from epd_opt import InvalidInput, Plan, VerificationError, verify
from epd_opt.instance import Instance
from epd_opt.paths import set_value
from epd_opt.resolve import resolve

AMOUNTS = {
    "usd_per_hour": lambda amount: {"usd_per_hour": amount},
    "purchase_usd": lambda amount: {"purchase_usd": amount},
    "reserved.usd_per_hour": lambda amount: {"reserved": {"usd_per_hour": amount, "term_years": 3}},
    "reserved.upfront_usd": lambda amount: {"reserved": {"usd_per_hour": 1, "term_years": 3, "upfront_usd": amount}},
    "spot.usd_per_hour": lambda amount: {"spot": {"usd_per_hour": amount, "interruption_allowance": 0.1}},
}
BAD = {"NaN": math.nan, "infinite": math.inf, "negative": -1.0, "text": "3", "true": True}


def desk(price: Any = None, **changes: Any) -> dict[str, Any]:
    """Nine requests/s on measured workers of four each: on A at 2 USD/h, or on B at another price."""
    document: dict[str, Any] = {
        "schema": "epd-opt/instance/v1",
        "name": "desk",
        "candidates": {"modelled": False},
        "workload": {"classes": [{"name": "chat", "rate_per_s": 9}]},
        "devices": [{"sku": "A", "price": {"usd_per_hour": 2}}, {"sku": "B"}],
        "workers": [
            {"name": f"on {sku}", "sku": sku, "devices": 1, "stages": ["prefill", "decode"], "max_rate_per_s": 4}
            for sku in "AB"
        ],
        "solver": {"gap": 0.0, "threads": 1},
    }
    if price is not None:
        document["devices"][1]["price"] = price
    return {**copy.deepcopy(document), **changes}


def from_mapping(document: dict[str, Any], path: str, amount: Any, folder: Path) -> Instance:
    return epd_opt.read(document)


def from_json(document: dict[str, Any], path: str, amount: Any, folder: Path) -> Instance:
    file = folder / "desk.json"
    file.write_text(json.dumps(document))
    return epd_opt.read(file)


def from_yaml(document: dict[str, Any], path: str, amount: Any, folder: Path) -> Instance:
    file = folder / "desk.yaml"
    file.write_text(json.dumps(document).replace("NaN", ".nan").replace("Infinity", ".inf"))
    return epd_opt.read(file)


def from_override(document: dict[str, Any], path: str, amount: Any, folder: Path) -> Instance:
    good = set_value(document, f"devices.B.price.{path}", 0.5)
    written = {"nan": ".nan", "inf": ".inf"}.get(str(amount), json.dumps(amount))
    return epd_opt.read(good, [f"devices.B.price.{path}={written}"])


def from_python(document: dict[str, Any], path: str, amount: Any, folder: Path) -> Instance:
    return Instance(**document)


READERS = [from_mapping, from_json, from_yaml, from_override, from_python]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("path", AMOUNTS)
@pytest.mark.parametrize("bad", BAD)
def test_amounts_that_are_none_are_refused_by_their_path(
    reader: Callable[..., Instance], path: str, bad: str, tmp_path: Path
) -> None:
    """NaN, infinite, negative and textual prices are errors however the instance is read."""
    document = desk(AMOUNTS[path](BAD[bad]))
    with pytest.raises(InvalidInput, match=rf"devices\.B\.price\.{path}") as caught:
        reader(document, path, BAD[bad], tmp_path)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("reader", READERS[:3])
@pytest.mark.parametrize("price", [None, {"usd_per_hour": None}, {}, {"pack": 2}], ids=str)
def test_a_missing_price_leaves_out_and_an_empty_one_is_refused(
    reader: Callable[..., Instance], price: Any, tmp_path: Path
) -> None:
    """`price: null` is no price, with a warning that names the entry; a price without an amount is an error."""
    document = desk()
    document["devices"][1]["price"] = price
    if price is not None:
        with pytest.raises(InvalidInput, match=r"devices\.B\.price.*the price has no amount"):
            reader(document, "", None, tmp_path)
        return
    plan = epd_opt.solve(reader(document, "", None, tmp_path))
    assert set(plan.document.devices) == {"A"}
    assert any("B has no price and is left out" in warning for warning in plan.document.warnings)


@pytest.mark.parametrize("path", [path for path in AMOUNTS if path != "reserved.upfront_usd"])
def test_a_price_of_zero_is_taken_and_said(path: str) -> None:
    """A free device is planned with, and a warning says that it is free."""
    plan = epd_opt.solve(desk(AMOUNTS[path](0)))
    assert plan.document.cost.usd_per_hour == 0.0
    assert set(plan.document.devices) == {"B"}
    assert "B is offered at price 0" in plan.document.warnings


OBJECTIVES = ["cost_per_request", "goodput", {"minimise": "cost_per_request", "rate_multiple": [0.5, 2.0]}]


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
def test_no_objective_plans_what_has_no_price(objective: Any) -> None:
    """Not even where the priced device is scarce: then less is served, or nothing."""
    plan = epd_opt.solve(desk(objective=objective, limits={"usd_per_hour": 100}))
    assert set(plan.document.devices) == {"A"}
    scarce = desk(objective=objective, limits={"usd_per_hour": 100})
    scarce["devices"][0]["stock"] = 1
    scarce = epd_opt.solve(scarce)
    assert set(scarce.document.devices) <= {"A"}
    assert {pool.device for pool in scarce.document.pools} <= {"A"}


def test_nothing_priced_is_infeasible_and_says_so() -> None:
    """The reason is no_price, and there are no pools."""
    document = desk()
    del document["devices"][0]
    del document["workers"][0]
    plan = epd_opt.solve(document)
    assert plan.status == "infeasible"
    assert plan.document.pools == []
    assert {reason.limit for reason in plan.document.infeasibility.reasons} == {"no_price"}


def test_studies_and_explanations_leave_out_what_has_no_price() -> None:
    """Neither a point of a study nor a runner-up uses it."""
    study = epd_opt.sensitivity(desk(), {"workload.classes.chat.rate_per_s": "x0.5:x2:3"})
    assert {pool.device for point in study.document.points for pool in point.pools} == {"A"}
    told = epd_opt.solve(desk()).explain()
    assert told.document.runners_up
    assert "B" not in {pool.device for runner in told.document.runners_up for pool in runner.pools}


def test_owned_units_without_a_price_are_all_there_is_of_them() -> None:
    """Two owned units serve at their running cost; the third unit is a priced one."""
    document = desk()
    document["devices"][1] |= {"owned": 2, "power_w": 500}
    plan = epd_opt.solve(document)
    assert {name: (use.owned, use.bought) for name, use in plan.document.devices.items()} == {"A": (0, 1), "B": (2, 0)}
    assert plan.document.devices["B"].basis == "owned"


@pytest.mark.parametrize("price", [None, {"usd_per_hour": -1}, {"usd_per_hour": "NaN"}], ids=str)
def test_a_plan_whose_price_was_taken_out_fails_its_check(price: Any) -> None:
    """A saved plan cannot be verified once its device has lost its price, or got an impossible one."""
    plain = epd_opt.solve(desk()).to_dict()
    for entry in plain["instance_document"]["devices"]:
        if entry["sku"] == "A":
            entry["price"] = price
    with pytest.raises((VerificationError, InvalidInput)):
        verify(Plan.load(plain))


def test_the_catalogue_gives_a_price_only_where_asked() -> None:
    """`catalog: rent` is the card's median with date and source, among the assumptions; a card without one leaves out."""
    document = desk()
    document["devices"] = [
        {"sku": "H100-SXM", "name": "A", "price": {"catalog": "rent"}},
        {"sku": "Groq-LPU-v1", "name": "B", "price": {"catalog": "rent"}},
    ]
    plan = epd_opt.solve(document).document
    stated = catalog.device("H100-SXM").price
    (row,) = plan.tariffs
    assert (row.device, row.price, row.price_date) == ("A", stated.usd_per_hour, stated.rent_date)
    assert [a.value for a in plan.assumptions if a.text == "A: price"] == [stated.usd_per_hour]
    assert any("B has no rent price in the catalogue and is left out" in warning for warning in plan.warnings)
    assert plan.provenance.prices_dated == f"{stated.rent_date} (A)"


def test_a_price_that_the_catalogue_lacks_is_mended_as_a_whole() -> None:
    """The change that is offered replaces `catalog`, and the instance then has a plan."""
    document = desk({"catalog": "rent"})
    del document["devices"][0]
    del document["workers"][0]
    (mend,) = epd_opt.solve(document).document.infeasibility.mends
    assert (mend.change, mend.to) == ("devices.B.price", {"usd_per_hour": 1})
    assert epd_opt.solve(set_value(document, mend.change, mend.to)).status == "optimal"


@pytest.mark.parametrize(
    ("date", "as_of", "old"),
    [
        ("2025-11-30", "2026-12-01", True),
        ("2025-12-01", "2026-12-01", False),
        ("2025-12", "2026-12-01", False),
        ("2024", "2026-12-01", True),
        ("2025-11-30", "2026-11-30", False),
        ("2024-02-28", "2025-02-28", False),
        ("2027-01-01", "2028-02-29", True),
    ],
)
def test_a_price_more_than_a_year_old_warns(date: str, as_of: str, old: bool) -> None:
    """A month or a year may mean its last day; the day that counts is the one that the instance states."""
    resolved = resolve(epd_opt.read(desk({"usd_per_hour": 1, "date": date}, as_of=as_of)))
    assert any(f"B: its price is dated {date}, more than a year before {as_of}" in w for w in resolved.warnings) == old


def test_without_a_day_the_catalogues_counts() -> None:
    """The clock does not: the same input gives the same plan on every day."""
    resolved = resolve(epd_opt.read(desk({"usd_per_hour": 1, "date": "2019"})))
    assert any(f"before {catalog.as_of()} (the catalogue's day" in warning for warning in resolved.warnings)


def test_an_amount_in_another_currency_needs_a_rate() -> None:
    """Converted at the stated rate, which is listed; without one an error at the amount."""
    euros = {"usd_per_hour": {"EUR": 1.5}}
    with pytest.raises(InvalidInput, match=r"devices\.B\.price\.usd_per_hour\.EUR: no rate is stated for 'EUR'"):
        epd_opt.read(desk(euros))
    plan = epd_opt.solve(desk(euros, currencies={"EUR": {"usd_per_unit": 1.2, "source": "bank"}}))
    assert plan.document.cost.usd_per_hour == pytest.approx(3 * 1.5 * 1.2)
    assert [(a.text, a.value, a.source) for a in plan.document.assumptions] == [("currencies.EUR", 1.2, "bank")]
    assert plan.document.instance_document["devices"][1]["price"]["usd_per_hour"] == {"EUR": 1.5}


@pytest.mark.parametrize(
    "amount", [{"EUR": 1, "KRW": 1}, {}, {"euro": 1}, {"EUR": -1}, {"EUR": math.nan}, {"EUR": None}], ids=str
)
def test_malformed_amounts_are_refused(amount: Any) -> None:
    """One currency, by its code, and a number."""
    rates = {code: {"usd_per_unit": 1, "source": "bank"} for code in ("EUR", "KRW")}
    with pytest.raises(InvalidInput, match=r"devices\.B\.price\.usd_per_hour"):
        epd_opt.read(desk({"usd_per_hour": amount}, currencies=rates))


@pytest.mark.parametrize("rate", [0, -1, math.nan, None, "1.1"])
def test_impossible_rates_are_refused(rate: Any) -> None:
    with pytest.raises(InvalidInput, match=r"currencies\.EUR\.usd_per_unit"):
        epd_opt.read(desk(currencies={"EUR": {"usd_per_unit": rate, "source": "bank"}}))


def test_an_amount_in_two_currencies_is_counted() -> None:
    """One of them is enough, and the complaint says how many were found."""
    rates = {code: {"usd_per_unit": 1.2, "source": "bank"} for code in ("EUR", "GBP")}
    with pytest.raises(InvalidInput, match=r"usd_per_hour: found 2 entries, expected at most 1"):
        epd_opt.read(desk({"usd_per_hour": {"EUR": 1, "GBP": 2}}, currencies=rates))
