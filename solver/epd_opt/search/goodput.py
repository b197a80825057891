"""The largest multiple of the demand that a fleet within the limits can serve, then the cheapest fleet that serves it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from epd_opt import document as doc
from epd_opt.backends import Outcome, OutOfTime, SolverFailed, relaxed
from epd_opt.errors import InvalidInput, Problem
from epd_opt.formulation import build
from epd_opt.formulation.objective import UNIT_WEIGHT, served_objective
from epd_opt.infeasible import unservable
from epd_opt.offering import Offering
from epd_opt.problem import PlanningProblem
from epd_opt.search.ceiling import ceiling
from epd_opt.search.fitting import fitting
from epd_opt.search.task import Found, Means, NoPlan, Task, pruned, rounded_down
from epd_opt.solution import replica_counts

_NOTHING = 1e-6
"""Share of the largest demand below which nothing is served: solvers cannot tell so little from none."""
_BELOW, _ABOVE = 1.05, 1.01
"""Operating points made for a demand cover pools up to it: they serve for any that is lower by no more than the first
factor, and for hardly any that is higher."""
_ROUNDS = 4
"""Times that operating points are made, each time for the bound on the multiple that the last ones gave."""


def most_demand(task: Task) -> Found | NoPlan:
    """The cheapest fleet among those that serve the largest multiple of the stated demand.

    Raises
    ------
    InvalidInput
        Nothing is requested, or nothing limits the multiple.
    OutOfTime
        The clock ended before there was a model.
    SolverFailed
        See :meth:`epd_opt.search.task.Task.solve`.
    """
    if not task.resolved.demands:
        message = "goodput is a multiple of the rates, and all rates are 0"
        raise InvalidInput([Problem(path="workload.classes", message=message, hint="give rate_per_s")])
    most = _about(task)
    for _ in range(_ROUNDS):
        hint = rounded_down(most)
        offered = task.offering_at([hint])
        why = unservable(task.resolved, offered)
        if why is not None:
            return NoPlan(why=why)
        problem = task.pruned(offered)
        most = ceiling(problem, task.means.clock)
        task.means.say(f"at most {most:.6g} times the demand")
        if not offered.behaviours or most <= 0.0 or hint / _BELOW <= most <= hint * _ABOVE:
            break
    found = largest(pruned(problem, most), most, task.means) if most > 0.0 else None
    if isinstance(found, Outcome):
        return NoPlan(outcome=found)
    if found is None:
        multiple = (most or 1.0) * 1e-3
        return NoPlan(why=task.limiting(pruned(problem, multiple).at(multiple)))
    task.means.say(f"{found.multiple:.6g} times the demand, at most {found.bound:.6g}")
    return _cheapest(task, offered, found, hint)


def _about(task: Task) -> float:
    """About the largest multiple, from outlines of pools for the stated demand; 1 where they tell nothing, as beside
    measured workers."""
    found = [1.0]

    def screen(outlines: PlanningProblem, _: object) -> Collection[str]:
        with contextlib.suppress(InvalidInput):
            found.append(ceiling(pruned(outlines), task.means.clock))
        return ()

    if not task.resolved.instance.workers:
        task.offering_at([1.0], screen)
    return found[-1] or 1.0


def _cheapest(task: Task, offered: Offering, found: Largest, hint: float) -> Found:
    """The cheapest fleet for the multiple found, or the one found with it where there is no better; at a lower multiple
    where predictions at the real load ask for that."""
    formulation = build(found.problem.at(found.multiple))
    outcome = replace(found.outcome, values=found.start, objective=None, bound=None)
    proved = False
    with contextlib.suppress(SolverFailed):
        cheapest = task.means.solve(formulation, replace(task.means.settings, start=found.start))
        if cheapest.values is not None:
            outcome, proved = cheapest, cheapest.termination == "optimal"
    counts = replica_counts(formulation, outcome)
    multiple = fitting(formulation, offered, counts, found.multiple, task.means.settings)
    gap = (found.bound - multiple) / multiple
    stated = math.fsum(request.rate_per_s for request in task.resolved.instance.workload.classes)
    return Found(
        multiple=multiple,
        offered=offered,
        formulation=formulation if multiple == found.multiple else build(found.problem.at(multiple)),
        outcome=outcome if multiple == found.multiple else replace(outcome, bound=None),
        proved=gap <= task.means.settings.gap or (found.outcome.termination == "optimal" and multiple == found.multiple),
        goodput=doc.Goodput(
            multiple=multiple, requests_per_s=multiple * stated, bound_multiple=found.bound, gap=gap, points_for=[hint]
        ),
        warnings=() if proved else ("it is not proved that no cheaper fleet serves as much",),
    )


@dataclass(frozen=True, kw_only=True)
class Largest:
    """The largest multiple that was found.

    Attributes
    ----------
    problem : PlanningProblem
        The problem at its stated demand.
    multiple, bound : float
        Served, and never exceeded.
    outcome : Outcome
        Of the search.
    start : Mapping[str, float]
        Values of a model of the problem at that multiple.
    """

    problem: PlanningProblem
    multiple: float
    bound: float
    outcome: Outcome
    start: Mapping[str, float]


def largest(problem: PlanningProblem, most: float, means: Means) -> Largest | Outcome | None:
    """The largest multiple of a problem's demand that some fleet serves.

    Parameters
    ----------
    problem : PlanningProblem
        At its stated demand, with all candidates that matter up to ``most`` times as much.
    most : float
        A multiple that no fleet exceeds, above zero.

    Returns
    -------
    Largest, Outcome or None
        The outcome where the search ended before it found anything; None where no fleet serves any demand.
    """
    formulation = build(replace(problem.at(most), least_served=0.0))
    formulation.model.setObjective(served_objective(formulation.sets, formulation.variables))
    outcome = means.solve(formulation)
    if outcome.values is None:
        return outcome
    values = outcome.values
    with contextlib.suppress(OutOfTime):
        values = relaxed(formulation.model, means.clock, whole=values).values or values
    assert formulation.variables.unserved is not None
    served = 1.0 - values[formulation.variables.unserved.name]
    if served <= _NOTHING:
        return None if outcome.termination == "optimal" else replace(outcome, values=None)
    multiple = rounded_down(most * served)
    share = 1.0 if outcome.bound is None else min(1.0, -outcome.bound / UNIT_WEIGHT)
    v = formulation.variables
    shares = {variable.name for variable in (*v.share.values(), *v.slowed.values())}
    return Largest(
        problem=problem,
        multiple=multiple,
        bound=max(multiple, most * share),
        outcome=outcome,
        start={name: value / served if name in shares else value for name, value in values.items()},
    )
