"""Solvers. Each back-end imports its library only when it is used."""

from __future__ import annotations

from epd_opt.backends.base import Backend, Outcome, Settings
from epd_opt.backends.highs import Highs
from epd_opt.errors import InvalidInput, Problem

BACKENDS: dict[str, Backend] = {"highs": Highs()}

__all__ = ["BACKENDS", "Backend", "Outcome", "Settings", "backend"]


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
