"""`epd-opt report`."""

from __future__ import annotations

import click

from epd_opt.cli.output import check_output, write_text
from epd_opt.cli.plans import SCENARIO, load_plan
from epd_opt.report import report_html


@click.command(name="report")
@click.argument("plan", type=click.Path(allow_dash=True))
@click.option("-o", "--output", metavar="FILE", help="Write the page to this file; standard output where absent, or -.")
@SCENARIO
@click.option(
    "--study",
    multiple=True,
    metavar="FILE",
    help="Add what `epd-opt sensitivity`, `break-even`, `tornado` or `marginal` wrote; several times for several.",
)
@click.option("--simulation", metavar="FILE", help="Add the attainment of a simulation that `epd-opt simulate` wrote.")
def report_command(
    plan: str, output: str | None, scenario: str | None, study: tuple[str, ...], simulation: str | None
) -> int:
    """Write a plan, or why there is none, as one HTML page that needs no network and no script.

    PLAN is a plan document, or - for standard input. The page reads on a phone and on paper, light and dark.
    """
    if output != "-":
        check_output(output)
    text = report_html(load_plan(plan, scenario).document, study=study, simulation=simulation)
    if output is None or output == "-":
        click.echo(text.encode("utf-8"), nl=False)
    else:
        write_text(output, text)
    return 0
