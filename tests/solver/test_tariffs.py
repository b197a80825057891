"""Shows tariffs side by side as worked by hand, with what is billed and what is effective apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import epd_opt
from epd_opt.export import export
from epd_opt.export.bill import bill_of_materials
from epd_opt.tariffs import tariff_document, tariff_json_schema, tariffs_text

COST = {
    "life_years": 3,
    "residual": 0.0,
    "cost_of_capital": 0.0,
    "host_share": 0.0,
    "pue": 1.4,
    "electricity_usd_per_kwh": 0.12,
}
PRICES: dict[str, dict[str, Any]] = {
    "bought": {"purchase_usd": 30000},
    "hourly": {"usd_per_hour": 2.0},
    "reserved": {"reserved": {"usd_per_hour": 1.5, "term_years": 2, "upfront_share": 0.5}},
    "spot": {"spot": {"usd_per_hour": 1.0, "interruption_allowance": 0.25}},
}


def shop(*names: str, cost: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Forty requests/s at most, twenty on average, on units of ten each that draw 0.7 kW always."""
    return {
        "schema": "epd-opt/instance/v1",
        "name": "shop",
        "candidates": {"modelled": False},
        "workload": {
            "classes": [
                {
                    "name": "chat",
                    "rate_per_s": 40,
                    "mean_rate_per_s": 20,
                    "text_tokens": 500,
                    "output_tokens": 250,
                }
            ]
        },
        "devices": [
            {"sku": "X", "name": name, "price": PRICES[name], "power_w": 700, "idle_power_w": 700} for name in names
        ],
        "workers": [{"name": "w", "sku": "X", "devices": 1, "stages": ["prefill", "decode"], "max_rate_per_s": 10}],
        "cost": {**COST, **(cost or {})},
        "solver": {"gap": 0.0, "threads": 1},
        **changes,
    }


def row(document: dict[str, Any], name: str) -> Any:
    found = tariff_document(epd_opt.solve(document).document)
    return next(tariff for tariff in found.tariffs if tariff.device == name)


@pytest.mark.parametrize(("residual", "usd_per_hour"), [(0.0, 1.2592), (0.25, 0.9738)])
def test_the_bought_unit_worked_by_hand(residual: float, usd_per_hour: float) -> None:
    """30,000 USD over three years and 0.7 kW at PUE 1.4 and 0.12 USD/kWh, through the whole program."""
    document = shop("bought", cost={"residual": residual})
    plan = epd_opt.solve(document).document
    assert plan.cost.usd_per_hour == pytest.approx(4 * usd_per_hour, abs=2e-4)
    assert plan.cost.usd_per_month == pytest.approx(730 * plan.cost.usd_per_hour, rel=1e-12)
    assert plan.cost.billed_usd_per_hour == pytest.approx(4 * 0.7 * 1.4 * 0.12)
    one = row(document, "bought")
    assert one.usd_per_hour == pytest.approx(usd_per_hour, abs=5e-5)
    assert one.usd_per_month == pytest.approx(730 * one.usd_per_hour, rel=1e-12)
    assert one.billed_usd_per_hour == pytest.approx(0.1176)


def test_a_reservation_is_billed_and_charged_apart() -> None:
    """Half of 1.50 USD/h is billed; the other half, 13,140 USD for two years, costs 10 % a year: 0.8643 USD/h."""
    cost = epd_opt.solve(shop("reserved", cost={"cost_of_capital": 0.1})).document.cost
    upfront = 0.5 * 1.5 * 2 * 8760
    assert cost.upfront_usd == pytest.approx(4 * upfront)
    assert cost.billed_usd_per_hour == pytest.approx(4 * 0.75)
    assert cost.usd_per_hour == pytest.approx(4 * (0.75 + upfront * 0.1 / (1 - 1.1**-2) / 8760))
    assert cost.usd_per_hour == pytest.approx(4 * (0.75 + 0.8643), abs=2e-4)
    assert cost.capex_usd == 0.0
    plan = epd_opt.solve(shop("reserved", cost={"cost_of_capital": 0.1}))
    assert "$52,560 upfront   $3.00/h billed" in str(plan)


def test_the_upfront_part_may_be_an_amount() -> None:
    """An amount equal to the share gives the same cost, for a whole server too; more than the whole term is refused."""
    by_share = shop("reserved", cost={"cost_of_capital": 0.1})
    by_amount = shop("reserved", cost={"cost_of_capital": 0.1})
    by_amount["devices"][0]["price"] = {"reserved": {"usd_per_hour": 1.5, "term_years": 2, "upfront_usd": 13140}}
    a, b = (epd_opt.solve(document).document.cost for document in (by_share, by_amount))
    assert a.usd_per_hour == pytest.approx(b.usd_per_hour, rel=1e-12)
    by_amount["devices"][0]["price"]["reserved"]["upfront_usd"] = 26281
    with pytest.raises(epd_opt.InvalidInput, match="expected at most the 26,280 USD of the whole term"):
        epd_opt.solve(by_amount)


def test_fewer_hours_of_service_carry_the_whole_reservation() -> None:
    """A reservation is paid for all 8760 hours of a year, whatever the hours of service."""
    whole, half = (
        epd_opt.solve(shop("reserved", cost={"hours_per_year": hours})).document.cost.usd_per_hour for hours in (8760, 4380)
    )
    assert half == pytest.approx(2 * whole)


@pytest.mark.parametrize(("rate", "held"), [(40, 5), (41, 7), (80, 10), (9, 2)])
def test_spot_units_are_held_for_interruptions(rate: float, held: int) -> None:
    """A quarter more than are in use, rounded up to whole units: 5 for 4, 7 for 5 (6.25), 10 for 8, 2 for 1 (1.25)."""
    document = shop("spot")
    document["workload"]["classes"][0] |= {"rate_per_s": rate, "mean_rate_per_s": rate}
    plan = epd_opt.solve(document).document
    use = plan.devices["spot"]
    assert (use.bought, plan.cost.usd_per_hour) == (held, float(held))
    assert [(a.text, a.value) for a in plan.assumptions] == [("spot: interruption allowance", 0.25)]
    lines = bill_of_materials(plan)
    assert sum(line.quantity for line in lines if line.role == "spare") == held - use.used


def test_the_cheapest_tariff_wins_with_its_allowance() -> None:
    """One spot unit takes two, which is dearer than one at 1.90 USD/h by the hour; of four units spot is cheaper."""
    prices = shop("hourly", "spot")
    prices["devices"][0]["price"] = {"usd_per_hour": 1.9}
    for rate, chosen in ((9, "hourly"), (40, "spot")):
        prices["workload"]["classes"][0] |= {"rate_per_s": rate, "mean_rate_per_s": rate}
        assert list(epd_opt.solve(prices).document.devices) == [chosen]


def test_stock_and_limits_count_the_units_held() -> None:
    """Four spot units in use need a stock of five, five devices of the limit and the power of five."""
    for part, enough, short in (("stock", 5, 4), ("devices", 5, 4), ("power_kw", 3.5, 3.4)):
        for value, status in ((enough, "optimal"), (short, "infeasible")):
            document = shop("spot")
            if part == "stock":
                document["devices"][0]["stock"] = value
            else:
                document["limits"] = {part: value}
            assert epd_opt.solve(document, mends=False).status == status, (part, value)


def test_units_of_service_have_their_denominators() -> None:
    """Twenty requests/s of 500 and 250 tokens: 72,000 requests, 36 and 18 million tokens an hour; no images."""
    plan = epd_opt.solve(shop("hourly")).document
    costs = {cost.unit: cost for cost in plan.unit_costs}
    assert plan.cost.usd_per_hour == 8.0
    assert costs["hour"].usd == 8.0
    assert costs["month"].usd == pytest.approx(5840)
    assert costs["request"].usd == pytest.approx(8 / 72000)
    assert costs["request"].usd == pytest.approx(plan.cost.usd_per_request)
    assert costs["million_input_tokens"].usd == pytest.approx(8 / 36)
    assert costs["million_output_tokens"].usd == pytest.approx(8 / 18)
    assert (costs["image"].usd, costs["image"].per_hour) == (None, 0.0)
    assert all(cost.denominator for cost in plan.unit_costs)


def test_every_tariff_of_a_sku_prices_the_same_fleet() -> None:
    """Four units at each tariff: bought 4.10, by the hour 8, reserved 6, spot 5 USD/h; each over the same requests."""
    plan = epd_opt.solve(shop(*PRICES)).document
    table = {tariff.device: tariff for tariff in plan.tariffs}
    hourly = {"bought": 4 * (30000 / 26280 + 0.1176), "hourly": 8.0, "reserved": 6.0, "spot": 5.0}
    assert plan.cost.usd_per_hour == pytest.approx(min(hourly.values()))
    for name, expected in hourly.items():
        assert table[name].fleet_usd_per_hour == pytest.approx(expected), name
        assert table[name].usd_per_request == pytest.approx(expected / 72000)
        assert table[name].usd_per_million_output_tokens == pytest.approx(expected / 18)
        assert table[name].usd_per_image is None


def test_space_is_charged_by_nameplate_power() -> None:
    """195 USD per kW and month for 0.7 kW is 0.187 USD/h, for bought and owned units, and billed."""
    space = 0.7 * 195 * 12 / 8760
    without, charged = (epd_opt.solve(shop("bought", cost=cost)).document.cost for cost in ({}, SPACE))
    assert charged.usd_per_hour - without.usd_per_hour == pytest.approx(4 * space)
    assert charged.billed_usd_per_hour - without.billed_usd_per_hour == pytest.approx(4 * space)
    owned = shop("bought", cost=SPACE)
    owned["devices"][0] |= {"owned": 4}
    assert epd_opt.solve(owned).document.cost.usd_per_hour == pytest.approx(4 * (space + 0.1176))


SPACE = {"colocation_usd_per_kw_month": 195}


@pytest.mark.parametrize("name", PRICES)
def test_the_bill_adds_up_under_every_tariff(name: str) -> None:
    """Effective, billed and upfront amounts of the lines are the plan's, and the category is FOCUS's."""
    plan = epd_opt.solve(shop(name, cost={**SPACE, "cost_of_capital": 0.1, "host_share": 0.3})).document
    lines = bill_of_materials(plan)
    assert sum(line.hourly for line in lines) == pytest.approx(plan.cost.usd_per_hour)
    assert sum(line.billed for line in lines) == pytest.approx(plan.cost.billed_usd_per_hour)
    assert sum(line.upfront for line in lines) == pytest.approx(plan.cost.upfront_usd)
    assert sum(line.capex for line in lines) == pytest.approx(plan.cost.capex_usd)
    category = {"bought": "", "hourly": "Standard", "reserved": "Committed", "spot": "Dynamic"}[name]
    header, first, *_ = str(export(plan, "bom-csv").content).splitlines()
    assert first.split(",")[header.split(",").index("PricingCategory")] == category


def test_the_command_tells_plans_and_instances(tmp_path: Path, run: Any) -> None:
    """Of a plan with the costs of its fleet, of an instance without; JSON keeps its schema; unpriced entries are named."""
    instance, plan = tmp_path / "shop.json", tmp_path / "plan.json"
    document = shop(*PRICES)
    document["devices"].append({"sku": "Y"})
    instance.write_text(json.dumps(document))
    epd_opt.solve(document).save(plan)
    for source, units in ((instance, 0), (plan, 4)):
        code, out, _ = run("tariffs", source, "--json")
        found = json.loads(out)
        jsonschema.validate(found, tariff_json_schema())
        assert code == 0
        assert {tariff["fleet_units"] for tariff in found["tariffs"]} == {units}
        assert found["unpriced"] == ["Y"]
        text = run("tariffs", source)[1]
        assert ("divided by" in text) == bool(units)
        assert "without a price: Y" in text


def test_the_tables_fit_a_page() -> None:
    """No line is wider than asked."""
    text = tariffs_text(tariff_document(epd_opt.solve(shop(*PRICES)).document))
    assert max(map(len, text.splitlines())) <= 100
    assert "$/M output" in text


def test_unknown_counts_keep_apart_from_their_words() -> None:
    """Without token counts the text names what is missing instead of gluing a dash to it."""
    document = tariff_document(epd_opt.solve(shop("hourly")).document)
    costs = [cost.model_copy(update={"per_hour": None, "usd": None}) for cost in document.unit_costs]
    assert "not stated: images of all requests" in tariffs_text(document.model_copy(update={"unit_costs": costs}))
