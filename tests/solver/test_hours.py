"""Shows that demand by the hour is planned with commitments and units by the hour in one: by hand, by enumeration, and as
every way to show such a plan tells it."""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path
from typing import Any

import pytest

import epd_opt
from epd_opt import InvalidInput, Plan, UsageError, VerificationError, verify
from epd_opt.cli.output import write_text
from epd_opt.export import EXPORTERS, export
from epd_opt.export.bill import bill_of_materials
from epd_opt.hours import hours_of
from epd_opt.instance import Instance
from epd_opt.render import plan_text
from epd_opt.report import report_html
from epd_opt.scenarios import cases
from epd_opt.tariffs import tariff_document, tariffs_text

OFFICE = [0.2] * 8 + [0.6, 1, 1, 1, 0.8, 1, 1, 1, 1, 0.6] + [0.4] * 4 + [0.2] * 2
PRICES: dict[str, dict[str, Any]] = {
    "bought": {"purchase_usd": 40000},
    "on-demand": {"usd_per_hour": 2},
    "reserved": {"reserved": {"usd_per_hour": 1.2, "term_years": 1, "upfront_share": 0.5}},
}


def shop(profile: Any = OFFICE, prices: dict[str, dict[str, Any]] | None = None, **changes: Any) -> dict[str, Any]:
    """Up to forty requests/s on units of four each."""
    request = {"name": "chat", "rate_per_s": 40, "hourly": profile, "text_tokens": 500, "output_tokens": 250}
    return {
        "schema": "epd-opt/instance/v1",
        "name": "shop",
        "candidates": {"modelled": False},
        "workload": {"classes": [request]},
        "devices": [
            {"sku": "X", "name": name, "price": price, "stock": 20, "power_w": 700, "idle_power_w": 100}
            for name, price in (prices or PRICES).items()
        ],
        "workers": [{"name": "w", "sku": "X", "devices": 1, "stages": ["prefill", "decode"], "max_rate_per_s": 4}],
        "cost": {"cost_of_capital": 0.1},
        "solver": {"gap": 0.0, "threads": 1},
        **changes,
    }


@pytest.fixture(scope="module")
def plan() -> Plan:
    return epd_opt.solve(shop())


def test_the_day_worked_by_hand(plan: Plan) -> None:
    """Hours need 2, 4, 6, 8 and 10 units. A reserved unit costs 1.26 USD/h, so it pays from 15.1 hours a day on: the first
    two are in use all day, the third 14 hours; beside two, 3.25 units at 2 USD/h are hired on average."""
    document = plan.document
    assert document.status == "optimal"
    assert document.cost.usd_per_hour == pytest.approx(2 * 1.26 + 3.25 * 2)
    assert document.cost.usd_per_month == pytest.approx(730 * document.cost.usd_per_hour)
    assert document.cost.usd_per_request == pytest.approx(9.02 / (3600 * 40 * sum(OFFICE) / 24))
    assert document.cost.billed_usd_per_hour == pytest.approx(2 * 0.6 + 3.25 * 2)
    assert document.cost.upfront_usd == pytest.approx(2 * 0.5 * 1.2 * 8760)
    (committed,) = document.hours.committed
    assert (committed.device, committed.basis, committed.units) == ("reserved", "reserved", 2)
    assert committed.idle_unit_usd_per_hour == pytest.approx(1.26)
    hired = [one.hired.get("on-demand", 0) for one in document.hours.hours]
    assert hired == [round(10 * factor) - 2 for factor in OFFICE]
    assert sum(one.usd_per_hour for one in document.hours.hours) / 24 == pytest.approx(document.cost.usd_per_hour)


def test_idle_commitment_has_its_price() -> None:
    """Where a reservation is cheap enough for the peak, the hours of units that run nothing are counted and priced."""
    prices = {**PRICES, "reserved": {"reserved": {"usd_per_hour": 0.5, "term_years": 1}}}
    (committed,) = epd_opt.solve(shop(prices=prices)).document.hours.committed
    idle = sum(10 - round(10 * factor) for factor in OFFICE)
    assert committed.units == 10
    assert committed.idle_unit_hours_per_day == pytest.approx(idle)
    assert committed.idle_usd_per_day == pytest.approx(idle * 0.5)


def cheapest(document: dict[str, Any]) -> float:
    """Least mean cost per hour, over every commitment and every way to hire beside it, of a single class and worker."""
    resolved = epd_opt.resolve.resolve(Instance(**document))
    offers = {offer.name: offer for offer in resolved.offers}
    profile = document["workload"]["classes"][0]["hourly"]
    rate = document["workload"]["classes"][0]["rate_per_s"]
    held = [name for name, offer in offers.items() if offer.basis in ("reserved", "purchase")]
    hired = [name for name in offers if name not in held]
    needs = [math.ceil(rate * factor / 4 - 1e-9) for factor in profile]
    best = math.inf
    for lots in itertools.product(*(range(-(-max(needs) // offers[name].lot) + 1) for name in held)):
        units = [count * offers[name].lot for name, count in zip(held, lots, strict=True)]
        if any(count > (offers[name].stock or 0) for name, count in zip(held, units, strict=True)):
            continue
        fixed = sum(count * offers[name].usd_per_hour for name, count in zip(held, units, strict=True))
        standing = sum(count * offers[name].used_usd_per_hour for name, count in zip(held, units, strict=True))
        cost = fixed + standing
        for need in needs:
            cost += _burst([offers[name] for name in hired], max(0, need - sum(units))) / 24
        best = min(best, cost)
    return best


def _burst(offers: list[Any], missing: int) -> float:
    """The least that so many units cost for an hour."""
    best = math.inf if missing else 0.0
    for used in itertools.product(range(missing + 1), repeat=len(offers)):
        if sum(used) != missing:
            continue
        lots = [
            math.ceil(count * (1 + o.interruption_allowance) / o.lot - 1e-9) for o, count in zip(offers, used, strict=True)
        ]
        if all(count * o.lot <= o.stock for o, count in zip(offers, lots, strict=True)):
            best = min(best, sum(count * o.lot * o.usd_per_hour for o, count in zip(offers, lots, strict=True)))
    return best


def drawn(seed: int) -> dict[str, Any]:
    """A day of up to five levels, one to three tariffs with lots, scarce stock and interruptions."""
    dice = random.Random(seed)
    levels = [dice.choice([0.0, 0.15, 0.3, 0.55, 0.8, 1.0]) for _ in range(4)] + [1.0]
    prices: dict[str, dict[str, Any]] = {
        "hourly": {"usd_per_hour": dice.choice([1.0, 1.7, 2.4]), "pack": dice.choice([1, 1, 2])},
        "term": {
            "reserved": {"usd_per_hour": dice.choice([0.6, 0.9]), "term_years": 2, "upfront_share": dice.choice([0, 1])},
            "pack": dice.choice([1, 1, 3]),
        },
        "spot": {"spot": {"usd_per_hour": dice.choice([0.8, 1.2]), "interruption_allowance": dice.choice([0.2, 0.5])}},
        "bought": {"purchase_usd": dice.choice([15000, 30000])},
    }
    names = ["hourly", *dice.sample(["term", "spot", "bought"], 2)]
    document = shop([dice.choice(levels) for _ in range(23)] + [1.0], {name: prices[name] for name in names})
    document["workload"]["classes"][0]["rate_per_s"] = dice.choice([11, 20, 27])
    for entry in document["devices"]:
        entry["idle_power_w"] = 700
        entry["stock"] = 20 if entry["name"] == "hourly" else dice.choice([2, 4, 20])
    return document


SEEDS = range(8)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_optimum_is_that_of_enumeration(seed: int) -> None:
    """Over random days and tariffs, whatever is committed, hired, held in lots or for interruptions."""
    document = drawn(seed)
    found = epd_opt.solve(document).document
    assert found.status == "optimal"
    assert found.cost.usd_per_hour == pytest.approx(cheapest(document), rel=1e-6)


@pytest.mark.parametrize("seed", [1, 3, 6, 7])
def test_no_single_tariff_is_cheaper(seed: int) -> None:
    """The plan costs no more than the best one with any of its tariffs alone, and says what those cost."""
    document = drawn(seed)
    whole = epd_opt.solve(document).document
    told = {single.basis: single.usd_per_hour for single in whole.hours.single_tariffs}
    assert len(told) == 3
    for basis, entry in zip(("rent", None, None), document["devices"], strict=True):
        alone = epd_opt.solve({**document, "devices": [entry]}, mends=False).document
        if alone.cost is not None:
            assert whole.cost.usd_per_hour <= alone.cost.usd_per_hour * (1 + 1e-9)
            assert any(usd == pytest.approx(alone.cost.usd_per_hour, rel=1e-6) for usd in told.values() if usd is not None)
        elif basis is not None:
            assert told[basis] is None


def test_a_flat_day_is_the_plain_plan() -> None:
    """With the same factor at all hours the plan costs what it does without hours."""
    flat, plain = shop([1] * 24), shop(None)
    del plain["workload"]["classes"][0]["hourly"]
    assert epd_opt.solve(flat).document.cost.usd_per_hour == pytest.approx(
        epd_opt.solve(plain).document.cost.usd_per_hour, rel=1e-9
    )


def test_hours_without_requests_leave_the_commitment_idle() -> None:
    """A shop that opens for twelve hours: nothing is hired at night, and all that is committed stands idle."""
    found = epd_opt.solve(shop([0] * 12 + [1] * 12, {**PRICES, "on-demand": {"usd_per_hour": 9}})).document
    night, noon = found.hours.hours[0], found.hours.hours[12]
    (committed,) = found.hours.committed
    assert (night.hired, night.idle) == ({}, {committed.device: committed.units})
    assert not any("rate 0" in text for text in [*found.warnings, *found.scenarios[0].warnings])
    assert noon.idle == {committed.device: 0}
    assert night.usd_per_hour == pytest.approx(committed.units * committed.idle_unit_usd_per_hour)


def test_a_stated_mean_counts_in_cost_and_energy_and_not_in_the_fleet() -> None:
    """Factors for the busiest part of each hour, of which two thirds come on average: the same fleet, a request half as dear
    again; a class without a profile keeps its own mean."""
    stated, document = 14.0, shop()
    document["workload"]["classes"][0]["mean_rate_per_s"] = stated
    found = epd_opt.solve(document).document
    assert found.cost.usd_per_hour == pytest.approx(9.02)
    assert found.cost.usd_per_request == pytest.approx(9.02 / (3600 * stated))
    groups = {group.name: group.instance.workload.classes[0] for group in cases(Instance(**document))}
    noon = groups["09-12, 13-17"]
    assert (noon.rate_per_s, noon.mean_rate_per_s) == (40, pytest.approx(40 * stated / 21))
    document["workload"]["classes"].append({"name": "jobs", "rate_per_s": 4, "mean_rate_per_s": 1})
    for group in cases(Instance(**document)):
        assert group.instance.workload.classes[1].mean_rate_per_s == pytest.approx(1)


def test_two_profiles_make_groups_of_equal_hours() -> None:
    """Hours are together where both classes have equal factors; the cost counts each group for its hours."""
    document = shop("day", workload={"classes": []})
    common = {"rate_per_s": 20, "text_tokens": 500, "output_tokens": 250}
    document["workload"] = {
        "profiles": {"day": [0.5] * 12 + [1] * 12},
        "classes": [
            {**common, "name": "chat", "hourly": "day"},
            {**common, "name": "mail", "hourly": [1] * 18 + [0.5] * 6},
            {**common, "name": "jobs"},
        ],
    }
    found = epd_opt.solve(document).document
    assert [result.name for result in found.scenarios] == ["00-12", "12-18", "18-24"]
    assert [result.classes["jobs"].rate_per_s for result in found.scenarios] == [20, 20, 20]
    assert [result.classes["mail"].rate_per_s for result in found.scenarios] == [20, 20, 10]
    weights = [0.5, 0.25, 0.25]
    expected = sum(w * result.usd_per_hour for w, result in zip(weights, found.scenarios, strict=True))
    assert found.cost.usd_per_hour == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(5))
def test_rounding_up_covers_every_hour(seed: int) -> None:
    """With a step, groups are planned for at no less than any of their hours and less than a step above; means are kept."""
    dice = random.Random(seed)
    profile = [round(dice.random(), 3) for _ in range(23)] + [1.0]
    document = shop(profile)
    document["workload"]["hourly_step"] = 0.25
    groups = hours_of(Instance(**document))
    assert sorted(hour for group in groups for hour in group.hours) == list(range(24))
    assert len(groups) <= 5
    for group in groups:
        own = [profile[hour] for hour in group.hours]
        assert group.most["chat"] == max(own)
        assert max(own) - min(own) < 0.25
        assert group.mean["chat"] == pytest.approx(sum(own) / len(own))


def test_limits_hold_at_every_hour() -> None:
    """Ten units are needed at noon; with room for nine there is no plan, with room for ten the limit binds then alone."""
    assert epd_opt.solve(shop(limits={"devices": 10})).status == "optimal"
    none = epd_opt.solve(shop(limits={"devices": 9})).document
    assert none.status == "infeasible"
    assert any(reason.limit == "devices" for reason in none.infeasibility.reasons)
    assert [(mend.change, mend.to) for mend in none.infeasibility.mends] == [("limits.devices", 10)]
    assert none.infeasibility.mends[0].usd_per_hour == pytest.approx(9.02)
    tight = epd_opt.solve(shop(limits={"usd_per_hour": 17})).document
    assert max(one.usd_per_hour for one in tight.hours.hours) <= 17
    assert tight.cost.usd_per_hour > 9.02


def two_kinds(**changes: Any) -> dict[str, Any]:
    """Reserved units of one SKU, and units by the hour of another that the peak alone would hire."""
    document = shop([0.5] * 22 + [1.0] * 2, **changes)
    document["devices"] = [
        {"sku": "X", "name": "reserved", "price": {"reserved": {"usd_per_hour": 1.0, "term_years": 1}}, "stock": 20},
        {"sku": "X", "name": "on-demand", "price": {"usd_per_hour": 4.0}, "stock": 20},
        {"sku": "Y", "price": {"usd_per_hour": 3.0}, "stock": 20},
        {"sku": "Z", "price": {"usd_per_hour": 9.0}, "stock": 20},
    ]
    document["workers"] = [
        {"name": f"on {sku}", "sku": sku, "devices": 1, "stages": ["prefill", "decode"], "max_rate_per_s": 4}
        for sku in "XYZ"
    ]
    return document


def test_skus_are_counted_over_the_day() -> None:
    """Five units of X stand and the peak hires five of Y; with one SKU allowed it hires X, which is dearer by the hour."""
    free, one = (epd_opt.solve(two_kinds(limits=limits)).document for limits in ({}, {"skus": 1}))
    assert {pool.sku for pool in free.pools} == {"X", "Y"}
    assert {pool.sku for pool in one.pools} == {"X"}
    assert free.cost.usd_per_hour == pytest.approx(5 + 5 * 3 * 2 / 24)
    assert one.cost.usd_per_hour == pytest.approx(5 + 5 * 4 * 2 / 24)


def test_what_is_required_serves_at_every_hour_with_requests() -> None:
    """A dear device takes its share by day; at night, when nothing is asked for, it is not hired."""
    document = two_kinds(limits={"require": ["Z"]})
    document["workload"]["classes"][0]["hourly"] = [0] * 12 + [1] * 12
    found = epd_opt.solve(document).document
    night, day = found.scenarios
    assert not night.pools
    assert any(pool.device == "Z" and pool.serves["chat"] > 0 for pool in day.pools)


def test_spares_stand_in_every_pool_that_runs() -> None:
    """One spare beside the reserved replicas all day, and one beside the hired ones while some are hired."""
    found = epd_opt.solve(shop(redundancy={"spare_replicas": 1})).document
    for result in found.scenarios:
        assert result.pools
        assert all(pool.spare_replicas == 1 for pool in result.pools)
    verify(Plan(found))


def test_owned_units_come_before_hired_ones() -> None:
    """Four owned units of the entry by the hour run at their energy; only what is beyond them is rented."""
    document = shop()
    document["devices"] = [{**entry, "owned": 4} for entry in document["devices"] if entry["name"] == "on-demand"]
    found = epd_opt.solve(document).document
    energy = document_energy(found)
    rented = [max(0, round(10 * factor) - 4) for factor in OFFICE]
    owned = [min(4, round(10 * factor)) for factor in OFFICE]
    assert found.cost.usd_per_hour == pytest.approx((2 * sum(rented) + energy * sum(owned)) / 24)
    assert [one.hired for one in found.hours.hours] == [{"on-demand": count} if count else {} for count in rented]


def document_energy(found: Any) -> float:
    """What an owned unit at 0.7 kW costs per hour under the assumptions that the plan lists."""
    told = {assumption.text: assumption.value for assumption in found.assumptions}
    return 0.7 * float(told["cost.pue"]) * float(told["cost.electricity_usd_per_kwh"])


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (lambda plain: plain["hours"]["hours"].pop(), "the hours of the day"),
        (lambda plain: plain["hours"]["hours"][9]["hired"].update({"on-demand": 7}), "hour 9 does not hire"),
        (lambda plain: plain["hours"]["hours"][9]["idle"].update({"reserved": 1}), "hour 9 does not hire"),
        (lambda plain: plain["hours"]["hours"][9].update(usd_per_hour=1.0), "hour 9 costs"),
        (lambda plain: plain["hours"]["committed"][0].update(units=3), "3 units of reserved"),
        (lambda plain: plain["hours"]["committed"][0].update(idle_usd_per_day=3.0), "does not follow from their hours"),
        (lambda plain: plain.update(hours=None), "nothing is said of hours"),
        (lambda plain: plain["scenarios"][0]["devices"]["reserved"].update(bought=1), "holds other units of reserved"),
        (lambda plain: plain["cost"].update(usd_per_hour=8.0), "the cost of the plan"),
        (lambda plain: plain["scenarios"][2]["devices"]["on-demand"].update(bought=9), "on-demand"),
    ],
)
def test_a_plan_that_was_tampered_with_fails_its_check(plan: Plan, change: Any, broken: str) -> None:
    """What is said of hours, commitments and costs is worked out again."""
    plain = plan.to_dict()
    verify(Plan.load(plain))
    change(plain)
    with pytest.raises(VerificationError, match=broken):
        verify(Plan.load(plain))


def test_solving_the_plans_own_instance_gives_the_plan(plan: Plan) -> None:
    """Everything but the time it took."""
    again = epd_opt.solve(plan.document.instance_document).to_dict()
    first = plan.to_dict()
    for plain in (again, first):
        plain["provenance"]["seconds"] = 0.0
    assert again == first


def test_the_bill_is_one_for_the_day(plan: Plan) -> None:
    """Hired units stand with their mean; the lines add up to the plan's cost, what is billed and what is paid upfront."""
    lines = bill_of_materials(plan.document)
    cost = plan.document.cost
    assert sum(line.hourly for line in lines) == pytest.approx(cost.usd_per_hour)
    assert sum(line.billed for line in lines) == pytest.approx(cost.billed_usd_per_hour)
    assert sum(line.upfront for line in lines) == pytest.approx(cost.upfront_usd)
    assert {(line.basis, line.quantity) for line in lines} == {("rent", 3.25), ("reserved", 2.0)}
    assert "8 at most" in next(line.reason for line in lines if line.basis == "rent")


def test_units_of_service_are_those_of_the_mean_hour(plan: Plan) -> None:
    """21 requests/s of 500 and 250 tokens on average over the day; the tariffs of a plan by the hour say so too."""
    costs = {cost.unit: cost for cost in plan.document.unit_costs}
    mean = 40 * sum(OFFICE) / 24
    assert costs["request"].usd == pytest.approx(9.02 / (3600 * mean))
    assert costs["million_output_tokens"].per_hour == pytest.approx(3600 * mean * 250 / 1e6)
    assert "per million output tokens" in tariffs_text(tariff_document(plan.document))


def test_the_text_tells_hours_commitment_and_single_tariffs(plan: Plan) -> None:
    """Each group of hours with what is hired, what an idle hour costs, and what one way to pay would cost."""
    text = plan_text(plan.document)
    assert "09-12, 13-17" in text
    assert "8 on-demand" in text
    assert "Committed to 2 units of reserved (reserved): an hour of one that runs nothing costs $1.26" in text
    assert "With units by the hour alone: $10.50/h over the day." in text


def test_what_takes_one_workload_refuses_and_takes_some_hours(plan: Plan, tmp_path: Path) -> None:
    """Deployments and simulations of a whole day are refused with the way out; of some hours they work."""
    bills = {"bom-csv", "xlsx"}
    for to in EXPORTERS:
        if to not in bills:
            with pytest.raises(UsageError, match=r"demand goes by the hour .*--scenario HOURS"):
                export(plan.document, to)
    with pytest.raises(UsageError, match="demand goes by the hour"):
        epd_opt.simulate(plan)
    for refused in (
        lambda: epd_opt.sensitivity(shop(), {"workload.classes.chat.rate_per_s": "x0.5:x2:3"}),
        lambda: plan.explain(),
    ):
        with pytest.raises(UsageError):
            refused()
    noon = plan.in_scenario("09-12, 13-17")
    assert noon.document.cost.usd_per_hour == pytest.approx(2 * 1.26 + 16)
    assert sum(pool.devices for pool in noon.document.pools) == 10
    verify(noon)
    write_text(str(tmp_path / "noon.html"), report_html(noon.document))


def broken(**changes: Any) -> dict[str, Any]:
    document = shop(**{key: value for key, value in changes.items() if key == "profile"})
    request = document["workload"]["classes"][0]
    request |= changes.get("request", {})
    document["workload"] |= changes.get("workload", {})
    return {**document, **changes.get("instance", {})}


@pytest.mark.parametrize(
    ("changes", "fragment"),
    [
        ({"profile": [1] * 23}, r"hourly: found 23 numbers, expected 24"),
        ({"profile": [0] * 24}, r"hourly: all hours are 0"),
        ({"profile": [1] * 23 + [-1]}, r"hourly\[23\]"),
        ({"profile": [1] * 23 + [math.nan]}, r"hourly\[23\]"),
        ({"profile": "ofice", "workload": {"profiles": {"office": OFFICE}}}, r"no profile is called 'ofice'.*office"),
        ({"profile": "office"}, r"no profile is called 'office'"),
        (
            {"request": {"mean_rate_per_s": 21.1}},
            r"mean_rate_per_s: found 21\.1, expected at most 21, the mean",
        ),
        ({"instance": {"objective": "goodput", "limits": {"devices": 9}}}, r"objective: demand by the hour"),
        ({"instance": {"limits": {"racks": 1, "rack_kw": 9}}}, r"limits\.racks: with demand by the hour"),
        ({"instance": {"scenarios": [{"name": "a"}]}}, r"scenarios and demand by the hour are both given"),
        ({"workload": {"hourly_step": 1.5}}, r"hourly_step"),
        ({"profile": None, "workload": {"hourly_step": 0.5}}, r"hourly_step: no class has hourly"),
    ],
)
def test_malformed_days_are_refused(changes: dict[str, Any], fragment: str) -> None:
    with pytest.raises(InvalidInput, match=fragment):
        epd_opt.read(broken(**changes))


def test_whole_servers_are_reserved_and_hired() -> None:
    """Replicas of three devices in servers of eight: two to a server, so noon's six need three servers and the night's one
    needs one, whoever pays; counted by units, three more would fit."""
    document = shop([0.1] * 12 + [1.0] * 12)
    document["devices"] = [
        {"sku": "H100-SXM", "name": name, "price": {**price, "per": "server"}, "stock": 80}
        for name, price in (
            ("reserved", {"reserved": {"usd_per_hour": 9.0, "term_years": 1}}),
            ("hourly", {"usd_per_hour": 16.0}),
        )
    ]
    document["workers"] = [
        {"name": "w", "sku": "H100-SXM", "devices": 3, "stages": ["prefill", "decode"], "max_rate_per_s": 7}
    ]
    found = epd_opt.solve(document).document
    night, noon = found.hours.hours[0], found.hours.hours[12]
    assert found.hours.committed[0].units == 8
    assert (night.hired, noon.hired) == ({}, {"hourly": 16})
    assert found.cost.usd_per_hour == pytest.approx(9.0 + 32.0 / 2)


@pytest.mark.parametrize("seed", [101, 105])
def test_hours_planned_one_by_one_come_to_the_optimum(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large days are planned hour by hour, each paying shares of the fleet: the fleet and the bound that come of it meet at
    the optimum of enumeration."""
    monkeypatch.setattr("epd_opt.robust.search.FEW", 0)
    document = drawn(seed)
    document["solver"]["gap"] = 1e-3
    found = epd_opt.solve(document).document
    assert found.status == "optimal"
    assert found.robust.bound_usd_per_hour <= cheapest(document) * (1 + 1e-9)
    assert found.cost.usd_per_hour == pytest.approx(cheapest(document), rel=1e-3)
