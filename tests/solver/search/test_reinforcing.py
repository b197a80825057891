"""Fleets to which predictions add replicas: never beyond stock and limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import epd_opt.assemble
import epd_opt.search.fitting
import epd_opt.search.reinforcing
from epd_opt import Plan, solve
from epd_opt.offering import Offering
from epd_opt.solution import PoolSolution, Solution
from support.documents import modelled


def late(monkeypatch: pytest.MonkeyPatch, which: Callable[[PoolSolution], bool], more: int) -> None:
    """Let predictions ask for more replicas of some pools."""

    def reinforced(offered: Offering, solution: Solution) -> Solution:
        return replace(solution, pools=tuple(replace(p, replicas=p.replicas + more * which(p)) for p in solution.pools))

    for module in (epd_opt.assemble, epd_opt.search.reinforcing, epd_opt.search.fitting):
        monkeypatch.setattr(module, "reinforced", reinforced)


def scarce(more: int) -> tuple[dict[str, Any], Plan]:
    """A small instance with so many more units than its plan takes, and that plan."""
    document = modelled(placements=["prefill_decode", "encoder_pool"])
    plan = solve(document)
    for entry in document["devices"]:
        entry["stock"] = plan.document.devices[entry["sku"]].used + more
    return document, plan


def test_another_operating_point_takes_the_place_of_one_that_needs_more_than_the_stock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A plan over other points, with a warning that names those left out; its bound is still that over all of them."""
    document, plan = scarce(1)
    used = {pool.key for pool in plan.pools}
    late(monkeypatch, lambda pool: pool.candidate.key in used, 2)
    other = solve(document)
    assert not used & {pool.key for pool in other.pools if pool.placement == "prefill_decode"}
    assert other.cost.bound_usd_per_hour == pytest.approx(plan.cost.usd_per_hour)
    assert other.cost.usd_per_hour > plan.cost.usd_per_hour
    assert other.status == "feasible"
    assert any("planned without operating points" in warning for warning in other.warnings)


@pytest.mark.parametrize("objective", ["cost_per_request", "goodput"])
def test_where_no_fleet_does_without_the_limit_is_named(monkeypatch: pytest.MonkeyPatch, objective: str) -> None:
    """Every pool needs two replicas more than there are: infeasible by the stock, with two units more as what would do."""
    document, _ = scarce(0)
    late(monkeypatch, lambda pool: pool.candidate.placement == "prefill_decode", 2)
    plan = solve(document | {"objective": objective}, mends=False)
    assert plan.status == "infeasible"
    reasons = [(reason.limit, reason.best_reachable - reason.wanted) for reason in plan.infeasibility.reasons]
    assert reasons == [("stock", 2.0)]


def test_further_replicas_within_the_limits_are_staffed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With units to spare the replica is added, and the plan is proved as far as the bound reaches."""
    document = modelled(placements=["prefill_decode", "encoder_pool"])
    plan = solve(document)
    late(monkeypatch, lambda pool: pool.candidate.placement == "prefill_decode", 1)
    more = solve(document)
    assert sum(pool.replicas for pool in more.pools) > sum(pool.replicas for pool in plan.pools)
    assert more.status == "feasible"
