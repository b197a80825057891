"""Random instances of measured workers among whose best plans many cost the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

_CHAINS = (
    ["encode", "prefill", "decode"],
    ["prefill", "decode"],
    ["encode"],
    ["encode", "prefill"],
    ["decode"],
    ["prefill"],
)


def tied_document(
    seed: int, *, skus: int = 4, workers: int = 10, classes: int = 3, rates: Sequence[float] = (1.0, 2.0, 4.0)
) -> dict[str, Any]:
    """Prices and rates of few values, so that costs are often equal; lots, stock, owned units and spares; to be proved
    without a gap."""
    dice = random.Random(seed)
    stated: list[dict[str, Any]] = []
    for c in range(dice.randint(1, classes)):
        vision = {"images": {"count": 1, "tokens": 256}} if dice.random() < 0.5 else {}
        stated.append({"name": f"c{c}", "rate_per_s": float(dice.choice([3, 5, 7, 10])), **vision})
    devices: list[dict[str, Any]] = []
    for d in range(dice.randint(2, skus)):
        entry: dict[str, Any] = {"sku": f"S{d}", "price": {"usd_per_hour": dice.choice([1.0, 1.0, 2.0])}}
        if dice.random() < 0.2:
            entry["price"]["pack"] = dice.choice([2, 4])
        if dice.random() < 0.3:
            entry["stock"] = dice.choice([4, 8, 16])
        if dice.random() < 0.15:
            entry["owned"] = 2
        devices.append(entry)
    return {
        "schema": "epd-opt/instance/v1",
        "candidates": {"modelled": False},
        "workload": {"classes": stated},
        "devices": devices,
        "workers": [
            {
                "name": f"w{w}",
                "sku": dice.choice(devices)["sku"],
                "devices": dice.choice([1, 1, 2]),
                "stages": dice.choice(_CHAINS) if w else _CHAINS[0],
                "max_rate_per_s": {each["name"]: dice.choice(rates) for each in stated},
            }
            for w in range(dice.randint(4, workers))
        ],
        "redundancy": {"spare_replicas": dice.choice([0, 0, 1])},
        "solver": {"gap": 0.0},
    }


def shuffled(value: Any, chance: random.Random, *, entries: bool = False) -> Any:
    """A document with its keys, classes, devices and workers in another order."""
    if isinstance(value, dict):
        names = list(value)
        chance.shuffle(names)
        return {name: shuffled(value[name], chance, entries=name in ("classes", "devices", "workers")) for name in names}
    if isinstance(value, list):
        parts = [shuffled(part, chance) for part in value]
        return chance.sample(parts, len(parts)) if entries else parts
    return value
