"""Plans for several scenarios: against plans for one, against enumeration, and against tampering."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import jsonschema
import pytest

import epd_opt
from epd_opt import Instance, Plan
from epd_opt.backends import BACKENDS
from epd_opt.document import plan_json_schema
from epd_opt.errors import UsageError
from epd_opt.offering import offering
from epd_opt.problem import Aim, Occasion
from epd_opt.resolve import resolve
from epd_opt.scenarios import cases
from epd_opt.verify import VerificationError, verify
from support.documents import measured, modelled
from support.enumerated_occasions import least

BUSY = {"workload.classes.chat.rate_per_s": "x2", "workload.classes.chat.output_tokens": "x1.5"}


def texts() -> dict[str, Any]:
    """A small modelled instance: one class of text on one kind of card."""
    document = modelled()
    document["workload"]["classes"] = document["workload"]["classes"][:1]
    document["devices"] = document["devices"][:1]
    return document


def mixed(seed: int, **changes: Any) -> dict[str, Any]:
    """A random instance of measured workers whose scenarios differ in rates and in what electricity costs."""
    dice = random.Random(seed)
    names = ["album", "chat"]
    document: dict[str, Any] = {
        "schema": "epd-opt/instance/v1",
        "candidates": {"modelled": False},
        "workload": {
            "classes": [
                {"name": "album", "rate_per_s": dice.choice([1, 2]), "images": {"count": 4, "tokens": 256}},
                {"name": "chat", "rate_per_s": dice.choice([3, 5])},
            ]
        },
        "devices": [
            {"sku": "rented", "price": {"usd_per_hour": dice.choice([0.4, 0.6, 0.9])}, "stock": 8},
            {
                "sku": "bought",
                "price": {"purchase_usd": dice.choice([4000, 8000]), "pack": dice.choice([1, 2])},
                "owned": dice.choice([0, 1]),
                "stock": 8,
                "power_w": 900,
                "idle_power_w": 100,
            },
        ],
        "workers": [
            {"name": "whole", "sku": "rented", "devices": 1, "stages": ["encode", "prefill", "decode"]},
            {"name": "text", "sku": "bought", "devices": 1, "stages": ["prefill", "decode"]},
            {"name": "encoder", "sku": "bought", "devices": 1, "stages": ["encode"]},
        ],
        "scenarios": [
            {"name": "usual", "weight": dice.choice([1, 2, 4])},
            {
                "name": "pictures",
                "set": {"workload.classes.album.rate_per_s": "x2", "workload.classes.chat.rate_per_s": "x0.5"},
            },
            {"name": "dear", "set": {"cost.electricity_usd_per_kwh": 0.6, "workload.classes.chat.rate_per_s": "x0.8"}},
        ],
        "solver": {"gap": 0.0, "threads": 1},
        **changes,
    }
    for worker in document["workers"]:
        served = names if worker["name"] != "encoder" else ["album"]
        worker["max_rate_per_s"] = {name: dice.choice([1.0, 1.5, 2.5]) for name in served}
    return document


@cache
def robust(seed: int, minimise: str, served_share: float = 1.0, cvar_level: float | None = None) -> Plan:
    """A plan of a random instance."""
    wanted = {"minimise": minimise, "served_share": served_share, "cvar_level": cvar_level}
    return epd_opt.solve(mixed(seed, robust={key: value for key, value in wanted.items() if value is not None}))


SEEDS = (1, 4, 6, 7)


@pytest.mark.parametrize(
    ("document", "minimise"),
    [(measured(), "expected_cost"), (measured(), "worst_cost"), (modelled(), "worst_cost")],
    ids=["measured-mean", "measured-worst", "modelled"],
)
def test_with_one_scenario_it_is_the_plain_plan(document: dict[str, Any], minimise: str) -> None:
    """The same pools, routes, times, costs and bound as the plan without scenarios, whatever is minimised."""
    plain = epd_opt.solve(document).to_dict()
    plan = epd_opt.solve({**document, "scenarios": [{"name": "only"}], "robust": {"minimise": minimise}})
    (only,) = plan.to_dict()["scenarios"]
    for key in ("pools", "classes", "devices", "unit_costs"):
        assert only[key] == plain[key], key
    assert only["usd_per_hour"] == plan.robust.objective_usd_per_hour == plain["cost"]["usd_per_hour"]
    assert plan.cost.model_dump() == plain["cost"]
    assert plan.status == plain["status"] == "optimal"
    assert plan.in_scenario("only").to_dict()["pools"] == plain["pools"]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("minimise", ["expected_cost", "worst_cost"])
def test_no_plan_for_one_workload_is_better(seed: int, minimise: str) -> None:
    """No fleet that is best for one workload and holds in all has less of what is minimised; none is cheaper in its own."""
    plan = robust(seed, minimise)
    assert plan.status == "optimal"
    assert len(plan.robust.single_plans) == 3
    for single in plan.robust.single_plans:
        assert single.status == "optimal"
        if single.regret_usd_per_hour is not None:
            assert single.held_share == pytest.approx(1.0)
            assert single.regret_usd_per_hour >= 0.0
        else:
            assert any(kept.breaks for kept in single.scenarios.values())
        own = next(result for result in plan.scenarios if result.name == single.planned_for)
        assert single.usd_per_hour <= own.usd_per_hour * (1 + 1e-9)
        assert single.scenarios[own.name].usd_per_hour == pytest.approx(single.usd_per_hour)


def test_some_fleets_of_one_workload_break_and_some_cost_more() -> None:
    """The random instances show both: fleets that do not hold, and fleets that hold for more money."""
    singles = [single for seed in SEEDS for single in robust(seed, "expected_cost").robust.single_plans]
    assert any(single.regret_usd_per_hour is None for single in singles)
    assert any(single.regret_usd_per_hour for single in singles)


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_what_is_minimised_is_the_least_by_enumeration(seed: int) -> None:
    """Over every fleet, every way to hold it and every routing, none has less."""
    found = cases(Instance(**mixed(seed)))
    given = tuple(
        Occasion(name=case.name, weight=case.weight, problem=offering(resolve(case.instance)).problem) for case in found
    )
    for aim, plan in (
        (Aim(), robust(seed, "expected_cost")),
        (Aim(minimise="worst_cost"), robust(seed, "worst_cost")),
        (Aim(minimise="cvar", level=0.5), robust(seed, "cvar", cvar_level=0.5)),
    ):
        assert plan.robust.objective_usd_per_hour == pytest.approx(least(given, aim), rel=1e-5)
        assert plan.robust.bound_usd_per_hour <= plan.robust.objective_usd_per_hour * (1 + 1e-9)
        assert plan.robust.bound_usd_per_hour == pytest.approx(plan.robust.objective_usd_per_hour, rel=1e-4)


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_measures_of_a_plan_stand_in_their_order(seed: int) -> None:
    """Minimising the worst case has the least worst case, minimising the mean the least mean; cvar ends at both."""
    mean, worst = robust(seed, "expected_cost"), robust(seed, "worst_cost")
    assert mean.robust.expected_usd_per_hour <= worst.robust.expected_usd_per_hour * (1 + 1e-6)
    assert worst.robust.worst_usd_per_hour <= mean.robust.worst_usd_per_hour * (1 + 1e-6)
    low, high = robust(seed, "cvar", cvar_level=0.0), robust(seed, "cvar", cvar_level=0.999)
    assert low.robust.objective_usd_per_hour == pytest.approx(mean.robust.objective_usd_per_hour, rel=1e-5)
    assert high.robust.objective_usd_per_hour == pytest.approx(worst.robust.objective_usd_per_hour, rel=1e-5)


def test_targets_may_be_let_go_in_a_share_of_weight() -> None:
    """A cheaper fleet that holds in the share asked for; the rest says how much of its demand is served within targets."""
    document = {**texts(), "scenarios": [{"name": "usual", "weight": 4}, {"name": "busy", "set": BUSY}]}
    whole = epd_opt.solve(document)
    part = epd_opt.solve({**document, "robust": {"served_share": 0.8}})
    assert (whole.robust.held_share, part.robust.held_share) == (1.0, pytest.approx(0.8))
    assert part.cost.usd_per_hour < whole.cost.usd_per_hour
    busy, usual = part.scenarios
    assert (busy.targets_met, usual.targets_met) == (False, True)
    assert 0.3 < busy.served_share < 1.0
    assert (busy.pools, busy.classes) == ([], {})
    usual_alone = next(single for single in part.robust.single_plans if single.planned_for == "usual")
    assert part.cost.usd_per_hour == pytest.approx(usual_alone.usd_per_hour)
    with pytest.raises(UsageError, match=r"in scenario 'busy' the fleet serves \d\d% of the demand"):
        part.in_scenario("busy")


@pytest.mark.parametrize("minimise", ["expected_cost", "worst_cost", "cvar"])
def test_a_fleet_that_serves_more_than_it_must_is_still_proved(minimise: str) -> None:
    """Where work costs nothing beside units, a scenario that could be let go and is served all the same leaves the proof."""
    document = {
        "schema": "epd-opt/instance/v1",
        "candidates": {"modelled": False},
        "workload": {"classes": [{"name": "chat", "rate_per_s": 3}]},
        "devices": [{"sku": "X", "price": {"usd_per_hour": 2}}],
        "workers": [{"name": "w", "sku": "X", "devices": 1, "stages": ["prefill", "decode"], "max_rate_per_s": 3}],
        "scenarios": [{"name": "usual"}, {"name": "calm", "set": {"workload.classes.chat.rate_per_s": "x0.5"}}],
        "robust": {"minimise": minimise, "served_share": 0.4},
        "solver": {"gap": 0},
    }
    plan = epd_opt.solve(document).document
    assert plan.status == "optimal"
    assert plan.robust is not None
    assert plan.robust.held_share == 1.0


@pytest.mark.skipif(not BACKENDS["cp_sat"].availability().usable, reason="needs the extra ortools")
def test_a_solver_of_whole_numbers_says_what_fleets_lack() -> None:
    """Comparisons with plans for one workload bound whatever they count, as CP-SAT wants it."""
    document = {**texts(), "scenarios": [{"name": "usual"}, {"name": "busy", "set": BUSY}]}
    plan = epd_opt.solve({**document, "solver": {"name": "cp_sat"}})
    usual = next(single for single in plan.robust.single_plans if single.planned_for == "usual")
    assert usual.scenarios["busy"].breaks


def test_an_infeasible_scenario_is_named() -> None:
    """A target that nothing reaches in one scenario, and a stock that is too small in one."""
    tight = {"name": "tight", "set": {"workload.classes.chat.slo.ttft_ms": 1}}
    plan = epd_opt.solve({**modelled(), "scenarios": [{"name": "usual"}, tight]})
    assert plan.status == "infeasible"
    assert [reason.limit for reason in plan.infeasibility.reasons] == ["ttft_ms"]
    assert plan.infeasibility.reasons[0].text.startswith("scenario 'tight': class 'chat' wants 1 ms")
    many = {"name": "many", "set": {"workload.classes.*.rate_per_s": "x9"}}
    short = epd_opt.solve(mixed(1, scenarios=[{"name": "usual"}, many]))
    assert {reason.limit for reason in short.infeasibility.reasons} <= {"stock", "usd_per_hour", "devices"}
    assert all(reason.text.startswith("scenario 'many': ") for reason in short.infeasibility.reasons)


def test_limits_that_leave_no_room_for_one_fleet_are_named() -> None:
    """Each scenario has a fleet within the budget, one fleet for both has not; what it needs is what it costs without."""
    document = mixed(2)
    free = epd_opt.solve(document)
    worst = max(single.usd_per_hour for single in free.robust.single_plans)
    assert worst < free.robust.worst_usd_per_hour
    limit = (worst + free.robust.worst_usd_per_hour) / 2.0
    plan = epd_opt.solve({**document, "limits": {"usd_per_hour": limit}})
    assert plan.status == "infeasible"
    (reason,) = [reason for reason in plan.infeasibility.reasons if reason.limit == "usd_per_hour"]
    assert reason.best_reachable > limit
    assert "one fleet for all scenarios" in reason.text
    (mend,) = [mend for mend in plan.infeasibility.mends if mend.change == "limits.usd_per_hour"]
    again = epd_opt.solve({**document, "limits": {"usd_per_hour": mend.to}})
    assert again.cost.usd_per_hour == mend.usd_per_hour


def test_the_order_of_scenarios_and_keys_does_not_matter() -> None:
    """The same plan whichever scenario, class or device stands first."""
    document = mixed(3, robust={"minimise": "worst_cost"})
    turned = {key: document[key] for key in reversed(list(document))}
    turned["scenarios"] = [
        {**scenario, "set": dict(reversed(list(scenario.get("set", {}).items())))}
        for scenario in reversed(document["scenarios"])
    ]
    turned["devices"] = document["devices"][::-1]
    one, other = epd_opt.solve(document).to_dict(), epd_opt.solve(turned).to_dict()
    for key in ("pools", "scenarios", "robust", "cost"):
        assert one[key] == other[key], key


def test_a_plan_is_a_valid_document_that_comes_back() -> None:
    """The JSON Schema takes it, reading it gives it again, and so does each of its scenarios."""
    plan = robust(1, "worst_cost")
    jsonschema.validate(plan.to_dict(), plan_json_schema())
    again = Plan.load(plan.to_dict())
    assert again.to_dict() == plan.to_dict()
    verify(again)
    alone = again.in_scenario("pictures")
    jsonschema.validate(alone.to_dict(), plan_json_schema())
    verify(alone)


def _fewer_standing(document: dict[str, Any]) -> None:
    max(document["pools"], key=lambda pool: pool["replicas"])["replicas"] -= 1


def _lighter(document: dict[str, Any]) -> None:
    document["scenarios"][0]["weight"] *= 0.9


def _cheaper(document: dict[str, Any]) -> None:
    document["scenarios"][1]["usd_per_hour"] *= 0.99


def _other_value(document: dict[str, Any]) -> None:
    document["robust"]["objective_usd_per_hour"] *= 0.99


def _higher_bound(document: dict[str, Any]) -> None:
    document["robust"]["bound_usd_per_hour"] *= 1.01


def _more_flow(document: dict[str, Any]) -> None:
    pool = document["scenarios"][0]["pools"][0]
    pool["serves"] = {name: rate * 1.2 for name, rate in pool["serves"].items()}


def _unmet(document: dict[str, Any]) -> None:
    document["scenarios"][2]["targets_met"] = False


def _fewer_units(document: dict[str, Any]) -> None:
    use = next(iter(document["scenarios"][0]["devices"].values()))
    use["bought"] -= 1


def _lost(document: dict[str, Any]) -> None:
    del document["scenarios"][0]


@pytest.mark.parametrize(
    ("tamper", "complaint"),
    [
        (_fewer_standing, "replicas of .* stand"),
        (_lighter, "weighs"),
        (_cheaper, "do not cost"),
        (_other_value, "what is minimised is"),
        (_higher_bound, "lies above"),
        (_more_flow, "routes bring"),
        (_unmet, "says otherwise"),
        (_fewer_units, "holds other units"),
        (_lost, "not those of the instance"),
    ],
)
def test_a_tampered_plan_fails_its_check(tamper: Callable[[dict[str, Any]], None], complaint: str) -> None:
    """Whatever is changed in a scenario, in the fleet or in what is said of both, verification finds it."""
    document = copy.deepcopy(robust(1, "worst_cost").to_dict())
    tamper(document)
    with pytest.raises(VerificationError, match=complaint):
        verify(Plan.load(document))


def test_pools_left_out_for_their_number_leave_an_honest_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pools are screened scenario by scenario, the bound holds for all of them and the status says what is proved."""
    document = {**texts(), "scenarios": [{"name": "usual"}, {"name": "busy", "set": BUSY}]}
    document["devices"].append({"sku": "L40S", "price": {"usd_per_hour": 50}, "tensor_parallel": [1]})
    whole = epd_opt.solve(document)
    monkeypatch.setattr("epd_opt.shortlist.ENOUGH", 4)
    monkeypatch.setattr("epd_opt.robust.scene.FEW", 4)
    few = epd_opt.solve(document)
    assert "left out" in few.robust.note
    assert "left out" not in whole.robust.note
    assert few.robust.bound_usd_per_hour <= whole.robust.objective_usd_per_hour * (1 + 1e-9)
    assert few.robust.objective_usd_per_hour >= whole.robust.bound_usd_per_hour * (1 - 1e-9)
    assert (few.status == "optimal") == (few.robust.gap <= 1e-9)


def test_what_is_required_serves_in_every_scenario() -> None:
    """A dear device that is required takes its share in each of them."""
    document = {
        "schema": "epd-opt/instance/v1",
        "name": "wishes",
        "candidates": {"modelled": False},
        "workload": {"classes": [{"name": "chat", "rate_per_s": 40}]},
        "devices": [
            {"sku": "X", "price": {"usd_per_hour": 2}, "stock": 20},
            {"sku": "Y", "price": {"usd_per_hour": 9}, "stock": 20},
        ],
        "workers": [
            {"name": f"on {sku}", "sku": sku, "devices": 1, "stages": ["prefill", "decode"], "max_rate_per_s": 4}
            for sku in "XY"
        ],
        "limits": {"require": ["Y"]},
        "scenarios": [{"name": "usual"}, {"name": "quiet", "set": {"workload.classes.chat.rate_per_s": 20}}],
        "solver": {"gap": 0},
    }
    plan = epd_opt.solve(document).document
    for result in plan.scenarios:
        assert any(pool.device == "Y" and pool.serves["chat"] > 0 for pool in result.pools)
