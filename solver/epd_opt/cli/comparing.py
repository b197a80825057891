"""`epd-opt compare`."""

from __future__ import annotations

import json

import click

from epd_opt.cli.plans import load_plan
from epd_opt.cli.terminal import echo_json, wants_color, width
from epd_opt.comparison import compare
from epd_opt.comparison.view import comparison_text
from epd_opt.errors import UsageError
from epd_opt.render import WIDTH


@click.command(name="compare")
@click.argument("plans", metavar="PLAN PLAN...", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON instead of the tables.")
def compare_command(plans: tuple[str, ...], as_json: bool) -> int:
    """Show plans side by side: what moved against the first, and which inputs differ.

    PLAN is a plan document, or - for standard input. Pools are matched by placement and SKU; nothing is solved again.
    """
    if len(plans) < 2:
        raise UsageError("compare: expected at least two plans")
    if plans.count("-") > 1:
        raise UsageError("compare: standard input can be read once")
    documents = [load_plan(plan).document for plan in plans]
    found = compare(documents, ["<stdin>" if plan == "-" else plan for plan in plans])
    if as_json:
        plain = found.model_dump(mode="json", by_alias=True)
        echo_json(json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        click.echo(comparison_text(found, color=wants_color(), width=width(WIDTH)), nl=False)
    return 0
