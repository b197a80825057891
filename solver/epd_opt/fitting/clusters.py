"""Classes of requests as boxes in images, text and output: cut where independent sizes per class describe a trace better.

A plan takes the sizes of a class as independent of one another, so a class is good where that is true. With every size
lognormal within a class, a trace of N requests in classes k of n_k requests has the description length (in nats)

    sum_k n_k (ln(N / n_k) + sum_f ln s_kf) + constant,

s_kf being the standard deviation of the logarithm of size f in class k: the classification likelihood of a Gaussian mixture
with hard assignment (Biernacki, Celeux and Govaert 2000). A single lognormal is never worth cutting by it: two halves of a
normal gain 0.51 nats per request in spread and pay 0.69 for telling them apart. Separate modes are worth it, and so are
sizes that vary together. The cut that shortens the description most is made first, until none shortens it by enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from epd_opt.fitting.sample import Floats, Mask, Sample

LEAST_GAIN = 0.1
"""Nats per request of the whole trace by which a further class must shorten the description."""

LEAST_SHARE = 0.02
"""Smallest share of the requests that makes a class."""

LEAST_REQUESTS = 50
"""Fewest requests that make a class: below that, neither spread nor burstiness can be told."""

MOST_CLASSES = 6
"""Classes at the most, unless a number is asked for; each adds to the programme of a plan."""

_SMALLEST_SPREAD = 0.1
"""Spread of a logarithm below which requests count as alike: 10 per cent."""

_BIN = math.log(2.0) / 8.0
"""Cuts lie on this grid of logarithms."""

Feature = Literal["images", "tokens_per_image", "pixels_per_image", "text_tokens", "output_tokens"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One class: requests with or without images (None: both), and bounds on sizes, lower included, upper not."""

    chosen: Mask
    with_images: bool | None
    bounds: dict[Feature, tuple[float, float]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of requests."""
        return int(np.count_nonzero(self.chosen))

    def words(self) -> str:
        """The box as a reader of a workload wants it."""
        kind = {None: "requests with and without images", True: "requests with images", False: "requests without images"}
        return ", ".join([kind[self.with_images], *(_bounds(name, low, high) for name, (low, high) in self.bounds.items())])


def _bounds(name: Feature, low: float, high: float) -> str:
    """Bounds on a whole number, as the least and the most that it may be."""
    what = name.replace("_", " ")
    least, most = math.ceil(low), math.ceil(high) - 1 if math.isfinite(high) else None
    if most is None:
        return f"{what} from {least:,}"
    if least <= 0:
        return f"{what} up to {most:,}"
    return f"{what} {least:,}" if least == most else f"{what} {least:,} to {most:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cut:
    gain: float
    name: Feature
    threshold: float


def boxes(sample: Sample, *, classes: int | None = None) -> tuple[list[Box], float]:
    """Cut a trace into classes, and say what the next cut would have gained (nats per request; -inf where none can be made).

    Requests with images are told from those without first, unless one class is asked for or one side is too small. The
    result depends on the requests alone: of equal cuts the first in the order of sizes is made, at the lower threshold.

    Raises
    ------
    ValueError
        Fewer classes can be told apart than are asked for.
    """
    vision = sample.images > 0
    smaller = min(int(vision.sum()), int((~vision).sum()))
    if smaller < _least(len(sample)) or classes == 1:
        found = [_box(np.ones(len(sample), dtype=bool), vision, {})]
    else:
        found = [_box(vision, vision, {}), _box(~vision, vision, {})]
    features = _features(sample)
    cuts = [_best_cut(box, features, len(sample)) for box in found]
    while True:
        index = max(range(len(found)), key=lambda i: cuts[i].gain)
        cut = cuts[index]
        enough = len(found) >= MOST_CLASSES or cut.gain < LEAST_GAIN if classes is None else len(found) >= classes
        if enough:
            break
        if not math.isfinite(cut.gain):
            raise ValueError(
                f"{len(found)} classes are the most that differ in images, text or output by enough requests "
                f"(at least {_least(len(sample))} each)"
            )
        halves = _halves(found[index], cut, features, vision)
        found[index : index + 1] = halves
        cuts[index : index + 1] = [_best_cut(half, features, len(sample)) for half in halves]
    return found, cuts[index].gain


def _least(total: int) -> int:
    return max(LEAST_REQUESTS, math.ceil(LEAST_SHARE * total))


def _features(sample: Sample) -> dict[Feature, Floats]:
    """Logarithms of sizes, one entry per request; sizes of 0 count as 1, as few requests have them."""
    features: dict[Feature, Floats] = {}
    if (sample.images > 0).any():
        features["images"] = np.log(np.maximum(sample.images, 1))
        sizes: list[tuple[Feature, Floats]] = [
            ("tokens_per_image", sample.image_tokens),
            ("pixels_per_image", sample.image_pixels),
        ]
        for name, size in sizes:
            if not np.isnan(size).any() and len(features) == 1:
                features[name] = np.log(np.maximum(size / np.maximum(sample.images, 1), 1.0))
    features["text_tokens"] = np.log(np.maximum(sample.text, 1))
    features["output_tokens"] = np.log(np.maximum(sample.output, 1))
    return features


def _best_cut(box: Box, features: dict[Feature, Floats], total: int) -> _Cut:
    best = _Cut(gain=-math.inf, name="text_tokens", threshold=math.nan)
    chosen = np.flatnonzero(box.chosen)
    inside = {name: values[chosen] for name, values in features.items()}
    for name in inside:
        for cut in _cuts(name, inside, total):
            if cut.gain > best.gain + 1e-12:
                best = cut
    return best


def _cuts(name: Feature, inside: dict[Feature, Floats], total: int) -> Iterator[_Cut]:
    """The best cut along one size, if any is allowed."""
    values = inside[name]
    bins = np.floor(values / _BIN + 1e-9).astype(np.int64)
    if bins.min() == bins.max():
        return
    lowest = int(bins.min())
    bins -= lowest
    below = np.cumsum(np.bincount(bins))[:-1].astype(float)
    count = float(len(values))
    above = count - below
    gain = (below * np.log(below / total) + above * np.log(above / total) - count * math.log(count / total)) / total
    for other in inside.values():
        centred = other - other.mean()
        first = np.cumsum(np.bincount(bins, weights=centred).astype(float))[:-1]
        second = np.cumsum(np.bincount(bins, weights=centred**2).astype(float))[:-1]
        all_first, all_second = float(centred.sum()), float((centred**2).sum())
        spread_below = _log_spread(below, first, second)
        spread_above = _log_spread(above, all_first - first, all_second - second)
        whole = _log_spread(np.array([count]), np.array([all_first]), np.array([all_second]))[0]
        gain += (count * whole - below * spread_below - above * spread_above) / total
    gain[np.minimum(below, above) < _least(total)] = -math.inf
    best = int(np.argmax(gain))
    if math.isfinite(gain[best]):
        yield _Cut(gain=float(gain[best]), name=name, threshold=(lowest + best + 1) * _BIN)


def _log_spread(count: Floats, first: Floats, second: Floats) -> Floats:
    variance = np.maximum(second / count - (first / count) ** 2, 0.0)
    spread: Floats = 0.5 * np.log(variance + _SMALLEST_SPREAD**2)
    return spread


def _halves(box: Box, cut: _Cut, features: dict[Feature, Floats], vision: Mask) -> list[Box]:
    below = features[cut.name] < cut.threshold - 1e-9 * _BIN
    size = math.exp(cut.threshold - 1e-9 * _BIN)
    low, high = box.bounds.get(cut.name, (0.0, math.inf))
    return [
        _box(box.chosen & below, vision, {**box.bounds, cut.name: (low, size)}),
        _box(box.chosen & ~below, vision, {**box.bounds, cut.name: (size, high)}),
    ]


def _box(chosen: Mask, vision: Mask, bounds: dict[Feature, tuple[float, float]]) -> Box:
    images = vision[chosen]
    return Box(chosen=chosen, with_images=None if images.min() < images.max() else bool(images[0]), bounds=bounds)
