"""Measured rates so small that the replicas for the demand cannot be counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from epd_models.workload import RequestClass
from epd_opt import instance as user
from epd_opt.address import format_path
from epd_opt.errors import Problem

MOST_REPLICAS = 1e7
"""Beyond this many replicas of one worker, solvers do not tell a whole number from the next one."""


def uncountable(workers: Iterable[user.Worker], requests: Sequence[RequestClass]) -> Iterator[Problem]:
    """Complaints about workers of which the demand of a class would take more replicas than can be counted."""
    for worker in workers:
        for request in requests:
            rate = worker.rate_per_s(request.name)
            if not rate or request.rate <= MOST_REPLICAS * rate:
                continue
            where = ["workers", worker.name, "max_rate_per_s"]
            if isinstance(worker.max_rate_per_s, dict):
                where.append(request.name if request.name in worker.max_rate_per_s else "default")
            yield Problem(
                path=format_path(where),
                message=f"found {rate:g}: the {request.rate:g} requests/s of class {request.name!r} would take "
                f"{request.rate / rate:.3g} replicas of {worker.name!r}, expected at most {MOST_REPLICAS:g}",
                hint="is it per second? Write 0 where the worker does not serve the class",
            )
