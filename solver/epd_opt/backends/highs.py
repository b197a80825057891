"""HiGHS, in process, through highspy."""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pulp

from epd_opt.backends.base import Outcome, Settings, Termination


@contextlib.contextmanager
def _quiet_stdout() -> Iterator[None]:
    """Send file descriptor 1 to the null device: the library prints a banner there when it is first constructed."""
    sys.stdout.flush()
    saved = os.dup(1)
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 1)
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(null)


def _lp(highspy: Any, model: pulp.LpProblem, variables: list[pulp.LpVariable]) -> Any:
    """The model as a row-wise HighsLp."""
    index = {variable: i for i, variable in enumerate(variables)}
    lp = highspy.HighsLp()
    lp.num_col_ = len(variables)
    lp.col_cost_ = np.array([model.objective.get(variable, 0.0) for variable in variables], dtype=float)
    inf = highspy.kHighsInf
    lp.col_lower_ = np.array([-inf if v.lowBound is None else v.lowBound for v in variables], dtype=float)
    lp.col_upper_ = np.array([inf if v.upBound is None else v.upBound for v in variables], dtype=float)
    kinds = highspy.HighsVarType
    lp.integrality_ = [kinds.kInteger if v.cat == pulp.LpInteger else kinds.kContinuous for v in variables]
    starts, columns, values, lower, upper = [0], [], [], [], []
    for row in model.constraints():
        for variable, coefficient in row.items():
            columns.append(index[variable])
            values.append(coefficient)
        starts.append(len(columns))
        right = -row.constant
        lower.append(right if row.sense in (pulp.LpConstraintEQ, pulp.LpConstraintGE) else -inf)
        upper.append(right if row.sense in (pulp.LpConstraintEQ, pulp.LpConstraintLE) else inf)
    lp.num_row_ = len(lower)
    lp.row_lower_ = np.array(lower, dtype=float)
    lp.row_upper_ = np.array(upper, dtype=float)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.array(starts)
    lp.a_matrix_.index_ = np.array(columns)
    lp.a_matrix_.value_ = np.array(values, dtype=float)
    return lp


class Highs:
    """The default solver."""

    name = "highs"

    def describe(self) -> str:
        """Version of the library in use."""
        from importlib.metadata import version

        return f"HiGHS {version('highspy')}, in process; mixed-integer, gaps and bounds, threads"

    def solve(self, model: pulp.LpProblem, settings: Settings) -> Outcome:
        """Solve with HiGHS; see :class:`epd_opt.backends.base.Backend`."""
        import highspy

        start = time.perf_counter()
        variables = model.variables()
        with _quiet_stdout():
            highs = highspy.Highs()
            highs.resetGlobalScheduler(True)
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", settings.threads)
        highs.setOptionValue("mip_rel_gap", settings.gap)
        highs.setOptionValue("mip_feasibility_tolerance", 1e-7)
        highs.setOptionValue("primal_feasibility_tolerance", 1e-8)
        if settings.time_limit_s is not None:
            highs.setOptionValue("time_limit", settings.time_limit_s)
        highs.passModel(_lp(highspy, model, variables))
        highs.run()
        status = highs.getModelStatus()
        statuses = highspy.HighsModelStatus
        terminations: dict[Any, Termination] = {
            statuses.kOptimal: "optimal",
            statuses.kInfeasible: "infeasible",
            statuses.kUnbounded: "unbounded",
            statuses.kTimeLimit: "time_limit",
            statuses.kInterrupt: "interrupted",
        }
        if status == statuses.kModelEmpty:
            return self._without_variables(model, time.perf_counter() - start, highs.version())
        info = highs.getInfo()
        found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        integer = any(variable.cat == pulp.LpInteger for variable in variables)
        bound = info.mip_dual_bound if integer else info.objective_function_value
        values = None
        if found:
            solution = highs.getSolution().col_value
            values = {variable.name: solution[i] for i, variable in enumerate(variables)}
        return Outcome(
            termination=terminations.get(status, "error"),
            values=values,
            objective=info.objective_function_value if found else None,
            bound=bound if math.isfinite(bound) else None,
            seconds=time.perf_counter() - start,
            solver=f"highs {highs.version()}",
        )

    @staticmethod
    def _without_variables(model: pulp.LpProblem, seconds: float, version: str) -> Outcome:
        """A model without variables, which HiGHS does not judge: it has the empty solution where every row allows it."""
        senses = {pulp.LpConstraintEQ: (0,), pulp.LpConstraintLE: (-1, 0), pulp.LpConstraintGE: (0, 1)}
        kept = all((r.constant > 0) - (r.constant < 0) in senses[r.sense] for r in model.constraints())
        objective = float(model.objective.constant) if kept else None
        return Outcome(
            termination="optimal" if kept else "infeasible",
            values={} if kept else None,
            objective=objective,
            bound=objective,
            seconds=seconds,
            solver=f"highs {version}",
        )
