"""Linear programmes of models: with whole numbers free, or fixed at those of a solution."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import pulp

from epd_opt.backends.base import Outcome, Settings
from epd_opt.backends.clock import Clock, OutOfTime
from epd_opt.backends.highs import Highs
from epd_opt.backends.matrix import matrix_of

_LEAST_S = 0.5
"""Time that a linear programme has even where the clock has ended, when a plan waits for it."""


def relaxed(model: pulp.LpProblem, clock: Clock, *, whole: Mapping[str, float] | None = None) -> Outcome:
    """Solve a model with its whole numbers free, or fixed at the values of ``whole``, by HiGHS on one thread.

    Returns
    -------
    Outcome
        ``optimal``, ``infeasible`` or ``unbounded``; what is both is called unbounded.

    Raises
    ------
    OutOfTime
        The clock ended before the programme was solved, or the keyboard ended it.
    """
    matrix, contradiction = matrix_of(model)
    if contradiction is not None:
        return Outcome(termination="infeasible", values=None, objective=None, bound=None, seconds=0.0, solver="highs")
    lower, upper = matrix.lower, matrix.upper
    if whole is not None:
        fixed = np.round([whole.get(name, 0.0) for name in matrix.names])
        lower, upper = np.where(matrix.integer, fixed, lower), np.where(matrix.integer, fixed, upper)
    linear = dataclasses.replace(matrix, integer=np.zeros_like(matrix.integer), lower=lower, upper=upper)
    left = clock.left_s if whole is None else max(clock.left_s, _LEAST_S)
    if left == 0.0:
        raise OutOfTime
    answer = Highs().answer(linear, Settings(gap=0.0, time_limit_s=left, threads=1), None)
    if answer.termination == "interrupted":
        clock.stop()
    if answer.termination in ("time_limit", "interrupted"):
        raise OutOfTime
    ending = "unbounded" if answer.termination == "infeasible_or_unbounded" else answer.termination
    found = answer.values if ending == "optimal" else None
    objective = None if found is None else float(linear.cost @ found) + linear.offset
    return Outcome(
        termination=ending,
        values=None if found is None else dict(zip(linear.names, found.tolist(), strict=True)),
        objective=objective,
        bound=objective,
        seconds=0.0,
        solver=f"highs {answer.version}",
        note=answer.note,
    )
