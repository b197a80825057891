"""`epd-opt break-even`, `epd-opt tornado` and `epd-opt marginal`."""

from __future__ import annotations

import click

import epd_opt
from epd_opt.cli.numbers import Finite
from epd_opt.cli.plans import CASE, load_plan
from epd_opt.cli.side_by_side import DASK, WORKERS, side_by_side
from epd_opt.cli.terminal import bar, echo_json, progress, wants_color, width
from epd_opt.errors import UsageError
from epd_opt.explain import plan_or_instance
from epd_opt.instance import Instance
from epd_opt.plan import Plan
from epd_opt.render import WIDTH
from epd_opt.scenarios import one_case
from epd_opt.sensitivity import break_even, marginal, tornado
from epd_opt.sensitivity.moves_view import break_even_text, marginal_text, tornado_text

_ENDINGS = {"found": 0, "always": 0, "never": 0, "no_plan": 4, "unknown": 5}


@click.command(name="break-even")
@click.argument("instance", type=click.Path(allow_dash=True))
@click.argument("path", metavar="PATH|SKU")
@click.option("--placement", metavar="P", help="Placement that is to pay.")
@click.option("--sku", metavar="S", help="SKU or device entry that is to pay; default: the one whose price moves.")
@click.option("--stage", metavar="STAGE", help="Stage that is to pay: encode, prefill or decode.")
@click.option("--low", type=Finite(), metavar="X", help="Lowest value to look at.")
@click.option("--high", type=Finite(), metavar="X", help="Highest value to look at.")
@click.option(
    "--tolerance",
    type=Finite(min=0, min_open=True, max=1),
    default=0.001,
    show_default=True,
    metavar="T",
    help="Relative width to which a value that moves more than prices is found; prices are found exactly.",
)
@click.option(
    "--gap", type=Finite(min=0), default=0.0, show_default=True, metavar="G", help="Gap of the solves, not the instance's."
)
@click.option("--json", "as_json", is_flag=True, help="Print the break-even as JSON instead of text.")
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help="Override a value of the instance.")
@CASE
@click.option("-q", "--quiet", is_flag=True, help="No progress on standard error.")
@click.option("-v", "--verbose", is_flag=True, help="Say on standard error what is going on.")
def break_even_command(
    instance: str,
    path: str,
    placement: str | None,
    sku: str | None,
    stage: str | None,
    low: float | None,
    high: float | None,
    tolerance: float,
    gap: float,
    as_json: bool,
    settings: tuple[str, ...],
    scenario: str | None,
    quiet: bool,
    verbose: bool,
) -> int:
    """Find the value at which the best plan of INSTANCE begins or ends to use a SKU, a placement or a stage.

    PATH is any number of the instance, as --set takes it; the name of a device stands for its price:

    \b
      epd-opt break-even mine.yaml RTX-6000D                          the price below which the card pays
      epd-opt break-even mine.yaml RTX-6000D --placement encoder_pool
      epd-opt break-even mine.yaml cost.electricity_usd_per_kwh --sku RNGD

    \b
    Exit codes: 0 answered, also where it always or never pays; 4 nothing serves the instance at an end of the range;
    5 the time passed before the answer.
    """
    read = one_case(epd_opt.read(instance, overrides=list(settings)), scenario)
    with progress(quiet=quiet, verbose=verbose) as say:
        found = break_even(
            read,
            path,
            placement=placement,
            sku=sku,
            stage=stage,
            low=low,
            high=high,
            tolerance=tolerance,
            gap=gap,
            progress=say,
        )
    if as_json:
        echo_json(found.to_json())
    else:
        click.echo(break_even_text(found.document, color=wants_color(), width=width(WIDTH)), nl=False)
    return _ENDINGS[found.document.outcome]


@click.command(name="tornado")
@click.argument("source", metavar="INSTANCE|PLAN", type=click.Path(allow_dash=True))
@click.option(
    "--input", "paths", multiple=True, metavar="PATH", help="Input to move; default: all that the instance states."
)
@click.option(
    "--by",
    type=Finite(min=0, min_open=True, max=1, max_open=True),
    default=0.2,
    show_default=True,
    metavar="S",
    help="Share by which each is moved, down and up.",
)
@click.option(
    "--plan", metavar="PLAN", help="Plan whose fleet is today's; else the plan itself or the instance's best plan."
)
@click.option("--json", "as_json", is_flag=True, help="Print the tornado as JSON instead of the table.")
@WORKERS
@DASK
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help="Override a value of the instance.")
@CASE
@click.option("-q", "--quiet", is_flag=True, help="No progress on standard error.")
def tornado_command(
    source: str,
    paths: tuple[str, ...],
    by: float,
    plan: str | None,
    as_json: bool,
    workers: int | None,
    dask: str | None,
    settings: tuple[str, ...],
    scenario: str | None,
    quiet: bool,
) -> int:
    """Rank the inputs of an instance by what moving each by itself does to the cost of a request.

    Rates, sizes, targets, prices, stock, network, terms of ownership and limits, each 20 % down and up, are solved anew;
    beside the best plan, whether today's fleet still serves.

    \b
    Exit codes: 0 every end is solved, proved to its plan or to having none; 5 some end is not proved or failed.
    """
    given = _given(source, settings, scenario)
    processes, executor = side_by_side(_threads(given), workers, dask)
    with bar("ends of inputs", quiet=quiet) as advance:
        found = tornado(
            given,
            list(paths) or None,
            by=by,
            plan=None if plan is None else load_plan(plan),
            workers=processes,
            executor=executor,
            progress=advance,
        )
    if as_json:
        echo_json(found.to_json())
    else:
        click.echo(tornado_text(found.document, color=wants_color(), width=width(WIDTH)), nl=False)
    return _ended([end.status for one in found.document.inputs for end in (one.low, one.high)])


def _given(source: str, settings: tuple[str, ...], scenario: str | None) -> Plan | Instance:
    """A plan, or an instance as it is in one scenario."""
    given = plan_or_instance(source, settings)
    if isinstance(given, Instance):
        return one_case(given, scenario)
    if scenario is not None:
        raise UsageError(f"--scenario {scenario}: found a plan, expected an instance with scenarios")
    return given


def _ended(statuses: list[str]) -> int:
    return 0 if all(status in ("optimal", "infeasible") for status in statuses) else 5


def _threads(given: Plan | Instance) -> int:
    return given.solver.threads if isinstance(given, Instance) else given.document.provenance.threads


@click.command(name="marginal")
@click.argument("source", metavar="INSTANCE|PLAN", type=click.Path(allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="Print the marginal values as JSON instead of the table.")
@click.option(
    "--gap", type=Finite(min=0), default=0.0, show_default=True, metavar="G", help="Gap of the solves, not the instance's."
)
@WORKERS
@DASK
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help="Override a value of the instance.")
@CASE
@click.option("-q", "--quiet", is_flag=True, help="No progress on standard error.")
def marginal_command(
    source: str,
    as_json: bool,
    gap: float,
    workers: int | None,
    dask: str | None,
    settings: tuple[str, ...],
    scenario: str | None,
    quiet: bool,
) -> int:
    """Price one step of each limit, target and price by solving again after it.

    One more unit of each stock, 1 kW, one device and 1 $/h more where those are limited, 10 ms more to the first token of
    each class, and each price a tenth lower.

    \b
    Exit codes: 0 every step is solved, proved to its plan or to having none; 5 some step is not proved or failed.
    """
    given = _given(source, settings, scenario)
    processes, executor = side_by_side(_threads(given), workers, dask)
    with bar("steps", quiet=quiet) as advance:
        found = marginal(
            given,
            gap=gap,
            workers=processes,
            executor=executor,
            progress=advance,
        )
    if as_json:
        echo_json(found.to_json())
    else:
        click.echo(marginal_text(found.document, color=wants_color(), width=width(WIDTH)), nl=False)
    return _ended([move.status for move in found.document.moves])
