"""Any other solver that PuLP can reach, in a child process that is ended when it overruns.

PuLP tells status and values, no bound. It calls solves optimal that the clock stopped, so an optimum counts only if time
was left; then its bound follows from the gap.
"""

from __future__ import annotations

import functools
import math
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pulp

from epd_opt.backends.base import Answer, Availability, Capabilities, Checked, Settings, Vector
from epd_opt.backends.child import Desk
from epd_opt.backends.matrix import Matrix
from epd_opt.backends.process import solve_in_child

_USED_UP = 0.9
"""Share of the time limit from which a solve counts as stopped by the clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A solver of PuLP.

    Attributes
    ----------
    pulp_name, title, install : str
        Its name in PuLP and in the world; what to install for it.
    gap : str
        How it takes the gap: ``gapRel`` as PuLP's argument, a command-line option before the number, or not at all. PuLP
        does not tell whether SCIP stopped at the gap or ran out of memory, so SCIP is left to go on to the optimum.
    threads : bool
        Whether PuLP passes threads on.
    whole_seconds : bool
        Whether its time limit is in whole seconds.
    undefined_is_none : bool
        Whether the status undefined, with time left, means that the search is over and there is no solution.
    """

    pulp_name: str
    title: str
    install: str
    gap: str = "gapRel"
    threads: bool = True
    whole_seconds: bool = False
    undefined_is_none: bool = False


SOLVERS: dict[str, Row] = {
    "glpk": Row(
        pulp_name="GLPK_CMD",
        title="GLPK",
        install="the executable glpsol (package glpk-utils)",
        gap="--mipgap",
        threads=False,
        whole_seconds=True,
        undefined_is_none=True,
    ),
    "scip_cmd": Row(pulp_name="SCIP_CMD", title="SCIP", install="the executable scip", gap="", threads=False),
    "scip_py": Row(pulp_name="SCIP_PY", title="SCIP", install="pip install pyscipopt", gap="", threads=False),
    "fscip_cmd": Row(pulp_name="FSCIP_CMD", title="FiberSCIP", install="the executable fscip", gap=""),
    "highs_cmd": Row(pulp_name="HiGHS_CMD", title="HiGHS", install="the executable highs"),
    "gurobi": Row(pulp_name="GUROBI", title="Gurobi", install="pip install gurobipy, and a licence"),
    "gurobi_cmd": Row(pulp_name="GUROBI_CMD", title="Gurobi", install="the executable gurobi_cl, and a licence"),
    "cplex": Row(pulp_name="CPLEX_PY", title="CPLEX", install="pip install cplex, and a licence"),
    "cplex_cmd": Row(pulp_name="CPLEX_CMD", title="CPLEX", install="the executable cplex, and a licence"),
    "xpress": Row(pulp_name="XPRESS_PY", title="Xpress", install="pip install xpress, and a licence", threads=False),
    "copt": Row(pulp_name="COPT", title="COPT", install="pip install coptpy, and a licence", threads=False),
}


@functools.cache
def _available(pulp_name: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return bool(pulp.getSolver(pulp_name, msg=False).available())
        except Exception:  # what a missing library raises is for it to choose
            return False


def through_pulp(desk: Desk, name: str, matrix: Matrix, settings: Settings) -> Answer:
    """Solve with a solver of PuLP, in the child."""
    row = SOLVERS[name]
    model = pulp.LpProblem("epd_opt", pulp.LpMinimize)
    kinds = [pulp.LpInteger if whole else pulp.LpContinuous for whole in matrix.integer]
    lower = [None if bound == -np.inf else bound for bound in matrix.lower.tolist()]
    upper = [None if bound == np.inf else bound for bound in matrix.upper.tolist()]
    columns = [model.add_variable(f"x{j}", lower[j], upper[j], cat=kinds[j]) for j in range(len(kinds))]
    model.setObjective(pulp.LpAffineExpression(zip(columns, matrix.cost.tolist(), strict=True)))
    starts, entries, coefficients = matrix.starts.tolist(), matrix.columns.tolist(), matrix.coefficients.tolist()
    for r, (least, most) in enumerate(zip(matrix.row_lower.tolist(), matrix.row_upper.tolist(), strict=True)):
        span = range(starts[r], starts[r + 1])
        terms = pulp.LpAffineExpression([(columns[entries[e]], coefficients[e]) for e in span])
        sense = pulp.LpConstraintEQ if least == most else pulp.LpConstraintGE if most == np.inf else pulp.LpConstraintLE
        right = least if sense != pulp.LpConstraintLE else most
        model.addConstraint(pulp.LpConstraint(terms, sense, f"r{r}", right))
    options: dict[str, Any] = {"msg": False}
    limit = desk.seconds_left()
    if limit is not None:
        limit = float(max(1, math.floor(limit))) if row.whole_seconds else limit
        options["timeLimit"] = int(limit) if row.whole_seconds else limit
    if row.gap == "gapRel":
        options["gapRel"] = settings.gap
    elif row.gap:
        options["options"] = [row.gap, f"{settings.gap:.17g}"]
    if row.threads:
        options["threads"] = settings.threads
    began = time.perf_counter()
    model.solve(pulp.getSolver(row.pulp_name, **options))
    spent = time.perf_counter() - began
    return _answer(model, columns, row, stopped=limit is not None and spent >= _USED_UP * limit)


def _answer(model: pulp.LpProblem, columns: list[pulp.LpVariable], row: Row, *, stopped: bool) -> Answer:
    """PuLP's answer, an optimum only where the clock cannot have ended the solve."""
    read = [column.value() for column in columns]
    whole = all(value is not None for value in read)
    values = np.array(read, dtype=float) if whole else None
    if model.sol_status == pulp.LpSolutionOptimal and not stopped:
        return Answer(termination="optimal", values=values)
    if model.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        return Answer(termination="time_limit", values=values)
    nothing = [pulp.LpStatusInfeasible, pulp.LpStatusUnbounded, *([pulp.LpStatusUndefined] if row.undefined_is_none else [])]
    if model.status in nothing and not stopped:
        return Answer(termination="infeasible_or_unbounded")
    note = "" if stopped else f"PuLP's status is {pulp.LpStatus[model.status]!r}"
    return Answer(termination="time_limit" if stopped else "error", note=note)


class ThroughPulp(Checked):
    """One of PuLP's solvers."""

    def __init__(self, name: str, row: Row) -> None:
        self.name = name
        self.title = f"{row.title} through PuLP ({row.pulp_name})"
        self.capabilities = Capabilities(bound=False, gap=bool(row.gap), threads=row.threads, interrupt=False)
        self._row = row

    def availability(self) -> Availability:
        """See :class:`epd_opt.backends.base.Backend`."""
        return Availability(missing="" if _available(self._row.pulp_name) else self._row.install)

    def answer(self, matrix: Matrix, settings: Settings, start: Vector | None) -> Answer:
        """See :class:`epd_opt.backends.base.Checked`."""
        arguments = (self.name, matrix, settings)
        return solve_in_child("epd_opt.backends.pulp_any:through_pulp", arguments, settings.time_limit_s)
