"""Coefficients as cards hold them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from epd_models.calibrate import Calibrated, Calibration
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


def card_documents(calibration: Calibration, *, file: str, date: str) -> dict[str, dict[str, Any]]:
    """A coefficients card for each architecture, with a section for each engine that holds only what was identified.

    Parameters
    ----------
    file : str
        Name of the measurements, for the cards' source.
    date : str
        Of the fit, as YYYY-MM-DD.
    """
    by_architecture: dict[str, list[Calibrated]] = {}
    for one in calibration.calibrated:
        by_architecture.setdefault(one.family.architecture, []).append(one)
    return {name: _document(name, members, file, date) for name, members in by_architecture.items()}


def _document(architecture: str, members: Sequence[Calibrated], file: str, date: str) -> dict[str, Any]:
    rows = sum(len(one.lines) for one in members)
    return {
        "name": f"{architecture}-measured",
        "from": architecture,
        "source": f"measured by the user: {file}, {rows} rows",
        "confidence": "user",
        "date": date,
        **{one.family.engine: _section(one, file, date) for one in members},
    }


def _section(one: Calibrated, file: str, date: str) -> dict[str, Any]:
    kept = [card_key(c.name)[0] for c in one.coefficients if not c.identified]
    section: dict[str, Any] = {
        **as_card(one.fitted),
        "source": f"measured by the user: {file}, {len(one.lines)} rows in {one.groups} groups",
        "confidence": "user",
        "date": date,
        "note": f"{', '.join(one.models)} on {', '.join(one.devices)}; not identified by these rows and kept as shipped: "
        + ", ".join(kept),
    }
    errors = {
        quantity: {"median": float(f"{off.median:.3g}"), "p90": float(f"{off.p90:.3g}"), "points": off.points}
        for quantity, off in (("itl", one.after.itl), ("ttft", one.after.ttft))
        if off is not None
    }
    return section | ({"fitted_error": errors} if errors else {})


def card_text(document: Mapping[str, Any]) -> str:
    """A card as YAML, with a first line that says how to apply it."""
    from ruamel.yaml import YAML

    yaml, stream = YAML(), io.StringIO()
    yaml.width, yaml.default_flow_style = 120, False
    yaml.dump(dict(document), stream)
    return "# Apply it on a device entry of an instance: {sku: ..., coefficients: THIS_FILE}.\n" + stream.getvalue()
