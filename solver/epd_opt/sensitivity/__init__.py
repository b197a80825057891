"""How plans and costs move with the inputs, what keeping today's fleet costs, and how far inputs may move."""

from epd_opt.sensitivity.document import STUDY_SCHEMA, TOLERANCE_SCHEMA, study_json_schema, tolerance_json_schema
from epd_opt.sensitivity.executors import usual_workers
from epd_opt.sensitivity.shift import Dimension, parse_vary
from epd_opt.sensitivity.study import Study, sensitivity
from epd_opt.sensitivity.tolerance import ToleranceReport, tolerance

__all__ = [
    "STUDY_SCHEMA",
    "TOLERANCE_SCHEMA",
    "Dimension",
    "Study",
    "ToleranceReport",
    "parse_vary",
    "sensitivity",
    "study_json_schema",
    "tolerance",
    "tolerance_json_schema",
    "usual_workers",
]
