"""Classes of requests and their rates over a day."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Discriminator, Field, Tag

from epd_opt.fields import TAG, Complaint, Name, NonNegative, Part, RequestRate, Share, complaint
from epd_opt.instance.media import Images, Video
from epd_opt.instance.quantity import Lognormal, Quantity
from epd_opt.instance.slo import Slo

HOURS = 24
"""Of a day; demand by the hour has as many factors."""


def _sorted(value: dict[str, Any]) -> dict[str, Any]:
    return dict(sorted(value.items()))


def _profile_of_a_day(values: tuple[float, ...]) -> tuple[float, ...]:
    if len(values) != HOURS:
        raise complaint(f"found {len(values)} numbers, expected {HOURS}, one for each hour of a day from midnight")
    if not any(values):
        raise complaint("all hours are 0", "for a class without requests write rate_per_s: 0")
    return values


Profile = Annotated[tuple[NonNegative, ...], AfterValidator(_profile_of_a_day)]


def _hourly_form(value: object) -> str:
    return TAG + ("name" if isinstance(value, str) else "numbers")


class RequestClass(Part):
    """One class of requests."""

    name: Name = Field(description="Any text, unique among the classes.")
    rate_per_s: RequestRate = Field(description="Requests per second to plan for (peak); 0 is a rate.")
    mean_rate_per_s: RequestRate | None = Field(
        default=None,
        description="Requests per second that the cost is divided by, with hourly the mean over the day; default "
        "rate_per_s, with hourly times the mean factor.",
    )
    hourly: (
        Annotated[Annotated[Name, Tag(TAG + "name")] | Annotated[Profile, Tag(TAG + "numbers")], Discriminator(_hourly_form)]
        | None
    ) = Field(
        default=None,
        description="Factors on rate_per_s for the 24 hours of a day from midnight, or the name of a profile under "
        "`workload.profiles`; absent = the same at all hours.",
    )
    text_tokens: Quantity = Field(
        default=Quantity(0.0),
        description="Text tokens of the prompt: a number, {mean, p95} (lognormal) or {values: [[value, weight], ...]}.",
    )
    cached_tokens: NonNegative = Field(
        default=0.0, description="Prompt tokens found in the prefix cache: no prefill work, but KV memory."
    )
    output_tokens: Quantity | None = Field(
        default=None,
        description="Tokens generated: a number, {mean, p95} or {values}; required for modelled workers.",
    )
    interarrival_scv: NonNegative = Field(
        default=1.0,
        le=1e6,
        description="Squared coefficient of variation of the gaps between arrivals; 1 = Poisson, above = burstier.",
    )
    images: Images | None = Field(default=None, description="Images of one request.")
    video: Video | None = Field(default=None, description="The clip of one request.")
    slo: Slo = Field(default=Slo(), description="Latency targets.")

    @property
    def has_images(self) -> bool:
        """Whether any request of the class carries an image."""
        return self.images is not None and self.images.count.distribution().mean > 0

    @property
    def has_vision(self) -> bool:
        """Whether any request of the class carries an image or a clip."""
        return self.has_images or self.video is not None

    def complaints(self) -> Iterator[Complaint]:
        if self.mean_rate_per_s is not None and self.hourly is None and self.mean_rate_per_s > self.rate_per_s:
            yield Complaint(
                where=("mean_rate_per_s",),
                message=f"found {self.mean_rate_per_s:g}, expected at most rate_per_s = {self.rate_per_s:g}",
                hint="rate_per_s is the peak to plan for",
            )
        text = self.text_tokens.distribution().mean
        if self.cached_tokens > 0 and self.cached_tokens >= text:
            yield Complaint(
                where=("cached_tokens",),
                message=f"found {self.cached_tokens:g}, expected less than text_tokens = {text:g}",
                hint="at least one token of a prompt is prefilled",
            )
        if self.output_tokens is not None and self.output_tokens.distribution().values[0] < 1:
            wide = isinstance(self.output_tokens.root, Lognormal) and self.output_tokens.root.mean >= 1
            if not wide:
                yield Complaint(
                    where=("output_tokens",),
                    message=f"found {self.output_tokens.distribution().values[0]:g}, expected at least 1",
                    hint="a request ends with its first token at the earliest",
                )


_ROUNDED = 1.001
"""Factors and rates are stated to a few digits."""


def mean_of_day(profile: Sequence[float]) -> float:
    """Mean factor over the hours of a day."""
    return math.fsum(profile) / HOURS


class Workload(Part):
    """What is asked of the fleet."""

    classes: tuple[RequestClass, ...] = Field(min_length=1, description="Classes of requests, at least one.")
    profiles: Annotated[dict[str, Profile], AfterValidator(_sorted)] | None = Field(
        default=None, description="Hours of a day that several classes share, by name: 24 factors on their rates."
    )
    hourly_step: Share | None = Field(
        default=None,
        description="Hours are planned for together where their factors, rounded up to multiples of this, are equal; each "
        "class is then planned for at the largest of them. Absent = only equal hours are.",
    )

    def complaints(self) -> Iterator[Complaint]:
        if self.hourly_step is not None and all(request.hourly is None for request in self.classes):
            yield Complaint(where=("hourly_step",), message="no class has hourly", hint="leave it out, or give hourly")
        for index, request in enumerate(self.classes):
            if request.hourly is None or request.mean_rate_per_s is None or self._profile_is_missing(request):
                continue
            most = request.rate_per_s * mean_of_day(self.profile(request))
            if request.mean_rate_per_s > most * _ROUNDED:
                yield Complaint(
                    where=("classes", index, "mean_rate_per_s"),
                    message=f"found {request.mean_rate_per_s:g}, expected at most {most:.6g}, the mean of the hours",
                    hint="rate_per_s and hourly are what to plan for at each hour",
                )

    def _profile_is_missing(self, request: RequestClass) -> bool:
        return isinstance(request.hourly, str) and request.hourly not in (self.profiles or {})

    def profile(self, request: RequestClass) -> tuple[float, ...]:
        """Factors on the rate of a class, hour by hour."""
        if isinstance(request.hourly, str):
            return (self.profiles or {})[request.hourly]
        return (1.0,) * HOURS if request.hourly is None else request.hourly

    @property
    def by_the_hour(self) -> bool:
        """Whether demand goes by the hour of the day."""
        return any(request.hourly is not None for request in self.classes)
