"""Searches: what is asked of the solver, and in which order, for each objective."""

from __future__ import annotations

from epd_opt.instance import CostOverRange
from epd_opt.search.fixed import cheapest, cheapest_of
from epd_opt.search.goodput import most_demand
from epd_opt.search.ratio import cheapest_multiple
from epd_opt.search.reinforcing import beyond_limits
from epd_opt.search.task import Found, NoPlan, Task

__all__ = ["Found", "NoPlan", "Task", "best", "cheapest_of"]


def best(task: Task) -> Found | NoPlan:
    """Plan as the instance's objective asks.

    Raises
    ------
    InvalidInput
        The objective makes no sense for the instance.
    OutOfTime
        The clock ended before there was a model.
    SolverFailed
        See :meth:`epd_opt.search.task.Task.solve`.
    """
    wanted = task.resolved.instance.objective
    if wanted == "cost_per_request":
        return cheapest(task)
    found = cheapest_multiple(task, *wanted.rate_multiple) if isinstance(wanted, CostOverRange) else most_demand(task)
    if isinstance(found, NoPlan):
        return found
    beyond = beyond_limits(found.formulation.sets.problem, found, task.means.settings)
    return found if beyond is None else NoPlan(why=beyond.why, outcome=found.outcome)
