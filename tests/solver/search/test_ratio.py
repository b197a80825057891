"""The least cost per request over a range of demand, against enumeration and the plan at fixed rates."""

from __future__ import annotations

from typing import Any

import pytest

from epd_opt import Plan, solve
from epd_opt.backends import BACKENDS
from epd_opt.errors import InvalidInput
from epd_opt.formulation.objective import cost_expression, requests_per_hour
from epd_opt.search.ratio import Dinkelbach
from epd_opt.verify import VerificationError, verify
from support.documents import measured, modelled
from support.enumeration import least_ratio, sufficient
from support.problems import random_problem
from support.searching import cheapest_ratio

USABLE = [name for name, solver in BACKENDS.items() if solver.availability().usable]


def usd_per_request(search: Dinkelbach) -> float | None:
    """Cost of the plan that a search ended with, ties left out."""
    if search.values is None:
        return None
    built = search.formulation
    cost = sum(c * search.values[variable.name] for variable, c in cost_expression(built.sets, built.variables))
    return cost / search.served / requests_per_hour(built.sets)


@pytest.mark.parametrize("seed", [*range(12), *range(20, 32), 34, 36, 38, 40, 41])
def test_random_problems_reach_the_ratio_of_enumeration(seed: int) -> None:
    """Over every fleet, each at its own best multiple and routing, no request costs less, and one costs as little; the
    bound is below it, by ties only. Energy and idle cost count at even seeds."""
    problem = random_problem(seed, energy=seed % 2 == 0)
    low, high = [(0.5, 1.5), (0.2, 1.0), (1.0, 2.0)][seed % 3]
    best = least_ratio(problem, low, high, sufficient(problem, high))
    search = cheapest_ratio(problem, low, high)
    found = usd_per_request(search)
    if best is None:
        assert found is None
        return
    assert found == pytest.approx(best, rel=1e-6, abs=1e-12)
    assert search.proved
    assert best * (1 - 1e-3) <= search.bound_usd_per_request() * (1 + 1e-9) + 1e-12
    assert search.bound_usd_per_request() <= best * (1 + 1e-9)


@pytest.mark.parametrize("seed", [1, 16, 22, 36, 57])
def test_what_pruning_leaves_out_never_matters(seed: int) -> None:
    """Pruned at the highest multiple, the least ratio over the whole range is the same."""
    problem = random_problem(seed, energy=seed % 2 == 0)
    slim, whole = cheapest_ratio(problem, 0.3, 1.5), cheapest_ratio(problem, 0.3, 1.5, slim=False)
    assert usd_per_request(slim) == pytest.approx(usd_per_request(whole), rel=1e-7)


def over(low: float, high: float) -> dict[str, Any]:
    """The objective."""
    return {"minimise": "cost_per_request", "rate_multiple": [low, high]}


def at(document: dict[str, Any], multiple: float) -> dict[str, Any]:
    """A document at fixed rates, so many times as high."""
    document.pop("objective", None)
    for one in document["workload"]["classes"]:
        for key in ("rate_per_s", "mean_rate_per_s"):
            if key in one:
                one[key] *= multiple
    return document


@pytest.mark.parametrize("multiple", [0.7, 2.0])
def test_one_multiple_is_the_plan_at_fixed_rates(multiple: float) -> None:
    """With low equal to high, pools, cost and bound are those of the ordinary plan at those rates."""
    plan, plain = solve(measured(objective=over(multiple, multiple))), solve(at(measured(), multiple))
    assert plan.cost == plain.cost
    assert plan.pools == plain.pools
    assert plan.rate_multiple.multiple == multiple
    assert plan.rate_multiple.bound_usd_per_request == pytest.approx(plain.cost.bound_usd_per_hour / (3600 * 10 * multiple))


@pytest.mark.parametrize("document", [measured, modelled], ids=lambda make: make.__name__)
def test_no_multiple_within_the_range_is_cheaper(document: Any) -> None:
    """Ordinary plans at the ends, between them and at the multiple chosen: none has cheaper requests, and that at the
    chosen one costs the same. Modelled ones have other operating points at each multiple, which may do a little better."""
    changes = {"placements": ["encoder_pool", "prefill_decode"]} if document is modelled else {}
    slack = 1e-2 if document is modelled else 1e-6
    plan = solve(document(objective=over(0.4, 1.2), **changes))
    assert plan.status == "optimal"
    for multiple in (0.4, 0.8, 1.2, plan.rate_multiple.multiple):
        plain = solve(at(document(**changes), multiple))
        assert plain.cost.usd_per_request >= plan.rate_multiple.bound_usd_per_request * (1 - slack)
        assert plain.cost.usd_per_request >= plan.cost.usd_per_request * (1 - slack)
    if document is measured:
        assert plain.cost.usd_per_request == pytest.approx(plan.cost.usd_per_request, rel=1e-6)
    verify(Plan.load(plan.to_dict()))


def test_whole_units_decide_the_multiple() -> None:
    """One unit carries 4 a second: of multiples that need two, the last is cheapest, unless one unit suffices."""
    document = {
        "schema": "epd-opt/instance/v1",
        "candidates": {"modelled": False},
        "workload": {"classes": [{"name": "chat", "rate_per_s": 4}]},
        "devices": [{"sku": "A", "price": {"usd_per_hour": 3.6}}],
        "workers": [{"name": "w", "sku": "A", "devices": 1, "stages": ["prefill", "decode"], "max_rate_per_s": 4}],
        "solver": {"gap": 0.0, "threads": 1},
    }
    plan = solve({**document, "objective": over(0.3, 1.5)})
    assert plan.rate_multiple.multiple == pytest.approx(1.0, rel=1e-8)
    assert plan.cost.usd_per_request == pytest.approx(3.6 / 3600 / 4, rel=1e-8)
    assert plan.rate_multiple.bound_usd_per_request == pytest.approx(3.6 / 3600 / 4, rel=1e-4)
    short = solve({**document, "objective": over(1.1, 1.5)})
    assert short.rate_multiple.multiple == 1.5
    assert short.cost.usd_per_request == pytest.approx(7.2 / 3600 / 6, rel=1e-8)


@pytest.mark.parametrize("name", USABLE)
def test_every_back_end_finds_the_same_cost(name: str) -> None:
    """Cost per request, multiple and counts are those of HiGHS."""
    document = measured(objective=over(0.5, 1.5), redundancy={"spare_replicas": 0})
    reference = solve(document)
    document["solver"] = {"gap": 0.0, "threads": 1, "name": name}
    plan = solve(document)
    assert plan.status == "optimal"
    assert plan.cost.usd_per_request == pytest.approx(reference.cost.usd_per_request, rel=1e-6)
    assert plan.rate_multiple.multiple == pytest.approx(reference.rate_multiple.multiple, rel=1e-6)
    assert [(p.name, p.replicas) for p in plan.pools] == [(p.name, p.replicas) for p in reference.pools]


def test_a_gap_is_kept_relative_to_the_cost_of_a_request() -> None:
    """At a positive gap the bound is within it of the cost, and below what is best."""
    best = solve(measured(objective=over(0.2, 1.5)))
    loose = solve(measured(objective=over(0.2, 1.5), solver={"gap": 0.05, "threads": 1}))
    assert loose.status == "optimal"
    assert loose.cost.gap <= 0.05
    assert loose.rate_multiple.bound_usd_per_request <= best.cost.usd_per_request * (1 + 1e-9)
    assert loose.cost.usd_per_request <= best.cost.usd_per_request * 1.05 * (1 + 1e-6)


def test_limits_below_the_lowest_multiple_are_infeasible_with_what_would_do() -> None:
    """The least that is needed is that of the lowest multiple."""
    plan = solve(measured(objective=over(0.5, 1.0), limits={"devices": 3}))
    plain = solve(at(measured(limits={"devices": 3}), 0.5))
    assert plan.status == plain.status == "infeasible"
    assert plan.infeasibility.reasons == plain.infeasibility.reasons


def test_requests_that_are_never_made_have_no_cost() -> None:
    """With all mean rates at zero there is no ratio."""
    document = measured(objective=over(0.5, 1.0))
    for one in document["workload"]["classes"]:
        one["mean_rate_per_s"] = 0
    with pytest.raises(InvalidInput, match="no request has a cost"):
        solve(document)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("multiple", 3.0, "is not from 0.5 to 1"),
        ("bound_usd_per_request", 1.0, "above the cost"),
        ("low", 0.1, "is not from"),
    ],
)
def test_a_document_that_leaves_its_range_fails_its_check(key: str, value: float, said: str) -> None:
    """Multiple, range and bound are checked against the instance and the cost."""
    document = solve(measured(objective=over(0.5, 1.0))).to_dict()
    document["rate_multiple"][key] = value
    with pytest.raises(VerificationError, match=said):
        verify(Plan.load(document))
