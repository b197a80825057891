"""Solvers. Each back-end imports its library only when it is used."""

from __future__ import annotations

from epd_opt.backends.base import (
    EXACTNESS,
    Availability,
    Backend,
    Basis,
    Capabilities,
    Outcome,
    Relaxation,
    Settings,
    SolverFailed,
)
from epd_opt.backends.cbc import Cbc
from epd_opt.backends.clock import Clock, Clocked, OutOfTime, out_of_time
from epd_opt.backends.cp_sat import CpSat
from epd_opt.backends.highs import Highs
from epd_opt.backends.matrix import Matrix
from epd_opt.backends.pulp_any import SOLVERS, ThroughPulp
from epd_opt.backends.relaxation import relaxed
from epd_opt.backends.scip import Scip
from epd_opt.errors import InvalidInput, Problem

HIGHS = Highs()
"""Also solves relaxations and routings, whatever solver a plan asks for."""
BACKENDS: dict[str, Backend] = {solver.name: solver for solver in (HIGHS, Cbc(), Scip(), CpSat())}
BACKENDS |= {name: ThroughPulp(name, row) for name, row in SOLVERS.items()}

__all__ = [
    "BACKENDS",
    "EXACTNESS",
    "HIGHS",
    "Availability",
    "Backend",
    "Basis",
    "Capabilities",
    "Clock",
    "Clocked",
    "Matrix",
    "OutOfTime",
    "Outcome",
    "Relaxation",
    "Settings",
    "SolverFailed",
    "backend",
    "out_of_time",
    "relaxed",
]


def backend(name: str) -> Backend:
    """The back-end of this name.

    Raises
    ------
    InvalidInput
        Unknown name; the message lists the known ones.
    """
    if name not in BACKENDS:
        raise InvalidInput(
            [Problem(path="solver.name", message=f"unknown solver {name!r}", hint=f"known: {', '.join(BACKENDS)}")]
        )
    return BACKENDS[name]
