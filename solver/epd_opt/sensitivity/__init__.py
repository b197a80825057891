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
from epd_opt.sensitivity.marginal import Marginal, marginal
from epd_opt.sensitivity.moves_document import (
    MARGINAL_SCHEMA,
    TORNADO_SCHEMA,
    marginal_json_schema,
    tornado_json_schema,
)
from epd_opt.sensitivity.shift import Dimension, parse_vary
from epd_opt.sensitivity.study import Study, sensitivity
from epd_opt.sensitivity.tolerance import ToleranceReport, tolerance
from epd_opt.sensitivity.tornado import Tornado, tornado

__all__ = [
    "BREAK_EVEN_SCHEMA",
    "MARGINAL_SCHEMA",
    "STUDY_SCHEMA",
    "TOLERANCE_SCHEMA",
    "TORNADO_SCHEMA",
    "BreakEven",
    "Dimension",
    "Marginal",
    "Study",
    "ToleranceReport",
    "Tornado",
    "break_even",
    "break_even_json_schema",
    "marginal",
    "marginal_json_schema",
    "parse_vary",
    "sensitivity",
    "study_json_schema",
    "tolerance",
    "tolerance_json_schema",
    "tornado",
    "tornado_json_schema",
    "usual_workers",
]
