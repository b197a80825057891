"""Terms of ownership."""

from __future__ import annotations

from pydantic import Field

from epd_opt.fields import AtLeastOne, HoursPerYear, NonNegative, Part, Positive, Share
from epd_opt.instance.currency import Amount


class Cost(Part):
    """Terms of ownership; what is absent follows the catalogue's typical constants."""

    life_years: Positive | None = Field(default=None, description="Years over which a purchase is written off.")
    residual: Share | None = Field(default=None, description="Share of the price left at the end of life (0 to 1).")
    cost_of_capital: NonNegative | None = Field(default=None, description="Interest per year: 0.08 is 8 per cent.")
    host_share: NonNegative | None = Field(
        default=None, description="Price of the server around a device, as a share of the device's purchase price."
    )
    hours_per_year: HoursPerYear | None = Field(default=None, description="Hours of service per year.")
    pue: AtLeastOne | None = Field(default=None, description="Power usage effectiveness, >= 1.")
    electricity_usd_per_kwh: Amount | None = Field(default=None, description="Tariff, US dollars per kWh.")
    colocation_usd_per_kw_month: Amount | None = Field(
        default=None,
        description="Space and cooling at the own site, US dollars per kW of nameplate IT power and month, for bought and "
        "owned units; absent = not charged.",
    )
