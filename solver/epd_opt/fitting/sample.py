"""A trace as columns: some forty bytes per request."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epd_opt.simulate.arrivals import Arrival

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Requests in order of time, one entry each.

    Attributes
    ----------
    time : array
        Seconds since the first arrival.
    text, output, images : array
        Text tokens, generated tokens, images.
    image_tokens, image_pixels : array
        Tokens and pixels of all images of a request; NaN where a request with images does not say.
    cached : array
        Prompt tokens found in a prefix cache; 0 where unknown.
    """

    time: Floats
    text: Counts
    output: Counts
    images: Counts
    image_tokens: Floats
    image_pixels: Floats
    cached: Counts

    @classmethod
    def of(cls, arrivals: Iterable[Arrival]) -> Sample:
        """From arrivals in order of time."""
        time, tokens, pixels = array("d"), array("d"), array("d")
        text, output, images, cached = array("i"), array("i"), array("i"), array("i")
        for arrival in arrivals:
            time.append(arrival.time_s)
            text.append(int(arrival.text_tokens))
            output.append(int(arrival.output_tokens))
            images.append(arrival.image_count)
            unknown = float("nan") if arrival.image_count else 0.0
            tokens.append(unknown if arrival.image_tokens is None else arrival.image_tokens)
            pixels.append(sum(width * height for width, height in arrival.image_sizes) or unknown)
            cached.append(int(arrival.cached_tokens or 0))
        return cls(
            time=np.frombuffer(time),
            text=_whole(text),
            output=_whole(output),
            images=_whole(images),
            image_tokens=np.frombuffer(tokens),
            image_pixels=np.frombuffer(pixels),
            cached=_whole(cached),
        )

    def __len__(self) -> int:
        return len(self.time)

    @property
    def span_s(self) -> float:
        """Seconds from the first to the last arrival."""
        return float(self.time[-1] - self.time[0])

    def part(self, chosen: Mask) -> Sample:
        """Some of the requests."""
        return Sample(
            time=self.time[chosen],
            text=self.text[chosen],
            output=self.output[chosen],
            images=self.images[chosen],
            image_tokens=self.image_tokens[chosen],
            image_pixels=self.image_pixels[chosen],
            cached=self.cached[chosen],
        )


def _whole(values: array[int]) -> Counts:
    return np.frombuffer(values, dtype=np.int32).astype(np.int64)
