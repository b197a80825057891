"""The bound on the multiple of the demand, and what is said where there is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from epd_opt import solve
from epd_opt.errors import InvalidInput
from epd_opt.problem import PlanningProblem
from support.documents import measured, modelled
from support.problems import random_problem, stocked_problem
from support.searching import bound_of, goodput


def grows_without_end(problem: PlanningProblem) -> bool:
    """Whether every class has a way over candidates whose units are to be had in any number within the limits."""
    limits = problem.limits
    free = set()
    for offer in problem.offers:
        costs = offer.usd_per_hour > 0 or offer.used_usd_per_hour > 0 or offer.busy_usd_per_unit_second > 0
        affordable = limits.usd_per_hour is None or not costs
        powered = limits.power_w is None or offer.power_w == 0
        if offer.stock is None and limits.devices is None and affordable and powered:
            free.add(offer.name)
    left = replace(problem, candidates=tuple(c for c in problem.candidates if c.device in free))
    return all(has_way(left, demand.name) for demand in problem.demands)


def has_way(problem: PlanningProblem, name: str) -> bool:
    """Whether a class can be handed on from its source to its end."""
    arcs = [arc for candidate in problem.candidates for arc in candidate.arcs if arc.request_class == name]
    reached = {(arc.end.state, arc.end.sender, arc.end.level) for arc in arcs if arc.start.sender is None}
    while True:
        more = {
            (arc.end.state, arc.end.sender, arc.end.level)
            for arc in arcs
            for state, sender, level in reached
            if arc.start.sender is not None and (arc.start.state, arc.start.sender) == (state, sender)
            if arc.start.level >= level
        }
        if more <= reached:
            return any(state == "done" for state, _, _ in reached)
        reached |= more


@pytest.mark.parametrize("seed", range(60))
def test_what_is_refused_is_what_grows_without_end(seed: int) -> None:
    """A random problem is refused exactly if units without a limit serve every class."""
    problem = random_problem(seed)
    if all(has_way(problem, demand.name) for demand in problem.demands):
        if grows_without_end(problem):
            with pytest.raises(InvalidInput, match="nothing limits the multiple"):
                bound_of(problem)
        else:
            assert bound_of(problem) < 1e6


@pytest.mark.parametrize("seed", range(0, 40, 2))
def test_the_bound_is_no_less_with_everything_that_pruning_leaves_out(seed: int) -> None:
    """Pruning for any demand changes neither the bound nor the multiple."""
    problem = stocked_problem(seed)
    assert bound_of(problem) == pytest.approx(bound_of(problem, slim=False), rel=0.03, abs=1e-9)
    slim, whole = goodput(problem), goodput(problem, slim=False)
    assert (slim is None) == (whole is None)
    if slim is not None and whole is not None:
        assert slim.multiple == pytest.approx(whole.multiple, rel=1e-7)
        assert slim.multiple <= slim.bound <= bound_of(problem) * (1 + 1e-9)


def refusal(document: dict[str, Any]) -> str:
    """What is said of an instance that nothing limits."""
    with pytest.raises(InvalidInput) as refused:
        solve(document)
    (problem,) = refused.value.problems
    assert problem.path == "objective"
    return f"{problem.message} ({problem.hint})"


def free(**changes: Any) -> dict[str, Any]:
    """The measured instance without any stock."""
    document = measured(objective="goodput", **changes)
    for entry in document["devices"]:
        entry.pop("stock", None)
    return document


def test_an_instance_without_limits_is_refused_with_what_would_do() -> None:
    """Both entries are needed by every way of albums; stock of one is enough, and so is each limit."""
    said = refusal(free())
    assert "any number of units of big and small may be planned" in said or "any number of units of small" in said
    for limit in ("usd_per_hour", "power_kw", "devices"):
        assert f"limits.{limit}" in said


def test_stock_of_what_is_named_is_enough() -> None:
    """With the stock that the refusal asks for, there is a multiple."""
    said = refusal(free())
    document = free()
    named = [entry for entry in document["devices"] if f"devices.{entry['sku']}.stock" in said]
    assert named
    for entry in named:
        entry["stock"] = 12
    assert solve(document).goodput.multiple > 0


def test_a_limit_that_would_not_do_is_not_offered() -> None:
    """Units without power and without price are limited by their number only."""
    document = free()
    document["devices"] = [
        {"sku": "big", "price": {"usd_per_hour": 0}},
        {"sku": "small", "price": {"usd_per_hour": 0}},
    ]
    said = refusal(document)
    assert "limits.devices" in said
    assert "limits.usd_per_hour" not in said
    assert "limits.power_kw" not in said


def test_modelled_instances_without_limits_are_refused() -> None:
    """Entries of the catalogue without a stock, each a whole way of its own, are named."""
    assert "A100-80-SXM" in refusal(modelled(objective="goodput"))
