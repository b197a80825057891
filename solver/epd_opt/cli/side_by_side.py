"""Options of commands that solve many instances side by side."""

from __future__ import annotations

from concurrent.futures import Executor

import click

from epd_opt.errors import UsageError
from epd_opt.extras import dask_executor
from epd_opt.sensitivity import usual_workers

WORKERS = click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Processes side by side; default cores / threads."
)
DASK = click.option("--dask", metavar="ADDRESS", help="Scheduler of a Dask cluster that solves instead.")


def side_by_side(threads: int, workers: int | None, dask: str | None) -> tuple[int, Executor | None]:
    """How many processes of this machine, or what solves in their place.

    Raises
    ------
    UsageError
        Both are asked for, or Dask is not installed or not there.
    """
    if workers is not None and dask is not None:
        raise UsageError("--workers and --dask exclude each other")
    return usual_workers(threads) if workers is None else workers, None if dask is None else dask_executor(dask)
