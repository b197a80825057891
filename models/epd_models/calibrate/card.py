"""Coefficients as cards hold them."""

from __future__ import annotations

from collections.abc import Mapping

from epd_models.calibrate.reduced import NAMES

_MILLI = ("step_overhead_s", "prompt_overhead_s")


def as_card(values: Mapping[str, float]) -> dict[str, float]:
    """Figures under the keys and in the units of a coefficients card, to three digits.

    >>> as_card({"bandwidth_share": 0.91234, "step_overhead_s": 0.00123, "layer_overhead_s": 3e-5})
    {'bandwidth_share': 0.912, 'step_overhead_ms': 1.23, 'layer_overhead_us': 30.0}
    """
    figures = {}
    for name in NAMES:
        if name in values:
            key, factor = card_key(name)
            figures[key] = float(f"{values[name] * factor:.3g}")
    return figures


def card_key(name: str) -> tuple[str, float]:
    """A coefficient's key in a card, and the factor from SI units to the card's."""
    if not name.endswith("_s"):
        return name, 1.0
    return (f"{name.removesuffix('_s')}_ms", 1e3) if name in _MILLI else (f"{name.removesuffix('_s')}_us", 1e6)
