"""A published figure and its prediction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure.

    Attributes
    ----------
    case : str
        What was measured, on what.
    measured : float
        Not a number where ``predicted`` is itself an error, in per cent.
    unit : str
        Of both figures; ``%`` for gains, whose difference counts in points.
    within : float or None
        Largest error that is aimed at: a share of the measured figure, or points of a gain.
    censored : bool
        The measured figure is the end of a sweep: more than it is no error.
    """

    case: str
    measured: float
    predicted: float
    unit: str
    within: float | None = None
    censored: bool = False

    @property
    def error(self) -> float:
        """Predicted over measured less one, or points of difference between gains."""
        if self.unit == "%":
            return self.predicted - (0.0 if math.isnan(self.measured) else self.measured)
        return self.predicted / self.measured - 1.0

    @property
    def met(self) -> bool | None:
        """Whether the error is as small as aimed at; None where nothing is aimed at."""
        if self.within is None:
            return None
        over = self.censored and self.error > 0.0
        return over or (math.isfinite(self.error) and abs(self.error) <= self.within)


def table(rows: Sequence[Row]) -> str:
    """A Markdown table."""
    lines = ["| case | measured | predicted | error | aimed at |", "|---|---|---|---|---|"]
    for row in rows:
        points = row.unit == "%"
        error = f"{row.error:+.1f} points" if points else f"{100.0 * row.error:+.0f} %"
        aim = "-"
        if row.within is not None:
            aim = f"{row.within:g} points" if points else f"{100.0 * row.within:g} %"
            aim += ", met" if row.met else ", **missed**"
        least = "at least " if row.censored else ""
        measured = "-" if math.isnan(row.measured) else f"{least}{figure(row.measured)} {row.unit}"
        lines.append(f"| {row.case} | {measured} | {figure(row.predicted)} | {error} | {aim} |")
    return "\n".join(lines)


def figure(value: float) -> str:
    """A figure to three digits or a whole number.

    >>> figure(34194.4), figure(12.345)
    ('34,194', '12.3')
    """
    return f"{value:,.0f}" if abs(value) >= 100.0 else f"{value:.3g}"
