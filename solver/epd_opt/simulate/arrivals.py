"""Requests as they arrive: drawn from the classes of a plan, or read from a trace. The seam between the two is `Arrival`."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epd_models.distribution import Distribution
from epd_models.request import RequestLoad
from epd_models.workload import RequestClass
from epd_opt.errors import InvalidInput, Problem

_BLOCK = 1024
"""Requests drawn at once of each class; memory does not grow with the length of a run."""

Floats = NDArray[np.float64]


class Arrival(NamedTuple):
    """One request. A named tuple, because hundreds of thousands pass through a simulation.

    Attributes
    ----------
    time_s : float
        Seconds from the start of the run; never falls from one arrival to the next.
    class_name : str or None
        Class of the plan that it belongs to; None leaves it to :class:`epd_opt.simulate.assign.Classifier`.
    text_tokens, output_tokens : float
        Tokens of the prompt without its images, and of the answer (at least 1).
    image_count : int
        Images, or steps of a clip.
    image_tokens : float or None
        Language-model tokens of all its images together; None means those of the class's own images.
    image_sizes : tuple of (int, int)
        Width and height of each image in pixels where the trace knows them; they go before ``image_tokens``.
    cached_tokens : float or None
        Prompt tokens found in the prefix cache; None means those of the class.
    """

    time_s: float
    class_name: str | None
    text_tokens: float
    output_tokens: float
    image_count: int = 0
    image_tokens: float | None = None
    image_sizes: tuple[tuple[int, int], ...] = ()
    cached_tokens: float | None = None


def checked(arrivals: Iterable[Arrival]) -> list[Arrival]:
    """Requests that somebody made, held together and in order.

    Raises
    ------
    InvalidInput
        There is none, or one makes no sense.
    """
    found = list(arrivals)
    if not found:
        raise InvalidInput([Problem(path="trace", message="found no request, expected at least one")])
    before = 0.0
    for i, one in enumerate(found):
        wrong = _wrong(one, before)
        if wrong:
            raise InvalidInput([Problem(path=f"trace.{i}", message=wrong)])
        before = one.time_s
    return found


def _wrong(one: Arrival, before: float) -> str:
    if not math.isfinite(one.time_s) or one.time_s < 0.0:
        return f"time_s: found {one.time_s}, expected a finite number, at least 0"
    if one.time_s < before:
        return f"time_s: found {one.time_s:g} after {before:g}, expected requests in order of time"
    sizes = {
        "text_tokens": one.text_tokens,
        "image_count": one.image_count,
        "image_tokens": one.image_tokens or 0.0,
        "cached_tokens": one.cached_tokens or 0.0,
    }
    for name, value in sizes.items():
        if not math.isfinite(value) or value < 0:
            return f"{name}: found {value}, expected a finite number, at least 0"
    if not math.isfinite(one.output_tokens) or one.output_tokens < 1:
        return f"output_tokens: found {one.output_tokens}, expected a finite number, at least 1"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A class of requests as something to draw from.

    Attributes
    ----------
    rate : float
        Requests/s, above zero.
    scv : float
        Squared coefficient of variation of the gaps: gamma distributed, exponential at 1, equal at 0.
    image_counts : Distribution
        Images (or clip steps) per request.
    """

    name: str
    rate: float
    scv: float
    text_tokens: Distribution
    output_tokens: Distribution
    image_counts: Distribution

    @classmethod
    def of_class(cls, request: RequestClass, load: RequestLoad | None) -> Source:
        """From a class, and its load on the plan's model where the plan has one."""
        if load is not None:
            counts = Distribution.of_values(load.images)
        else:
            counts = request.images.count if request.images is not None else Distribution.constant(0)
        return cls(
            name=request.name,
            rate=request.rate,
            scv=request.interarrival_scv,
            text_tokens=request.text_tokens,
            output_tokens=request.output_tokens,
            image_counts=counts,
        )

    def arrivals(self, rng: np.random.Generator) -> Iterator[Arrival]:
        """An endless stream of requests in order of time."""
        time = 0.0
        while True:
            times = time + np.cumsum(self._gaps(rng))
            time = float(times[-1])
            yield from map(
                Arrival,
                times.tolist(),
                itertools.repeat(self.name),
                _whole(self.text_tokens, rng),
                _whole(self.output_tokens, rng),
                map(int, _whole(self.image_counts, rng, least=0.0)),
            )

    def _gaps(self, rng: np.random.Generator) -> Floats:
        if self.scv == 0.0:
            return np.full(_BLOCK, 1.0 / self.rate)
        return rng.gamma(1.0 / self.scv, self.scv / self.rate, _BLOCK)


def _whole(sizes: Distribution, rng: np.random.Generator, *, least: float = 1.0) -> list[float]:
    """A block of whole sizes, at least ``least``."""
    if not sizes.varies:
        return [max(float(round(sizes.values[0])), least)] * _BLOCK
    values, weights = sizes.arrays()
    chosen = np.searchsorted(np.cumsum(weights)[:-1], rng.random(_BLOCK), side="right")
    drawn: list[float] = np.maximum(np.round(values[chosen]), least).tolist()
    return drawn


def drawn(sources: Sequence[Source], seed: int) -> Iterator[Arrival]:
    """The endless merged stream of several classes.

    Each class draws from a generator of its own, told apart by the class's place in the order of names, so the stream of one
    does not depend on the rates of the others.
    """
    ordered = sorted(sources, key=lambda source: source.name)
    seeds = np.random.SeedSequence(seed).spawn(len(ordered))
    streams = [s.arrivals(np.random.default_rng(child)) for s, child in zip(ordered, seeds, strict=True)]
    return streams[0] if len(streams) == 1 else heapq.merge(*streams)
