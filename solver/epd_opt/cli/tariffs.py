"""`epd-opt tariffs`."""

from __future__ import annotations

import json

import click

from epd_opt.cli.terminal import echo_json, wants_color, width
from epd_opt.explain import plan_or_instance
from epd_opt.plan import Plan
from epd_opt.render import WIDTH
from epd_opt.tariffs import tariff_document, tariffs_text


@click.command(name="tariffs")
@click.argument("source", metavar="PLAN|INSTANCE", type=click.Path(allow_dash=True))
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help="Override a value of the instance.")
@click.option("--json", "as_json", is_flag=True, help="Print the tables as JSON.")
def tariffs_command(source: str, settings: tuple[str, ...], as_json: bool) -> int:
    """Show what a unit costs at every tariff on offer, side by side.

    Rent by the hour, spot, reservations and purchases: effective and billed cost per hour and month of one unit. Of a PLAN,
    also its cost per request, image and million tokens, and what its units would cost at every tariff of their SKU.
    Nothing is solved; - is standard input.
    """
    given = plan_or_instance(source, settings)
    found = tariff_document(given.document if isinstance(given, Plan) else given)
    if as_json:
        plain = found.model_dump(mode="json", by_alias=True)
        echo_json(json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        click.echo(tariffs_text(found, color=wants_color(), width=width(WIDTH)), nl=False)
    return 0
