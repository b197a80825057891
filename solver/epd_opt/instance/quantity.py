"""Numbers per request that may vary from request to request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import ConfigDict, Discriminator, Field, RootModel, Tag

from epd_models.distribution import Distribution
from epd_opt.fields import TAG, Complaint, NonNegative, Part, Positive


class Lognormal(Part):
    """A size that varies as a lognormal does."""

    mean: Positive = Field(description="Mean over requests.")
    p95: Positive = Field(description="95th percentile over requests.")

    def complaints(self) -> Iterator[Complaint]:
        try:
            self.distribution()
        except ValueError as error:
            yield Complaint(where=("p95",), message=str(error), hint="a wider spread fits {values: [[value, weight], ...]}")

    def distribution(self) -> Distribution:
        """As 32 values with weights."""
        return Distribution.lognormal(mean=self.mean, p95=self.p95)


class Values(Part):
    """A size given value by value."""

    values: tuple[tuple[NonNegative, NonNegative], ...] = Field(
        min_length=1, description="Pairs [value, weight]; weights are normalised."
    )

    def complaints(self) -> Iterator[Complaint]:
        if sum(weight for _, weight in self.values) <= 0:
            yield Complaint(where=("values",), message="all weights are 0", hint="weights are relative shares")

    def distribution(self) -> Distribution:
        """The values as given, in ascending order."""
        return Distribution.of_values(self.values)


def _quantity_form(value: object) -> str:
    if isinstance(value, Values) or (isinstance(value, Mapping) and "values" in value):
        return TAG + "values"
    if isinstance(value, Lognormal | Mapping):
        return TAG + "lognormal"
    return TAG + "number"


class Quantity(
    RootModel[
        Annotated[
            Annotated[NonNegative, Tag(TAG + "number")]
            | Annotated[Lognormal, Tag(TAG + "lognormal")]
            | Annotated[Values, Tag(TAG + "values")],
            Discriminator(_quantity_form),
        ]
    ]
):
    """A number per request, the same for all or varying.

    Examples
    --------
    >>> Quantity(800.0).distribution().mean
    800.0
    """

    model_config = ConfigDict(frozen=True)

    def distribution(self) -> Distribution:
        """The discrete distribution that stands for it."""
        if isinstance(self.root, Lognormal | Values):
            return self.root.distribution()
        return Distribution.constant(self.root)
