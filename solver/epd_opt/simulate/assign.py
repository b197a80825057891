"""Which class of a plan a traced request belongs to."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from epd_models.distribution import Distribution
from epd_models.workload import RequestClass
from epd_opt.simulate.arrivals import Arrival

_SMALLEST_SPREAD = 0.1
"""Spread of a logarithm that even a class of equal sizes allows: 10 per cent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    """Mean and standard deviation of the logarithm of a size."""

    mean: float
    spread: float

    @classmethod
    def of(cls, sizes: Distribution) -> _Size:
        logs = [(math.log(max(value, 1.0)), weight) for value, weight in zip(sizes.values, sizes.weights, strict=True)]
        mean = math.fsum(log * weight for log, weight in logs)
        variance = math.fsum((log - mean) ** 2 * weight for log, weight in logs)
        return cls(mean=mean, spread=math.sqrt(variance + _SMALLEST_SPREAD**2))

    def cost(self, size: float) -> float:
        """Negative logarithm of the density, without its constant."""
        return 0.5 * ((math.log(max(size, 1.0)) - self.mean) / self.spread) ** 2 + math.log(self.spread)


class Classifier:
    """Assigns requests to the classes of a plan by what its instance says of them, and nothing else.

    A request goes to the class under which it is most likely: every size lognormal with the mean and spread of the class's
    own sizes, weighted by the class's rate. Sizes are the images, their tokens where class and request both state them,
    text tokens and output tokens. Requests with images go to classes with images and the others to those of which some
    requests have none; classes with clips take none. Ties go to the first name.

    Examples
    --------
    >>> from epd_models.workload import Targets
    >>> slo = Targets(ttft_s=1.0, ttft_probability=0.95, itl_s=0.1, itl_probability=0.95)
    >>> chat, essay = (
    ...     RequestClass(name=name, rate=1.0, mean_rate=1.0, targets=slo, text_tokens=Distribution.constant(100),
    ...                  output_tokens=Distribution.constant(length))
    ...     for name, length in (("chat", 200), ("essay", 2000))
    ... )
    >>> Classifier([chat, essay]).assign(Arrival(0.0, None, 120.0, 1500.0))
    'essay'
    """

    def __init__(self, classes: Iterable[RequestClass]) -> None:
        members = [_Member(one) for one in sorted(classes, key=lambda one: one.name) if one.video is None]
        self._with = [one for one in members if one.images is not None]
        self._without = [one for one in members if one.takes_text]

    def assign(self, arrival: Arrival) -> str | None:
        """Name of the class; None where no class has images, or has none, as the request."""
        among = self._with if arrival.image_count else self._without
        return min(among, key=lambda one: one.cost(arrival)).name if among else None


class _Member:
    def __init__(self, one: RequestClass) -> None:
        self.name = one.name
        self.rarity = -math.log(one.rate)
        self.text, self.output = _Size.of(one.text_tokens), _Size.of(one.output_tokens)
        self.takes_text = one.images is None or one.images.count.values[0] == 0
        self.images = None if one.images is None else _Size.of(one.images.count)
        tokens = None if one.images is None else one.images.tokens
        self.image_tokens = None if tokens is None else _Size(mean=math.log(max(tokens, 1.0)), spread=1.0)

    def cost(self, arrival: Arrival) -> float:
        """Negative logarithm of the likelihood, without what all classes share."""
        cost = self.rarity + self.text.cost(arrival.text_tokens) + self.output.cost(arrival.output_tokens)
        if self.images is not None and arrival.image_count:
            cost += self.images.cost(arrival.image_count)
            if self.image_tokens is not None and arrival.image_tokens is not None:
                cost += self.image_tokens.cost(arrival.image_tokens / arrival.image_count)
        return cost
