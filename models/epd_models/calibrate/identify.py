"""Which coefficients a set of runs tells of, and which it leaves where they were."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from epd_models.calibrate.fitting import NOISE, PRIORS, jacobian, log_errors
from epd_models.calibrate.reduced import Floats, Reduced, reduce_runs
from epd_models.measurements import Measurement
from epd_models.serving import Run

WIDE = 3.0
"""How much wider than their usual spread the other coefficients are left when one is judged: what only holds because the
others are trusted is not told by the runs."""

ENOUGH = 0.5
"""Information at which runs say as much of a coefficient as is known of it beforehand."""


ELSEWHERE = NOISE
"""Standard deviation of an interval's logarithm, at an eighth and at eight times the load, beyond which runs say too little
of other loads than theirs: more than the same setting differs from day to day."""

_SOME = 40


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


def told_by(
    values: Mapping[str, float], runs: Reduced, names: Sequence[str], *, elsewhere: Reduced | None = None
) -> dict[str, Told]:
    """How much of what is then known of each coefficient the runs tell.

    From the slopes of the times' logarithms at ``values``, against the scatter of the errors (at least
    :data:`~epd_models.calibrate.fitting.NOISE`): the precision that runs alone give a coefficient, when the others are free
    within :data:`WIDE` times their spread, over that precision and the one of the prior together. A coefficient that no
    run depends on has none; of several that runs cannot tell apart each has little. The one with the least is put back to
    its shipped value, and the others are judged anew, until runs tell enough of all that are left.

    What is left may move for others that runs cannot tell from it. That does no harm while all of them matter alike; where
    the runs leave intervals at other loads open by more than :data:`ELSEWHERE`, it does, and coefficients that are only told
    with others put back are put back too.

    Parameters
    ----------
    elsewhere : Reduced, optional
        The runs at other loads (:func:`at_other_loads`).
    """
    here, slopes = _slopes(values, runs, names)
    slopes = slopes / _scatter(here, runs)[:, np.newaxis]
    spread = np.array([PRIORS[name].spread for name in names])
    jointly = _information(slopes, spread)
    latest, left = jointly.copy(), np.arange(len(names))
    while left.size:
        latest[left] = _information(slopes[:, left], spread[left])
        least = int(np.argmin(latest[left]))
        if latest[left[least]] >= ENOUGH:
            break
        left = np.delete(left, least)
    lent = np.isin(np.arange(len(names)), left) & (jointly < ENOUGH)
    if elsewhere is not None and lent.any():
        there = _slopes(values, elsewhere, names)[1][: len(elsewhere)]
        covariance = np.linalg.inv(slopes.T @ slopes + np.diag(1.0 / spread**2))
        open_by = float(np.median(np.sqrt(np.einsum("ij,jk,ik->i", there, covariance, there))))
        if open_by > ELSEWHERE:
            acting = np.any(slopes[: len(runs)] != 0.0, axis=0)
            latest = np.where(lent & acting, jointly, latest)
    return {
        name: Told(jointly=float(first), finally_=float(last))
        for name, first, last in zip(names, jointly, latest, strict=True)
    }


def at_other_loads(runs: Sequence[tuple[Run, Measurement]]) -> Reduced:
    """Some of the runs with an eighth and with eight times their clients, nothing measured of them."""
    some = runs[:: max(1, len(runs) // _SOME)]
    moved = [
        (dataclasses.replace(run, concurrency=max(run.concurrency * factor, float(run.decode.replicas))), row)
        for run, row in some
        for factor in (1.0 / 8.0, 8.0)
    ]
    return dataclasses.replace(reduce_runs(moved), itl=np.ones(len(moved)), ttft=np.ones(len(moved)))


def _slopes(values: Mapping[str, float], runs: Reduced, names: Sequence[str]) -> tuple[Floats, Floats]:
    """Errors of intervals and first tokens, and their slopes in the logarithms of the coefficients."""
    x = np.log([values[name] for name in names])

    def errors(x: Floats) -> Floats:
        return np.concatenate(log_errors(dict(values) | dict(zip(names, np.exp(x).tolist(), strict=True)), runs))

    here = errors(x)
    return here, jacobian(errors, x, here)


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
