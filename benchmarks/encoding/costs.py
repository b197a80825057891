"""What the comparison costs: prices, cost per request of every way, and how many encoder cards are right."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

from published import placements
from published.fleets import goodput

import epd_opt
from encoding.case import GPU, Case, Outcome, planned
from encoding.table import Table, Value
from epd_models import catalog
from epd_opt.problem import Offer
from epd_opt.resolve import resolve

RENTED = ("L4", "L40S", "RTX-PRO-6000-SE")
OWNED = ("L4", "L40S", "RTX-6000D", "RTX-PRO-6000-SE")
RATES = (10.0, 400.0)
PUBLISHED_GAIN = 0.70
PUBLISHED_GPUS, PUBLISHED_CARDS = 4, 2


def rent(sku: str) -> float:
    """Median of public rents on demand, US dollars per hour."""
    found = catalog.device(sku).price.usd_per_hour
    if found is None:
        raise ValueError(f"the catalogue has no rent of {sku}")
    return found


def priced(case: Case, basis: str, card: str) -> Case:
    """The case with rented or owned devices."""
    if basis == "owned":
        return replace(case, card=card)
    return replace(case, card=card, gpu_usd=rent(GPU), card_usd=rent(card))


def terms(basis: str, sku: str) -> Offer:
    """Terms on which a device is to be had."""
    card = sku if sku != GPU else OWNED[0]
    document = priced(Case(), basis, card).document("cheapest")
    return next(o for o in resolve(epd_opt.Instance.model_validate(document)).offers if o.sku == sku)


def hourly(basis: str, sku: str) -> float:
    """US dollars per hour of a device in use: its rent, or capital charge and energy half-way from idle to nameplate."""
    offer = terms(basis, sku)
    return offer.usd_per_hour + offer.used_usd_per_hour + 1800.0 * offer.busy_usd_per_unit_second


def price_row(basis: str, sku: str) -> dict[str, Value]:
    """A price and where it is from."""
    device = catalog.device(sku)
    given = device.price.purchase_usd if basis == "owned" else device.price.usd_per_hour
    card = catalog.device_card(sku)["price"]["purchase" if basis == "owned" else "cloud"]
    source = card["basis"] if basis == "owned" else f"median of on-demand offers, {card['providers']} provider(s)"
    return {
        "given_usd": given if given is not None else math.nan,
        "unit": "USD" if basis == "owned" else "USD/h",
        "usd_per_hour": hourly(basis, sku),
        "share_of_gpu": hourly(basis, sku) / hourly(basis, GPU),
        "dated": card["date"],
        "confidence": card["confidence"],
        "source": source,
    }


def cost(basis: str, images: int, rate: float, way: str, card: str) -> dict[str, Value]:
    """Cost per request of a way."""
    case = priced(Case(images=images, rate=rate), basis, card or "L4")
    found, shared = planned(case, way), planned(case, "shared")
    return {**shown(found), "against_shared_percent": 100.0 * (found.usd / shared.usd - 1.0)}


def shown(found: Outcome) -> dict[str, Value]:
    """Figures of a fleet."""
    return {
        "usd_per_1000": found.usd,
        "gpus": found.gpus,
        "cards": found.cards,
        "ttft_ms": found.ttft_ms,
        "itl_ms": found.itl_ms,
        "fleet": found.fleet,
    }


def divided(basis: str, card: str) -> dict[str, Value]:
    """The published 70 % divided by what the two cards cost beside four GPUs."""
    extra = PUBLISHED_CARDS * hourly(basis, card) / (PUBLISHED_GPUS * hourly(basis, GPU))
    return {
        "dearer_fleet_percent": 100.0 * extra,
        "published_cost_per_request_percent": 100.0 * ((1.0 + extra) / (1.0 + PUBLISHED_GAIN) - 1.0),
        "predicted_cost_per_request_percent": 100.0 * ((1.0 + extra) * most("integrated", 0) / most("separate", 2) - 1.0),
        "predicted_against_shared_percent": 100.0 * ((1.0 + extra) * most("shared", 0) / most("separate", 2) - 1.0),
    }


@cache
def most(kind: str, cards: int) -> float:
    """Goodput of four GB200 with so many cards on the published request of ten images, requests/s."""
    document = placements.case(kind, [placements.request(10, 1024, 4.0)], PUBLISHED_GPUS)
    devices = [dict(device) for device in document["devices"]]
    for device in devices:
        if device["sku"] != GPU:
            device["stock"] = cards
    return goodput({**document, "devices": devices})


def by_cards(kind: str, cards: int) -> dict[str, Value]:
    """Goodput, and what requests cost at it."""
    found = most(kind, cards)

    def usd(basis: str, card: str) -> float:
        hour = PUBLISHED_GPUS * hourly(basis, GPU) + cards * hourly(basis, card)
        return 1e3 * hour / 3600.0 / found

    return {
        "requests_per_s": found,
        "against_integrated_percent": 100.0 * (found / most("integrated", 0) - 1.0),
        "owned_usd_per_1000": usd("owned", "RTX-6000D"),
        "rented_usd_per_1000": usd("rented", "RTX-PRO-6000-SE"),
    }


_WAYS = (("integrated", ""), ("shared", ""), ("dedicated", ""))
TABLES = (
    Table(
        name="prices",
        keys=tuple(
            {"basis": basis, "sku": sku} for basis, cards in (("rented", RENTED), ("owned", OWNED)) for sku in (GPU, *cards)
        ),
        cell=price_row,
    ),
    Table(
        name="divided",
        keys=({"basis": "owned", "card": "RTX-6000D"}, {"basis": "rented", "card": "RTX-PRO-6000-SE"}),
        cell=divided,
    ),
    Table(
        name="cards",
        keys=(
            {"kind": "integrated", "cards": 0},
            {"kind": "shared", "cards": 0},
            *({"kind": "separate", "cards": cards} for cards in (1, 2, 3, 4)),
        ),
        cell=by_cards,
    ),
    Table(
        name="cost",
        keys=tuple(
            {"basis": basis, "images": images, "rate": rate, "way": way, "card": card}
            for basis, cards in (("rented", RENTED), ("owned", OWNED))
            for images in (5, 10)
            for rate in RATES
            for way, card in (
                *_WAYS,
                *(("separate", card) for card in cards),
                *(("cheapest", card) for card in cards),
            )
        ),
        cell=cost,
    ),
)
