"""What is to be explained: a plan document, or an instance that is solved first."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from epd_opt.consistent import demand_consistent
from epd_opt.document import PLAN_SCHEMA
from epd_opt.errors import UsageError
from epd_opt.instance import Instance
from epd_opt.plan import Plan
from epd_opt.reading import read
from epd_opt.strict import document_in


def plan_or_instance(
    source: Plan | Instance | Mapping[str, Any] | str | Path, overrides: Sequence[str] = ()
) -> Plan | Instance:
    """A plan where the source is one, else an instance; ``-`` is standard input.

    Raises
    ------
    InvalidInput
        It is neither, or a plan that was changed by hand and does not add up any more.
    UsageError
        Values are to be changed in a plan.
    """
    if isinstance(source, Plan | Instance):
        return source
    plan = _plan(source) if isinstance(source, Mapping) else None
    if isinstance(source, str | Path):
        data = sys.stdin.buffer.read() if str(source) == "-" else _bytes(Path(source))
        if _is_plan(data):
            plan = Plan.load(document_in(data, "<stdin>", "plan") if str(source) == "-" else source)
        elif str(source) == "-":
            stream = io.BytesIO(data)
            stream.name = "<stdin>"
            return read(stream, overrides)
    if plan is None:
        return read(source, overrides)
    demand_consistent(plan.document, "" if isinstance(source, Mapping) else "<stdin>" if str(source) == "-" else str(source))
    if overrides:
        raise UsageError("--set changes an instance, and this is a plan; solve and explain its instance instead")
    return plan


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _is_plan(data: bytes) -> bool:
    if not data.lstrip().startswith(b"{"):
        return False
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("schema") == PLAN_SCHEMA


def _plan(content: Mapping[str, Any]) -> Plan | None:
    return Plan.load(content) if content.get("schema") == PLAN_SCHEMA else None
