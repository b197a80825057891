"""Which class of a workload a traced request belongs to."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from epd_models.distribution import Distribution
from epd_opt.instance import RequestClass
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
    """Assigns requests to the classes of an instance by what the instance says of them, and nothing else.

    A request goes to the class under which it is most likely: every size lognormal with the mean and spread of the class's
    own sizes, weighted by the class's rate. Sizes are the images, their tokens where class and request both state them,
    text tokens and output tokens. Requests with images go to classes with images and the others to those without, as long
    as there are any; classes with clips take a request only where there are no others. Ties go to the first name.

    Examples
    --------
    >>> chat = RequestClass(name="chat", rate_per_s=1, text_tokens=100, output_tokens=200)
    >>> essay = RequestClass(name="essay", rate_per_s=1, text_tokens=100, output_tokens=2000)
    >>> Classifier([chat, essay]).assign(Arrival(0.0, None, 120.0, 1500.0))
    'essay'
    """

    def __init__(self, classes: Iterable[RequestClass]) -> None:
        every = sorted(classes, key=lambda one: one.name)
        total = math.fsum(one.rate_per_s for one in every) or 1.0
        members = [_Member(one, one.rate_per_s / total) for one in every if one.video is None]
        members = members or [_Member(one, one.rate_per_s / total) for one in every]
        self._with = [one for one in members if one.images is not None] or members
        self._without = [one for one in members if one.takes_text] or members

    def assign(self, arrival: Arrival) -> str:
        """Name of the class."""
        among = self._with if arrival.image_count else self._without
        return among[0].name if len(among) == 1 else min(among, key=lambda one: one.cost(arrival)).name


class _Member:
    def __init__(self, one: RequestClass, share: float) -> None:
        self.name = one.name
        self.rarity = -math.log(max(share, 1e-9))
        self.text = _Size.of(one.text_tokens.distribution())
        self.output = None if one.output_tokens is None else _Size.of(one.output_tokens.distribution())
        counts = one.images.count.distribution() if one.images is not None and one.has_images else None
        self.takes_text = counts is None or counts.values[0] == 0
        self.images = None if counts is None else _Size.of(counts)
        tokens = one.images.tokens if one.images is not None else None
        self.image_tokens = None if tokens is None else _Size(mean=math.log(max(tokens, 1.0)), spread=1.0)

    def cost(self, arrival: Arrival) -> float:
        """Negative logarithm of the likelihood."""
        cost = self.rarity + self.text.cost(arrival.text_tokens)
        if self.output is not None:
            cost += self.output.cost(arrival.output_tokens)
        if self.images is not None and arrival.image_count:
            cost += self.images.cost(arrival.image_count)
            if self.image_tokens is not None and arrival.image_tokens is not None:
                cost += self.image_tokens.cost(arrival.image_tokens / arrival.image_count)
        return cost
