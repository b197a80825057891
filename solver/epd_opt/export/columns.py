"""Columns of a bill of materials: those of FOCUS where one fits, an own one with ``x_`` before it elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from epd_opt.export.bill import Line

Value = str | float | int

_CATEGORIES = {"rent": "Standard", "spot": "Dynamic", "reserved": "Committed"}
"""Ways to pay by the hour, as FOCUS calls them."""

COLUMNS: Sequence[tuple[str, Callable[[Line], Value]]] = (
    ("x_Item", lambda line: line.item),
    ("x_Role", lambda line: line.role),
    ("x_Origin", lambda line: line.origin),
    ("SkuId", lambda line: line.sku),
    ("PublisherName", lambda line: line.vendor),
    ("x_DeviceEntry", lambda line: line.device),
    ("ResourceName", lambda line: line.pool),
    ("x_Stage", lambda line: line.stage),
    ("PricingQuantity", lambda line: line.quantity),
    ("PricingUnit", lambda line: "Unit-Hours" if line.basis in _CATEGORIES else "Units"),
    ("x_Pack", lambda line: line.pack),
    ("x_Basis", lambda line: line.basis),
    ("PricingCategory", lambda line: _CATEGORIES.get(line.basis, "")),
    ("ContractedUnitPrice", lambda line: line.unit_price),
    ("BillingCurrency", lambda line: "USD"),
    ("x_PriceDate", lambda line: line.price_date),
    ("x_PriceSource", lambda line: line.price_source),
    ("x_Capex", lambda line: line.capex),
    ("x_Upfront", lambda line: line.upfront),
    ("x_BilledPerHour", lambda line: line.billed),
    ("x_CostPerHour", lambda line: line.hourly),
    ("x_CostPerMonth", lambda line: line.monthly),
    ("x_PowerKw", lambda line: line.power_kw),
    ("ChargeDescription", lambda line: line.reason),
)


def rows(lines: Sequence[Line]) -> list[list[Value]]:
    """Lines as rows; whole numbers without a fraction, and first a line number."""
    return [[number, *(_tidy(value(line)) for _, value in COLUMNS)] for number, line in enumerate(lines, start=1)]


def header() -> list[str]:
    """Names of the columns."""
    return ["x_Line", *(name for name, _ in COLUMNS)]


def _tidy(value: Value) -> Value:
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value
