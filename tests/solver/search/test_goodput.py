"""The largest multiple of the demand, against enumeration, bisection and cases made by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import epd_opt.search.fitting
from epd_opt import Instance, Plan, solve
from epd_opt.backends import BACKENDS, Settings, backend
from epd_opt.errors import InvalidInput
from epd_opt.formulation import build
from epd_opt.offering import Offering, offering_at
from epd_opt.problem import PlanningProblem
from epd_opt.prune import prune
from epd_opt.resolve import resolve
from epd_opt.solution import Solution
from epd_opt.verify import VerificationError, verify
from support.documents import measured, modelled
from support.enumeration import largest_multiple
from support.problems import stocked_problem
from support.searching import goodput

USABLE = [name for name, solver in BACKENDS.items() if solver.availability().usable]
EXACT = Settings(gap=0.0, time_limit_s=60.0, threads=1)


@pytest.mark.parametrize("seed", range(40))
def test_random_problems_reach_the_multiple_of_enumeration(seed: int) -> None:
    """Over every fleet within stock and limits, no multiple is larger, and one is as large."""
    problem = stocked_problem(seed)
    best, found = largest_multiple(problem), goodput(problem)
    if found is None:
        assert best == pytest.approx(0.0, abs=1e-6)
        return
    assert found.multiple == pytest.approx(best, rel=1e-6)
    assert found.bound >= best * (1 - 1e-9)


def serves(problem: PlanningProblem, multiple: float) -> bool:
    """Whether some fleet serves a multiple of the demand, by the model at fixed rates."""
    formulation = build(prune(problem.at(multiple)))
    outcome = backend("highs").solve(formulation.model, replace(EXACT, gap=1.0))
    assert outcome.values is not None or outcome.termination == "infeasible"
    return outcome.values is not None


def bisected(problem: PlanningProblem, low: float, high: float, width: float) -> tuple[float, float]:
    """A multiple that is served and one that is not, closer than a relative width."""
    assert serves(problem, low)
    assert not serves(problem, high)
    while high > low * (1 + width):
        middle = (low + high) / 2
        low, high = (middle, high) if serves(problem, middle) else (low, middle)
    return low, high


LIMITS: dict[str, dict[str, Any]] = {
    "devices": {"devices": 4},
    "budget": {"usd_per_hour": 9},
    "power": {"power_kw": 3},
    "racks": {"rack_kw": 1.5, "racks": 3},
    "stock": {},
}


@pytest.mark.parametrize("limit", ["budget", "stock"])
def test_modelled_instances_serve_the_multiple_and_no_more(limit: str) -> None:
    """Among the same candidates, pruned anew for each demand, the model at fixed rates serves a thousandth less than the
    multiple and not a thousandth more: where bisection over the demand would end."""
    document = modelled(
        objective="goodput", limits=LIMITS[limit], placements=["encoder_pool", "prefill_decode", "integrated"]
    )
    if limit == "stock":
        document["devices"][0]["stock"] = 3
    plan = solve(document)
    assert plan.status == "optimal"
    problem = offering_at(resolve(Instance(**document)), plan.goodput.points_for).problem
    assert serves(problem, plan.goodput.multiple * 0.999)
    assert not serves(problem, plan.goodput.multiple * 1.001)
    verify(Plan.load(plan.to_dict()))


@pytest.mark.parametrize("limit", LIMITS)
def test_measured_instances_reach_the_multiple_of_bisection(limit: str) -> None:
    """Bisection over the demand, from a tenth to ten times the multiple, closes in on it."""
    more = {key: value * 3 for key, value in LIMITS[limit].items()}
    document = measured(objective="goodput", limits=more)
    if limit == "stock":
        document["devices"][1]["stock"] = 10
    plan = solve(document)
    assert plan.status == "optimal"
    problem = offering_at(resolve(Instance(**document)), [1.0]).problem
    low, high = bisected(problem, plan.goodput.multiple / 10, plan.goodput.multiple * 10, 1e-5)
    assert low <= plan.goodput.multiple * (1 + 1e-7)
    assert plan.goodput.multiple * (1 - 1e-7) <= high


def test_the_plan_at_fixed_rates_serves_the_multiple_and_no_more() -> None:
    """Asked at the stated rates times the multiple, the ordinary plan costs the same and at 1 % more there is none."""
    document = measured(objective="goodput", limits={"usd_per_hour": 60})
    found = solve(document)

    def plain(multiple: float) -> Plan:
        asked = measured(limits={"usd_per_hour": 60})
        for one in asked["workload"]["classes"]:
            for key in ("rate_per_s", "mean_rate_per_s"):
                if key in one:
                    one[key] *= multiple
        return solve(asked)

    same = plain(found.goodput.multiple)
    assert same.cost.usd_per_hour == pytest.approx(found.cost.usd_per_hour, rel=1e-9)
    assert [(p.name, p.replicas) for p in same.pools] == [(p.name, p.replicas) for p in found.pools]
    assert plain(found.goodput.multiple * 1.001).status == "infeasible"


def desk(**changes: Any) -> dict[str, Any]:
    """Three of a device that serves four chats or two drafts a second, for two chats and a draft a second."""
    document: dict[str, Any] = {
        "schema": "epd-opt/instance/v1",
        "name": "desk",
        "candidates": {"modelled": False},
        "workload": {"classes": [{"name": "chat", "rate_per_s": 2}, {"name": "draft", "rate_per_s": 1}]},
        "devices": [{"sku": "A", "price": {"usd_per_hour": 2}, "stock": 3, "power_w": 500}],
        "workers": [
            {
                "name": "w",
                "sku": "A",
                "devices": 1,
                "stages": ["prefill", "decode"],
                "max_rate_per_s": {"chat": 4, "draft": 2},
            }
        ],
        "objective": "goodput",
        "solver": {"gap": 0.0, "threads": 1},
    }
    return {**document, **changes}


@pytest.mark.parametrize(
    ("changes", "multiple"),
    [
        ({}, 3.0),
        ({"limits": {"devices": 2}}, 2.0),
        ({"limits": {"usd_per_hour": 4.5}}, 2.0),
        ({"limits": {"power_kw": 0.5}}, 1.0),
        ({"redundancy": {"spare_replicas": 1}}, 2.0),
        ({"redundancy": {"headroom": 0.25}}, 2.4),
    ],
    ids=["stock", "devices", "budget", "power", "spare", "headroom"],
)
def test_each_limit_is_met_to_the_last_unit(changes: dict[str, Any], multiple: float) -> None:
    """A device serves one multiple: stock, devices, budget and power count devices, a spare takes one of them, and headroom
    takes its share of each."""
    plan = solve(desk(**changes))
    assert plan.goodput.multiple == pytest.approx(multiple, rel=1e-8)
    assert plan.goodput.requests_per_s == pytest.approx(3 * multiple, rel=1e-8)
    assert plan.goodput.gap == pytest.approx(0.0, abs=1e-6)
    assert plan.status == "optimal"
    planned = sum(result.rate_per_s for result in plan.classes.values())
    assert planned == pytest.approx(3 * multiple * (1 + changes.get("redundancy", {}).get("headroom", 0.0)), rel=1e-8)


def test_mean_rates_grow_with_the_rates() -> None:
    """Cost per request counts the mean requests at the multiple, headroom left out."""
    document = desk()
    document["workload"]["classes"][0]["mean_rate_per_s"] = 1
    plan = solve(document)
    assert plan.cost.usd_per_request == pytest.approx(6.0 / (3600 * 3.0 * 2.0), rel=1e-9)


def test_of_fleets_with_the_same_multiple_the_cheapest_is_taken() -> None:
    """Where the writers are the limit, no reader more than they can use is planned, and the cheaper of two readers."""
    document = desk(
        workload={"classes": [{"name": "chat", "rate_per_s": 1}]},
        devices=[
            {"sku": "dear", "price": {"usd_per_hour": 3}, "stock": 20},
            {"sku": "fair", "price": {"usd_per_hour": 1}, "stock": 20},
            {"sku": "few", "price": {"usd_per_hour": 1}, "stock": 2},
        ],
        workers=[
            {"name": "r1", "sku": "dear", "devices": 1, "stages": ["prefill"], "max_rate_per_s": 4},
            {"name": "r2", "sku": "fair", "devices": 1, "stages": ["prefill"], "max_rate_per_s": 2},
            {"name": "d", "sku": "few", "devices": 1, "stages": ["decode"], "max_rate_per_s": 3},
        ],
    )
    plan = solve(document)
    assert plan.goodput.multiple == pytest.approx(6.0)
    assert {pool.name: pool.replicas for pool in plan.pools} == {"d-few": 2, "r2-fair": 3}
    assert plan.cost.usd_per_hour == pytest.approx(5.0)


@pytest.mark.parametrize("name", USABLE)
def test_every_back_end_finds_the_same_fleet(name: str) -> None:
    """Multiple, counts and cost are those of HiGHS."""
    document = measured(objective="goodput", limits={"usd_per_hour": 25})
    document["solver"]["name"] = name
    plan, reference = solve(document), solve(measured(objective="goodput", limits={"usd_per_hour": 25}))
    assert plan.status == "optimal"
    assert plan.goodput.multiple == pytest.approx(reference.goodput.multiple, rel=1e-6)
    assert [(p.name, p.replicas) for p in plan.pools] == [(p.name, p.replicas) for p in reference.pools]
    assert plan.cost.usd_per_hour == pytest.approx(reference.cost.usd_per_hour, rel=1e-6)


def test_order_does_not_matter() -> None:
    """Classes, devices and workers in another order give the same document, but for the order of the instance."""
    document = measured(objective="goodput", limits={"usd_per_hour": 25})
    turned = {**document, "devices": document["devices"][::-1], "workers": document["workers"][::-1]}
    turned["workload"] = {"classes": document["workload"]["classes"][::-1]}
    one, other = solve(document).to_dict(), solve(turned).to_dict()
    for part in ("goodput", "cost", "pools", "classes", "devices"):
        assert json.dumps(one[part], sort_keys=True) == json.dumps(other[part], sort_keys=True)


@pytest.mark.parametrize(
    ("changes", "limit"),
    [({"limits": {"devices": 0}}, "devices"), ({"limits": {"usd_per_hour": 1.5}}, "usd_per_hour")],
    ids=["devices", "budget"],
)
def test_limits_below_one_replica_are_infeasible_with_the_least_that_would_do(changes: dict[str, Any], limit: str) -> None:
    """No multiple, however small, is served: the limit is named with the value that a first replica needs."""
    plan = solve(desk(**changes))
    assert plan.status == "infeasible"
    (reason,) = plan.infeasibility.reasons
    assert reason.limit == limit
    assert solve(desk(limits={limit: reason.best_reachable})).goodput.multiple == pytest.approx(1.0)


def test_a_class_without_a_way_is_infeasible() -> None:
    """A class that no worker serves to its end has no multiple."""
    document = desk()
    document["workers"][0]["max_rate_per_s"] = {"chat": 4}
    plan = solve(document)
    assert plan.status == "infeasible"
    assert plan.infeasibility.reasons[0].request_class == "draft"


def test_nothing_requested_has_no_multiple() -> None:
    """All rates at zero are refused, not answered with any number."""
    with pytest.raises(InvalidInput, match="all rates are 0"):
        solve(desk(workload={"classes": [{"name": name, "rate_per_s": 0} for name in ("chat", "draft")]}))


@pytest.mark.parametrize(
    ("key", "factor", "said"),
    [("requests_per_s", 1.1, "are not"), ("bound_multiple", 0.9, "above its bound"), ("multiple", 1.2, "do not add up")],
)
def test_a_document_that_says_more_than_the_fleet_serves_fails_its_check(key: str, factor: float, said: str) -> None:
    """The multiple, its requests and its bound are checked against the instance and the routes."""
    document = solve(desk()).to_dict()
    document["goodput"][key] *= factor
    with pytest.raises(VerificationError, match=said):
        verify(Plan.load(document))


def test_a_fleet_whose_predicted_intervals_are_late_serves_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where predictions ask for a replica that the limits do not allow, the multiple falls to what needs none, and the plan
    is not called optimal."""

    def one_more_above(offered: Offering, solution: Solution) -> Solution:
        pools = [replace(p, replicas=p.replicas + (sum(p.flows.values()) > 7.0)) for p in solution.pools]
        return replace(solution, pools=tuple(pools))

    monkeypatch.setattr(epd_opt.search.fitting, "reinforced", one_more_above)
    plan = solve(desk())
    assert 0.98 * 7.0 / 3.0 <= plan.goodput.multiple <= 7.0 / 3.0
    assert plan.goodput.bound_multiple == pytest.approx(3.0)
    assert plan.status == "feasible"
