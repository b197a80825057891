"""The device entries of an instance: which are on offer, and what was noticed on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from epd_models.architecture import Architecture
from epd_models.candidate import Rejection
from epd_models.engine import Engine
from epd_models.entry import Entry
from epd_models.tariff import CostRules
from epd_opt import instance as user
from epd_opt.address import format_path
from epd_opt.errors import InvalidInput, Problem
from epd_opt.problem import Offer
from epd_opt.resolve.cards import device_of, untold
from epd_opt.resolve.entries import device_assumptions, entry_of
from epd_opt.resolve.names import names_of
from epd_opt.resolve.offers import beyond_a_rack, offer_of
from epd_opt.resolve.resolved import Assumption


@dataclass(slots=True, kw_only=True)
class Devices:
    """What became of the device entries, in the order of their names.

    Attributes
    ----------
    names : dict
        What limits may call an entry, by its name.
    """

    entries: list[Entry] = field(default_factory=list)
    offers: list[Offer] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    cards: dict[str, Any] = field(default_factory=dict)
    names: dict[str, frozenset[str]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    assumptions: list[Assumption] = field(default_factory=list)


def look_up(
    instance: user.Instance, model: Architecture | None, engine: Engine, rules: CostRules, cards: Mapping[str, Any]
) -> Devices:
    """Go through the device entries.

    Raises
    ------
    InvalidInput
        A name that no card has, a card that makes no sense, or measurements of a device that no model is asked about.
    """
    found = Devices()
    modelled = instance.candidates.modelled
    measured = {worker.sku for worker in instance.workers}
    for entry in sorted(instance.devices, key=lambda e: e.name):
        needs_card = modelled and not (entry.card is None and {entry.name, entry.sku} & measured)
        device, card = device_of(entry, cards.get("devices", {}).get(entry.name), required=needs_card)
        if card is not None:
            found.cards[entry.name] = card
        found.names[entry.name] = names_of(entry, device)
        if forbidden := [one for one in instance.limits.forbid if one.casefold() in found.names[entry.name]]:
            text = f"{entry.name} is forbidden (limits.forbid: {', '.join(forbidden)})"
            found.rejections.append(Rejection(limit="forbid", device=entry.name, text=text))
            continue
        offer, refused = offer_of(entry, device, instance, rules, found.warnings, found.assumptions)
        if offer is None:
            found.rejections.append(refused)
            continue
        if (too_much := beyond_a_rack(offer, instance.limits.rack_kw)) is not None:
            found.rejections.append(too_much)
            found.warnings.append(f"{too_much.text}; it is left out")
            continue
        found.offers.append(offer)
        if entry.performance is not None and (device is None or model is None):
            text = "found, but only measured workers are planned with on this device"
            raise InvalidInput([Problem(path=format_path(["devices", entry.name, "performance"]), message=text)])
        if device is not None and model is not None:
            kept = cards.get("performance", {}).get(entry.name, {})
            planned = entry_of(entry, device, model, engine, offer, instance, kept)
            found.entries.append(planned)
            remarks = () if planned.source is None else planned.source.remarks()
            found.warnings += [f"{entry.name}: {remark}" for remark in remarks]
            found.warnings += untold(entry, engine.name)
            found.assumptions += device_assumptions(entry.name, device, engine.name)
    return found
