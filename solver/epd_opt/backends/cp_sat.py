"""CP-SAT, through OR-Tools MathOpt, in a child process.

CP-SAT knows whole numbers only, and turns continuous variables into whole ones of a coarse grid, which forbids the true
optimum and proves bounds that do not hold. So it is given a relaxation in whole numbers: continuous variables on a fine
grid, coefficients scaled and rounded, and every row widened by the most that rounding can amount to. Each solution of the
model, rounded, is one of the relaxation; so what CP-SAT proves holds for the model. The continuous part of an answer comes
from HiGHS, for the whole numbers that CP-SAT has found; where there is none, they are no answer.
"""

from __future__ import annotations

import dataclasses
import math
import time
from dataclasses import dataclass

import numpy as np

from epd_opt.backends import mathopt
from epd_opt.backends.base import Answer, Availability, Capabilities, Checked, Settings, Vector, proves
from epd_opt.backends.guard import remaining
from epd_opt.backends.highs import Highs
from epd_opt.backends.matrix import Matrix
from epd_opt.backends.process import solve_in_child

_GRIDS = (2**20, 2**22, 2**26)
"""Steps across the range of a continuous variable: a finer grid, which is slower, where the one before proves too little
or its whole numbers have no continuous part. Still finer ones would be no better: the more steps, the fewer digits are left
for coefficients below the largest activity."""
_ACTIVITY = 2.0**50
"""Largest activity of a scaled row: CP-SAT computes in 64 bits, and doubles carry whole numbers up to 2^53."""
_REACH = 2.0**53
"""Largest objective: all of its digits that a double carries."""


@dataclass(frozen=True, kw_only=True)
class WholeNumbers:
    """A relaxation of a model in whole numbers.

    A column's value is ``lower + step * whole``; an objective of the relaxation proves the model's to be at least
    ``(objective - slack) / scale + constant``.
    """

    matrix: Matrix
    lower: Vector
    step: Vector
    scale: float
    slack: float
    constant: float

    def values(self, wholes: Vector) -> Vector:
        """Values of the model's columns."""
        return np.asarray(self.lower + self.step * wholes)

    def wholes(self, values: Vector) -> Vector:
        """Nearest whole numbers to values of the model's columns; NaN stays."""
        return np.asarray(np.round((values - self.lower) / self.step))

    def bound(self, proved: float) -> float:
        """What a bound on the relaxation proves of the model."""
        return (proved - self.slack) / self.scale + self.constant


def whole_numbers(matrix: Matrix, steps: int) -> WholeNumbers:
    """The relaxation of a model whose variables are all bounded, with so many steps across continuous ones."""
    lower = np.where(matrix.integer, np.ceil(matrix.lower - 1e-9), matrix.lower)
    upper = np.where(matrix.integer, np.floor(matrix.upper + 1e-9), matrix.upper)
    span = np.maximum(upper - lower, 0.0)
    step = np.where(matrix.integer, 1.0, np.where(span > 0.0, span / steps, 1.0))
    top = np.where(matrix.integer, span, np.where(span > 0.0, float(steps), 0.0))
    # Rounding a value to the grid moves it by half a step at most.
    off = np.where(matrix.integer | (span == 0.0), 0.0, 0.5)

    rows = matrix.row_of_entry()
    columns, count = matrix.columns, len(matrix.row_names)
    exact = matrix.coefficients * step[columns]
    shift = np.bincount(rows, matrix.coefficients * lower[columns], minlength=count)
    activity = np.bincount(rows, np.abs(exact) * np.maximum(top[columns], 1.0), minlength=count)
    scale = 2.0 ** np.floor(np.log2(_ACTIVITY / activity))
    coefficients = np.round(exact * scale[rows])
    moved = np.abs(exact * scale[rows]) * off[columns] + np.abs(coefficients - exact * scale[rows]) * (top[columns] + 0.5)
    slack = np.bincount(rows, moved, minlength=count)
    # Doubles err by one part in 2^53 of the largest term, which is below one at this scale.
    slack = np.where(slack > 0.0, slack + 1.0, np.where(np.abs(shift) > 0.0, 1.0, 0.0))

    cost = matrix.cost * step
    reach = float(np.sum(np.abs(cost) * np.maximum(top, 1.0)))
    cost_scale = 2.0 ** math.floor(math.log2(_REACH / reach)) if reach > 0.0 else 1.0
    costs = np.asarray(np.round(cost * cost_scale), dtype=float)
    cost_slack = np.sum(np.abs(cost * cost_scale) * off + np.abs(costs - cost * cost_scale) * (top + 0.5))
    return WholeNumbers(
        matrix=dataclasses.replace(
            matrix,
            cost=costs,
            lower=np.zeros_like(top),
            upper=top,
            integer=np.ones(len(top), dtype=bool),
            row_lower=np.ceil((matrix.row_lower - shift) * scale - slack),
            row_upper=np.floor((matrix.row_upper - shift) * scale + slack),
            coefficients=coefficients,
            offset=0.0,
        ),
        lower=lower,
        step=step,
        scale=cost_scale,
        slack=float(cost_slack),
        constant=float(matrix.cost @ lower),
    )


class CpSat(Checked):
    """CP-SAT as a second opinion of another kind: constraint programming on whole numbers.

    One thread: on several, its answers depend on which of them is first.
    """

    name = "cp_sat"
    title = "CP-SAT through OR-Tools"
    capabilities = Capabilities(unbounded_variables=False, warm_start=True, threads=False)

    def availability(self) -> Availability:
        """See :class:`epd_opt.backends.base.Backend`."""
        return mathopt.availability()

    def answer(self, matrix: Matrix, settings: Settings, start: Vector | None) -> Answer:
        """See :class:`epd_opt.backends.base.Checked`."""
        began = time.perf_counter()
        if (matrix.lower > matrix.upper).any():
            return Answer(termination="infeasible")
        answer = Answer(termination="time_limit")
        for steps in _GRIDS:
            left = dataclasses.replace(settings, time_limit_s=remaining(settings.time_limit_s, began))
            answer = self._on_grid(matrix, steps, left, start)
            if answer.termination != "error" and proves(matrix, settings, answer):
                break
        return answer

    def _on_grid(self, matrix: Matrix, steps: int, settings: Settings, start: Vector | None) -> Answer:
        """The answer of the relaxation on one grid; an error where its whole numbers have no continuous part."""
        began = time.perf_counter()
        relaxed = whole_numbers(matrix, steps)
        hint = None if start is None else relaxed.wholes(start)
        arguments = ("CP_SAT", relaxed.matrix, settings, hint)
        answer = solve_in_child("epd_opt.backends.mathopt:solve", arguments, settings.time_limit_s)
        bound = None if answer.bound is None else relaxed.bound(answer.bound)
        answer = dataclasses.replace(answer, bound=bound)
        if answer.values is None or matrix.integer.all():
            return answer if answer.values is None else dataclasses.replace(answer, values=relaxed.values(answer.values))
        return self._completed(matrix, relaxed.values(answer.values), answer, settings, began)

    @staticmethod
    def _completed(matrix: Matrix, values: Vector, answer: Answer, settings: Settings, began: float) -> Answer:
        """The answer with the best continuous part for its whole numbers."""
        fixed = np.round(values)
        completion = dataclasses.replace(
            matrix,
            integer=np.zeros_like(matrix.integer),
            lower=np.where(matrix.integer, fixed, matrix.lower),
            upper=np.where(matrix.integer, fixed, matrix.upper),
        )
        left = remaining(settings.time_limit_s, began)
        limit = None if left is None else max(left, 0.5)
        found = Highs().answer(completion, dataclasses.replace(settings, time_limit_s=limit), None)
        if found.termination == "optimal":
            return dataclasses.replace(answer, values=found.values)
        ending = "error" if answer.termination == "optimal" else answer.termination
        note = "the whole numbers that CP-SAT found leave no room for the continuous variables"
        return dataclasses.replace(answer, termination=ending, values=None, note=note)
