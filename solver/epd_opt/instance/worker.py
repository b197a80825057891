"""Where workers come from, and those that somebody measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import AfterValidator, Discriminator, Field, Tag

from epd_opt.fields import TAG, Complaint, Name, NonNegative, Part, PositiveCount, in_key_order
from epd_opt.instance.stages import Stages


class Candidates(Part):
    """Where the workers to choose from come from."""

    modelled: bool = Field(
        default=True, strict=True, description="Whether the performance models add workers to the measured ones."
    )


def _rates_form(value: object) -> str:
    return TAG + ("mapping" if isinstance(value, Mapping) else "number")


Rates = Annotated[dict[str, NonNegative], AfterValidator(in_key_order)]


class Worker(Part):
    """A worker that somebody measured; it meets every target up to its rate and adds no delay."""

    name: Name = Field(description="Any text, unique among the workers.")
    sku: Name = Field(description="SKU or device name that it runs on.")
    devices: PositiveCount = Field(description="Sold units per replica.")
    stages: Stages = Field(description="Stages that it covers, without a gap.")
    max_rate_per_s: Annotated[
        Annotated[NonNegative, Tag(TAG + "number")] | Annotated[Rates, Tag(TAG + "mapping")],
        Discriminator(_rates_form),
    ] = Field(description="Requests per second and replica at the targets: a number, or {class: rate, default: rate}.")

    def complaints(self) -> Iterator[Complaint]:
        if self.stages == ("encode", "decode"):
            yield Complaint(
                where=("stages",),
                message="found encode and decode without prefill, expected stages that follow one another",
                hint="describe two workers",
            )
        if isinstance(self.max_rate_per_s, dict) and not self.max_rate_per_s:
            yield Complaint(where=("max_rate_per_s",), message="no rate is given", hint="add default: RATE")

    def rate_per_s(self, request_class: str) -> float | None:
        """Most requests of a class per second and replica, all of one kind; None where the class is not served."""
        if not isinstance(self.max_rate_per_s, dict):
            return self.max_rate_per_s
        return self.max_rate_per_s.get(request_class, self.max_rate_per_s.get("default"))
