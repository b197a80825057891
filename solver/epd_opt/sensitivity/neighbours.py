"""What the plans of points nearby on a line say about a point, before it is searched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from epd_opt.accounting import holdings, total_usd_per_hour
from epd_opt.backends import HIGHS, Clocked, Settings
from epd_opt.bound import largest_ties
from epd_opt.formulation import build
from epd_opt.pricing import only
from epd_opt.problem import PlanningProblem
from epd_opt.prune import connected
from epd_opt.resolve import Resolved
from epd_opt.shortlist import Incumbent, Scout
from epd_opt.solution import replica_counts, route

Point = Mapping[str, Any]


def informed(
    problem: PlanningProblem, resolved: Resolved, solver: Clocked, below: Point | None, above: Point | None
) -> Scout:
    """A scout that knows the best plan over the operating points that the plans of two neighbours use, where there is one.

    Parameters
    ----------
    below, above : mapping, optional
        Points over the same candidates at which no class has more demand, or none has less.

    Returns
    -------
    Scout
        Settled where no plan at the point can be better: what is proved where there is less demand holds here.
    """
    wanted = resolved.instance.solver
    settings = Settings(gap=wanted.gap, time_limit_s=None, threads=wanted.threads)
    scout = Scout(settings=settings, clock=solver.clock)
    near = [point for point in (below, above) if point is not None]
    if below is not None:
        scout.bound = below["cost"]["bound_usd_per_hour"]
    keys = {pool["key"] for point in near for pool in point["pools"]}
    chosen = np.array([candidate.key in keys for candidate in problem.candidates], dtype=bool)
    if not chosen.any():
        return scout
    some = only(problem, chosen)
    formulation = build(replace(some, candidates=tuple(connected(some.candidates))))
    outcome = Clocked(solver=HIGHS, clock=solver.clock).solve(formulation.model, settings)
    if outcome.values is None or outcome.termination != "optimal":
        return scout
    found = Incumbent(formulation=formulation, outcome=outcome)
    scout.incumbent, scout.informed = found, True
    solution = route(formulation, replica_counts(formulation, outcome), HIGHS, settings)
    if below is None or solution is None:
        return scout
    cost = total_usd_per_hour(holdings(problem, solution))
    same = above is not None and _fleet(above) == _fleet(below) == {
        pool.candidate.key: pool.replicas for pool in solution.pools
    }
    if cost * (1.0 - settings.gap) <= scout.bound * (1.0 + _SAME) and (settings.gap > 0.0 or same):
        proved = scout.bound * formulation.scale.factor + largest_ties(formulation, cost)
        scout.settled = True
        scout.incumbent = replace(found, outcome=replace(outcome, bound=proved))
    return scout


_SAME = 1e-9
"""Relative difference that arithmetic alone may make."""


def _fleet(point: Point) -> dict[str, int]:
    return {pool["key"]: pool["replicas"] for pool in point["pools"]}
