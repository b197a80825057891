"""Which coefficients a set of runs tells of, and which it leaves where they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from epd_models.calibrate.fitting import NOISE, PRIORS, jacobian, log_errors
from epd_models.calibrate.reduced import Floats, Reduced

WIDE = 3.0
"""How much wider than their usual spread the other coefficients are left when one is judged: what only holds because the
others are trusted is not told by the runs."""

ENOUGH = 0.5
"""Information at which runs say as much of a coefficient as is known of it beforehand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """How much runs tell of a coefficient, from 0 to 1.

    Attributes
    ----------
    jointly : float
        With all other coefficients free.
    finally_ : float
        With those at their shipped values that runs tell less of; where this one is among them, what was left to tell of it
        when it was put there.
    """

    jointly: float
    finally_: float

    @property
    def enough(self) -> bool:
        """Whether the coefficient may move."""
        return self.finally_ >= ENOUGH


def told_by(values: Mapping[str, float], runs: Reduced, names: Sequence[str]) -> dict[str, Told]:
    """How much of what is then known of each coefficient the runs tell.

    From the slopes of the times' logarithms at ``values``, against the scatter of the errors (at least
    :data:`~epd_models.calibrate.fitting.NOISE`): the precision that runs alone give a coefficient, when the others are free
    within :data:`WIDE` times their spread, over that precision and the one of the prior together. A coefficient that no
    run depends on has none; of several that runs cannot tell apart each has little. The one with the least is put back to
    its shipped value, and the others are judged anew, until runs tell enough of all that are left.
    """
    x = np.log([values[name] for name in names])

    def errors(x: Floats) -> Floats:
        return np.concatenate(log_errors(dict(values) | dict(zip(names, np.exp(x).tolist(), strict=True)), runs))

    here = errors(x)
    slopes = jacobian(errors, x, here) / _scatter(here, runs)[:, np.newaxis]
    spread = np.array([PRIORS[name].spread for name in names])
    jointly = _information(slopes, spread)
    latest, left = jointly.copy(), np.arange(len(names))
    while left.size:
        latest[left] = _information(slopes[:, left], spread[left])
        least = int(np.argmin(latest[left]))
        if latest[left[least]] >= ENOUGH:
            break
        left = np.delete(left, least)
    return {
        name: Told(jointly=float(first), finally_=float(last))
        for name, first, last in zip(names, jointly, latest, strict=True)
    }


def _information(slopes: Floats, spread: Floats) -> Floats:
    wide = 1.0 / (WIDE * spread) ** 2
    variance = np.diag(np.linalg.inv(slopes.T @ slopes + np.diag(wide)))
    told: Floats = np.maximum(0.0, 1.0 / variance - wide)
    return told / (told + 1.0 / spread**2)


def _scatter(errors: Floats, runs: Reduced) -> Floats:
    """Standard deviation of each error: that of the middle of its kind, larger for runs that stand apart."""
    count = len(runs)
    result = np.empty_like(errors)
    for kind, measured in ((slice(0, count), runs.itl), (slice(count, None), runs.ttft)):
        known = errors[kind][np.isfinite(measured)]
        usual = max(NOISE, 1.4826 * float(np.median(np.abs(known)))) if known.size else NOISE
        result[kind] = np.sqrt(usual**2 + (errors[kind] / 3.0) ** 2)
    return result
