"""What a sold unit costs per hour: rented, reserved, bought, or owned already."""

from __future__ import annotations

import math
from dataclasses import dataclass

HOURS_OF_A_YEAR = 8760.0
"""Hours that a year of a reservation or of a colocation contract is billed for, whatever the hours of service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What one unit is charged under a tariff, energy and space apart.

    Attributes
    ----------
    usd_per_hour : float
        Effective: invoices of an hour of service and the charge for what is paid at the start.
    amortised_usd_per_hour : float
        Of it, the charge for what is paid at the start.
    upfront_usd : float
        Paid at the start of a reservation.
    capex_usd : float
        Paid for a purchase and its host.
    """

    usd_per_hour: float
    amortised_usd_per_hour: float = 0.0
    upfront_usd: float = 0.0
    capex_usd: float = 0.0


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
    colocation_usd_per_kw_month : float
        Space, cooling and their upkeep at the own site, per kilowatt of nameplate IT power and month.
    """

    life_years: float
    residual: float
    cost_of_capital: float
    host_share: float
    hours_per_year: float
    pue: float
    electricity_usd_per_kwh: float
    colocation_usd_per_kw_month: float = 0.0

    def capital_usd_per_hour(self, purchase_usd: float) -> float:
        """Capital charge of one unit: an annuity at the cost of capital that leaves the residual at the end of life.

        Payments fall due at the end of each year.

        >>> rules = CostRules(life_years=3, residual=0.25, cost_of_capital=0.0, host_share=0.0, hours_per_year=8760,
        ...                   pue=1.4, electricity_usd_per_kwh=0.12)
        >>> round(rules.capital_usd_per_hour(30000) + rules.energy_usd_per_hour(700), 4)
        0.9738
        """
        outlay = purchase_usd * (1.0 + self.host_share)
        return self._per_year(outlay, self.life_years, self.residual * outlay) / self.hours_per_year

    def _per_year(self, outlay: float, years: float, left: float = 0.0) -> float:
        """Payment at the end of each year that is worth, at the cost of capital, ``outlay`` now less ``left`` at the end."""
        rate = self.cost_of_capital
        if rate == 0.0:
            return (outlay - left) / years
        growth = years * math.log1p(rate)
        return (outlay - left * math.exp(-growth)) * rate / -math.expm1(-growth)

    def purchase(self, purchase_usd: float) -> Charge:
        """A unit bought with its host."""
        capital = self.capital_usd_per_hour(purchase_usd)
        return Charge(usd_per_hour=capital, amortised_usd_per_hour=capital, capex_usd=purchase_usd * (1.0 + self.host_share))

    def reservation(self, usd_per_hour: float, term_years: float, upfront_usd: float) -> Charge:
        """A unit rented for all hours of ``term_years`` at ``usd_per_hour``, of which ``upfront_usd`` is paid at the start.

        The rest is billed by the hour. What is paid at the start is spread over the term as an annuity at the cost of
        capital: upfront * i / (1 - (1 + i) ** -term) per year. Both are carried by the hours of service.

        >>> rules = CostRules(life_years=4, residual=0.0, cost_of_capital=0.1, host_share=0.0, hours_per_year=8760,
        ...                   pue=1.25, electricity_usd_per_kwh=0.085)
        >>> charge = rules.reservation(2.0, 3.0, 0.25 * 2.0 * 3 * 8760)
        >>> round(charge.usd_per_hour, 4), round(charge.usd_per_hour - charge.amortised_usd_per_hour, 4)
        (2.1032, 1.5)
        """
        busy = HOURS_OF_A_YEAR / self.hours_per_year
        billed = (usd_per_hour - upfront_usd / (term_years * HOURS_OF_A_YEAR)) * busy
        amortised = self._per_year(upfront_usd, term_years) / self.hours_per_year
        return Charge(usd_per_hour=billed + amortised, amortised_usd_per_hour=amortised, upfront_usd=upfront_usd)

    def colocation_usd_per_hour(self, watts: float) -> float:
        """Space for ``watts`` of nameplate IT power, per hour of service."""
        return watts / 1000.0 * self.colocation_usd_per_kw_month * 12.0 / self.hours_per_year

    def energy_usd_per_hour(self, watts: float) -> float:
        """Cost of ``watts`` of IT power drawn for an hour."""
        return watts / 1000.0 * self.pue * self.electricity_usd_per_kwh

    def energy_usd_per_joule(self) -> float:
        """Cost of one joule of IT energy."""
        return self.energy_usd_per_hour(1.0) / 3600.0
