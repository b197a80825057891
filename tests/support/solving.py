"""Solving abstract problems the way the pipeline does, without documents."""

from __future__ import annotations

import math
from dataclasses import dataclass

from epd_opt.accounting import holdings, total_usd_per_hour
from epd_opt.backends import Settings, backend
from epd_opt.bound import proved_bound
from epd_opt.formulation import build
from epd_opt.problem import PlanningProblem
from epd_opt.prune import prune
from epd_opt.solution import Solution, replica_counts, route

EXACT = Settings(gap=0.0, time_limit_s=60.0, threads=1)


@dataclass(frozen=True, kw_only=True)
class Solved:
    """A fleet with its cost, and what the solver proved about it."""

    solution: Solution
    usd_per_hour: float
    bound: float
    counts: dict[str, int]


def solved(problem: PlanningProblem, *, pruned: bool = True, settings: Settings = EXACT) -> Solved | None:
    """The cheapest fleet; None where there is none."""
    formulation = build(prune(problem) if pruned else problem)
    outcome = backend("highs").solve(formulation.model, settings)
    if outcome.termination == "infeasible":
        return None
    assert outcome.termination == "optimal"
    solution = route(formulation, replica_counts(formulation, outcome), backend("highs"), settings)
    assert solution is not None, "the fleet cannot route the demand"
    cost = total_usd_per_hour(holdings(problem, solution))
    bound, _ = proved_bound(formulation, outcome, cost)
    return Solved(
        solution=solution,
        usd_per_hour=cost,
        bound=bound,
        counts={pool.candidate.key: pool.replicas for pool in solution.pools},
    )


def least_cost(problem: PlanningProblem, *, pruned: bool = True) -> float:
    """Least hourly cost, infinite where nothing serves the demand."""
    found = solved(problem, pruned=pruned)
    return math.inf if found is None else found.usd_per_hour
