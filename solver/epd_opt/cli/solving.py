"""`epd-opt solve`."""

from __future__ import annotations

import sys

import click

import epd_opt
from epd_opt.errors import InvalidInput, Problem
from epd_opt.render import plan_text

EXIT_CODES = {"optimal": 0, "infeasible": 4, "feasible": 5, "stopped": 6}


@click.command()
@click.argument("instance", type=click.Path(allow_dash=True))
@click.option("-o", "--output", metavar="FILE", help="Write the plan document (JSON) to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan document as JSON instead of the table.")
@click.option("--solver", metavar="NAME", help="Solver in place of the instance's; `epd-opt solvers` lists them.")
@click.option("--gap", type=float, metavar="G", help="Relative gap at which a plan counts as proved.")
@click.option("--time-limit", type=float, metavar="S", help="Wall-clock limit, seconds.")
@click.option("--threads", type=int, metavar="N", help="Threads of the solver.")
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help="Override a value of the instance.")
@click.option("--fail-above", type=float, metavar="USD_PER_REQUEST", help="Exit 7 if a request costs more.")
@click.option("-q", "--quiet", is_flag=True, help="No warnings on standard error.")
@click.option("-v", "--verbose", is_flag=True, help="Say on standard error what is going on.")
def solve(
    instance: str,
    output: str | None,
    as_json: bool,
    solver: str | None,
    gap: float | None,
    time_limit: float | None,
    threads: int | None,
    settings: tuple[str, ...],
    fail_above: float | None,
    quiet: bool,
    verbose: bool,
) -> int:
    """Plan INSTANCE (a YAML or JSON file, or - for standard input): the cheapest fleet that meets every target.

    The plan goes to standard output, everything else to standard error.
    """
    overrides = list(settings)
    for path, value in (
        ("solver.name", solver),
        ("solver.gap", gap),
        ("solver.time_limit_s", time_limit),
        ("solver.threads", threads),
    ):
        if value is not None:
            overrides.append(f"{path}={value}")
    plan = epd_opt.solve(
        epd_opt.read(instance, overrides=overrides),
        progress=(lambda text: click.echo(text, err=True)) if verbose else None,
    )
    document = plan.document
    if output is not None and document.cost is not None:
        try:
            plan.save(output)
        except OSError as error:
            raise InvalidInput([Problem(file=output, message=f"cannot write the plan: {error.strerror}")]) from None
    if as_json:
        click.echo(plan.to_json())
        if not quiet:
            for warning in document.warnings:
                click.echo(f"warning: {warning}", err=True)
    else:
        click.echo(plan_text(document, color=_wants_color(), width=_width()), nl=False)
    code = EXIT_CODES[document.status]
    cost = document.cost
    if code == 0 and fail_above is not None and cost is not None and (cost.usd_per_request or 0.0) > fail_above:
        click.echo(f"a request costs {cost.usd_per_request:.6g} USD, above the limit of {fail_above:g}", err=True)
        return 7
    return code


def _wants_color() -> bool:
    import os

    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _width() -> int:
    import shutil

    return max(80, min(160, shutil.get_terminal_size((118, 40)).columns)) if sys.stdout.isatty() else 118
