"""Sizes that vary from request to request: prompt lengths, output lengths, image counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

_EDGES = (0.0, 0.003, 0.012, *np.linspace(0.0, 0.9, 25)[1:].tolist(), 0.925, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999, 1.0)
"""Probabilities at which lognormal sizes are cut into bins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """A discrete distribution: ascending ``values`` with ``weights`` that sum to one.

    ``uppers`` are the upper edges of the bins that the values stand for (the values themselves where nothing was cut
    into bins); quantiles are read from them, so they err upwards.

    Examples
    --------
    >>> Distribution.constant(800).mean
    800.0
    >>> Distribution.of_values([(200, 0.7), (2000, 0.3)]).mean
    740.0
    """

    values: tuple[float, ...]
    weights: tuple[float, ...]
    uppers: tuple[float, ...]

    @classmethod
    def constant(cls, value: float) -> Distribution:
        """All requests alike."""
        return cls(values=(float(value),), weights=(1.0,), uppers=(float(value),))

    @classmethod
    def of_values(cls, pairs: Sequence[tuple[float, float]]) -> Distribution:
        """From (value, weight) pairs; weights are normalised, equal values merged."""
        merged: dict[float, float] = {}
        for value, weight in pairs:
            merged[float(value)] = merged.get(float(value), 0.0) + float(weight)
        total = sum(merged.values())
        ordered = sorted((value, weight / total) for value, weight in merged.items() if weight > 0)
        values = tuple(v for v, _ in ordered)
        return cls(values=values, weights=tuple(w for _, w in ordered), uppers=values)

    @classmethod
    def lognormal(cls, *, mean: float, p95: float) -> Distribution:
        """The lognormal with this mean and 95th percentile; of the two that fit, the one with the smaller sigma.

        Cut into bins, thinner in both tails, each standing at its conditional mean; the last thousandth stands at two
        values with its conditional mean and variance. So the mean is exact, and the second moment and the harmonic
        mean within one and two per cent up to ``p95 / mean`` = 3.5 (sigma 1.2). The highest quantile is
        that of 0.9999, or the last value where it is larger. A sigma below 1e-5 counts as none.

        Raises
        ------
        ValueError
            No lognormal fits: ``p95 / mean`` must lie in [1, exp(1.645**2 / 2) = 3.868].
        """
        z = NormalDist().inv_cdf(0.95)
        ratio = math.log(p95 / mean)
        discriminant = z * z - 2.0 * ratio
        if ratio < 0 or discriminant < 0:
            raise ValueError(
                f"no lognormal has mean {mean:g} and p95 {p95:g}: p95 must lie between {mean:g} "
                f"and {mean * math.exp(z * z / 2):g}"
            )
        sigma = z - math.sqrt(discriminant)
        if sigma < 1e-5:
            return cls.constant(mean)
        mu = math.log(mean) - sigma * sigma / 2
        normal = NormalDist()
        z_edges = [-math.inf, *(normal.inv_cdf(p) for p in _EDGES[1:-1]), math.inf]
        first, second = (np.diff([normal.cdf(z_edge - k * sigma) for z_edge in z_edges]) for k in (1, 2))
        weights = np.diff(_EDGES)
        values = mean * first / weights
        uppers = [math.exp(mu + sigma * z_edge) for z_edge in z_edges[1:-1]]

        last, top = float(values[-1]), float(weights[-1])
        variance = (mean * math.exp(sigma * sigma / 2)) ** 2 * float(second[-1]) / top - last * last
        low = (uppers[-1] + last) / 2
        high = last + variance / (last - low)
        share = (high - last) / (high - low)
        uppers.append(math.exp(mu + sigma * normal.inv_cdf(1.0 - top * (1.0 - share))))
        uppers.append(max(high, math.exp(mu + sigma * normal.inv_cdf(0.9999))))
        return cls(
            values=(*values[:-1].tolist(), low, high),
            weights=(*weights[:-1].tolist(), top * share, top * (1.0 - share)),
            uppers=tuple(uppers),
        )

    @property
    def mean(self) -> float:
        """Expected value."""
        return math.fsum(v * w for v, w in zip(self.values, self.weights, strict=True))

    @property
    def varies(self) -> bool:
        """Whether requests differ in this size."""
        return len(self.values) > 1

    def quantile(self, probability: float) -> float:
        """A value that at least ``probability`` of the requests do not exceed.

        A lognormal has no largest value, so 1 stands for a probability of 0.9999 or a little more.
        """
        cumulative = 0.0
        for upper, weight in zip(self.uppers, self.weights, strict=True):
            cumulative += weight
            if cumulative >= probability - 1e-12:
                return upper
        return self.uppers[-1]

    def arrays(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Values and weights as arrays of shape (points,)."""
        return np.array(self.values), np.array(self.weights)
