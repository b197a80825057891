"""Models and answers of OR-Tools MathOpt.

Its own HiGHS is never used: it clashes with highspy in one process. Nothing here imports OR-Tools outside the child
process that solves.
"""

from __future__ import annotations

import datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from epd_opt.backends.base import Answer, Availability, Settings, Termination, Vector
from epd_opt.backends.child import Desk
from epd_opt.backends.matrix import Matrix


def availability() -> Availability:
    """Whether OR-Tools is installed."""
    try:
        return Availability(version=version("ortools"))
    except PackageNotFoundError:
        return Availability(missing="pip install 'epd-opt[ortools]'")


def model_of(mathopt: Any, matrix: Matrix) -> tuple[Any, list[Any]]:
    """The model and its variables, in the order of the columns."""
    model = mathopt.Model()
    columns = [
        model.add_variable(lb=lower, ub=upper, is_integer=bool(whole))
        for lower, upper, whole in zip(matrix.lower.tolist(), matrix.upper.tolist(), matrix.integer, strict=True)
    ]
    for column, cost in zip(columns, matrix.cost.tolist(), strict=True):
        if cost:
            model.objective.set_linear_coefficient(column, cost)
    starts, entries, coefficients = matrix.starts.tolist(), matrix.columns.tolist(), matrix.coefficients.tolist()
    for r, (lower, upper) in enumerate(zip(matrix.row_lower.tolist(), matrix.row_upper.tolist(), strict=True)):
        row = model.add_linear_constraint(lb=lower, ub=upper)
        for entry in range(starts[r], starts[r + 1]):
            row.set_coefficient(columns[entries[entry]], coefficients[entry])
    return model, columns


def solve(desk: Desk, solver: str, matrix: Matrix, settings: Settings, start: Vector | None) -> Answer:
    """Solve with the MathOpt solver of this name, in the child."""
    from ortools.math_opt.python import mathopt
    from ortools.util.python.solve_interrupter import SolveInterrupter

    model, columns = model_of(mathopt, matrix)
    hints = []
    if start is not None:
        known = {columns[i]: float(start[i]) for i in np.flatnonzero(~np.isnan(start))}
        hints = [mathopt.SolutionHint(variable_values=known)]
    interrupter = SolveInterrupter()
    desk.stop = interrupter.interrupt

    def values(solution: Any) -> Vector:
        return np.array([solution[column] for column in columns])

    def improved(data: Any) -> Any:
        if data.solution is not None:
            desk.hand_in(Answer(termination="time_limit", values=values(data.solution)))
        return mathopt.CallbackResult()

    streams = solver == "CP_SAT"
    special: dict[str, Any] = {}
    if streams:
        from ortools.sat.sat_parameters_pb2 import SatParameters

        special["cp_sat"] = SatParameters(
            # Its model comes in whole numbers of 50 bits, which its own scaling of mixed models would cut off or round.
            mip_max_bound=2.0**53,
            mip_max_activity_exponent=60,
            mip_drop_tolerance=0.0,
            # On one thread, probing makes it stand still among ties of large numbers.
            cp_model_probing_level=0,
        )
    seconds = desk.seconds_left()
    result = mathopt.solve(
        model,
        mathopt.SolverType[solver],
        params=mathopt.SolveParameters(
            time_limit=None if seconds is None else datetime.timedelta(seconds=seconds),
            relative_gap_tolerance=settings.gap,
            absolute_gap_tolerance=0.0,
            threads=1 if streams else None,
            **special,
        ),
        model_params=mathopt.ModelSolveParameters(solution_hints=hints),
        callback_reg=mathopt.CallbackRegistration(events={mathopt.Event.MIP_SOLUTION}) if streams else None,
        cb=improved if streams else None,
        interrupter=interrupter,
    )
    found = result.has_primal_feasible_solution()
    return Answer(
        termination=_termination(mathopt, result.termination),
        values=values(result.variable_values()) if found else None,
        bound=result.termination.objective_bounds.dual_bound,
        version=f"(OR-Tools {version('ortools')})",
        note=result.termination.detail if result.termination.reason is mathopt.TerminationReason.OTHER_ERROR else "",
    )


def _termination(mathopt: Any, termination: Any) -> Any:
    reasons, limits = mathopt.TerminationReason, mathopt.Limit
    # CP-SAT does not tell which limit it met; the parent knows whether it has asked for the end.
    stopped: dict[Any, Termination] = {
        limits.TIME: "time_limit",
        limits.UNDETERMINED: "time_limit",
        limits.INTERRUPTED: "interrupted",
    }
    ended: dict[Any, str] = {
        reasons.OPTIMAL: "optimal",
        reasons.INFEASIBLE: "infeasible",
        reasons.UNBOUNDED: "unbounded",
        reasons.INFEASIBLE_OR_UNBOUNDED: "infeasible_or_unbounded",
    }
    return ended.get(termination.reason) or stopped.get(termination.limit, "error")
