"""Few SKUs, devices forbidden and required, smallest orders: what plans keep, what they cost, and why there is none."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from epd_opt import InvalidInput, solve
from epd_opt.accounting import ways_to_hold
from epd_opt.formulation.constraints.choice import SERVING_SHARE
from epd_opt.problem import Limits, PlanningProblem
from support.documents import measured, modelled
from support.enumeration import cheapest
from support.problems import offer, random_problem
from support.solving import least_cost, solved


def without_limits(seed: int) -> PlanningProblem:
    """A random problem of few entries without limits and energy, each entry a SKU of its own."""
    problem = random_problem(seed)
    return replace(problem, limits=Limits())


def restricted(problem: PlanningProblem, entries: tuple[str, ...]) -> PlanningProblem:
    """The problem over candidates on some entries alone."""
    return replace(problem, candidates=tuple(c for c in problem.candidates if c.device in entries))


@pytest.mark.parametrize("seed", range(15))
def test_few_skus_are_the_best_choice_of_so_many(seed: int) -> None:
    """With at most k SKUs, least cost is that of the best k of them."""
    problem = without_limits(seed)
    names = [offer.name for offer in problem.offers]
    for most in (1, 2):
        best = min(
            (least_cost(restricted(problem, some)) for some in itertools.combinations(names, min(most, len(names)))),
            default=float("inf"),
        )
        assert least_cost(replace(problem, limits=Limits(skus=most))) == pytest.approx(best, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("seed", range(15))
def test_smallest_orders_cost_what_enumeration_says(seed: int) -> None:
    """With a smallest order on every entry, least cost is that of all fleets whose orders keep it."""
    problem = without_limits(seed)
    minimum = [2, 3, 5][seed % 3]
    offers = tuple(replace(o, minimum=minimum) for o in problem.offers)
    ordered = replace(problem, offers=offers)
    best = cheapest(ordered)
    found = solved(ordered)
    assert (found is None) == (best is None)
    if found is not None and best is not None:
        assert found.usd_per_hour == pytest.approx(best, rel=1e-6, abs=1e-5)
        assert found.bound <= best + 1e-5


@pytest.mark.parametrize("seed", range(12))
def test_what_is_required_serves_and_pruning_does_not_matter(seed: int) -> None:
    """Each entry in turn is required: it serves its share, at a cost no lower than without, pruned or not."""
    problem = without_limits(seed)
    free = least_cost(problem)
    for one in problem.offers:
        asked = replace(problem, limits=Limits(required=((one.name, (one.name,)),)))
        found = solved(asked)
        if found is None:
            continue
        rates = {demand.name: demand.rate for demand in problem.demands}
        served = sum(
            rate / rates[arc.request_class]
            for pool in found.solution.pools
            if pool.candidate.device == one.name
            for arc, rate in pool.flows.items()
        )
        assert served >= SERVING_SHARE * (1 - 1e-4)
        assert found.usd_per_hour >= free - 1e-6
        assert found.usd_per_hour == pytest.approx(least_cost(asked, pruned=False), rel=1e-6, abs=1e-6)


def test_orders_are_none_or_large_enough() -> None:
    """Three units with orders of at least eight in lots of two: eight are bought, or the owned ones do."""
    terms = offer("a", 1.0, lot=2, owned=3, owned_usd_per_hour=5.0, minimum=8)
    assert {(held.bought, held.owned) for held in ways_to_hold(terms, 3)} == {(8, 0), (0, 3)}


def limited(**limits: Any) -> dict[str, Any]:
    """The measured instance with limits."""
    return measured(limits=limits)


def test_forbidden_devices_are_left_out() -> None:
    """Without the small cards the chats and albums need workers that no other device has, and the reason says so."""
    document = measured()
    document["workload"]["classes"][0]["rate_per_s"] = 0
    plan = solve({**document, "limits": {"forbid": ["SMALL"]}})
    assert plan.status == "optimal"
    assert {pool.device for pool in plan.pools} == {"big"}
    stuck = solve(limited(forbid=["small"]))
    assert stuck.status == "infeasible"
    assert any(mend.change == "limits.forbid" for mend in stuck.infeasibility.mends)


def test_required_devices_are_used() -> None:
    """Chats alone need no small card; required, it serves its share and the plan costs more."""
    document = measured()
    document["workload"]["classes"][0]["rate_per_s"] = 0
    document["devices"][0]["price"]["usd_per_hour"] = 0.1
    free, asked = solve(document), solve({**document, "limits": {"require": ["small"]}})
    assert {pool.device for pool in free.pools} == {"big"}
    assert {pool.device for pool in asked.pools} == {"big", "small"}
    assert asked.cost.usd_per_hour > free.cost.usd_per_hour


def test_one_sku_is_too_few_and_the_mend_is_two() -> None:
    """Albums need the encoder on one SKU and a reader on the other: at least two SKUs, says the reason."""
    plan = solve(limited(skus=1))
    assert plan.status == "infeasible"
    (reason,) = [r for r in plan.infeasibility.reasons if r.limit == "skus"]
    assert reason.best_reachable == 2
    assert any(mend.change == "limits.skus" and mend.to == 2 for mend in plan.infeasibility.mends)


def test_names_that_fit_nothing_are_refused() -> None:
    """The nearest name is offered."""
    with pytest.raises(InvalidInput, match="did you mean small"):
        solve(limited(require=["smal"]))
    with pytest.raises(InvalidInput, match="is required, but small is not on offer"):
        solve(limited(require=["small"], forbid=["small"]))


def test_an_order_that_stock_does_not_allow_is_named() -> None:
    """A smallest order above what the stock leaves is the reason where nothing else is in the way."""
    document = measured()
    document["devices"][0] |= {"stock": 16, "price": {"usd_per_hour": 4.5, "minimum": 20}}
    plan = solve(document)
    assert plan.status == "infeasible"
    assert [reason.limit for reason in plan.infeasibility.reasons] == ["minimum_order"]
    assert "orders of at least 20" in plan.infeasibility.reasons[0].text


def test_vendors_that_cannot_exchange_kv_caches() -> None:
    """Prompts read on one vendor's devices cannot go on to the other's: what is left is the dearer way, or none."""
    document = modelled(placements=["encode_prefill", "decode"])
    document["devices"] = [
        {"sku": "A100-80-SXM", "price": {"usd_per_hour": 1.9}, "stages": ["encode", "prefill"], "tensor_parallel": [1]},
        {"sku": "A100-80-SXM", "name": "own", "price": {"usd_per_hour": 5}, "stages": ["decode"], "tensor_parallel": [1]},
        {"sku": "MI300X", "price": {"usd_per_hour": 2}, "stages": ["decode"], "tensor_parallel": [1]},
    ]
    free = solve(document)
    apart = solve({**document, "network": {"forbidden_kv_pairs": [["NVIDIA", "AMD"]]}})
    assert {pool.device for pool in free.pools} == {"A100-80-SXM", "MI300X"}
    assert {pool.device for pool in apart.pools} == {"A100-80-SXM", "own"}
    with pytest.raises(InvalidInput, match="no device or vendor is called 'Intel'"):
        solve({**document, "network": {"forbidden_kv_pairs": [["NVIDIA", "Intel"]]}})
