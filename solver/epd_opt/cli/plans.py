"""Plan documents that commands take."""

from __future__ import annotations

import sys

import click

from epd_opt.consistent import demand_consistent
from epd_opt.errors import InvalidInput, Problem
from epd_opt.plan import Plan
from epd_opt.strict import document_in

SCENARIO = click.option("--scenario", metavar="NAME", help="Which scenario, of a plan for several.")
"""Option of commands that take one workload at a time."""

CASE = click.option("--scenario", metavar="NAME", help="Take this scenario of the instance alone.")
"""Option of commands that take the workload of an instance with scenarios."""


def load_plan(source: str, scenario: str | None = None) -> Plan:
    """A plan from a file, or from standard input for ``-``; as it is in a scenario, where one is named.

    Raises
    ------
    InvalidInput
        It is missing, not a plan, or one that was changed by hand and does not add up any more.
    UsageError
        It has no such scenario.
    """
    plan = _loaded(source)
    demand_consistent(plan.document, "<stdin>" if source == "-" else source)
    return plan if scenario is None else plan.in_scenario(scenario)


def _loaded(source: str) -> Plan:
    if source != "-":
        return Plan.load(source)
    content = document_in(sys.stdin.buffer.read(), "<stdin>", "plan")
    if not isinstance(content, dict):
        raise InvalidInput([Problem(file="<stdin>", message="not a plan: expected a mapping")])
    return Plan.load(content)
