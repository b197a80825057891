"""The largest multiple of the demand that a fleet within the limits can serve, then the cheapest fleet that serves it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import replace

from epd_opt import document as doc
from epd_opt.backends import Outcome, OutOfTime, relaxed
from epd_opt.errors import InvalidInput, Problem
from epd_opt.formulation import Formulation, build
from epd_opt.formulation.objective import UNIT_WEIGHT, served_objective
from epd_opt.infeasible import limiting, unservable
from epd_opt.offering import Offering
from epd_opt.problem import PlanningProblem
from epd_opt.search.ceiling import ceiling
from epd_opt.search.task import Found, NoPlan, Task, rounded_down

_NOTHING = 1e-6
"""Share of the largest demand below which nothing is served: solvers cannot tell so little from none."""
_NEAR = 1.25
"""Operating points made for a demand serve others within this factor as well."""


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
    hint = 1.0
    offered = task.offering_at([hint])
    why = unservable(task.resolved, offered)
    if why is not None:
        return NoPlan(why=why)
    most = ceiling(task.pruned(offered), task.clock)
    task.say(f"at most {most:.6g} times the demand")
    if offered.behaviours and most > 0.0 and not 1.0 / _NEAR <= most <= _NEAR:
        hint = rounded_down(most)
        offered = task.offering_at([hint])
        most = ceiling(task.pruned(offered), task.clock)
    if most <= 0.0:
        return NoPlan(why=_nothing(task, offered, 1e-3))
    problem = task.pruned(offered, most)
    formulation = build(replace(problem.at(most), least_served=0.0))
    formulation.model.setObjective(served_objective(formulation.sets, formulation.variables))
    outcome = task.solve(formulation, task.settings)
    if outcome.values is None:
        return NoPlan(outcome=outcome)
    values = _completed(task, formulation, outcome)
    assert formulation.variables.unserved is not None
    served = 1.0 - values[formulation.variables.unserved.name]
    if served <= _NOTHING:
        proved = outcome.termination == "optimal"
        return NoPlan(why=_nothing(task, offered, most * 1e-3)) if proved else NoPlan(outcome=outcome)
    multiple = rounded_down(most * served)
    proved_share = 1.0 if outcome.bound is None else min(1.0, -outcome.bound / UNIT_WEIGHT)
    bound = max(multiple, most * proved_share)
    task.say(f"{multiple:.6g} times the demand, at most {bound:.6g}")
    found = doc.Goodput(
        multiple=multiple,
        requests_per_s=multiple * _stated(task),
        bound_multiple=bound,
        gap=(bound - multiple) / multiple,
        points_for=[hint],
    )
    return _cheapest(task, offered, problem.at(multiple), found, formulation, values, served, outcome)


def _cheapest(
    task: Task,
    offered: Offering,
    problem: PlanningProblem,
    goodput: doc.Goodput,
    at_most: Formulation,
    values: Mapping[str, float],
    served: float,
    outcome: Outcome,
) -> Found:
    """The cheapest fleet that serves the multiple found; the one found first where there is no time for that."""
    shares = {variable.name for variable in at_most.variables.share.values()}
    start = {name: value / served if name in shares else value for name, value in values.items()}
    formulation = build(problem)
    cheapest = task.solve(formulation, dataclasses.replace(task.settings, start=start))
    warnings: tuple[str, ...] = ()
    if cheapest.values is None:
        cheapest = dataclasses.replace(outcome, values=dict(values), objective=None, bound=None)
    if cheapest.termination != "optimal" or cheapest.objective is None:
        warnings = ("there was no time to prove that no cheaper fleet serves as much",)
    return Found(
        multiple=goodput.multiple,
        offered=offered,
        formulation=formulation,
        outcome=cheapest,
        proved=outcome.termination == "optimal" or goodput.gap <= task.settings.gap,
        goodput=goodput,
        warnings=warnings,
    )


def _completed(task: Task, formulation: Formulation, outcome: Outcome) -> Mapping[str, float]:
    """The values of a solution, its fleet serving all that it can."""
    assert outcome.values is not None
    try:
        best = relaxed(formulation.model, task.clock, whole=outcome.values).values
    except OutOfTime:
        best = None
    return outcome.values if best is None else best


def _nothing(task: Task, offered: Offering, multiple: float) -> doc.Infeasibility:
    """Why not even a small multiple of the demand is served."""
    return limiting(task.pruned(offered, multiple).at(multiple), task.solver, task.settings)


def _stated(task: Task) -> float:
    """Requests/s of all classes as stated, headroom left out."""
    return math.fsum(request.rate_per_s for request in task.resolved.instance.workload.classes)
