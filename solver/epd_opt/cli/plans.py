"""Plan documents that commands take."""

from __future__ import annotations

import sys

from epd_opt.errors import InvalidInput, Problem
from epd_opt.plan import Plan
from epd_opt.strict import document_in


def load_plan(source: str) -> Plan:
    """A plan from a file, or from standard input for ``-``.

    Raises
    ------
    InvalidInput
        It is missing or not a plan.
    """
    if source != "-":
        return Plan.load(source)
    content = document_in(sys.stdin.buffer.read(), "<stdin>", "plan")
    if not isinstance(content, dict):
        raise InvalidInput([Problem(file="<stdin>", message="not a plan: expected a mapping")])
    return Plan.load(content)
