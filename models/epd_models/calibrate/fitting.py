"""Coefficients that bring predicted times near measured ones, drawn towards the values they start from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from epd_models.calibrate.reduced import NAMES, Bools, Floats, Reduced, times

SCALE = 0.07
"""Error of a time's logarithm beyond which a run counts less and less (Cauchy loss): runs with speculative decoding or
wrong labels are not flagged. Chosen on held-out groups and left-out models."""

FIRST_TOKEN_WEIGHT = 0.3
"""Weight of the logarithm of a time to first token beside that of an interval; first tokens scatter about three times as
much from one day to the next."""

NOISE = 0.05
"""Standard deviation of a time's logarithm that the same setting shows on another day, at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """What is known of a coefficient before any run: its usual value, its bounds, and how far the logarithms of its values
    lie apart among architectures and engines (standard deviation)."""

    usual: float
    least: float
    most: float
    spread: float


PRIORS: Mapping[str, Prior] = {
    "bandwidth_share": Prior(usual=0.87, least=0.6, most=0.95, spread=0.06),
    "expert_bandwidth_share": Prior(usual=0.75, least=0.3, most=0.92, spread=0.15),
    "kv_bandwidth_share": Prior(usual=0.7, least=0.2, most=0.93, spread=0.3),
    "prefill_share": Prior(usual=0.53, least=0.2, most=0.8, spread=0.1),
    "decode_share": Prior(usual=0.5, least=0.12, most=0.85, spread=0.5),
    "expert_share": Prior(usual=0.25, least=0.05, most=0.75, spread=0.6),
    "narrow_share": Prior(usual=0.9, least=0.65, most=1.0, spread=0.17),
    "link_share": Prior(usual=0.7, least=0.15, most=0.95, spread=0.15),
    "expert_half_width": Prior(usual=60.0, least=0.5, most=1000.0, spread=0.8),
    "activation_passes": Prior(usual=7.0, least=2.0, most=20.0, spread=0.4),
    "step_overhead_s": Prior(usual=5e-4, least=1e-6, most=6e-3, spread=0.8),
    "layer_overhead_s": Prior(usual=35e-6, least=1e-6, most=2e-4, spread=0.3),
    "narrow_layer_overhead_s": Prior(usual=10e-6, least=1e-7, most=1e-4, spread=0.8),
    "latent_layer_overhead_s": Prior(usual=20e-6, least=1e-7, most=2e-4, spread=0.8),
    "expert_layer_overhead_s": Prior(usual=15e-6, least=1e-6, most=3e-4, spread=0.7),
    "sequence_overhead_s": Prior(usual=10e-6, least=1e-7, most=1e-4, spread=0.8),
    "collective_latency_s": Prior(usual=6e-6, least=5e-7, most=5e-5, spread=0.3),
    "prompt_overhead_s": Prior(usual=12e-3, least=1e-3, most=25e-3, spread=0.6),
    "opening_share": Prior(usual=0.08, least=1e-3, most=0.7, spread=0.8),
}
USUAL: Mapping[str, float] = {name: prior.usual for name, prior in PRIORS.items()}

Tie = Callable[[Mapping[str, float]], Mapping[str, float]]


def fit(
    runs: Reduced,
    *,
    centre: Mapping[str, float] = USUAL,
    names: Sequence[str] = NAMES,
    strength: float | None = None,
    tie: Tie | None = None,
) -> dict[str, float]:
    """Coefficients of one group of runs; those that are not fitted keep their value of ``centre``.

    Residuals are logarithms of predicted over measured under a Cauchy loss of scale :data:`SCALE`; first tokens weigh
    :data:`FIRST_TOKEN_WEIGHT`. Log-normal priors centred at ``centre`` keep what the runs do not determine. The loss has
    several minima; the one nearest the minimum at three times the scale is taken.

    Parameters
    ----------
    centre : mapping
        Where the fit starts and what it is drawn towards; a value for each of :data:`NAMES`.
    names : sequence of str
        Coefficients to fit.
    strength : float or None
        Error of a run that weighs as much as a coefficient one spread away from its centre; :data:`NOISE` unless given.
    tie : callable, optional
        Sets coefficients that follow others, before times are computed.
    """
    low = np.log([min(PRIORS[name].least, centre[name]) for name in names])
    high = np.log([max(PRIORS[name].most, centre[name]) for name in names])
    start = np.log([centre[name] for name in names])
    pull = (NOISE if strength is None else strength) / np.array([PRIORS[name].spread for name in names])

    def values(x: Floats) -> dict[str, float]:
        found = dict(centre) | dict(zip(names, np.exp(x).tolist(), strict=True))
        return found if tie is None else dict(tie(found))

    x = start
    for scale in (3.0 * SCALE, SCALE):

        def residuals(x: Floats, scale: float = scale) -> Floats:
            errors = np.concatenate(log_errors(values(x), runs))
            bounded = np.sign(errors) * scale * np.sqrt(np.log1p((errors / scale) ** 2))
            return np.concatenate([bounded, pull * (x - start)])

        x = minimised(residuals, x, low, high)
    return values(x)


def log_errors(values: Mapping[str, float], runs: Reduced) -> tuple[Floats, Floats]:
    """Logarithms of predicted over measured, of intervals and, weighted, of first tokens; 0 where nothing was measured."""
    interval, first = times(values, runs)
    return (
        np.nan_to_num(np.log(interval / runs.itl), nan=0.0),
        np.nan_to_num(FIRST_TOKEN_WEIGHT * np.log(first / runs.ttft), nan=0.0),
    )


def minimised(residuals: Callable[[Floats], Floats], start: Floats, low: Floats, high: Floats) -> Floats:
    """Where the sum of squares is least within bounds, near ``start`` (Levenberg-Marquardt, bounds by projection)."""
    x, damping = np.clip(start, low, high), 1e-3
    now = residuals(x)
    for _ in range(100):
        slopes = jacobian(residuals, x, now)
        gradient = slopes.T @ now
        free = ~(((x <= low) & (gradient > 0.0)) | ((x >= high) & (gradient < 0.0)))
        if not free.any():
            break
        square = slopes[:, free].T @ slopes[:, free]
        moved, better = _descend(residuals, x, now, square, gradient[free], free, (low, high), damping)
        if better is None:
            break
        fallen = float(now @ now - better[0] @ better[0])
        x, now, damping = moved, better[0], better[1]
        if fallen <= 1e-7 * float(now @ now):
            break
    return x


def _descend(
    residuals: Callable[[Floats], Floats],
    x: Floats,
    now: Floats,
    square: Floats,
    gradient: Floats,
    free: Bools,
    bounds: tuple[Floats, Floats],
    damping: float,
) -> tuple[Floats, tuple[Floats, float] | None]:
    """The first damped step that lowers the sum of squares, with its residuals and the next damping, or None."""
    for _ in range(12):
        weighted = square + damping * np.diag(np.maximum(np.diag(square), 1e-9))
        moved = x.copy()
        moved[free] -= np.linalg.solve(weighted, gradient)
        moved = np.clip(moved, *bounds)
        found = residuals(moved)
        if found @ found < now @ now:
            return moved, (found, damping / 5.0)
        damping *= 4.0
    return x, None


def jacobian(residuals: Callable[[Floats], Floats], x: Floats, now: Floats) -> Floats:
    """Slopes of the residuals by forward differences; shape (residuals, coefficients)."""
    slopes = np.empty((now.size, x.size))
    for index in range(x.size):
        nudged = x.copy()
        nudged[index] += 1e-6
        slopes[:, index] = (residuals(nudged) - now) / 1e-6
    return slopes
