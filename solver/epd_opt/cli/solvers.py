"""`epd-opt solvers`."""

from __future__ import annotations

import dataclasses

import click

from epd_opt.backends import BACKENDS, Capabilities

_HEADINGS = {
    "continuous": "continuous",
    "integers": "integers",
    "unbounded_variables": "unbounded",
    "bound": "bound",
    "gap": "gap",
    "warm_start": "start",
    "threads": "threads",
    "time_limit": "limit",
    "interrupt": "interrupt",
    "in_process": "in process",
}


@click.command()
def solvers() -> None:
    """List the solvers: what those that are usable here can do, and what the others lack.

    \b
    continuous, integers  kinds of variables that it solves exactly
    unbounded             variables may lack a bound
    bound                 tells what it has proved; without, only an optimum has a bound, which follows from the gap
    gap, start            stops at a relative gap; begins from a given plan
    threads, limit        takes more than one thread, a time limit of its own
    interrupt             keeps the best plan so far when interrupted
    in process            runs in this process; the others run in one of their own
    """
    usable = [solver for solver in BACKENDS.values() if solver.availability().usable]
    rows = [["solver", *_HEADINGS.values(), ""]]
    rows += [[solver.name, *_marks(solver.capabilities), solver.describe()] for solver in usable]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    absent = [solver for solver in BACKENDS.values() if solver not in usable]
    if absent:
        click.echo("\nnot usable here, and what to install:")
        width = max(len(solver.name) for solver in absent)
        for solver in absent:
            click.echo(f"{solver.name.ljust(width)}  {solver.availability().missing}")


def _marks(capabilities: Capabilities) -> list[str]:
    values = dataclasses.asdict(capabilities)
    return ["yes" if values[name] else "-" for name in _HEADINGS]
