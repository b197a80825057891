"""`epd-opt simulate`."""

from __future__ import annotations

from pathlib import Path

import click

from epd_opt.cli.numbers import Finite
from epd_opt.cli.output import check_output, write_text
from epd_opt.cli.plans import SCENARIO, load_plan
from epd_opt.cli.terminal import bar, echo_json, wants_color, width
from epd_opt.errors import UsageError
from epd_opt.extras import pyplot
from epd_opt.render import WIDTH
from epd_opt.simulate import REQUESTS, Simulation, simulate
from epd_opt.simulate.router import POLICIES
from epd_opt.simulate.table import simulation_text
from epd_opt.simulate.trace_formats import FORMATS, TIME_UNITS, TimeUnit
from epd_opt.simulate.traces import Trace
from epd_opt.wording import printable

_BREACHED = 7
_PICTURES = (".png", ".pdf", ".svg")


@click.command(name="simulate")
@click.argument("plan", type=click.Path(allow_dash=True))
@click.option("--trace", metavar="FILE", help="Send the requests of a trace, plain or gzip, in place of drawn ones.")
@click.option(
    "--format", "form", type=click.Choice([one.name for one in FORMATS]), help="Format of the trace, if not detected."
)
@click.option("--time-unit", type=click.Choice(TIME_UNITS), help="Unit of the trace's times, in place of its format's.")
@click.option(
    "--image-tokens",
    type=Finite(min=0, min_open=True),
    metavar="N",
    help="Tokens of one image, where the trace does not give them.",
)
@click.option(
    "--requests",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Requests that count in each run ({REQUESTS:,}); the first N of a trace.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, metavar="S", help="Same seed, same result.")
@click.option("--seeds", type=click.IntRange(min=1), default=1, metavar="N", help="Runs, with the seeds S, S + 1, ...")
@click.option("--routing", type=click.Choice(POLICIES), default=POLICIES[0], help="Who serves next inside a pool.")
@click.option(
    "--fail",
    "failures",
    multiple=True,
    metavar="WHAT@START[+LENGTH]",
    help="POOL[:REPLICAS], node=DEVICE[:NODES] or link=POOL:50ms, as in A:1@60s+120s; POOL is a name or its letter.",
)
@SCENARIO
@click.option("--check", is_flag=True, help="Exit 7 where a target is missed.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON instead of tables.")
@click.option("-o", "--output", metavar="FILE", help="Write the report (JSON) to this file.")
@click.option("--plot", metavar="FILE", help="Draw times and pools into this picture (.png, .pdf, .svg).")
@click.option("-q", "--quiet", is_flag=True, help="No progress on standard error.")
def simulate_command(
    plan: str,
    trace: str | None,
    form: str | None,
    time_unit: TimeUnit | None,
    image_tokens: float | None,
    requests: int | None,
    seed: int,
    seeds: int,
    routing: str,
    failures: tuple[str, ...],
    scenario: str | None,
    check: bool,
    as_json: bool,
    output: str | None,
    plot: str | None,
    quiet: bool,
) -> int:
    """Send requests through the fleet of PLAN, one by one, and see what they get.

    PLAN is a plan document, or - for standard input.

    Requests are drawn from the plan's classes or read from a trace. A target is met where the upper end of the 95 %
    interval of the requests that keep it reaches its percentile.
    """
    check_output(output, to_standard_output="the report goes to standard output with --json")
    if plot is not None:
        _check_plot(plot)
    for option, value in (("--format", form), ("--time-unit", time_unit), ("--image-tokens", image_tokens)):
        if value is not None and trace is None:
            raise UsageError(f"{option}: says how a trace is read; give one with --trace FILE")
    given = trace and Trace(source=trace, form=form, time_unit=time_unit, tokens_per_image=image_tokens)
    loaded = load_plan(plan, scenario)
    with bar("simulating", quiet=quiet) as advance:
        found = simulate(
            loaded,
            trace=given,
            requests=requests,
            seed=seed,
            seeds=seeds,
            routing=routing,  # type: ignore[arg-type]
            failures=failures,
            progress=advance,
        )
    if as_json:
        echo_json(found.to_json())
    else:
        click.echo(simulation_text(found.document, color=wants_color(), width=width(WIDTH)), nl=False)
    if output is not None:
        write_text(output, found.to_json() + "\n")
    if plot is not None:
        _draw(found, plot)
    if check and not found.document.target_met:
        missed = ", ".join(name for name, outcome in found.document.classes.items() if not outcome.target_met)
        click.echo(f"targets missed: {printable(missed)}", err=True)
        return _BREACHED
    return 0


def _check_plot(plot: str) -> None:
    """Complain before the run of what cannot be drawn after it."""
    kind = Path(plot).suffix
    if kind.lower() not in _PICTURES:
        found = f"found {kind}" if kind else "found no ending"
        raise UsageError(f"--plot {plot}: {found}, expected {', '.join(_PICTURES[:-1])} or {_PICTURES[-1]}")
    check_output(plot, option="--plot", to_standard_output="a picture needs a file")
    pyplot()


def _draw(found: Simulation, plot: str) -> None:
    try:
        found.plot().savefig(Path(plot), dpi=120)
    except (OSError, ValueError) as error:
        raise UsageError(f"--plot {plot}: cannot draw: {error}") from None
