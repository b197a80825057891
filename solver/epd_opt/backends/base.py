"""What every back-end takes and answers. Status, incumbent and bound are separate answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import pulp

Termination = Literal["optimal", "infeasible", "unbounded", "time_limit", "interrupted", "error"]


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
    """

    gap: float
    time_limit_s: float | None
    threads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a solve ended.

    Attributes
    ----------
    termination : Termination
        Why the solver stopped; says nothing of the incumbent.
    values : Mapping[str, float] or None
        Values by variable name; None where there is no incumbent.
    objective, bound : float or None
        Of the incumbent, and proved for every solution.
    seconds : float
        Wall-clock time in the solver.
    solver : str
        Name and version.
    """

    termination: Termination
    values: Mapping[str, float] | None
    objective: float | None
    bound: float | None
    seconds: float
    solver: str


class Backend(Protocol):
    """A solver of PuLP models."""

    name: str

    def describe(self) -> str:
        """One line on the solver and its version."""
        ...

    def solve(self, model: pulp.LpProblem, settings: Settings) -> Outcome:
        """Solve a minimisation model."""
        ...
