"""Plans side by side: what moved, and which inputs moved it."""

from epd_opt.comparison.compare import compare
from epd_opt.comparison.document import ComparisonDocument, comparison_json_schema

__all__ = ["ComparisonDocument", "compare", "comparison_json_schema"]
