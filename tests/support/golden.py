"""Golden files of models: rows and objectives as text that a reader can check by hand."""

from __future__ import annotations

import os
from pathlib import Path

import pulp

GOLDEN = Path(__file__).parents[1] / "solver" / "formulation" / "golden"
SENSES = {pulp.LpConstraintEQ: "=", pulp.LpConstraintLE: "<=", pulp.LpConstraintGE: ">="}


def expression(terms: pulp.LpAffineExpression) -> str:
    """Terms by variable name, as in an LP file."""
    parts = [f"{coefficient:+.12g} {variable.name}" for variable, coefficient in terms.items() if coefficient]
    return " ".join(sorted(parts, key=lambda part: part.split()[1])) or "0"


def check(name: str, lines: list[str]) -> None:
    """Compare with the golden file, or write it where EPD_OPT_WRITE_GOLDEN is set."""
    path, text = GOLDEN / f"{name}.lp", "\n".join(lines) + "\n"
    if os.environ.get("EPD_OPT_WRITE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
