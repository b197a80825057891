"""`epd-opt break-even`."""

from __future__ import annotations

import click

import epd_opt
from epd_opt.cli.numbers import Finite
from epd_opt.cli.plans import CASE
from epd_opt.cli.terminal import echo_json, progress, wants_color, width
from epd_opt.render import WIDTH
from epd_opt.scenarios import one_case
from epd_opt.sensitivity import break_even
from epd_opt.sensitivity.moves_view import break_even_text

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
