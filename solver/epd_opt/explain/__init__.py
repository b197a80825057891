"""Why a plan is as it is, what the next best one costs, and what would have to change where there is none."""

from epd_opt.explain.document import EXPLANATION_SCHEMA, explanation_json_schema
from epd_opt.explain.explanation import RUNNERS_UP, Explanation, explain
from epd_opt.explain.source import plan_or_instance

__all__ = [
    "EXPLANATION_SCHEMA",
    "RUNNERS_UP",
    "Explanation",
    "explain",
    "explanation_json_schema",
    "plan_or_instance",
]
