"""`epd-opt export`."""

from __future__ import annotations

import click

from epd_opt.cli.output import check_output
from epd_opt.cli.plans import SCENARIO, load_plan
from epd_opt.errors import UsageError
from epd_opt.export import BINARY, EXPORTERS, export
from epd_opt.wording import printable


@click.command(name="export")
@click.argument("plan", type=click.Path(allow_dash=True))
@click.option("--to", required=True, type=click.Choice(list(EXPORTERS)), help="Format.")
@SCENARIO
@click.option("-o", "--output", metavar="PATH", help="Write to this file instead of standard output.")
@click.option("-q", "--quiet", is_flag=True, help="No warnings on standard error.")
def export_command(plan: str, to: str, scenario: str | None, output: str | None, quiet: bool) -> None:
    """Write the fleet of PLAN for buyers and for serving systems.

    bom-csv and xlsx are bills of materials; the others deploy the pools. What a format cannot say of the plan is warned of
    on standard error. PLAN is a plan document; - is standard input.
    """
    check_output(output, to_standard_output=f"without -o, --to {to} goes to standard output")
    if output is None and to in BINARY:
        raise UsageError(f"--to {to} is not text: give -o PATH")
    exported = export(load_plan(plan, scenario).document, to)
    if output is not None:
        exported.save(output)
    else:
        click.echo(exported.content, nl=False)
    for warning in () if quiet else exported.warnings:
        click.echo(f"warning: {printable(warning)}", err=True)
