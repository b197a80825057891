"""Amounts of money, and what currencies are worth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Discriminator, Field, Tag

from epd_opt.fields import TAG, Currency, Name, NonNegative, Part, Positive, StatedDate


def _amount_form(value: object) -> str:
    return TAG + ("mapping" if isinstance(value, Mapping) else "number")


Amount = Annotated[
    Annotated[NonNegative, Tag(TAG + "number")]
    | Annotated[dict[Currency, NonNegative], Field(min_length=1, max_length=1), Tag(TAG + "mapping")],
    Discriminator(_amount_form),
]
"""US dollars, or an amount in another currency as in {EUR: 4.20}, converted at the rate under `currencies`."""


class ExchangeRate(Part):
    """What one unit of a currency is worth."""

    usd_per_unit: Positive = Field(description="US dollars per unit of the currency.")
    source: Name = Field(description="Whose rate it is.")
    date: StatedDate | None = Field(default=None, description="Date of the rate: YYYY-MM-DD, YYYY-MM or YYYY.")
