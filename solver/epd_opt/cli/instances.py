"""`epd-opt init`, `validate` and `schema`."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import click

import epd_opt
from epd_opt.backends import backend
from epd_opt.cli.terminal import echo_json
from epd_opt.comparison import comparison_json_schema
from epd_opt.document import plan_json_schema
from epd_opt.errors import UsageError
from epd_opt.explain import explanation_json_schema
from epd_opt.instance import instance_json_schema
from epd_opt.resolve import resolve
from epd_opt.sensitivity import (
    break_even_json_schema,
    marginal_json_schema,
    study_json_schema,
    tolerance_json_schema,
    tornado_json_schema,
)
from epd_opt.simulate.document import simulation_json_schema
from epd_opt.tariffs import tariff_json_schema
from epd_opt.wording import printable


@click.command()
@click.argument("file", required=False, type=click.Path(allow_dash=True))
def init(file: str | None) -> None:
    """Write a commented instance to start from.

    It solves as it stands, and goes to FILE or to standard output.
    """
    text = files("epd_opt").joinpath("starter.yaml").read_text(encoding="utf-8")
    if file in (None, "-"):
        click.echo(text, nl=False)
        return
    path = Path(file)
    if path.exists():
        raise UsageError(f"{file} exists already; choose another name")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from None
    click.echo(f"wrote {file}; solve it with: epd-opt solve {file}", err=True)


@click.command()
@click.argument("instance", type=click.Path(allow_dash=True))
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help="Override a value of the instance.")
def validate(instance: str, settings: tuple[str, ...]) -> None:
    """Check INSTANCE without solving it.

    Schema, sense and every name it uses; - is standard input.
    """
    read = epd_opt.read(instance, overrides=list(settings))
    with read.placing():
        backend(read.solver.name)
        resolved = resolve(read)
    for warning in resolved.warnings:
        click.echo(f"warning: {printable(warning)}", err=True)
    classes, devices, workers = len(read.workload.classes), len(read.devices), len(read.workers)
    click.echo(f"{printable(read.name)}: valid ({classes} classes, {devices} devices, {workers} measured workers)", err=True)


@click.command()
@click.argument(
    "what",
    type=click.Choice(
        [
            "instance",
            "plan",
            "explanation",
            "comparison",
            "simulation",
            "study",
            "tariffs",
            "tolerance",
            "break-even",
            "tornado",
            "marginal",
        ]
    ),
)
def schema(what: str) -> None:
    """Print the JSON Schema of a kind of document."""
    of = {
        "instance": instance_json_schema,
        "plan": plan_json_schema,
        "explanation": explanation_json_schema,
        "comparison": comparison_json_schema,
        "simulation": simulation_json_schema,
        "study": study_json_schema,
        "tariffs": tariff_json_schema,
        "tolerance": tolerance_json_schema,
        "break-even": break_even_json_schema,
        "tornado": tornado_json_schema,
        "marginal": marginal_json_schema,
    }
    echo_json(json.dumps(of[what](), indent=2, ensure_ascii=False))
