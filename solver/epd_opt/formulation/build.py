"""From a planning problem to a PuLP model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pulp

from epd_models.candidate import Candidate
from epd_opt.formulation.constraints import FAMILIES, LIMITLESS, Family, Rows
from epd_opt.formulation.objective import Scale, objective, scale
from epd_opt.formulation.sets import Sets
from epd_opt.formulation.variables import Variables, add_limitless_variables, add_variables
from epd_opt.problem import PlanningProblem


def _nobody(_: Candidate) -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class Question:
    """Constraints that a question adds to those of every plan.

    Attributes
    ----------
    rows : callable
        As the constraint families; may add variables of its own to the model.
    favours : callable
        Whether the constraints may make a candidate worth more than it is without them. Of all others they may only ask
        to be used less.
    """

    rows: Callable[[pulp.LpProblem, Sets, Variables], Rows]
    favours: Callable[[Candidate], bool] = _nobody


@dataclass(frozen=True, kw_only=True)
class Formulation:
    """A built model with what is needed to read its solution."""

    model: pulp.LpProblem
    sets: Sets
    variables: Variables
    scale: Scale


def build(problem: PlanningProblem, questions: Iterable[Question] = ()) -> Formulation:
    """Build the model: variables, objective, every family of :data:`FAMILIES`, and what questions add."""
    sets = Sets(problem=problem)
    model = pulp.LpProblem("epd_opt", pulp.LpMinimize)
    built = _built(model, sets, add_variables(model, sets), FAMILIES)
    for question in questions:
        for name, row in question.rows(model, sets, built.variables):
            model.addConstraint(row, name)
    return built


def build_limitless(problem: PlanningProblem) -> Formulation:
    """Build a linear programme that holds for every multiple of the demand: what remains of the model without whole
    numbers, without setups and without the bounds that follow from the demand."""
    sets = Sets(problem=problem)
    model = pulp.LpProblem("limitless", pulp.LpMinimize)
    return _built(model, sets, add_limitless_variables(model, sets), LIMITLESS)


def _built(model: pulp.LpProblem, sets: Sets, variables: Variables, families: Iterable[Family]) -> Formulation:
    scaling = scale(sets)
    model.setObjective(objective(sets, variables, scaling))
    for family in families:
        for name, row in family(sets, variables):
            model.addConstraint(row, name)
    return Formulation(model=model, sets=sets, variables=variables, scale=scaling)
