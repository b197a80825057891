"""`epd-opt solvers`."""

from __future__ import annotations

import click

from epd_opt.backends import BACKENDS


@click.command()
def solvers() -> None:
    """List the solvers that are usable here."""
    width = max(map(len, BACKENDS))
    for name, backend in sorted(BACKENDS.items()):
        click.echo(f"{name:{width}}  {backend.describe()}")
