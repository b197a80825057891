"""What a unit costs: rent, reservation, spot or purchase."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import ConfigDict, Field

from epd_opt.fields import Complaint, Count, Name, NonNegative, Part, Positive, PositiveCount, Share, StatedDate
from epd_opt.instance.currency import Amount


class Reserved(Part):
    """A unit rented for all hours of a term."""

    usd_per_hour: Amount = Field(
        description="Whole rate over the term, upfront part included, US dollars per hour (of 8760 a year) and `per`."
    )
    term_years: Positive = Field(description="Years that are paid for.")
    upfront_share: Share | None = Field(
        default=None, description="Share (0 to 1) of all that is paid over the term that is paid at its start; default 0."
    )
    upfront_usd: Amount | None = Field(
        default=None, description="In place of upfront_share: the part that is paid at the start, US dollars per `per`."
    )

    def complaints(self) -> Iterator[Complaint]:
        if self.upfront_share is not None and self.upfront_usd is not None:
            yield Complaint(
                where=("upfront_usd",), message="upfront_share and upfront_usd are both given", hint="keep one of them"
            )


class Spot(Part):
    """A unit rented by the hour that may be taken away at any time."""

    usd_per_hour: Amount = Field(description="All-in rent, US dollars per hour and `per`.")
    interruption_allowance: NonNegative = Field(
        description="Units held on top of those in use, as a share of them: 0.25 holds 5 for 4 in use."
    )


PRICE_AMOUNTS = ("usd_per_hour", "purchase_usd", "reserved", "spot", "catalog")


class Price(Part):
    """What one unit, or what it is sold by, costs: an all-in rent, a reservation, spot, or a purchase."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [key]} for key in PRICE_AMOUNTS]})

    usd_per_hour: Amount | None = Field(
        default=None,
        description="All-in rent, host and power included, US dollars per hour and `per`; {EUR: 4.20} for another currency.",
    )
    purchase_usd: Amount | None = Field(default=None, description="Purchase price, US dollars per `per`.")
    reserved: Reserved | None = Field(default=None, description="All-in rent for a term, all hours of which are paid for.")
    spot: Spot | None = Field(default=None, description="All-in rent of units that may be taken away.")
    catalog: Literal["rent", "purchase"] | None = Field(
        default=None, description="The catalogue's median rent or typical purchase price, with its date and source."
    )
    per: Literal["device", "server", "rack"] = Field(default="device", description="What the price is for.")
    pack: PositiveCount = Field(default=1, description="Smallest lot, in sold units.")
    minimum: Count = Field(default=0, description="Fewest sold units of an order, if any are bought or rented at all.")
    date: StatedDate | None = Field(default=None, description="Date of the price: YYYY-MM-DD, YYYY-MM or YYYY.")
    source: Name | None = Field(default=None, description="Whose price it is.")

    @property
    def is_hourly(self) -> bool:
        """Whether units are rented by the hour, and may be given back after it."""
        return self.usd_per_hour is not None or self.spot is not None or self.catalog == "rent"

    @property
    def is_purchase(self) -> bool:
        """Whether units are bought, and powered at the own site."""
        return self.purchase_usd is not None or self.catalog == "purchase"

    def complaints(self) -> Iterator[Complaint]:
        given = [key for key in PRICE_AMOUNTS if getattr(self, key) is not None]
        if not given:
            yield Complaint(
                message="the price has no amount", hint="give usd_per_hour or purchase_usd, or reserved, spot or catalog"
            )
        elif len(given) > 1:
            yield Complaint(
                where=(given[1],),
                message=f"{' and '.join(given)} are {'both' if len(given) == 2 else 'all'} given",
                hint="offer the SKU twice under two names to let the plan choose between rent and purchase",
            )
        elif self.catalog is not None:
            for key, default in (("per", "device"), ("date", None), ("source", None)):
                if getattr(self, key) != default:
                    yield Complaint(where=(key,), message="the catalogue's price has its own", hint="leave it out")
