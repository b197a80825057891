"""How the optimum must move when a problem changes, without knowing where it lies."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from epd_opt import Plan, solve
from epd_opt.problem import Limits, PlanningProblem
from support.documents import measured
from support.problems import random_problem
from support.solving import least_cost

SLACK = 1 + 1e-6
"""Ties below the cost may move it by less than this, where work costs energy."""

quick = settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.filter_too_much])
problems = st.integers(0, 10_000).map(lambda seed: random_problem(seed, energy=seed % 2 == 1))
served = problems.filter(lambda problem: math.isfinite(least_cost(problem)))
factors = st.floats(1.01, 3.0)


def scaled_demand(problem: PlanningProblem, factor: float) -> PlanningProblem:
    """The first class grows by a factor."""
    first, *others = problem.demands
    grown = replace(first, rate=first.rate * factor, mean_rate=first.mean_rate * factor)
    return replace(problem, demands=(grown, *others))


def times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


@quick
@given(served, factors)
def test_more_demand_never_costs_less(problem: PlanningProblem, factor: float) -> None:
    """One class grows; the least cost does not fall."""
    assert least_cost(scaled_demand(problem, factor)) >= least_cost(problem) / SLACK


@quick
@given(served)
def test_a_class_less_never_costs_more(problem: PlanningProblem) -> None:
    """Without its last class, a problem costs at most as much."""
    assume(len(problem.demands) > 1)
    kept = {demand.name for demand in problem.demands[:-1]}
    fewer = [
        replace(
            c,
            arcs=tuple(a for a in c.arcs if a.request_class in kept),
            rows=tuple(replace(r, load=tuple((n, v) for n, v in r.load if n in kept)) for r in c.rows),
        )
        for c in problem.candidates
    ]
    smaller = replace(problem, demands=problem.demands[:-1], candidates=tuple(c for c in fewer if c.arcs))
    assert least_cost(smaller) <= least_cost(problem) * SLACK


@quick
@given(served, st.integers(0, 4))
def test_one_more_candidate_never_costs_more(problem: PlanningProblem, index: int) -> None:
    """Taking any candidate away does not lower the cost; a SKU is a set of candidates."""
    assume(len(problem.candidates) > 1)
    left_out = problem.candidates[index % len(problem.candidates)]
    fewer = replace(problem, candidates=tuple(c for c in problem.candidates if c is not left_out))
    assert least_cost(fewer) >= least_cost(problem) / SLACK


@quick
@given(served, st.integers(1, 4))
def test_looser_limits_never_cost_more(problem: PlanningProblem, more: int) -> None:
    """More stock, budget, power or devices leave every plan in place."""
    limits = problem.limits
    cost = least_cost(problem)
    looser = [
        replace(
            problem, offers=tuple(replace(o, stock=None if o.stock is None else o.stock + more) for o in problem.offers)
        ),
        replace(problem, limits=replace(limits, usd_per_hour=times(limits.usd_per_hour, 1.0 + more / 4))),
        replace(problem, limits=replace(limits, power_w=times(limits.power_w, 1.0 + more / 4))),
        replace(problem, limits=replace(limits, devices=None if limits.devices is None else limits.devices + more)),
        replace(problem, limits=Limits()),
        replace(problem, spare_replicas=0),
    ]
    for other in looser:
        assert least_cost(other) <= cost * SLACK


@quick
@given(served, st.sampled_from([1e-3, 0.5, 7.0, 1e4]))
def test_prices_scale_the_cost(problem: PlanningProblem, factor: float) -> None:
    """All prices, tariffs and the budget times k: the cost is k times as high, whatever the currency."""
    offers = tuple(
        replace(
            o,
            usd_per_hour=o.usd_per_hour * factor,
            used_usd_per_hour=o.used_usd_per_hour * factor,
            owned_usd_per_hour=o.owned_usd_per_hour * factor,
            busy_usd_per_unit_second=o.busy_usd_per_unit_second * factor,
        )
        for o in problem.offers
    )
    limits = replace(problem.limits, usd_per_hour=times(problem.limits.usd_per_hour, factor))
    dearer = replace(problem, offers=offers, limits=limits)
    assert least_cost(dearer) == pytest.approx(factor * least_cost(problem), rel=1e-6, abs=1e-12)


@quick
@given(served, st.sampled_from([1e-3, 60.0]))
def test_the_unit_of_time_does_not_matter(problem: PlanningProblem, factor: float) -> None:
    """Rates times k and loads over k leave the cost as it is, energy aside: small rates do not vanish in tolerances."""
    slower = replace(
        problem,
        demands=tuple(replace(d, rate=d.rate * factor, mean_rate=d.mean_rate * factor) for d in problem.demands),
        candidates=tuple(
            replace(
                c,
                rows=tuple(replace(r, load=tuple((n, v / factor) for n, v in r.load)) for r in c.rows),
                busy_s={name: seconds / factor for name, seconds in c.busy_s.items()},
            )
            for c in problem.candidates
        ),
    )
    assert least_cost(slower) == pytest.approx(least_cost(problem), rel=1e-6, abs=1e-12)


@quick
@given(problems)
def test_pruning_leaves_the_optimum(problem: PlanningProblem) -> None:
    """The cost is the same with and without candidates that pruning leaves out, infeasible problems included."""
    assert least_cost(problem) == pytest.approx(least_cost(problem, pruned=False), rel=1e-6, abs=1e-12)


def shuffled(value: Any, order: random.Random) -> Any:
    """The same document with every mapping and every list of named things in another order."""
    if isinstance(value, dict):
        items = [(key, shuffled(item, order)) for key, item in value.items()]
        order.shuffle(items)
        return dict(items)
    if isinstance(value, list):
        items = [shuffled(item, order) for item in value]
        if all(isinstance(item, dict) and {"name", "sku"} & set(item) for item in items):
            order.shuffle(items)
        return items
    return value


def essence(plan: Plan) -> dict[str, Any]:
    """Everything that is decided: pools, classes, devices and cost."""
    document = plan.to_dict()
    return {
        key: document[key] for key in ("status", "cost", "pools", "classes", "devices", "infeasibility") if key in document
    }


@pytest.mark.parametrize("seed", range(6))
def test_order_does_not_matter(seed: int) -> None:
    """Keys, classes, devices and workers in another order: the same plan to the last digit."""
    assert essence(solve(shuffled(measured(), random.Random(seed)))) == essence(solve(measured()))
