"""Classes of requests as a plan sees them, from what an instance says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from epd_models.workload import RequestClass
from epd_opt.instance import Instance
from epd_opt.resolve import resolve


def planned(classes: Sequence[Mapping[str, Any]]) -> tuple[RequestClass, ...]:
    """The resolved classes of an instance with these entries, on one measured worker."""
    document = {
        "schema": "epd-opt/instance/v1",
        "candidates": {"modelled": False},
        "workload": {"classes": list(classes)},
        "devices": [{"sku": "A", "price": {"usd_per_hour": 1}}],
        "workers": [{"name": "w", "sku": "A", "devices": 1, "stages": ["prefill", "decode"], "max_rate_per_s": 1}],
    }
    return resolve(Instance(**document)).requests
