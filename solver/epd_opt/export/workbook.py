"""Bill of materials as an Excel workbook; needs openpyxl (``pip install 'epd-opt[xlsx]'``)."""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Sequence
from typing import Any

from epd_opt.document import PlanDocument
from epd_opt.export.bill import Line, bill_of_materials
from epd_opt.export.columns import Value, header, rows
from epd_opt.export.exported import Exported
from epd_opt.extras import openpyxl
from epd_opt.wording import printable

_EPOCH = "1980-01-01T00:00:00Z"
_MONEY = {"ContractedUnitPrice", "x_Capex", "x_Upfront", "x_BilledPerHour", "x_CostPerHour", "x_CostPerMonth"}
_LONGEST = 32_767
"""Characters that a cell holds."""


def workbook(document: PlanDocument) -> Exported:
    """Two sheets: the lines with their totals, and the plan on one page.

    Raises
    ------
    UsageError
        openpyxl is not installed.
    """
    book = openpyxl().Workbook()
    lines = bill_of_materials(document)
    _bill(book.active, lines)
    _summary(book.create_sheet("Plan"), document, lines)
    stream = io.BytesIO()
    book.save(stream)
    return Exported(content=_undated(stream.getvalue()))


def _bill(sheet: Any, lines: Sequence[Line]) -> None:
    sheet.title = "Bill of materials"
    names = header()
    total: dict[str, Value] = {
        "x_Item": "total",
        "PricingQuantity": math.fsum(line.quantity for line in lines if line.item == "device"),
        "x_Capex": math.fsum(line.capex for line in lines),
        "x_Upfront": math.fsum(line.upfront for line in lines),
        "x_BilledPerHour": math.fsum(line.billed for line in lines),
        "x_CostPerHour": math.fsum(line.hourly for line in lines),
        "x_CostPerMonth": math.fsum(line.monthly for line in lines),
        "x_PowerKw": math.fsum(line.power_kw for line in lines),
        "ChargeDescription": "quantity: devices only",
    }
    table: list[Sequence[Value | None]] = [names, *rows(lines), [total.get(name) for name in names]]
    for cells in table:
        _append(sheet, cells)
    for column, name in enumerate(names, start=1):
        sheet.cell(row=1, column=column).style = "Headline 4"
        for row in range(2, sheet.max_row + 1):
            if name in _MONEY:
                sheet.cell(row=row, column=column).number_format = "#,##0.00####"
        widest = max(len(str(sheet.cell(row=row, column=column).value or "")) for row in range(1, sheet.max_row + 1))
        sheet.column_dimensions[sheet.cell(row=1, column=column).column_letter].width = min(48, max(9, widest + 2))
    for column in range(1, len(names) + 1):
        sheet.cell(row=sheet.max_row, column=column).style = "Total"
    sheet.freeze_panes = "A2"


def _summary(sheet: Any, document: PlanDocument, lines: Sequence[Line]) -> None:
    cost = document.cost
    assert cost is not None
    facts: list[list[Value | None]] = [
        ["plan", document.instance, ""],
        ["status", document.status, ""],
        ["cost", cost.usd_per_hour, "USD per hour"],
        ["cost", cost.usd_per_month, "USD per month of 730 hours"],
        ["cost", cost.usd_per_request, "USD per request"],
        ["purchases", cost.capex_usd, "USD, hosts included"],
        ["nameplate power", cost.power_kw, "kW, hosts included"],
        ["devices installed", sum(use.bought + use.owned for use in document.devices.values()), "sold units"],
        ["devices in pools", math.fsum(pool.devices for pool in document.pools), "sold units, spares included"],
        ["lines", len(lines), ""],
        ["prices", document.provenance.prices_dated, ""],
        ["made by", f"epd-opt {document.provenance.epd_opt}", ""],
    ]
    facts += [["warning", warning, ""] for warning in document.warnings]
    for row in facts:
        _append(sheet, row)
    sheet.column_dimensions["A"].width = 20
    sheet.column_dimensions["B"].width = 48
    sheet.column_dimensions["C"].width = 28


def _append(sheet: Any, row: Sequence[Value | None]) -> None:
    """Texts stay texts, whatever they start with."""
    at = sheet.max_row + 1 if sheet.cell(row=1, column=1).value is not None else 1
    for column, value in enumerate(row, start=1):
        cell = sheet.cell(row=at, column=column)
        if isinstance(value, str):
            cell.value = printable(value)[:_LONGEST]
            cell.data_type = "s"
            cell.quotePrefix = True
        elif value is not None:
            cell.value = value


def _undated(content: bytes) -> bytes:
    """The same archive without the time of its making, so that equal plans give equal files."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as new:
        for name in sorted(old.namelist()):
            part = old.read(name)
            if name == "docProps/core.xml":
                part = re.sub(rb">[0-9T:.-]+Z<", f">{_EPOCH}<".encode(), part)
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(entry, part)
    return result.getvalue()
