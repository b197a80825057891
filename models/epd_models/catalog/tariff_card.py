"""The tariff card: constants of owning and powering hardware, each with its range, unit and source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from epd_models.catalog.fields import Fields
from epd_models.provenance import Confidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """One constant: low, typical and high in ``unit``; None where nothing public was found."""

    name: str
    low: float | None
    typical: float | None
    high: float | None
    unit: str
    region: str | None
    source: str
    date: str | None
    confidence: Confidence
    note: str | None


def constants_from_card(card: Mapping[str, Any], *, source: str = "inline card") -> dict[str, Constant]:
    """The constants of a tariff card by name.

    Raises
    ------
    CardError
        A key is unknown or missing, a value of the wrong type, or low, typical and high are not in order.
    """
    fields = Fields(card, source)
    fields.text("name")
    fields.text("as_of", None)
    fields.text("notes", None)
    entries = fields.child("constants")
    fields.close()
    return {name: _constant(name, entries.child(name)) for name in entries}


def _constant(name: str, fields: Fields) -> Constant:
    figures = {key: fields.number(key, None) for key in ("low", "typical", "high")}
    known = [value for value in figures.values() if value is not None]
    if not known or known != sorted(known):
        raise fields.error("", f"expected low <= typical <= high and at least one of them, found {known}")
    stated = fields.provenance("", Confidence.ESTIMATE)
    constant = Constant(
        name=name,
        unit=fields.text("unit"),
        region=fields.text("region", None),
        source=fields.text("source"),
        date=stated.date,
        confidence=stated.confidence,
        note=stated.note,
        **figures,
    )
    fields.close()
    return constant
