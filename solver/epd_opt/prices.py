"""What the units of a device entry cost, from the price as stated or as the catalogue has it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from epd_models import catalog
from epd_models.dates import latest_day, over_a_year_old
from epd_models.device import Device
from epd_models.tariff import HOURS_OF_A_YEAR, Charge, CostRules
from epd_opt import instance as user
from epd_opt.address import format_path
from epd_opt.errors import InvalidInput, Problem
from epd_opt.problem import Basis


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What one unit is charged, and where that is from.

    Attributes
    ----------
    amount : float
        The price: US dollars per hour or, of a purchase, US dollars.
    interruption_allowance : float
        Units held on top of those in use, as a share of them.
    confidence : str
        How far to trust the price.
    """

    basis: Basis
    amount: float
    charge: Charge
    interruption_allowance: float = 0.0
    date: str = ""
    source: str = ""
    confidence: str = "user"


def usd(amount: float | Mapping[str, float], instance: user.Instance) -> float:
    """An amount in US dollars, converted at the rate that the instance states."""
    if isinstance(amount, Mapping):
        ((code, value),) = amount.items()
        return value * (instance.currencies or {})[code].usd_per_unit
    return amount


def terms_of(
    entry: user.DeviceEntry, device: Device | None, instance: user.Instance, rules: CostRules, *, units: int
) -> Terms | None:
    """The terms of a priced entry; None where it leaves the price to the catalogue and the catalogue has none.

    Parameters
    ----------
    units : int
        Units that the price is for.

    Raises
    ------
    InvalidInput
        More is paid at the start of a reservation than over its term.
    """
    price = entry.price
    assert price is not None
    date, source = price.date or "", price.source or ""
    if price.catalog is not None:
        return _published(price.catalog, device, rules)
    if price.purchase_usd is not None:
        paid = usd(price.purchase_usd, instance) / units
        return Terms(basis="purchase", amount=paid, charge=rules.purchase(paid), date=date, source=source)
    if price.spot is not None:
        rent = usd(price.spot.usd_per_hour, instance) / units
        allowance = price.spot.interruption_allowance
        return Terms(
            basis="spot",
            amount=rent,
            charge=Charge(usd_per_hour=rent),
            interruption_allowance=allowance,
            date=date,
            source=source,
        )
    if price.reserved is not None:
        rent = usd(price.reserved.usd_per_hour, instance) / units
        upfront = _upfront(entry.name, price.reserved, instance, rent * units) / units
        charge = rules.reservation(rent, price.reserved.term_years, upfront)
        return Terms(basis="reserved", amount=rent, charge=charge, date=date, source=source)
    assert price.usd_per_hour is not None
    rent = usd(price.usd_per_hour, instance) / units
    return Terms(basis="rent", amount=rent, charge=Charge(usd_per_hour=rent), date=date, source=source)


def _published(kind: str, device: Device | None, rules: CostRules) -> Terms | None:
    if device is None:
        return None
    price = device.price
    if kind == "purchase" and price.purchase_usd is not None:
        return Terms(
            basis="purchase",
            amount=price.purchase_usd,
            charge=rules.purchase(price.purchase_usd),
            date=price.purchase_date or "",
            source=f"catalogue, typical purchase price: {price.basis or 'no source stated'}",
            confidence=price.purchase_confidence.label,
        )
    if kind == "rent" and price.usd_per_hour is not None:
        providers = (
            "" if price.providers is None else f" of {price.providers} {'provider' if price.providers == 1 else 'providers'}"
        )
        return Terms(
            basis="rent",
            amount=price.usd_per_hour,
            charge=Charge(usd_per_hour=price.usd_per_hour),
            date=price.rent_date or "",
            source=f"catalogue, median rent on demand{providers}",
            confidence=price.rent_confidence.label,
        )
    return None


def _upfront(name: str, reserved: user.Reserved, instance: user.Instance, usd_per_hour: float) -> float:
    """What is paid at the start, of what the price is for."""
    whole = usd_per_hour * reserved.term_years * HOURS_OF_A_YEAR
    if reserved.upfront_usd is None:
        return whole * (reserved.upfront_share or 0.0)
    upfront = usd(reserved.upfront_usd, instance)
    if upfront > whole * (1 + 1e-9):
        raise InvalidInput(
            [
                Problem(
                    path=format_path(["devices", name, "price", "reserved", "upfront_usd"]),
                    message=f"found {upfront:,.12g} USD, expected at most the {whole:,.12g} USD of the whole term",
                    hint="usd_per_hour is the whole rate over the term, upfront part included",
                )
            ]
        )
    return min(upfront, whole)


def day_of(instance: user.Instance) -> datetime.date:
    """The day by which prices are judged."""
    return datetime.date.fromisoformat(instance.as_of or catalog.as_of())


def stale(what: str, stated: str, instance: user.Instance) -> Iterator[str]:
    """A sentence where a date lies more than a year back, or cannot be told although one is stated."""
    day = day_of(instance)
    if over_a_year_old(stated, day):
        yield f"{what} is dated {stated}, more than a year before {day} ({_whose(instance)})"
    elif stated and latest_day(stated) is None:
        yield f"{what} has no date that can be told: {stated}"


def _whose(instance: user.Instance) -> str:
    return "as_of" if instance.as_of is not None else "the catalogue's day; state as_of for another"
