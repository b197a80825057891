"""What a fleet is made of and what each part costs: the lines of a bill of materials."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from epd_opt.address import format_path
from epd_opt.document import HOURS_PER_MONTH, DeviceUse, PlanDocument, Pool
from epd_opt.instance import Instance
from epd_opt.problem import Offer
from epd_opt.resolve import resolve
from epd_opt.scenarios import hired_entries
from epd_opt.wording import requirement

_ORDER = ("encode", "prefill", "decode")
_LOT = 1 << 20
"""Units of a pool are whole or simple fractions; floats are read back as such."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line; money in US dollars.

    Attributes
    ----------
    item : str
        ``device``, or ``host``: the server and network around bought devices.
    role : str
        ``new`` and ``existing`` devices serve, ``spare`` ones stand by; ``unused`` ones come with a lot.
    origin : str
        ``bought`` (rented too) or ``owned``.
    quantity : float
        Sold units; a fraction where pools share a unit.
    pack : int
        Units that are had together.
    basis : str
        ``rent`` by the hour, ``spot``, ``reserved`` or ``purchase``; empty for owned units.
    unit_price : float
        Of one unit: per hour where rented.
    capex, upfront : float
        Purchase price of the line; what is paid at the start of its reservation.
    hourly, amortised : float
        Effective cost per hour: rent, capital charge, energy, space; of it, the charge for what is paid at the start.
    power_kw : float
        Nameplate, hosts included.
    """

    item: str
    role: str
    origin: str
    sku: str
    vendor: str
    device: str
    pool: str
    stage: str
    quantity: float
    pack: int
    basis: str
    unit_price: float
    price_date: str
    price_source: str
    capex: float
    upfront: float
    hourly: float
    amortised: float
    power_kw: float
    reason: str

    @property
    def monthly(self) -> float:
        """Of 730 hours."""
        return self.hourly * HOURS_PER_MONTH

    @property
    def billed(self) -> float:
        """What invoices of an hour show."""
        return self.hourly - self.amortised


def bill_of_materials(document: PlanDocument) -> tuple[Line, ...]:
    """The lines of a plan, entry by entry.

    Their sums are the plan's hourly cost, purchases, nameplate power and, over the lines of devices, installed units. Owned
    units are counted to serving pools in the order of the plan, then to spares: they are as good as new ones.
    """
    resolved = resolve(Instance(**document.instance_document), cards=document.cards)
    offers = {offer.name: offer for offer in resolved.offers}
    lines: list[Line] = []
    hired = hired_entries(resolved.instance)
    for name, use in document.devices.items():
        if document.hours is not None and name in hired:
            card = document.cards.get("devices", {}).get(name) or {}
            lines += _hired(offers[name], document, card)
            continue
        pools = [pool for pool in document.pools if pool.device == name]
        purchased = offers[name].for_sale and offers[name].basis == "purchase"
        card = document.cards.get("devices", {}).get(name) or {}
        lines += _entry(offers[name], use, pools, card, resolved.rules.host_share if purchased else None)
    return tuple(lines)


def _entry(
    offer: Offer, use: DeviceUse, pools: list[Pool], card: Mapping[str, Any], host_share: float | None
) -> Iterator[Line]:
    bought_at = use.bought * offer.usd_per_hour + use.owned * offer.owned_usd_per_hour
    energy = max(0.0, use.usd_per_hour - bought_at) / use.used if use.used else 0.0
    purchased = host_share is not None
    share = 1.0 / (1.0 + host_share) if host_share is not None else 1.0
    date, source = offer.price_date, offer.price_source
    if not date and not source and offer.basis in ("rent", "purchase"):
        date, source = _published(card, offer.price, purchased=purchased)
    owned = Fraction(use.owned)
    for role, pool, units, reason in _portions(offer, use, pools):
        existing = min(owned, units)
        owned -= existing
        for origin, count in (("owned", existing), ("bought", units - existing)):
            if count <= 0:
                continue
            quantity, new = float(count), origin == "bought"
            rate = offer.usd_per_hour - offer.amortised_usd_per_hour * (1.0 - share) if new else offer.owned_usd_per_hour
            yield Line(
                item="device",
                role=("new" if new else "existing") if role == "serving" else role,
                origin=origin,
                sku=offer.sku,
                vendor=str(card.get("vendor", "")),
                device=offer.name,
                pool="" if pool is None else pool.name,
                stage="" if pool is None else "+".join(pool.stages),
                quantity=quantity,
                pack=offer.lot,
                basis=offer.basis if new else "",
                unit_price=offer.price if new else 0.0,
                price_date=date if new else "",
                price_source="; ".join(part for part in (format_path(["devices", offer.name, "price"]), source) if part)
                if new
                else "",
                capex=offer.capex_usd * share * quantity if new else 0.0,
                upfront=offer.upfront_usd * quantity if new else 0.0,
                hourly=quantity * (rate + (0.0 if pool is None else energy)),
                amortised=quantity * offer.amortised_usd_per_hour * share if new else 0.0,
                power_kw=offer.power_w * quantity / 1e3,
                reason=reason,
            )
    if host_share and use.bought:
        yield Line(
            item="host",
            role="new",
            origin="bought",
            sku=offer.sku,
            vendor="",
            device=offer.name,
            pool="",
            stage="",
            quantity=float(use.bought),
            pack=offer.lot,
            basis="purchase",
            unit_price=offer.capex_usd * (1.0 - share),
            price_date="",
            price_source=f"{host_share:.3g} of the device's price (cost.host_share)",
            capex=offer.capex_usd * (1.0 - share) * use.bought,
            upfront=0.0,
            hourly=use.bought * offer.amortised_usd_per_hour * (1.0 - share),
            amortised=use.bought * offer.amortised_usd_per_hour * (1.0 - share),
            power_kw=0.0,
            reason="server and network around each bought device; its power is counted with the device",
        )


def _hired(offer: Offer, document: PlanDocument, card: Mapping[str, Any]) -> Iterator[Line]:
    """Units that are hired by the hour: on average over the day, at the power of the most of them."""
    day = [(result.weight, result) for result in document.scenarios or () if offer.name in result.devices]
    date, source = offer.price_date, offer.price_source
    if not date and not source and offer.basis == "rent":
        date, source = _published(card, offer.price, purchased=False)
    stages = sorted(
        {stage for pool in document.pools if pool.device == offer.name for stage in pool.stages}, key=_ORDER.index
    )
    whole = math.fsum(weight * result.devices[offer.name].usd_per_hour for weight, result in day)
    rent = math.fsum(weight * result.devices[offer.name].bought * offer.usd_per_hour for weight, result in day)
    for origin in ("owned", "bought"):
        counts = [(weight, getattr(result.devices[offer.name], origin)) for weight, result in day]
        mean, peak = math.fsum(weight * count for weight, count in counts), max(count for _, count in counts)
        if not peak:
            continue
        new = origin == "bought"
        where = (
            f"{format_path(['devices', offer.name, 'price'])}; {source}"
            if source
            else format_path(["devices", offer.name, "price"])
        )
        yield Line(
            item="device",
            role="new" if new else "existing",
            origin=origin,
            sku=offer.sku,
            vendor=str(card.get("vendor", "")),
            device=offer.name,
            pool="",
            stage="+".join(stages),
            quantity=mean,
            pack=offer.lot,
            basis=offer.basis if new else "",
            unit_price=offer.price if new else 0.0,
            price_date=date if new else "",
            price_source=where if new else "",
            capex=0.0,
            upfront=0.0,
            hourly=rent if new else whole - rent,
            amortised=0.0,
            power_kw=peak * offer.power_w / 1e3,
            reason=f"hired by the hour: {mean:.4g} units on average over the day, {peak} at most",
        )


def _published(card: Mapping[str, Any], price: float, *, purchased: bool) -> tuple[str, str]:
    """Date and source of the price, where the device card has the same one; else empty."""
    published = card.get("price") or {}
    if purchased:
        offers = [{**(published.get("purchase") or {})}]
        offers = [{"usd": o.get("typical_usd"), "date": o.get("date"), "source": o.get("basis")} for o in offers]
    else:
        offers = [{**o, "usd": o.get("usd_per_hour")} for o in published.get("offers") or []]
    for offer in offers:
        if isinstance(offer["usd"], int | float) and math.isclose(offer["usd"], price, rel_tol=1e-9):
            return str(offer.get("date") or ""), str(offer.get("source") or "")
    return "", ""


def _portions(offer: Offer, use: DeviceUse, pools: list[Pool]) -> Iterator[tuple[str, Pool | None, Fraction, str]]:
    """Units by what they are for: all that serve, all that stand by, and what a lot brings on top."""
    taken = Fraction(0)
    for role in ("serving", "spare"):
        for pool in pools:
            whole = pool.replicas + pool.spare_replicas
            replicas = pool.replicas if role == "serving" else pool.spare_replicas
            units = Fraction(pool.devices).limit_denominator(_LOT) * replicas / whole if whole else Fraction(0)
            taken += units
            if units:
                yield role, pool, units, _reason(role, pool, replicas)
    left = Fraction(use.bought + use.owned) - taken
    if left and offer.interruption_allowance:
        yield "spare", None, left, f"held for interruptions, {offer.interruption_allowance:g} per unit in use, in whole lots"
    elif left:
        parts = [f"lots of {offer.lot}"] if offer.lot > 1 else []
        parts += ["whole units"] if math.ceil(taken) != taken else []
        yield "unused", None, left, f"comes with {' and '.join(parts)}" if parts else "not used by any pool"


def _reason(role: str, pool: Pool, replicas: int) -> str:
    count = f"{replicas} {'replica' if replicas == 1 else 'replicas'}"
    if role == "spare":
        return f"{count} to stand by for {pool.placement} (redundancy.spare_replicas)"
    binding = ", ".join(requirement(kind) for kind in pool.binding)
    return f"{count} of {pool.placement}; one less would break: {binding}" if binding else f"{count} of {pool.placement}"
