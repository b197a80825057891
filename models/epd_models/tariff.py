"""What a sold unit costs per hour: rented, bought, or owned already."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRules:
    """Constants of ownership and energy.

    Attributes
    ----------
    life_years, residual : float
        Service life, and the share of the outlay (purchase and host) left at its end.
    cost_of_capital : float
        Per year.
    host_share : float
        Host, chassis and network per unit, as a share of the purchase price.
    hours_per_year : float
        Hours that a year of cost is spread over.
    pue : float
        Facility power over IT power.
    electricity_usd_per_kwh : float
        Energy tariff.
    """

    life_years: float
    residual: float
    cost_of_capital: float
    host_share: float
    hours_per_year: float
    pue: float
    electricity_usd_per_kwh: float

    def capital_usd_per_hour(self, purchase_usd: float) -> float:
        """Capital charge of one unit: an annuity at the cost of capital that leaves the residual at the end of life.

        Payments fall due at the end of each year.

        >>> rules = CostRules(life_years=3, residual=0.25, cost_of_capital=0.0, host_share=0.0, hours_per_year=8760,
        ...                   pue=1.4, electricity_usd_per_kwh=0.12)
        >>> round(rules.capital_usd_per_hour(30000) + rules.energy_usd_per_hour(700), 4)
        0.9738
        """
        outlay = purchase_usd * (1.0 + self.host_share)
        left = self.residual * outlay
        rate = self.cost_of_capital
        if rate == 0.0:
            return (outlay - left) / self.life_years / self.hours_per_year
        growth = self.life_years * math.log1p(rate)
        return (outlay - left * math.exp(-growth)) * rate / -math.expm1(-growth) / self.hours_per_year

    def energy_usd_per_hour(self, watts: float) -> float:
        """Cost of ``watts`` of IT power drawn for an hour."""
        return watts / 1000.0 * self.pue * self.electricity_usd_per_kwh

    def energy_usd_per_joule(self) -> float:
        """Cost of one joule of IT energy."""
        return self.energy_usd_per_hour(1.0) / 3600.0
