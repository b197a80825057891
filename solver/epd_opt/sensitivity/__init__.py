"""How plans and costs move with the inputs, what keeping today's fleet costs, and how far inputs may move."""

from epd_opt.sensitivity.break_even import BreakEven, break_even
from epd_opt.sensitivity.document import (
    BREAK_EVEN_SCHEMA,
    STUDY_SCHEMA,
    TOLERANCE_SCHEMA,
    break_even_json_schema,
    study_json_schema,
    tolerance_json_schema,
)
from epd_opt.sensitivity.executors import usual_workers
from epd_opt.sensitivity.shift import Dimension, parse_vary
from epd_opt.sensitivity.study import Study, sensitivity
from epd_opt.sensitivity.tolerance import ToleranceReport, tolerance

__all__ = [
    "BREAK_EVEN_SCHEMA",
    "STUDY_SCHEMA",
    "TOLERANCE_SCHEMA",
    "BreakEven",
    "Dimension",
    "Study",
    "ToleranceReport",
    "break_even",
    "break_even_json_schema",
    "parse_vary",
    "sensitivity",
    "study_json_schema",
    "tolerance",
    "tolerance_json_schema",
    "usual_workers",
]
