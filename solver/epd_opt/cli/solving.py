"""`epd-opt solve`."""

from __future__ import annotations

import difflib

import click

import epd_opt
from epd_opt.backends import BACKENDS, backend
from epd_opt.cli.gating import BREACHED, PERCENTAGE, baseline_gate
from epd_opt.cli.numbers import Finite
from epd_opt.cli.output import check_output
from epd_opt.cli.plans import CASE
from epd_opt.cli.terminal import echo_json, progress, wants_color, width
from epd_opt.closing import closing_text, solve_and_simulate
from epd_opt.errors import UsageError
from epd_opt.render import WIDTH, plan_text
from epd_opt.scenarios import one_case
from epd_opt.wording import printable

EXIT_CODES = {"optimal": 0, "infeasible": 4, "feasible": 5, "stopped": 6}


@click.command()
@click.argument("instance", type=click.Path(allow_dash=True))
@click.option("-o", "--output", metavar="FILE", help="Write the plan document (JSON) to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan document as JSON instead of the tables.")
@click.option("--solver", metavar="NAME", help="Solver in place of the instance's; `epd-opt solvers` lists them.")
@click.option("--gap", type=Finite(min=0), metavar="G", help="Relative gap at which a plan counts as proved.")
@click.option("--time-limit", type=Finite(min=0, min_open=True), metavar="S", help="Wall-clock limit, seconds.")
@click.option("--threads", type=click.IntRange(min=1), metavar="N", help="Threads of the solver.")
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help="Override a value of the instance.")
@click.option("--fail-above", type=Finite(min=0), metavar="USD_PER_REQUEST", help="Exit 7 if a request costs more.")
@click.option("--baseline", metavar="PLAN", help="Say how the cost of a request compares with this plan's.")
@click.option("--max-increase", type=PERCENTAGE, help="Exit 7 if a request costs so much more than in the baseline.")
@CASE
@click.option("--simulate", "simulated", is_flag=True, help="Simulate the plan and plan again where it misses or idles.")
@click.option("-q", "--quiet", is_flag=True, help="No warnings and no progress on standard error.")
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
    baseline: str | None,
    max_increase: float | None,
    scenario: str | None,
    simulated: bool,
    quiet: bool,
    verbose: bool,
) -> int:
    """Find the fleet that meets every target and is best by the objective: cheapest, or largest.

    INSTANCE is a YAML or JSON file, or - for standard input. The plan goes to standard output, everything else to
    standard error.
    """
    check_solver(solver)
    check_output(output)
    gate = baseline_gate(baseline, max_increase, instance)
    options = {"solver.name": solver, "solver.gap": gap, "solver.time_limit_s": time_limit, "solver.threads": threads}
    overrides = [*settings, *(f"{path}={value}" for path, value in options.items() if value is not None)]
    with progress(quiet=quiet, verbose=verbose) as say:
        read = one_case(epd_opt.read(instance, overrides=overrides), scenario)
        with read.placing():
            backend(read.solver.name)
        closed = solve_and_simulate(read, progress=say) if simulated else None
        plan = epd_opt.solve(read, progress=say) if closed is None else closed.plan
    document = plan.document
    if not quiet:
        for warning in document.warnings:
            click.echo(f"warning: {printable(warning)}", err=True)
    if as_json:
        echo_json(plan.to_json())
    else:
        click.echo(plan_text(document, color=wants_color(), width=width(WIDTH), warnings=False), nl=False)
    if output is not None:
        _write(plan, output)
    cost = document.cost
    breached = False
    if closed is not None and closed.simulation is not None:
        if not as_json:
            click.echo("\n" + closing_text(document, closed.simulation, color=wants_color(), width=width(WIDTH)), nl=False)
        if not closed.simulation.document.target_met:
            click.echo("simulation misses a target, and no stricter plan mended it", err=True)
            breached = True
    if fail_above is not None and cost is not None and (cost.usd_per_request or 0.0) > fail_above:
        click.echo(f"a request costs {cost.usd_per_request:.6g} USD, above the limit of {fail_above:g}", err=True)
        breached = True
    if gate is not None:
        said, too_dear = gate.judged(document)
        breached = breached or too_dear
        if too_dear or not quiet:
            click.echo(said, err=True)
    return BREACHED if breached else EXIT_CODES[document.status]


def check_solver(name: str | None) -> None:
    """Refuse an unknown solver by the option's name."""
    if name is not None and name not in BACKENDS:
        near = difflib.get_close_matches(name, BACKENDS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"--solver: no solver {name!r} (known: {', '.join(sorted(BACKENDS))}){hint}")


def _write(plan: epd_opt.Plan, output: str) -> None:
    if plan.document.cost is None:
        click.echo(f"{output} is not written: there is no plan", err=True)
        return
    try:
        plan.save(output)
    except OSError as error:
        raise UsageError(f"-o {output}: cannot write the plan: {error.strerror}") from None
