"""What every back-end takes, can do and answers. Status, incumbent and bound are separate answers."""

from __future__ import annotations

import dataclasses
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pulp

from epd_opt.backends.guard import Ending, remaining
from epd_opt.backends.matrix import Matrix, matrix_of
from epd_opt.errors import EpdError, UsageError

Termination = Literal["optimal", "infeasible", "unbounded", "time_limit", "interrupted", "error"]
Vector: TypeAlias = npt.NDArray[np.float64]

EXACTNESS = 1e-6
"""Largest breach of a row, relative to its largest term, that an answer may carry once its whole numbers are whole; and
what gap may be left of a proof because of arithmetic."""


class SolverFailed(EpdError):
    """A solver ended without an answer that can be used; exit code of a run that stopped without a plan."""

    exit_code = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How hard to try.

    Attributes
    ----------
    gap : float
        Relative gap at which a solution counts as proved.
    time_limit_s : float or None
        Wall-clock limit.
    threads : int
        Threads the solver may use.
    start : Mapping[str, float] or None
        Values of some or all variables to start from; solvers that cannot use them ignore them.
    nodes : int or None
        Nodes of the search tree to look at; solvers that cannot count them look at all.
    proving : bool
        Whether the start is thought to be the best already: nothing beside the search itself goes into better ones. Solvers
        that cannot leave that out do as always.
    """

    gap: float
    time_limit_s: float | None
    threads: int
    start: Mapping[str, float] | None = None
    nodes: int | None = None
    proving: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a solve ended.

    Attributes
    ----------
    termination : Termination
        Why the solver stopped; says nothing of the incumbent. ``time_limit`` stands for a limit on nodes as well.
    values : Mapping[str, float] or None
        Values by variable name, whole where they must be, within their bounds and rows; None where there is no incumbent.
    objective, bound : float or None
        Of the incumbent, and proved for every solution; None where unknown.
    seconds : float
        Wall-clock time in the solver.
    solver : str
        Name and version.
    note : str
        What went wrong, in a sentence; empty where nothing did.
    """

    termination: Termination
    values: Mapping[str, float] | None
    objective: float | None
    bound: float | None
    seconds: float
    solver: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """Where a linear programme ended, by names of variables and of rows: numbers that mean something to the solver only."""

    variables: Mapping[str, int]
    rows: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """The optimum of a model without whole numbers: its value, the variables' values in order, the change of the value per
    unit of each row's right-hand side, and where a like model may start."""

    objective: float
    values: Vector
    duals: Mapping[str, float]
    basis: Basis


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a back-end can do; ``epd-opt solvers`` shows this table.

    Attributes
    ----------
    continuous, integers : bool
        Kinds of variables it solves exactly.
    unbounded_variables : bool
        Whether variables may lack a finite bound.
    bound : bool
        Whether it tells the bound it has proved; where not, only an optimum has one, which follows from the gap.
    gap : bool
        Whether it stops at a relative gap.
    warm_start, threads, time_limit : bool
        Whether it takes a starting solution, more than one thread, a time limit of its own.
    interrupt : bool
        Whether the best solution so far survives an interrupt.
    in_process : bool
        Whether it runs inside this process; the others run in a child process, which is ended when it overruns.
    """

    continuous: bool = True
    integers: bool = True
    unbounded_variables: bool = True
    bound: bool = True
    gap: bool = True
    warm_start: bool = False
    threads: bool = True
    time_limit: bool = True
    interrupt: bool = True
    in_process: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """Whether a solver can be used here.

    Attributes
    ----------
    version : str or None
        Version in use; None where it cannot be used or does not tell.
    missing : str
        What to install; empty where it can be used.
    """

    version: str | None = None
    missing: str = ""

    @property
    def usable(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A solver's own words, before anything of it is believed: as :class:`Outcome`, over columns, without the offset.

    ``termination`` may also be ``infeasible_or_unbounded``, where the solver does not tell the two apart.
    """

    termination: Termination | Literal["infeasible_or_unbounded"]
    values: Vector | None = None
    bound: float | None = None
    version: str = ""
    note: str = ""


def stopped_by(answer: Answer, ending: Ending) -> Answer:
    """The answer of a solver that was stopped, with what stopped it: the clock or the keyboard."""
    if ending == "ended" or answer.termination not in ("time_limit", "interrupted"):
        return answer
    return dataclasses.replace(answer, termination="time_limit" if ending == "late" else "interrupted")


class Backend(Protocol):
    """A solver of PuLP models."""

    @property
    def name(self) -> str:
        """As users write it."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What it can do."""
        ...

    def availability(self) -> Availability:
        """Whether it can be used here, and what to install where not."""
        ...

    def describe(self) -> str:
        """One line on the solver and its version."""
        ...

    def solve(self, model: pulp.LpProblem, settings: Settings) -> Outcome:
        """Solve a minimisation model.

        Raises
        ------
        UsageError
            The solver is not installed here or cannot solve this kind of model exactly.
        """
        ...


class Checked(ABC):
    """A back-end that judges trivial models by itself and believes no answer that it has not checked."""

    name: str
    title: str
    capabilities: Capabilities

    @abstractmethod
    def availability(self) -> Availability:
        """See :class:`Backend`."""

    @abstractmethod
    def answer(self, matrix: Matrix, settings: Settings, start: Vector | None) -> Answer:
        """Run the solver on a model with at least one row, each with a column, minimising.

        ``start`` has a value per column, NaN where there is none.
        """

    def describe(self) -> str:
        """See :class:`Backend`."""
        availability = self.availability()
        if not availability.usable:
            return f"{self.title}: not usable here; {availability.missing}"
        return f"{self.title} {availability.version or '(version unknown)'}"

    def solve(self, model: pulp.LpProblem, settings: Settings) -> Outcome:
        """See :class:`Backend`."""
        began = time.perf_counter()
        missing = self.availability().missing
        if missing:
            raise UsageError(f"solver {self.name!r} is not usable here: {missing}")
        matrix, contradiction = matrix_of(model)
        if contradiction is not None:
            answer = Answer(termination="infeasible", note=f"row {contradiction!r} has no variable and does not hold")
        elif not matrix.row_names:
            answer = _without_rows(matrix)
        else:
            self._refuse(matrix)
            answer = self.answer(matrix, settings, _start(matrix, settings.start))
            if answer.termination == "infeasible_or_unbounded":
                left = dataclasses.replace(settings, time_limit_s=remaining(settings.time_limit_s, began))
                answer = self._infeasible_or_unbounded(matrix, left, answer)
            if answer.values is not None and self.capabilities.continuous and matrix.integer.any():
                left = dataclasses.replace(settings, time_limit_s=remaining(settings.time_limit_s, began))
                answer = self._settled(matrix, left, answer)
        return self._believed(matrix, settings, answer, time.perf_counter() - began)

    def _refuse(self, matrix: Matrix) -> None:
        """Complain about models that this solver cannot solve exactly."""
        can = self.capabilities
        if not can.continuous and not matrix.integer.all():
            wrong = f"solves whole numbers only, and {matrix.names[int(np.argmin(matrix.integer))]!r} is continuous"
        elif not can.integers and matrix.integer.any():
            wrong = f"has no whole numbers, and {matrix.names[int(np.argmax(matrix.integer))]!r} must be whole"
        elif not can.unbounded_variables and not (finite := np.isfinite(matrix.lower) & np.isfinite(matrix.upper)).all():
            wrong = f"needs two finite bounds on every variable, and {matrix.names[int(np.argmin(finite))]!r} lacks one"
        else:
            return
        raise UsageError(f"solver {self.name!r} {wrong}; use another one, as highs")

    def _infeasible_or_unbounded(self, matrix: Matrix, settings: Settings, answer: Answer) -> Answer:
        """Tell the two apart: without costs, a model is infeasible or has an optimum."""
        free = dataclasses.replace(matrix, cost=np.zeros_like(matrix.cost))
        second = self.answer(free, settings, None)
        verdict: dict[str, Termination] = {
            "infeasible": "infeasible",
            "infeasible_or_unbounded": "infeasible",
            "optimal": "unbounded",
            "time_limit": "time_limit",
            "interrupted": "interrupted",
        }
        return dataclasses.replace(answer, termination=verdict.get(second.termination, "error"), values=None, bound=None)

    def _settled(self, matrix: Matrix, settings: Settings, answer: Answer) -> Answer:
        """Where rows break once whole numbers are whole, the rest found again for those whole numbers, if it can be."""
        assert answer.values is not None
        values = matrix.rounded(answer.values)
        breach = matrix.breach(values)
        if breach is None or breach.size <= EXACTNESS:
            return answer
        whole = dataclasses.replace(
            matrix,
            lower=np.where(matrix.integer, values, matrix.lower),
            upper=np.where(matrix.integer, values, matrix.upper),
            integer=np.zeros_like(matrix.integer),
        )
        again = self.answer(whole, dataclasses.replace(settings, start=None), None)
        return answer if again.values is None else dataclasses.replace(answer, values=again.values)

    def _believed(self, matrix: Matrix, settings: Settings, answer: Answer, seconds: float) -> Outcome:
        """The outcome of an answer: an incumbent only if it keeps bounds and rows, optimal only if that follows."""
        assert answer.termination != "infeasible_or_unbounded"
        termination, note = answer.termination, answer.note
        values = None if answer.values is None or termination in ("infeasible", "unbounded") else answer.values
        objective: float | None = None
        if values is not None:
            values = matrix.rounded(values)
            breach = matrix.breach(values)
            if breach is not None and breach.size > EXACTNESS:
                values = None
                termination = "error" if termination == "optimal" else termination
                note = f"{self.name} broke row {breach.row!r} by {breach.size:.1e} of its size, whole numbers being whole"
            else:
                objective = float(matrix.cost @ values)
        bound = answer.bound if answer.bound is not None and np.isfinite(answer.bound) else None
        if termination == "optimal" and objective is not None and bound is None:
            bound = objective - settings.gap * abs(objective)
        if termination == "optimal" and objective is not None and bound is not None:
            if not within(settings.gap, objective, bound):
                termination = "error"
                note = f"{self.name} calls {objective:.9g} optimal, but has only proved {bound:.9g}"
            bound = min(bound, objective)
        return Outcome(
            termination=termination,
            values=None if values is None else dict(zip(matrix.names, values.tolist(), strict=True)),
            objective=None if objective is None else objective + matrix.offset,
            bound=None if bound is None else bound + matrix.offset,
            seconds=seconds,
            solver=f"{self.name} {answer.version}".strip(),
            note=note,
        )


def within(gap: float, objective: float, bound: float) -> bool:
    """Whether a bound proves an objective within a relative gap, but for arithmetic."""
    return objective - bound <= (gap + EXACTNESS) * max(abs(objective), EXACTNESS)


def proves(matrix: Matrix, settings: Settings, answer: Answer) -> bool:
    """Whether an answer that is called optimal comes with a bound that proves it; true of all others."""
    if answer.termination != "optimal" or answer.values is None or answer.bound is None:
        return True
    return within(settings.gap, float(matrix.cost @ answer.values), answer.bound)


def _without_rows(matrix: Matrix) -> Answer:
    """Every variable at its cheapest bound, whole where it must be."""
    lower = np.where(matrix.integer, np.ceil(matrix.lower), matrix.lower)
    upper = np.where(matrix.integer, np.floor(matrix.upper), matrix.upper)
    if (lower > upper).any():
        return Answer(termination="infeasible")
    nearest_zero = np.clip(0.0, lower, upper)
    values = np.where(matrix.cost > 0.0, lower, np.where(matrix.cost < 0.0, upper, nearest_zero))
    if not np.isfinite(values).all():
        return Answer(termination="unbounded")
    return Answer(termination="optimal", values=values, bound=float(matrix.cost @ values))


def _start(matrix: Matrix, start: Mapping[str, float] | None) -> Vector | None:
    if not start:
        return None
    return np.array([start.get(name, np.nan) for name in matrix.names])
