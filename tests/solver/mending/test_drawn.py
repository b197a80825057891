"""Instances drawn at random, limits, requirements, orders and objectives mixed: infeasible ones have mends that hold."""

from __future__ import annotations

import random
from typing import Any

import pytest

import epd_opt
from epd_opt.errors import InvalidInput
from solver.mending.test_mends import checked

STAGES = (["encode", "prefill", "decode"], ["prefill", "decode"], ["encode"], ["prefill"], ["decode"])


def drawn(seed: int) -> dict[str, Any]:
    """Measured workers on up to three SKUs for up to four classes, under whatever limits the dice give."""
    dice = random.Random(seed)

    def some(chance: float, **parts: list[Any]) -> dict[str, Any]:
        return {key: dice.choice(values) for key, values in parts.items() if dice.random() < chance}

    classes = [
        {"name": f"c{i}", "rate_per_s": dice.choice([0, 0.5, 3, 20]), **some(0.4, images=[{"count": 3, "tokens": 256}])}
        for i in range(dice.choice([1, 2, 4]))
    ]
    devices = []
    for i in range(dice.choice([1, 2, 3])):
        price = {"usd_per_hour": dice.choice([0, 0.5, 3]), **some(0.2, pack=[2, 8], minimum=[3, 20])}
        owned = dice.choice([0, 0, 2])
        stock = some(0.5, stock=[2, 3, 8])
        devices.append({"sku": f"S{i}", "owned": owned, **some(0.8, price=[price]), **stock, "power_w": 500})
    workers = [
        {
            "name": f"w{j}",
            "sku": f"S{dice.randrange(len(devices))}",
            "devices": dice.choice([1, 2, 4]),
            "stages": dice.choice(STAGES),
            "max_rate_per_s": {c["name"]: dice.choice([0.3, 1, 4]) for c in classes if dice.random() < 0.8}
            or {"default": 1},
        }
        for j in range(dice.choice([1, 2, 4]))
    ]
    ratio = {"minimise": "cost_per_request", "rate_multiple": [0.5, 2]}
    names = [[device["sku"]] for device in devices]
    return {
        "schema": "epd-opt/instance/v1",
        "candidates": {"modelled": False},
        "workload": {"classes": classes},
        "devices": devices,
        "workers": workers,
        "limits": some(
            0.3, usd_per_hour=[0, 1, 10], power_kw=[0.1, 1], devices=[0, 1, 4], skus=[1], require=names, forbid=names
        ),
        "solver": {"gap": 0, "threads": 1},
        **some(0.3, redundancy=[{"spare_replicas": 1}, {"zones": 3, "survive_zones": 1}], objective=["goodput", ratio]),
    }


@pytest.mark.parametrize("batch", range(4))
def test_every_infeasible_instance_has_a_mend(batch: int) -> None:
    """The reasons name something, at least one change or set of changes is given, and each gives a plan at its cost;
    where no class has a way, there is no goodput or cost per request to mend."""
    infeasible = 0
    for seed in range(batch * 6, batch * 6 + 6):
        document = drawn(seed)
        try:
            if epd_opt.solve(document, mends=False).status != "infeasible":
                continue
        except InvalidInput:
            continue
        infeasible += 1
        why, mends = checked(document)
        assert why.reasons, seed
        asked = {one["name"] for one in document["workload"]["classes"] if one["rate_per_s"] > 0}
        nothing_left = "objective" in document and asked == {reason.request_class for reason in why.reasons}
        assert mends or why.together or nothing_left, seed
    assert infeasible >= 1
