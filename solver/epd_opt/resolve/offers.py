"""What a device entry is sold for, in which lots, and what it draws."""

from __future__ import annotations

import math

from epd_models.candidate import Rejection
from epd_models.device import Device
from epd_models.provenance import Confidence
from epd_models.tariff import Charge, CostRules
from epd_opt import instance as user
from epd_opt.prices import Terms, stale, terms_of
from epd_opt.problem import Limits, Offer
from epd_opt.resolve.lots import nodes_of, units_per
from epd_opt.resolve.resolved import Assumption


def offer_of(
    entry: user.DeviceEntry,
    device: Device | None,
    instance: user.Instance,
    rules: CostRules,
    warnings: list[str],
    assumptions: list[Assumption],
) -> tuple[Offer | None, Rejection]:
    price = entry.price
    refused = Rejection(
        limit="no_price", device=entry.name, text=f"{entry.name} has no price; give devices.{entry.name}.price"
    )
    stock = entry.stock
    per = 1 if price is None else units_per(entry, price, device)
    lot = 1 if price is None else per * math.ceil(price.pack / per)
    terms = None if price is None else terms_of(entry, device, instance, rules, units=per)
    if price is None or terms is None:
        missing = "has no price" if price is None else f"has no {price.catalog} price in the catalogue"
        if entry.owned == 0:
            warnings.append(f"{entry.name} {missing} and is left out; give devices.{entry.name}.price to offer it")
            return None, refused
        warnings.append(f"{entry.name} {missing}: only the {entry.owned} owned units are on offer")
        stock = entry.owned
    power_w, idle_w = power_of(entry, device, warnings, limited=_limits_power(instance))
    if terms is not None and terms.amount == 0:
        warnings.append(f"{entry.name} is offered at price 0")
    if terms is not None:
        warnings += stale(f"{entry.name}: its price", terms.date, instance)
        assumptions += _price_assumptions(entry.name, price, terms)
    if entry.stock is None:
        warnings.append(f"{entry.name} has no stock limit: any number of units may be planned")
    own_site = terms is None or terms.basis == "purchase"
    space = rules.colocation_usd_per_hour(power_w)
    charge = Charge(usd_per_hour=0.0) if terms is None else terms.charge
    return Offer(
        name=entry.name,
        sku=entry.sku,
        stock=stock,
        owned=entry.owned,
        lot=lot,
        usd_per_hour=charge.usd_per_hour + (space if own_site and terms is not None else 0.0),
        used_usd_per_hour=rules.energy_usd_per_hour(idle_w) if own_site else 0.0,
        owned_usd_per_hour=space + (0.0 if own_site else rules.energy_usd_per_hour(power_w)),
        busy_usd_per_unit_second=(power_w - idle_w) * rules.energy_usd_per_joule() if own_site else 0.0,
        capex_usd=charge.capex_usd,
        power_w=power_w,
        for_sale=terms is not None,
        basis="purchase" if terms is None else terms.basis,
        amortised_usd_per_hour=charge.amortised_usd_per_hour,
        upfront_usd=charge.upfront_usd,
        interruption_allowance=0.0 if terms is None else terms.interruption_allowance,
        price=0.0 if terms is None else terms.amount,
        price_date="" if terms is None else terms.date,
        price_source="" if terms is None else terms.source,
        minimum=0 if price is None else price.minimum,
        nodes=None if device is None else nodes_of(device, 1 if terms is None else lot),
    ), refused


def beyond_a_rack(offer: Offer, rack_kw: float | None) -> Rejection | None:
    """Why an entry stands in no rack, if its units draw too much for one."""
    if rack_kw is None or Limits(rack_w=rack_kw * 1e3).units_per_rack(offer) != 0:
        return None
    power = offer.together * offer.power_w / 1e3
    what = f"a unit of {offer.name}" if offer.together == 1 else f"{offer.together} units of {offer.name}, bought whole,"
    return Rejection(
        limit="rack_kw",
        device=offer.name,
        wanted=rack_kw,
        best_reachable=power,
        text=f"{what} {'draws' if offer.together == 1 else 'draw'} {power:.6g} kW, limits.rack_kw is {rack_kw:g}",
    )


def power_of(entry: user.DeviceEntry, device: Device | None, warnings: list[str], *, limited: bool) -> tuple[float, float]:
    """Nameplate and idle watts of one unit with its share of the host; figures of the instance are taken as they are."""
    if device is None:
        if entry.power_w is None and (limited or entry.price is None or entry.price.is_purchase):
            warnings.append(f"{entry.name}: power is unknown and taken as 0; give devices.{entry.name}.power_w")
        power = entry.power_w or 0.0
        return power, power if entry.idle_power_w is None else entry.idle_power_w
    power = device.tdp_w * device.host_power_factor if entry.power_w is None else entry.power_w
    idle = device.idle_w * device.host_power_factor if entry.idle_power_w is None else entry.idle_power_w
    return power, min(idle, power)


def _limits_power(instance: user.Instance) -> bool:
    return instance.limits.power_kw is not None or instance.limits.rack_kw is not None


def _price_assumptions(name: str, price: user.Price | None, terms: Terms) -> list[Assumption]:
    """A price that the catalogue gives, and the allowance for interruptions."""
    found = []
    if price is not None and price.catalog is not None:
        unit = "USD" if terms.basis == "purchase" else "USD/h"
        source = f"{terms.source}; {terms.date}" if terms.date else terms.source
        found.append(
            Assumption(text=f"{name}: price", value=terms.amount, unit=unit, source=source, confidence=terms.confidence)
        )
    if terms.basis == "spot":
        found.append(
            Assumption(
                text=f"{name}: interruption allowance",
                value=terms.interruption_allowance,
                unit="units held per unit in use",
                source="the instance; that no more units are away at once is taken for granted",
                confidence=Confidence.USER.label,
            )
        )
    return found
