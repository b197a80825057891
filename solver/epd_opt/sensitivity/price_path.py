"""Where the price of a device stands in an instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epd_opt.address import format_path

_AMOUNTS = (("usd_per_hour",), ("purchase_usd",), ("reserved", "usd_per_hour"), ("spot", "usd_per_hour"))


def price_path(entry: Mapping[str, Any]) -> str | None:
    """Path of the amount that a device entry is priced at, as the instance document states it; None where it states none.

    >>> price_path({"name": "L4", "price": {"purchase_usd": {"EUR": 2000}}})
    'devices.L4.price.purchase_usd.EUR'
    """
    for keys in _AMOUNTS:
        value: Any = entry.get("price")
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, Mapping):
            return format_path(["devices", entry["name"], "price", *keys, *value])
        if value is not None:
            return format_path(["devices", entry["name"], "price", *keys])
    return None
