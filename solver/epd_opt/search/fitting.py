"""Multiples that a fleet serves by the predictions at its real load, not only by its rows."""

from __future__ import annotations

from collections.abc import Mapping

from epd_opt.backends import HIGHS, Settings
from epd_opt.formulation import Formulation, build
from epd_opt.offering import Offering
from epd_opt.predict import reinforced
from epd_opt.search.task import rounded_down
from epd_opt.solution import route

_LEAST = 0.5
"""Share of a multiple below which none is looked for: predictions and rows are close."""
_STEPS = 8


def fitting(
    formulation: Formulation, offered: Offering, counts: Mapping[int, int], multiple: float, settings: Settings
) -> float:
    """The largest multiple, up to the given one, that a fleet serves without the replicas that predictions would add to
    it; the given one where no lower one helps.

    Parameters
    ----------
    formulation : Formulation
        The model at the given multiple of the demand.
    counts : Mapping[int, int]
        Replicas of the fleet's candidates, by their position in the model.
    """

    problem = formulation.sets.problem

    def suffices(tried: float) -> bool:
        model = formulation if tried == multiple else build(problem.at(tried / multiple))
        solution = route(model, counts, HIGHS, settings)
        if solution is None:
            return False
        most = {problem.candidates[k].key: count for k, count in counts.items()}
        return all(pool.replicas <= most[pool.candidate.key] for pool in reinforced(offered, solution).pools)

    low, high = _LEAST * multiple, multiple
    if suffices(high) or not suffices(low):
        return multiple
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if suffices(middle) else (low, middle)
    return rounded_down(low)
