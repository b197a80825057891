"""A PuLP model as arrays, the form in which every solver takes it, with its own checks of solutions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pulp

Vector: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """The row that a solution breaks most: its name, and by how much.

    The breach is relative to the row's largest term, and to its smallest coefficient where all terms are smaller, so that
    neither a large constant nor a small rate hides it.
    """

    row: str
    size: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Minimise ``cost @ x + offset`` subject to ``row_lower <= A x <= row_upper`` and ``lower <= x <= upper``.

    ``A`` is row-wise: row ``r`` has the entries ``starts[r]:starts[r + 1]`` of ``columns`` and ``coefficients``. Infinite
    bounds are ``inf``.
    """

    names: tuple[str, ...]
    cost: Vector
    lower: Vector
    upper: Vector
    integer: npt.NDArray[np.bool_]
    row_names: tuple[str, ...]
    row_lower: Vector
    row_upper: Vector
    starts: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    coefficients: Vector
    offset: float

    def row_of_entry(self) -> npt.NDArray[np.int64]:
        """The row of each entry."""
        return np.repeat(np.arange(len(self.row_names)), np.diff(self.starts))

    def rounded(self, values: Vector) -> Vector:
        """Values with whole numbers whole and everything within its bounds."""
        whole = np.where(self.integer, np.round(values), values)
        return np.asarray(np.clip(whole, self.lower, self.upper), dtype=float)

    def breach(self, values: Vector) -> Breach | None:
        """The largest breach of a row by these values; None where there are no rows."""
        if not self.row_names:
            return None
        terms = self.coefficients * values[self.columns]
        rows = self.row_of_entry()
        activity = np.bincount(rows, terms, minlength=len(self.row_names))
        size = np.minimum.reduceat(np.abs(self.coefficients), self.starts[:-1])
        np.maximum.at(size, rows, np.abs(terms))
        sides = [np.where(np.isfinite(side), np.abs(side), 0.0) for side in (self.row_lower, self.row_upper)]
        scale = np.maximum.reduce([size, *sides])
        broken = np.maximum(np.maximum(self.row_lower - activity, activity - self.row_upper), 0.0)
        relative = broken / scale
        worst = int(np.argmax(relative))
        return Breach(row=self.row_names[worst], size=float(relative[worst]))


def matrix_of(model: pulp.LpProblem) -> tuple[Matrix, str | None]:
    """The arrays of a model, rows without variables left out, and the first of those that does not hold, if any."""
    variables = model.variables()
    index = {variable: i for i, variable in enumerate(variables)}
    cost = np.zeros(len(variables))
    offset = 0.0
    if model.objective is not None:
        offset = float(model.objective.constant)
        for variable, coefficient in model.objective.items():
            cost[index[variable]] = coefficient
    names, lower, upper, starts = [], [], [], [0]
    columns: list[int] = []
    coefficients: list[float] = []
    contradiction = None
    for row in model.constraints():
        right = -float(row.constant)
        least = right if row.sense in (pulp.LpConstraintEQ, pulp.LpConstraintGE) else -np.inf
        most = right if row.sense in (pulp.LpConstraintEQ, pulp.LpConstraintLE) else np.inf
        terms = [(index[variable], float(coefficient)) for variable, coefficient in row.items() if coefficient]
        if not terms:
            if contradiction is None and not least <= 0.0 <= most:
                contradiction = str(row.name)
            continue
        columns.extend(i for i, _ in terms)
        coefficients.extend(coefficient for _, coefficient in terms)
        starts.append(len(columns))
        names.append(str(row.name))
        lower.append(least)
        upper.append(most)
    matrix = Matrix(
        names=tuple(variable.name for variable in variables),
        cost=cost,
        lower=np.array([-np.inf if v.lowBound is None else v.lowBound for v in variables], dtype=float),
        upper=np.array([np.inf if v.upBound is None else v.upBound for v in variables], dtype=float),
        integer=np.array([v.cat == pulp.LpInteger for v in variables], dtype=bool),
        row_names=tuple(names),
        row_lower=np.array(lower, dtype=float),
        row_upper=np.array(upper, dtype=float),
        starts=np.array(starts, dtype=np.int64),
        columns=np.array(columns, dtype=np.int64),
        coefficients=np.array(coefficients, dtype=float),
        offset=offset,
    )
    return matrix, contradiction
