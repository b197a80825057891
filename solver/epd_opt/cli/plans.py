"""Plan documents that commands take."""

from __future__ import annotations

import json
import sys

from epd_opt.errors import InvalidInput, Problem
from epd_opt.plan import Plan


def load_plan(source: str) -> Plan:
    """A plan from a file, or from standard input for ``-``.

    Raises
    ------
    InvalidInput
        It is missing or not a plan.
    """
    if source != "-":
        return Plan.load(source)
    try:
        content = json.loads(sys.stdin.buffer.read())
    except ValueError as error:
        raise InvalidInput([Problem(file="<stdin>", message=f"not a plan: {error}")]) from None
    if not isinstance(content, dict):
        raise InvalidInput([Problem(file="<stdin>", message="not a plan: expected a mapping")])
    return Plan.load(content)
