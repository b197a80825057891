"""Models as free-format MPS files, with neutral names and every digit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from epd_opt.backends.matrix import Matrix


def write_mps(matrix: Matrix, path: Path) -> None:
    """Write a model whose columns are ``x0, x1, ...`` and rows ``r0, r1, ...``; the offset is left out."""
    path.write_text("\n".join(_lines(matrix)) + "\n", encoding="ascii")


def _lines(matrix: Matrix) -> Iterator[str]:
    yield "NAME epd_opt FREE"
    yield "ROWS"
    yield " N cost"
    lower, upper = matrix.row_lower.tolist(), matrix.row_upper.tolist()
    ranged = []
    for r, (least, most) in enumerate(zip(lower, upper, strict=True)):
        kind = "E" if least == most else "G" if most == np.inf else "L"
        if kind == "L" and least != -np.inf:
            ranged.append(r)
        yield f" {kind} r{r}"
    yield "COLUMNS"
    by_column: list[list[tuple[int, float]]] = [[] for _ in matrix.names]
    rows, columns, coefficients = matrix.row_of_entry().tolist(), matrix.columns.tolist(), matrix.coefficients.tolist()
    for r, j, coefficient in zip(rows, columns, coefficients, strict=True):
        by_column[j].append((r, coefficient))
    for whole in (False, True):
        if whole:
            yield " m1 'MARKER' 'INTORG'"
        for j in np.flatnonzero(matrix.integer == whole).tolist():
            yield f" x{j} cost {float(matrix.cost[j])!r}"
            for r, coefficient in by_column[j]:
                yield f" x{j} r{r} {coefficient!r}"
        if whole:
            yield " m2 'MARKER' 'INTEND'"
    yield "RHS"
    for r, (least, most) in enumerate(zip(lower, upper, strict=True)):
        yield f" rhs r{r} {(least if most == np.inf else most)!r}"
    if ranged:
        yield "RANGES"
        for r in ranged:
            yield f" range r{r} {upper[r] - lower[r]!r}"
    yield "BOUNDS"
    for j, (least, most) in enumerate(zip(matrix.lower.tolist(), matrix.upper.tolist(), strict=True)):
        if least == most:
            yield f" FX bound x{j} {least!r}"
            continue
        yield f" MI bound x{j}" if least == -np.inf else f" LO bound x{j} {least!r}"
        yield f" PL bound x{j}" if most == np.inf else f" UP bound x{j} {most!r}"
    yield "ENDATA"
