"""Comparisons say what moved between plans, and their parts add up."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest

import epd_opt
from epd_opt.comparison import compare, comparison_json_schema
from epd_opt.comparison.differences import ABSENT, differences
from epd_opt.comparison.matching import matched
from epd_opt.comparison.view import comparison_text
from epd_opt.document import PlanDocument

DESK: dict[str, Any] = {
    "schema": "epd-opt/instance/v1",
    "name": "desk",
    "candidates": {"modelled": False},
    "workload": {
        "classes": [
            {"name": "chat", "rate_per_s": 9, "slo": {"ttft_ms": 900}},
            {"name": "album", "rate_per_s": 2, "images": {"count": 4, "tokens": 256}},
        ]
    },
    "devices": [
        {"sku": "A", "price": {"usd_per_hour": 2}, "stock": 40},
        {"sku": "B", "price": {"usd_per_hour": 9}, "stock": 9},
    ],
    "workers": [
        {"name": "w", "sku": "A", "devices": 1, "stages": ["encode", "prefill", "decode"], "max_rate_per_s": 4},
        {"name": "v", "sku": "B", "devices": 1, "stages": ["encode", "prefill", "decode"], "max_rate_per_s": 12},
    ],
}


def plan(*overrides: str) -> PlanDocument:
    """The desk's plan with other values."""
    return epd_opt.solve(epd_opt.read(DESK, overrides=overrides)).document


@pytest.fixture(scope="module")
def plans() -> list[PlanDocument]:
    """As it stands, with twice the chat and a dearer A, and with A so dear that B is bought."""
    dearer = plan("workload.classes.chat.rate_per_s=18", "devices.A.price.usd_per_hour=2.5")
    return [plan(), dearer, plan("devices.A.price.usd_per_hour=7", "devices.B.stock=20", "limits.devices=5")]


@pytest.fixture(scope="module")
def found(plans):
    """All three side by side."""
    return compare(plans, ["old/plan.json", "new/plan.json", "other.json"])


def test_inputs_that_differ_are_listed_by_path_and_kind(found) -> None:
    """A value that is absent in a plan is null."""
    assert [(one.path, one.kind, one.values) for one in found.inputs] == [
        ("devices.A.price.usd_per_hour", "price", [2, 2.5, 7]),
        ("devices.B.stock", "offer", [9, 9, 20]),
        ("limits.devices", "limit", [None, None, 5]),
        ("workload.classes.chat.rate_per_s", "workload", [9, 18, 9]),
    ]


def test_differences_in_cost_fall_to_devices_without_rest(plans, found) -> None:
    """Three units of A at 2 become five at 2.5: two more at 2, and 0.5 more for each of five."""
    assert [document.cost.usd_per_hour for document in plans] == [6.0, 12.5, 9.0]
    first, second = found.differences
    assert first.usd_per_hour == 6.5
    assert [(e.name, e.units, e.units_usd_per_hour, e.unit_cost_usd_per_hour) for e in first.devices] == [("A", 2, 4.0, 2.5)]
    assert [(e.name, e.units, e.units_usd_per_hour, e.unit_cost_usd_per_hour) for e in second.devices] == [
        ("A", -3, -6.0, 0.0),
        ("B", 1, 9.0, 0.0),
    ]
    for one in (first, second):
        assert sum(e.units_usd_per_hour + e.unit_cost_usd_per_hour for e in one.devices) == pytest.approx(one.usd_per_hour)
        assert one.order_proved
    assert first.per_request_share == pytest.approx((12.5 / 20) / (6 / 11) - 1)


def test_pools_and_classes_stand_side_by_side(found) -> None:
    """Pools of another SKU are other rows; a class has its figures in every plan."""
    assert [(row.sku, [pool and pool.replicas for pool in row.pools]) for row in found.pools] == [
        ("A", [3, 5, None]),
        ("B", [None, None, 1]),
    ]
    chat = next(row for row in found.classes if row.name == "chat")
    assert [facts.rate_per_s for facts in chat.plans] == [9, 18, 9]
    assert [row.used for row in found.devices] == [[3, 5, None], [None, None, 1]]


def test_plans_of_the_same_instance_differ_in_nothing(plans) -> None:
    """Whatever the order in which classes, devices and keys stand."""
    turned = copy.deepcopy(DESK)
    for entries in (turned["workload"]["classes"], turned["devices"], turned["workers"]):
        entries.reverse()
    again = epd_opt.solve(dict(reversed(turned.items()))).document
    same = compare([plans[0], again], ["a", "b"])
    assert same.inputs == same.cards == []
    assert same.differences[0].usd_per_hour == 0.0
    assert same.differences[0].devices == []
    assert "costs the same" in comparison_text(same)
    assert "inputs that differ: none" in comparison_text(same)


def test_classes_and_devices_that_come_and_go_are_reported_whole(plans) -> None:
    """One line each, not one per key."""
    other = copy.deepcopy(DESK)
    other["workload"]["classes"][1]["name"] = "photo"
    del other["devices"][1], other["workers"][1]
    changed = compare([plans[0], epd_opt.solve(other).document], ["a", "b"])
    assert [(one.path, [value is None for value in one.values]) for one in changed.inputs] == [
        ("devices.B", [False, True]),
        ("workers.v", [False, True]),
        ("workload.classes.album", [False, True]),
        ("workload.classes.photo", [True, False]),
    ]
    assert [[facts is None for facts in row.plans] for row in changed.classes] == [
        [False, True],
        [False, False],
        [True, False],
    ]


def test_a_difference_within_the_proofs_is_called_open(plans) -> None:
    """Where the dearer plan's bound lies below the other's cost, its optimum may be the lower one."""
    first = plans[0]
    loose = first.model_copy(
        update={"cost": first.cost.model_copy(update={"usd_per_hour": 6.3, "bound_usd_per_hour": 5.5, "gap": 0.13})}
    )
    open_ = compare([first, loose], ["a", "b"])
    assert not open_.differences[0].order_proved
    assert "the proofs leave open which optimum is lower" in comparison_text(open_)


def test_infeasible_plans_are_compared_with_their_reasons(plans) -> None:
    """No cost, no difference, and the reason in words."""
    none = plan("limits.devices=0")
    assert none.status == "infeasible"
    found = compare([plans[0], none], ["a", "b"])
    assert found.differences == [None]
    text = comparison_text(found)
    assert "b is infeasible: " in text
    assert "no costs to compare" in text


def test_the_document_keeps_its_schema(found) -> None:
    """Every list has one entry per plan."""
    plain = found.model_dump(mode="json", by_alias=True)
    jsonschema.Draft202012Validator(comparison_json_schema()).validate(plain)
    assert plain["schema"] == "epd-opt/comparison/v1"
    assert [one["label"] for one in plain["plans"]] == ["old/plan.json", "new/plan.json", "other.json"]
    for one in [*plain["inputs"], *plain["cards"]]:
        assert len(one["values"]) == 3
    assert all(len(row["pools"]) == 3 for row in plain["pools"])


def test_the_page_shows_changes_against_the_first_plan(found) -> None:
    """Costs with their change, the reasons, and ways in letters that matched pools share."""
    text = comparison_text(found, width=120)
    hourly = next(line for line in text.splitlines() if line.startswith("$/h"))
    assert hourly.split() == ["$/h", "$6.00", "$12.50", "(+108.3%)", "$9.00", "(+50.0%)"]
    assert "A: 2 more in use +$4.00/h, another cost per unit +$2.50/h" in text
    assert "B: 1 more in use +$9.00/h" in text
    assert "+$6.50/h, +14.6% per request" in text


def test_cards_that_differ_are_listed_for_devices_of_both_plans(plans) -> None:
    """A figure of a card that was corrected between two plans."""
    first = plans[0].model_copy(update={"cards": {"devices": {"A": {"sku": "A", "tdp_w": 700}, "Z": {"sku": "Z"}}}})
    other = plans[0].model_copy(update={"cards": {"devices": {"A": {"sku": "A", "tdp_w": 750}, "Y": {"sku": "Y"}}}})
    found = compare([first, other], ["a", "b"])
    assert [(one.path, one.values) for one in found.cards] == [("devices.A.tdp_w", [700, 750])]
    assert "devices.A.tdp_w" in comparison_text(found)


def test_of_several_pools_of_a_sku_the_most_alike_are_matched(plans) -> None:
    """By device entry before parallelism, by parallelism before the operating point."""
    base = plans[0].pools[0]

    def pool(name, device, tensor):
        return base.model_copy(
            update={"name": name, "device": device, "parallelism": base.parallelism.model_copy(update={"tensor": tensor})}
        )

    before = [pool("rent-1", "rent", 1), pool("rent-4", "rent", 4), pool("own-1", "own", 1)]
    after = [pool("own-4", "own", 4), pool("rent-4", "rent", 4)]
    rows = matched([before, after])
    assert [[one and one.name for one in row] for row in rows] == [
        ["rent-1", None],
        ["rent-4", "rent-4"],
        ["own-1", "own-4"],
    ]


def test_differences_walk_mappings_and_named_lists() -> None:
    """Lists without names are values; null is a value, absence is not."""
    assert differences([{"a": 1, "b": [1, 2]}, {"a": 1, "b": [2, 1]}]) == [("b", [[1, 2], [2, 1]])]
    assert differences([{"a": None}, {}]) == [("a", [None, ABSENT])]
    assert differences([{"x": {"a": 1.0}}, {"x": {"a": 1}}]) == []
    assert differences([{"c": [{"name": "a.b", "r": 1}]}, {"c": [{"name": "a.b", "r": 2}]}]) == [('c["a.b"].r', [1, 2])]
