"""Times of another source as ratios to the analytic model: measured at some points, interpolated between them.

Ratios vary little where times vary by orders of magnitude, so few points go a long way: between points they are
interpolated linearly in logarithms. Beyond the points they are not extrapolated: times fall back to the analytic model,
and no further than to what the nearest point says where that is slower.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

REACH = 1.1
"""A point speaks for sizes up to a tenth beyond it: a run with prompts of 1000 tokens for one with 1050."""


_EVERYTHING = (1e-9, 1e15)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A ratio over one size.

    Attributes
    ----------
    at : tuple of float
        Sizes with a ratio, ascending, above 0.
    ratios : tuple of float
        Their ratios, above 0.

    Examples
    --------
    >>> curve = Curve(at=(100.0, 400.0), ratios=(2.0, 0.5))
    >>> curve(np.array([10.0, 100.0, 200.0, 400.0, 9000.0])).round(3).tolist()
    [2.0, 2.0, 1.0, 0.5, 1.0]
    """

    at: tuple[float, ...]
    ratios: tuple[float, ...]

    def __call__(self, size: Floats) -> Floats:
        """Ratios at sizes; shape of ``size``."""
        found = np.exp(np.interp(np.log(size), np.log(self.at), np.log(self.ratios)))
        low, high = self.range
        found = np.where(size < low / REACH, max(1.0, self.ratios[0]), found)
        return np.asarray(np.where(size > high * REACH, max(1.0, self.ratios[-1]), found))

    @classmethod
    def constant(cls, ratio: float) -> Curve:
        """The same ratio for every size."""
        return cls(at=_EVERYTHING, ratios=(ratio, ratio))

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest size with a ratio."""
        return self.at[0], self.at[-1]

    def covers(self, size: float) -> bool:
        """Whether a size lies within the range."""
        return self.at[0] / REACH <= size <= self.at[-1] * REACH


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """A ratio over the sequences in a lane's batch and the context of each: a curve over the batch for some contexts.

    Attributes
    ----------
    contexts : tuple of float
        Tokens of context of each curve, ascending, above 0.
    curves : tuple of Curve
        Over the batch.
    """

    contexts: tuple[float, ...]
    curves: tuple[Curve, ...]

    def __call__(self, batch: Floats, context: Floats) -> Floats:
        """Ratios at batches of sequences with so much context each; shapes broadcast."""
        batch, context = np.broadcast_arrays(np.asarray(batch, dtype=float), np.asarray(context, dtype=float))
        rungs = np.stack([curve(batch) for curve in self.curves])
        rungs = np.log(rungs)
        place = np.interp(np.log(context), np.log(self.contexts), np.arange(len(self.contexts)))
        below = np.minimum(place.astype(int), max(0, len(self.contexts) - 2))
        above = np.minimum(below + 1, len(self.contexts) - 1)
        part = place - below
        lower, upper = (np.take_along_axis(rungs, index[None], axis=0)[0] for index in (below, above))
        found = np.exp(lower + part * (upper - lower))
        low, high = self.contexts[0] / REACH, self.contexts[-1] * REACH
        outside = (context < low) | (context > high)
        return np.asarray(np.where(outside, np.maximum(1.0, found), found))

    @classmethod
    def constant(cls, ratio: float) -> Surface:
        """The same ratio for every batch and context."""
        return cls(contexts=_EVERYTHING, curves=(Curve.constant(ratio),) * 2)

    @property
    def batches(self) -> tuple[float, float]:
        """Smallest and largest batch with a ratio."""
        return min(curve.at[0] for curve in self.curves), max(curve.at[-1] for curve in self.curves)

    @property
    def ends(self) -> tuple[float, float]:
        """Shortest and longest context with a ratio."""
        return self.contexts[0], self.contexts[-1]

    def reaches(self, context: float) -> bool:
        """Whether a context lies within what was measured at any batch."""
        return self.contexts[0] / REACH <= context <= self.contexts[-1] * REACH

    def covers(self, batch: float, context: float) -> bool:
        """Whether a batch at a context lies within what was measured: on the curves on either side of it."""
        if not self.reaches(context):
            return False
        above = next((i for i, at in enumerate(self.contexts) if at >= context), len(self.contexts) - 1)
        below = above if self.contexts[above] <= context else max(0, above - 1)
        return all(self.curves[i].covers(batch) for i in (below, above))


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageRatios:
    """Times of a worker over those of the analytic model; None where there is nothing but the model.

    Attributes
    ----------
    decode : Surface or None
        Of an iteration.
    prefill : Curve or None
        Of reading a prompt, the overheads of its iterations left out, over its new tokens.
    per_chunk : float
        Of those overheads.
    strict : bool
        Whether nothing beyond the points may be planned with.
    """

    decode: Surface | None = None
    prefill: Curve | None = None
    per_chunk: float = 1.0
    strict: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRatios:
    """Times of one image over those of the analytic model: the vision transformer's over the megapixels it receives, the
    host's over the megapixels as uploaded; None where there is nothing but the model."""

    device: Curve | None = None
    host: Curve | None = None
    strict: bool = False


def safe_line(varying: Floats, seconds: Floats, at: float) -> tuple[float, float]:
    """Intercept and slope of the lowest line at ``at`` that lies on or above all points and never falls.

    Parameters
    ----------
    varying, seconds : arrays of shape (points,)
        Abscissae, one of them 0, and ordinates above 0; ``at`` lies among the abscissae.

    Examples
    --------
    >>> safe_line(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 4.0]), 0.5)
    (1.0, 2.0)
    >>> safe_line(np.array([0.0, 1.0, 2.0]), np.array([3.0, 1.0, 2.0]), 1.0)
    (3.0, 0.0)
    """
    hull: list[tuple[float, float]] = []
    for x, y in sorted(zip(varying.tolist(), seconds.tolist(), strict=True)):
        if hull and hull[-1][0] == x:
            hull.pop()
        while len(hull) > 1 and _turns_up(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    right = next((i for i, (x, _) in enumerate(hull) if x >= at), len(hull) - 1)
    left = max(0, right - 1)
    (x0, y0), (x1, y1) = hull[left], hull[right]
    slope = (y1 - y0) / (x1 - x0) if x1 > x0 else 0.0
    if slope <= 0.0:
        return max(y for _, y in hull), 0.0
    return y1 - slope * x1, slope


def _turns_up(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[1] - a[1]) * (c[0] - a[0]) <= (c[1] - a[1]) * (b[0] - a[0])


def rounded(ratio: float) -> float:
    """A ratio with the six digits that a measurement has at the most, so that a time that was computed by the model itself
    comes out as exactly 1.

    >>> rounded(1.0000000003), rounded(2.123456789)
    (1.0, 2.12346)
    """
    return float(f"{ratio:.6g}") if math.isfinite(ratio) else ratio
