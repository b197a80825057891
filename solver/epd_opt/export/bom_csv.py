"""Bill of materials as CSV."""

from __future__ import annotations

import csv
import io

from epd_opt.document import PlanDocument
from epd_opt.export.bill import bill_of_materials
from epd_opt.export.columns import Value, header, rows
from epd_opt.export.exported import Exported

_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What spreadsheets take for the start of a formula."""


def bom_csv(document: PlanDocument) -> Exported:
    """One row a line; the sums of its columns are the plan's totals.

    Texts that a spreadsheet would take for a formula start with an apostrophe.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header())
    writer.writerows([[_harmless(value) for value in row] for row in rows(bill_of_materials(document))])
    return Exported(content=stream.getvalue())


def _harmless(value: Value) -> Value:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULAS) else value
