"""Sizes of one class as an instance states them: a number, a lognormal, or values with weights."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from epd_models.distribution import Distribution
from epd_opt.fitting.sample import Counts, Floats

EXACT_VALUES = 12
"""Distinct values up to which a size is stated value by value."""

GOOD_ENOUGH = 0.05
"""Error up to which a lognormal is stated even where values come nearer: two numbers that a person can read and change."""

_EDGES = (*np.linspace(0.0, 0.9, 13).tolist(), 0.94, 0.96, 0.975, 0.985, 0.9925, 0.9965, 0.998, 0.9995, 1.0)
"""Probabilities between which requests share a value; thinner in the upper tail, which sizes memory and waits, with the
usual percentiles amid a bin."""

_LEVELS = 4001


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedSize:
    """A size for an instance.

    Attributes
    ----------
    stated : number or mapping
        As in the file: a number, ``{mean, p95}`` or ``{values}``.
    distribution : Distribution
        What a plan makes of it.
    error : float
        Mean distance between the quantiles of trace and fit, as a share of the mean (Wasserstein distance).
    other_error : float or None
        The same for the form that was not chosen; None where there was no choice.
    p99, fitted_p99 : float
        99th percentiles of the trace and of the fit.
    """

    stated: float | int | dict[str, Any]
    distribution: Distribution
    error: float
    other_error: float | None
    p99: float
    fitted_p99: float

    def words(self) -> str:
        """How well it fits, in a line."""
        if not isinstance(self.stated, dict):
            return "the same in every request"
        if self.error == 0.0:
            return "every value of the trace"
        kind, other = ("values", "lognormal") if "values" in self.stated else ("lognormal", "values")
        rival = f"no {other} has this mean and p95" if self.other_error is None else f"{other}: {self.other_error:.1%}"
        return f"{kind}, off by {self.error:.1%} ({rival}); p99 {self.p99:,.0f}, fitted {self.fitted_p99:,.0f}"


def fit_size(sizes: Counts) -> FittedSize:
    """State sizes, one per request: a lognormal within ``GOOD_ENOUGH``, else the form that fits better."""
    ordered = np.sort(sizes).astype(float)
    distinct, counts = np.unique(ordered, return_counts=True)
    p99 = float(np.quantile(ordered, 0.99))
    if len(distinct) == 1:
        only = int(distinct[0])
        return FittedSize(
            stated=only, distribution=Distribution.constant(only), error=0.0, other_error=None, p99=p99, fitted_p99=p99
        )
    if len(distinct) <= EXACT_VALUES:
        pairs = [(int(value), round(float(n) / len(ordered), 5)) for value, n in zip(distinct, counts, strict=True)]
        pairs = [(value, weight) for value, weight in pairs if weight > 0]
        exact = Distribution.of_values(pairs)
        return FittedSize(
            stated=_values(pairs), distribution=exact, error=0.0, other_error=None, p99=p99, fitted_p99=exact.quantile(0.99)
        )
    pairs = _binned(ordered)
    binned = Distribution.of_values(pairs)
    error = _distance(ordered, binned)
    mean, p95 = round(float(ordered.mean()), 1), round(float(np.quantile(ordered, 0.95)), 1)
    try:
        lognormal = Distribution.lognormal(mean=mean, p95=p95)
    except ValueError:
        return FittedSize(
            stated=_values(pairs),
            distribution=binned,
            error=error,
            other_error=None,
            p99=p99,
            fitted_p99=binned.quantile(0.99),
        )
    rival = _distance(ordered, lognormal)
    if rival <= max(error, GOOD_ENOUGH):
        return FittedSize(
            stated={"mean": mean, "p95": p95},
            distribution=lognormal,
            error=rival,
            other_error=error,
            p99=p99,
            fitted_p99=lognormal.quantile(0.99),
        )
    return FittedSize(
        stated=_values(pairs),
        distribution=binned,
        error=error,
        other_error=rival,
        p99=p99,
        fitted_p99=binned.quantile(0.99),
    )


def _values(pairs: list[tuple[int, float]]) -> dict[str, Any]:
    return {"values": [[value, weight] for value, weight in pairs]}


def _binned(ordered: Floats) -> list[tuple[int, float]]:
    """Means between quantiles, rounded to whole sizes, with weights."""
    merged: dict[int, float] = {}
    edges = np.unique(np.round(np.array(_EDGES) * len(ordered)).astype(int))
    for start, end in itertools.pairwise(edges.tolist()):
        value = round(float(ordered[start:end].mean()))
        merged[value] = merged.get(value, 0.0) + float(end - start) / len(ordered)
    return [(value, round(weight, 5)) for value, weight in sorted(merged.items())]


def _distance(ordered: Floats, fit: Distribution) -> float:
    levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
    found = ordered[np.minimum((levels * len(ordered)).astype(int), len(ordered) - 1)]
    values, weights = fit.arrays()
    fitted = values[np.minimum(np.searchsorted(np.cumsum(weights), levels), len(values) - 1)]
    return float(np.abs(found - fitted).mean() / ordered.mean())
