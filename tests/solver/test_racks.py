"""Power of racks: units that fill one, the racks that plans take, and why there is no plan."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import pytest

import epd_opt
from epd_models.row import Row
from epd_opt import InvalidInput, solve
from epd_opt.nodes import Nodes
from epd_opt.problem import Limits, Offer, PlanningProblem
from epd_opt.verify import verify
from support.documents import measured
from support.enumeration import cheapest
from support.problems import arc, candidate, offer, planning_problem
from support.solving import least_cost, solved

SERVERS = Nodes(unit=1, inner=8, domain=8, chunk=8, whole=True)


@pytest.mark.parametrize(
    ("terms", "each", "racks_of_17"),
    [
        (offer("a", power_w=1000.0), 10, 2),
        (offer("a", power_w=3400.0), 2, 9),  # 6.8 of 10 kW
        (offer("a", power_w=1000.0, lot=8, nodes=SERVERS), 8, 3),  # a server of 8 kW, and no half of another
        (offer("a", power_w=600.0, lot=8, nodes=SERVERS), 16, 2),  # two of 4.8 kW
        (offer("a", power_w=600.0, nodes=replace(SERVERS, whole=False)), 16, 2),  # had one by one
        (offer("a", power_w=10_001.0), 0, 0),
        (offer("a", power_w=0.1, lot=8, nodes=SERVERS), 100_000, 1),
        (offer("a"), None, 0),  # of no known power
    ],
)
def test_units_of_a_rack_by_hand(terms: Offer, each: int | None, racks_of_17: int) -> None:
    """A rack of 10 kW holds as many units, in whole servers where they are bought so; 17 units take so many racks."""
    limits = Limits(rack_w=10_000.0)
    assert limits.units_per_rack(terms) == each
    assert limits.racks_of(terms, 17) == racks_of_17
    assert Limits().units_per_rack(terms) is None


def racked(seed: int) -> PlanningProblem:
    """One class on a measured worker of each of three entries, of which a rack holds one, two or three units."""
    dice = random.Random(seed)
    offers, workers = [], []
    for name, power_w in (("a", 1000.0), ("b", 1400.0), ("c", 2000.0)):
        rate = dice.uniform(0.5, 2.0)
        terms = {"lot": dice.randint(1, 2), "owned": dice.randint(0, 2), "owned_usd_per_hour": 0.3, "power_w": power_w}
        offers.append(offer(name, round(dice.uniform(1.0, 4.0), 2), stock=dice.choice([None, 6]), **terms))
        row = Row(kind="rate", load=(("chat", 1.0 / rate),))
        workers.append(candidate(name, [arc("chat", "encoded", "done")], [row], device=name, units=dice.randint(1, 2)))
    limits = Limits(rack_w=3000.0)
    return planning_problem({"chat": round(dice.uniform(2.0, 5.0), 2)}, workers, offers, limits=limits)


@pytest.mark.parametrize("seed", range(20))
def test_least_cost_is_that_of_all_fleets_that_fit(seed: int) -> None:
    """With one, two and four racks, least cost is what enumeration says, pruned or not."""
    problem = racked(seed)
    free = least_cost(problem)
    for racks in (1, 2, 4):
        limited = replace(problem, limits=replace(problem.limits, racks=racks))
        best, found = cheapest(limited), solved(limited)
        assert (found is None) == (best is None)
        if found is not None and best is not None:
            assert found.usd_per_hour == pytest.approx(best, rel=1e-6, abs=1e-5)
            assert found.bound <= best + 1e-5
            assert found.usd_per_hour >= free - 1e-6
            assert least_cost(limited, pruned=False) == pytest.approx(best, rel=1e-6, abs=1e-5)


def test_the_random_problems_show_the_limit() -> None:
    """Among them, some racks are in the way of every fleet, some make it dearer, and some cost nothing."""
    ends = set()
    for seed in range(12):
        problem = racked(seed)
        free, tight = least_cost(problem), least_cost(replace(problem, limits=replace(problem.limits, racks=2)))
        ends.add("none" if tight == math.inf else "dearer" if tight > free + 1e-6 else "free")
    assert ends == {"none", "dearer", "free"}


def pairs(rate: float = 20_000, **limits: Any) -> dict[str, Any]:
    """Replicas of two H100 that give 1,500 tokens/s each, in servers of eight that draw 10.2 kW."""
    return {
        "schema": "epd-opt/instance/v1",
        "candidates": {"modelled": False},
        "workload": {"classes": [{"name": "tokens", "rate_per_s": rate}]},
        "devices": [{"sku": "H100-SXM", "price": {"usd_per_hour": 24, "per": "server"}, "power_w": 1275}],
        "workers": [
            {
                "name": "pair",
                "sku": "H100-SXM",
                "devices": 2,
                "stages": ["prefill", "decode"],
                "max_rate_per_s": 1500,
            }
        ],
        "limits": limits,
        "solver": {"gap": 0},
    }


def test_plans_say_how_many_racks_they_take() -> None:
    """Four servers, two to a rack of 30 kW and one to a rack of 15 kW; without a limit on racks, none is named."""
    plan = solve(pairs(rack_kw=30, racks=2))
    assert plan.status == "optimal"
    assert plan.devices["H100-SXM"].racks == 2
    assert "racks of 30 kW: 2 of 2 (2 for H100-SXM)" in str(plan)
    verify(plan)
    alone = solve(pairs(rack_kw=15))
    assert alone.devices["H100-SXM"].racks == 4
    assert "racks of 15 kW: 4 (4 for H100-SXM)" in str(alone)
    assert solve(pairs()).devices["H100-SXM"].racks is None
    assert "racks" not in str(solve(pairs()))


def test_too_few_racks_are_the_reason() -> None:
    """Four racks are needed and three are there: the reason says so, and the mend is the fourth."""
    plan = solve(pairs(rack_kw=15, racks=3))
    assert plan.status == "infeasible"
    (reason,) = plan.infeasibility.reasons
    assert (reason.limit, reason.wanted, reason.best_reachable) == ("racks", 3, 4)
    (mend,) = (one for one in plan.infeasibility.mends if one.change == "limits.racks")
    assert mend.to == 4


def test_a_server_that_draws_more_than_a_rack_is_left_out() -> None:
    """A server of 10.2 kW stands in no rack of 10; single units would, and where nothing else is on offer, that is why."""
    plan = solve(pairs(rack_kw=10))
    assert plan.status == "infeasible"
    (reason,) = plan.infeasibility.reasons
    assert (reason.limit, reason.wanted, reason.best_reachable) == ("rack_kw", 10, pytest.approx(10.2))
    assert "8 units of H100-SXM, bought whole, draw 10.2 kW, limits.rack_kw is 10" in reason.text
    single = pairs(rack_kw=10)
    single["devices"].append({"sku": "H100-SXM", "name": "single", "price": {"usd_per_hour": 4}, "power_w": 1275})
    plan = solve(single)
    assert {name: use.racks for name, use in plan.devices.items()} == {"single": 4}
    assert any("it is left out" in warning for warning in plan.warnings)


def test_racks_together_with_another_limit() -> None:
    """Where racks and budget are both too small, both are raised together, and that gives a plan."""
    document = pairs(rack_kw=15, racks=3, usd_per_hour=80)
    plan = solve(document)
    assert {mend.change for mend in plan.infeasibility.together} == {"limits.racks", "limits.usd_per_hour"}
    document["limits"] |= {mend.change.removeprefix("limits."): mend.to for mend in plan.infeasibility.together}
    assert solve(document).status == "optimal"


def test_a_fleet_for_scenarios_keeps_the_racks() -> None:
    """Two occasions share four servers in two racks; one rack is too few, and the reason names it."""
    document = pairs(rack_kw=30, racks=2)
    document["scenarios"] = [{"name": "usual", "set": {"workload.classes.tokens.rate_per_s": 9000}}, {"name": "peak"}]
    plan = solve(document)
    assert plan.devices["H100-SXM"].racks == 2
    verify(plan)
    document["limits"]["racks"] = 1
    assert {reason.limit for reason in solve(document).infeasibility.reasons} == {"racks"}


def test_the_largest_multiple_fills_the_racks() -> None:
    """Two racks of two servers carry 16 replicas: 24,000 tokens/s."""
    found = solve({**pairs(rate=1000, rack_kw=30, racks=2), "objective": "goodput"})
    assert found.goodput.requests_per_s == pytest.approx(24_000)


def test_what_makes_no_sense_is_refused() -> None:
    """A number of racks without their power, and racks with demand by the hour."""
    with pytest.raises(InvalidInput, match="found without rack_kw"):
        solve(pairs(racks=3))
    document = pairs(rack_kw=30, racks=3)
    document["workload"]["classes"][0]["hourly"] = [1.0] * 24
    with pytest.raises(InvalidInput, match="with demand by the hour, racks are not limited"):
        epd_opt.read(document)


def test_entries_of_unknown_power_take_no_rack() -> None:
    """They are planned with, and a warning says what is taken for their power."""
    plan = solve(measured(limits={"rack_kw": 10, "racks": 1}))
    assert plan.devices["big"].racks is None
    assert plan.devices["small"].racks == 1
    assert any("big: power is unknown" in warning for warning in plan.warnings)
