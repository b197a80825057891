"""HiGHS, in process, through highspy; the default."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import threading
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import pulp

from epd_opt.backends.base import (
    Answer,
    Availability,
    Basis,
    Capabilities,
    Checked,
    Relaxation,
    Settings,
    Termination,
    Vector,
    stopped_by,
)
from epd_opt.backends.guard import Ending, remaining, supervise
from epd_opt.backends.matrix import Matrix, matrix_of

_ONE_AT_A_TIME = threading.Lock()
"""The library has one scheduler per process, which must be idle to change its threads."""


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


def _lp(highspy: Any, matrix: Matrix) -> Any:
    """The model as a row-wise HighsLp."""
    lp = highspy.HighsLp()
    lp.num_col_ = len(matrix.names)
    lp.col_cost_ = matrix.cost
    lp.col_lower_ = matrix.lower
    lp.col_upper_ = matrix.upper
    kinds = highspy.HighsVarType
    lp.integrality_ = [kinds.kInteger if whole else kinds.kContinuous for whole in matrix.integer]
    lp.num_row_ = len(matrix.row_names)
    lp.row_lower_ = matrix.row_lower
    lp.row_upper_ = matrix.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = matrix.starts
    lp.a_matrix_.index_ = matrix.columns
    lp.a_matrix_.value_ = matrix.coefficients
    return lp


def _known_basis(highspy: Any, matrix: Matrix, basis: Basis) -> Any:
    """A basis to be completed by the library: what is not known stays out of it, slacks of new rows aside."""
    kinds = highspy.HighsBasisStatus
    idle, free = int(kinds.kLower), int(kinds.kBasic)
    found = highspy.HighsBasis()
    found.col_status = [kinds(basis.variables.get(name, idle)) for name in matrix.names]
    found.row_status = [kinds(basis.rows.get(name, free)) for name in matrix.row_names]
    found.alien, found.valid = True, True
    return found


class _Solve:
    """One run in a thread of its own, so that this one stays free to watch the clock and the keyboard.

    Callbacks keep the best solution and bound so far and pass on the wish to stop.
    """

    def __init__(self, highs: Any, *, integer: bool) -> None:
        self.highs = highs
        self.values: Vector | None = None
        self.bound: float | None = None
        self._stop = False
        self._ended = threading.Event()
        if integer:
            highs.cbMipInterrupt += self._advanced
            highs.cbMipImprovingSolution += self._improved
        highs.cbMipInterrupt += self._interrupt
        highs.cbSimplexInterrupt += self._interrupt
        highs.cbIpmInterrupt += self._interrupt
        threading.Thread(target=self._run, name="highs").start()

    def _run(self) -> None:
        try:
            with _ONE_AT_A_TIME:
                self.highs.resetGlobalScheduler(True)
                self.highs.run()
        finally:
            self._ended.set()

    def _interrupt(self, event: Any) -> None:
        if self._stop:
            event.interrupt()

    def _advanced(self, event: Any) -> None:
        self.bound = event.data_out.mip_dual_bound

    def _improved(self, event: Any) -> None:
        self.values = np.array(event.data_out.mip_solution)

    def wait(self, seconds: float | None) -> bool:
        return self._ended.wait(seconds)

    def ask_to_stop(self) -> None:
        self._stop = True

    def give_up(self) -> None:
        """A thread cannot be ended: it ends by itself at its next callback, and what it found so far stands."""


class Highs(Checked):
    """The default solver."""

    name = "highs"
    title = "HiGHS"
    capabilities = Capabilities(warm_start=True, in_process=True)

    def availability(self) -> Availability:
        """See :class:`epd_opt.backends.base.Backend`."""
        try:
            return Availability(version=version("highspy"))
        except PackageNotFoundError:
            return Availability(missing="pip install highspy")

    def answer(self, matrix: Matrix, settings: Settings, start: Vector | None) -> Answer:
        """See :class:`epd_opt.backends.base.Checked`."""
        import highspy

        highs, run, ending = self._run(highspy, matrix, settings, start)
        if not run.wait(0.0):
            answer = Answer(termination="time_limit", values=run.values, bound=run.bound)
        else:
            answer = self._read(highspy, highs, integer=bool(matrix.integer.any()))
        return dataclasses.replace(stopped_by(answer, ending), version=highs.version())

    def relaxation(self, model: pulp.LpProblem, settings: Settings, basis: Basis | None = None) -> Relaxation | None:
        """The optimum of a model whose variables need not be whole, with its duals; None where there is none in time.

        ``basis`` is where to start from: of some of the variables and rows, others are taken to be idle.
        """
        matrix, contradiction = matrix_of(model)
        if contradiction is not None or not matrix.row_names:
            return None
        return self.linear(dataclasses.replace(matrix, integer=np.zeros_like(matrix.integer)), settings, basis)

    def linear(self, matrix: Matrix, settings: Settings, basis: Basis | None = None) -> Relaxation | None:
        """The optimum of a linear programme with its duals; None where there is none in time."""
        import highspy

        highs, run, _ = self._run(highspy, matrix, settings, None, basis)
        if not run.wait(0.0) or highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            # From a start that suits it badly the simplex method may lose its way.
            return None if basis is None else self.linear(matrix, settings)
        solution, ended = highs.getSolution(), highs.getBasis()
        return Relaxation(
            objective=float(highs.getInfo().objective_function_value) + matrix.offset,
            values=np.array(solution.col_value),
            duals=dict(zip(matrix.row_names, solution.row_dual, strict=True)),
            basis=Basis(
                variables=dict(zip(matrix.names, map(int, ended.col_status), strict=True)),
                rows=dict(zip(matrix.row_names, map(int, ended.row_status), strict=True)),
            ),
        )

    @staticmethod
    def _run(
        highspy: Any, matrix: Matrix, settings: Settings, start: Vector | None, basis: Basis | None = None
    ) -> tuple[Any, _Solve, Ending]:
        began = time.perf_counter()
        with _quiet_stdout():
            highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", settings.threads)
        highs.setOptionValue("mip_rel_gap", settings.gap)
        highs.setOptionValue("mip_feasibility_tolerance", 1e-7)
        highs.setOptionValue("primal_feasibility_tolerance", 1e-8)
        # Restarts of the search took a third of the time on models of this kind, and gained nothing.
        highs.setOptionValue("mip_allow_restart", False)
        if settings.nodes is not None:
            highs.setOptionValue("mip_max_nodes", settings.nodes)
        if settings.proving:
            for heuristic in ("rins", "rens", "root_reduced_cost"):
                highs.setOptionValue(f"mip_heuristic_run_{heuristic}", False)
        highs.passModel(_lp(highspy, matrix))
        if start is not None:
            known = np.flatnonzero(~np.isnan(start))
            highs.setSolution(len(known), known.astype(np.int32), start[known])
        if basis is not None:
            highs.setBasis(_known_basis(highspy, matrix, basis))
        limit = remaining(settings.time_limit_s, began)
        if limit is not None:
            highs.setOptionValue("time_limit", limit)
        run = _Solve(highs, integer=bool(matrix.integer.any()))
        return highs, run, supervise(run, limit)

    @staticmethod
    def _read(highspy: Any, highs: Any, *, integer: bool) -> Answer:
        """What the library says once it has ended."""
        statuses = highspy.HighsModelStatus
        terminations: dict[Any, Termination] = {
            statuses.kOptimal: "optimal",
            statuses.kInfeasible: "infeasible",
            statuses.kUnbounded: "unbounded",
            statuses.kTimeLimit: "time_limit",
            statuses.kInterrupt: "interrupted",
            statuses.kSolutionLimit: "time_limit",
        }
        status = highs.getModelStatus()
        info = highs.getInfo()
        found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        proved = info.objective_function_value if status == statuses.kOptimal else None
        return Answer(
            termination="infeasible_or_unbounded"
            if status == statuses.kUnboundedOrInfeasible
            else terminations.get(status, "error"),
            values=np.array(highs.getSolution().col_value) if found else None,
            bound=info.mip_dual_bound if integer else proved,
            note="" if status in terminations else f"HiGHS ended with: {highs.modelStatusToString(status)}",
        )
