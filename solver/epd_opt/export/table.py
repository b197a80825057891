"""Exporters by the name that ``--to`` takes: one file each, one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from epd_opt.document import PlanDocument
from epd_opt.export.bom_csv import bom_csv
from epd_opt.export.dynamo import dynamo
from epd_opt.export.exported import Exported
from epd_opt.export.llm_d import llm_d
from epd_opt.export.sglang import sglang
from epd_opt.export.vllm import vllm
from epd_opt.export.workbook import workbook

EXPORTERS: Mapping[str, Callable[[PlanDocument], Exported]] = {
    "bom-csv": bom_csv,
    "xlsx": workbook,
    "dynamo": dynamo,
    "vllm": vllm,
    "sglang": sglang,
    "llm-d": llm_d,
}
BILLS = frozenset({"bom-csv", "xlsx"})
"""Targets that say what is bought: one bill for all scenarios, and for all hours of a day."""
BINARY = frozenset({"xlsx"})
"""Targets that no terminal shows."""
