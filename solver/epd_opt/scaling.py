"""Numbers and quantities of an instance times a factor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def plain(value: float) -> int | float:
    """Twelve digits, and no ``.0``."""
    value = float(f"{value:.12g}")
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def is_number(value: object) -> bool:
    """Whether a value is a number, which truth values are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def scalable(value: object) -> bool:
    """Whether a factor applies to a value."""
    if isinstance(value, Mapping):
        return "values" in value or {"mean", "p95"} <= value.keys()
    return is_number(value)


def scaled(value: Any, factor: float) -> Any:
    """A number, or a quantity that varies, times a factor: its mean and 95th percentile, or all its values.

    >>> scaled({"mean": 800, "p95": 2400}, 0.5), scaled({"values": [[2, 0.3]]}, 2)
    ({'mean': 400, 'p95': 1200}, {'values': [[4, 0.3]]})
    """
    if isinstance(value, Mapping) and "values" in value:
        return {"values": [[plain(number * factor), weight] for number, weight in value["values"]]}
    if isinstance(value, Mapping):
        return {key: plain(number * factor) for key, number in value.items()}
    return plain(value * factor)
