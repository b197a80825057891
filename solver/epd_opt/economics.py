"""What a fleet costs by the hour, the request, the image and the token, and what its units cost at every tariff on offer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from epd_opt import document as doc
from epd_opt.accounting import Holding, energy_usd_per_hour
from epd_opt.document import HOURS_PER_MONTH
from epd_opt.offering import loads_of
from epd_opt.problem import Offer
from epd_opt.resolve import Resolved


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What is served in an hour, at the mean rates; None where the instance does not tell."""

    requests: float
    images: float
    input_tokens: float | None
    output_tokens: float | None

    def units(self) -> list[tuple[str, float | None, str]]:
        """Name of each unit of service, how many are served in an hour, and what is counted."""
        millions = (
            (None if self.input_tokens is None else self.input_tokens / 1e6),
            (None if self.output_tokens is None else self.output_tokens / 1e6),
        )
        return [
            ("request", self.requests, "requests of all classes at their mean rates"),
            ("image", self.images, "images of all requests, those in the encoder cache included; video frames left out"),
            ("million_input_tokens", millions[0], "prompt tokens of all requests: text, images and video; cached ones too"),
            ("million_output_tokens", millions[1], "generated tokens of all requests"),
        ]


def served(resolved: Resolved) -> Served:
    """What the mean rates come to in an hour."""
    loads = {load.name: load for load in loads_of(resolved)[0]}
    stated = {request.name: request for request in resolved.instance.workload.classes}
    images = 0.0
    prompt: float | None = 0.0
    output: float | None = 0.0
    for request in resolved.requests:
        hourly = 3600.0 * request.mean_rate
        if request.images is not None:
            images += hourly * request.images.count.mean
        load = loads.get(request.name)
        known = load is not None or not request.has_vision
        each = load.mean_prompt if load is not None else request.text_tokens.mean
        prompt = prompt + hourly * each if known and prompt is not None else None
        told = stated[request.name].output_tokens is not None
        output = output + hourly * request.output_tokens.mean if told and output is not None else None
    requests = 3600.0 * math.fsum(request.mean_rate for request in resolved.requests)
    return Served(requests=requests, images=images, input_tokens=prompt or None, output_tokens=output)


def unit_costs(usd_per_hour: float, service: Served) -> list[doc.UnitCost]:
    """The cost of each unit of service, with what it is divided by."""
    costs = [
        doc.UnitCost(unit="hour", usd=usd_per_hour, per_hour=1.0, denominator="hours of service"),
        doc.UnitCost(
            unit="month",
            usd=usd_per_hour * HOURS_PER_MONTH,
            per_hour=1.0 / HOURS_PER_MONTH,
            denominator=f"months of {HOURS_PER_MONTH:g} hours",
        ),
    ]
    for name, count, denominator in service.units():
        usd = usd_per_hour / count if count else None
        costs.append(doc.UnitCost(unit=name, usd=usd, per_hour=count, denominator=denominator))
    return costs


def tariffs(resolved: Resolved, fleet: Mapping[str, Holding], busy: Mapping[str, float]) -> list[doc.Tariff]:
    """Every device entry on offer: what one of its units costs, and what the fleet's units of its SKU would cost at its
    tariff.

    Parameters
    ----------
    fleet : Mapping[str, Holding]
        Units by device entry; empty where nothing is planned yet.
    busy : Mapping[str, float]
        Unit-seconds of work per second, by device entry.
    """
    service = served(resolved)
    skus = {offer.name: offer.sku for offer in resolved.offers}
    rows = []
    for offer in resolved.offers:
        if not offer.for_sale:
            continue
        used = sum(held.used for name, held in fleet.items() if skus[name] == offer.sku)
        work = math.fsum(seconds for name, seconds in busy.items() if skus[name] == offer.sku)
        rows.append(_row(offer, used, work, service))
    return rows


def _row(offer: Offer, used: int, work: float, service: Served) -> doc.Tariff:
    held = 1.0 + offer.interruption_allowance
    working = offer.used_usd_per_hour + 3600.0 * offer.busy_usd_per_unit_second
    idle = held * offer.usd_per_hour + offer.used_usd_per_hour
    full = held * offer.usd_per_hour + working
    fleet = None
    if used:
        bought = offer.lots_for(used) * offer.lot
        fleet = bought * offer.usd_per_hour + energy_usd_per_hour(offer, used, work)
    each = {name: fleet / count if fleet is not None and count else None for name, count, _ in service.units()}
    return doc.Tariff(
        device=offer.name,
        sku=offer.sku,
        basis=offer.basis,
        price=offer.price,
        price_date=offer.price_date or None,
        price_source=offer.price_source or None,
        usd_per_hour=full,
        idle_usd_per_hour=idle,
        billed_usd_per_hour=full - held * offer.amortised_usd_per_hour,
        usd_per_month=full * HOURS_PER_MONTH,
        upfront_usd=held * (offer.upfront_usd + offer.capex_usd),
        fleet_units=used,
        fleet_usd_per_hour=fleet,
        usd_per_request=each["request"],
        usd_per_image=each["image"],
        usd_per_million_input_tokens=each["million_input_tokens"],
        usd_per_million_output_tokens=each["million_output_tokens"],
    )


def unpriced(resolved: Resolved) -> list[str]:
    """Device entries without a price, owned ones too."""
    priced = {offer.name for offer in resolved.offers if offer.for_sale}
    return sorted(entry.name for entry in resolved.instance.devices if entry.name not in priced)


def prices_dated(resolved: Resolved, used: Mapping[str, Holding]) -> str:
    """Dates of the prices of the entries that a fleet uses."""
    dates = {offer.name: offer.price_date for offer in resolved.offers if offer.name in used and offer.for_sale}
    dated = [f"{date} ({name})" for name, date in sorted(dates.items()) if date]
    if not dated:
        return "as stated in the instance"
    return ", ".join(dated) + ("" if len(dated) == len(dates) else "; others as stated in the instance")
