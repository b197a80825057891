"""An instance that no solver proves in seconds."""

from __future__ import annotations

import random
from typing import Any


def hard_instance(*, skus: int = 24, classes: int = 14, seed: int = 3) -> dict[str, Any]:
    """Many measured workers at random rates and prices that share no common amount, to be proved without a gap."""
    draw = random.Random(seed)
    names = [f"class-{c}" for c in range(classes)]
    devices = [
        {"sku": f"S{d}", "price": {"usd_per_hour": round(draw.uniform(4.0, 4.4), 9)}, "stock": 40} for d in range(skus)
    ]
    workers = []
    for d in range(skus):
        for size in (3, 5, 7):
            workers.append(
                {
                    "name": f"w{d}-{size}",
                    "sku": f"S{d}",
                    "devices": size,
                    "stages": ["prefill", "decode"],
                    "max_rate_per_s": {name: round(size * draw.choice([0.5, 1.0, 1.5, 2.0]), 3) for name in names},
                }
            )
    return {
        "schema": "epd-opt/instance/v1",
        "name": "hard",
        "candidates": {"modelled": False},
        "workload": {"classes": [{"name": name, "rate_per_s": round(draw.uniform(4.0, 30.0), 2)} for name in names]},
        "devices": devices,
        "workers": workers,
        "solver": {"gap": 0.0, "threads": 1},
    }
