"""`epd-opt explain`."""

from __future__ import annotations

from typing import Any

import click

from epd_opt.backends import backend
from epd_opt.cli.numbers import Finite
from epd_opt.cli.plans import CASE
from epd_opt.cli.solving import EXIT_CODES, check_solver
from epd_opt.cli.terminal import echo_json, progress, wants_color, width
from epd_opt.errors import UsageError
from epd_opt.explain import RUNNERS_UP, explain, plan_or_instance
from epd_opt.explain.explanation import NOT_THE_BEST_OF_ONE
from epd_opt.explain.view import explanation_text
from epd_opt.instance import Instance
from epd_opt.plan import Plan
from epd_opt.render import WIDTH
from epd_opt.scenarios import one_case


@click.command(name="explain")
@click.argument("source", metavar="PLAN|INSTANCE", type=click.Path(allow_dash=True))
@click.option("--why-not", multiple=True, metavar="WHAT", help="Price the use of a placement, SKU or PLACEMENT:SKU.")
@click.option("--without", multiple=True, metavar="WHAT", help="Price doing without a placement, SKU or PLACEMENT:SKU.")
@click.option("--share", metavar="[CLASS=]S", help="Least share of traffic (of CLASS) that --why-not asks for, 0 to 1.")
@click.option(
    "--runners-up", type=click.IntRange(min=0), default=RUNNERS_UP, metavar="N", help="Plans of other structures to find."
)
@click.option("--json", "as_json", is_flag=True, help="Print the explanation as JSON instead of text.")
@click.option("--solver", metavar="NAME", help="Solver in place of the instance's.")
@click.option("--gap", type=Finite(min=0), metavar="G", help="Relative gap at which a plan counts as proved.")
@click.option("--time-limit", type=Finite(min=0, min_open=True), metavar="S", help="Seconds for all of it.")
@click.option("--threads", type=click.IntRange(min=1), metavar="N", help="Threads of the solver.")
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help="Override a value of the instance.")
@CASE
@click.option("-q", "--quiet", is_flag=True, help="No progress on standard error.")
@click.option("-v", "--verbose", is_flag=True, help="Say on standard error what is going on.")
def explain_command(
    source: str,
    why_not: tuple[str, ...],
    without: tuple[str, ...],
    share: str | None,
    runners_up: int,
    as_json: bool,
    solver: str | None,
    gap: float | None,
    time_limit: float | None,
    threads: int | None,
    settings: tuple[str, ...],
    scenario: str | None,
    quiet: bool,
    verbose: bool,
) -> int:
    """Say what binds, what the next best plans cost, or why nothing is feasible.

    PLAN is a plan document and needs nothing else; an INSTANCE is solved first; - is standard input. Where nothing is
    feasible, the smallest changes after which something is are looked for.
    """
    check_solver(solver)
    if share is not None and not why_not:
        raise UsageError("--share: expected --why-not WHAT, the use that it is the least share of")
    options = {"name": solver, "gap": gap, "threads": threads}
    taken = plan_or_instance(source, settings)
    if isinstance(taken, Instance):
        taken = one_case(taken, scenario)
    elif scenario is not None:
        raise UsageError(f"--scenario {scenario}: {NOT_THE_BEST_OF_ONE}")
    given = _with(taken, {key: value for key, value in options.items() if value is not None})
    if isinstance(given, Instance):
        with given.placing():
            backend(given.solver.name)
    with progress(quiet=quiet, verbose=verbose) as say:
        explanation = explain(
            given,
            why_not=why_not,
            without=without,
            share=share,
            runners_up=runners_up,
            time_limit_s=time_limit,
            progress=say,
        )
    if as_json:
        echo_json(explanation.to_json())
    else:
        click.echo(explanation_text(explanation.document, color=wants_color(), width=width(WIDTH)), nl=False)
    return EXIT_CODES[explanation.document.status]


def _with(given: Plan | Instance, options: dict[str, Any]) -> Plan | Instance:
    """The same, to be solved in another way."""
    if isinstance(given, Instance):
        return given.model_copy(update={"solver": given.solver.model_copy(update=options)})
    stated = given.document.instance_document
    changed = {**stated, "solver": {**stated.get("solver", {}), **options}}
    return Plan(given.document.model_copy(update={"instance_document": changed}))
