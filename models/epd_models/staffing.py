"""Operating points of queues, shared between queues that differ only in speed.

Staffing depends on services and waits through their ratios alone. So services are measured in units of a reference
service, rounded up to a fine grid (which can only ask for more), waits rounded down to a grid (which promises more), and
the points found for one queue serve every other that falls into the same cell: other levels, degrees and devices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from epd_models.queueing import ServiceMoments, WaitingPoint, waiting_points_at
from epd_models.row import Row

_SERVICE_GRID = math.log(1.02)
"""Services are rounded up by 2 % at the most; the reference class not at all."""
_TAU_GRID = math.log(1.15)
"""Waits are rounded down by 13 % at the most."""
_DEMAND_GRID = math.log(1.1)
"""Demands, for which points are only chosen, are rounded up by 10 % at the most."""


_NO_WORK = WaitingPoint(
    kind="no_wait",
    tau=0.0,
    tail=0.0,
    slope=1.0,
    setup=0.0,
    theta=0.0,
    spread=0.0,
    peakedness=1.0,
    minimum_servers=1,
)
"""The operating point of a queue in which nobody brings any work (all images found in the encoder cache)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaffedQueue:
    """A queue at an operating point, with its rows on the replicas of the pool for (rounded) services."""

    point: WaitingPoint
    rows: tuple[Row, ...] = ()


def strict_tau(services: Sequence[ServiceMoments], tau: float) -> float:
    """The wait per factor e that is promised where ``tau`` would do: the next one down on the grid, seconds."""
    unit = _unit(services)
    if unit == 0.0:
        return tau
    return unit * math.exp(math.floor(math.log(tau / unit) / _TAU_GRID + 1e-9) * _TAU_GRID)


def staffed_queues(
    services: Sequence[ServiceMoments],
    taus: Sequence[float],
    rates: Mapping[str, float],
    *,
    tail: float,
    servers_per_replica: int,
    limit: int,
) -> list[list[StaffedQueue]]:
    """Operating points of a queue at each of several waits, as :func:`epd_models.queueing.waiting_points` finds them on the
    grids.

    Parameters
    ----------
    taus : sequence of float
        Waits per factor e as returned by :func:`strict_tau` for the same classes or more.
    """
    unit = _unit(services)
    if unit == 0.0:
        return [[StaffedQueue(point=_NO_WORK)] for _ in taus]
    cell = _Cell(
        services=tuple(_rounded(service, unit) for service in services),
        rates=tuple((service.name, _demand(rates[service.name] * unit)) for service in services),
        tail=tail,
        servers_per_replica=servers_per_replica,
        limit=limit,
    )
    return [
        [
            StaffedQueue(
                point=replace(point, tau=point.tau * unit, theta=point.theta / unit, spread=point.spread * unit),
                rows=tuple(replace(row, load=tuple((name, load * unit) for name, load in row.load)) for row in rows),
            )
            for point, rows in found
        ]
        for found in _points(cell, [float(f"{tau / unit:.9g}") for tau in taus])
    ]


def _unit(services: Sequence[ServiceMoments]) -> float:
    """The reference service: the longest mean."""
    return max(service.mean for service in services)


def _demand(rate: float) -> float:
    """A rate per reference service, rounded up to the grid."""
    return float(f"{math.exp(math.ceil(math.log(rate) / _DEMAND_GRID - 1e-6) * _DEMAND_GRID):.9g}")


def _rounded(service: ServiceMoments, unit: float) -> ServiceMoments:
    """A service in units of the reference, values rounded up to the grid and merged where they meet."""
    merged: dict[float, float] = {}
    for value, weight in zip(service.values, service.weights, strict=True):
        relative = value / unit
        if relative > 0:
            relative = math.exp(math.ceil(math.log(relative) / _SERVICE_GRID - 1e-6) * _SERVICE_GRID)
        relative = float(f"{relative:.9g}")
        merged[relative] = merged.get(relative, 0.0) + weight
    ordered = sorted(merged.items())
    return replace(
        service,
        values=tuple(value for value, _ in ordered),
        weights=tuple(float(f"{weight:.9g}") for _, weight in ordered),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    """A queue in units of its reference service, but for its wait."""

    services: tuple[ServiceMoments, ...]
    rates: tuple[tuple[str, float], ...]
    tail: float
    servers_per_replica: int
    limit: int


_Points: TypeAlias = tuple[tuple[WaitingPoint, tuple[Row, ...]], ...]


@lru_cache(maxsize=1024)
def _known(_: _Cell) -> dict[float, _Points]:
    """What has been found for a cell, by its wait."""
    return {}


def _points(cell: _Cell, taus: Sequence[float]) -> list[_Points]:
    """Operating points with their rows, all in units of the reference service."""
    known = _known(cell)
    missing = [tau for tau in dict.fromkeys(taus) if tau not in known]
    found = waiting_points_at(
        cell.services,
        missing,
        dict(cell.rates),
        tail=cell.tail,
        servers_per_replica=cell.servers_per_replica,
        limit=cell.limit,
    )
    known |= {
        tau: tuple((point, point.rows(cell.services)) for point in points)
        for tau, points in zip(missing, found, strict=True)
    }
    return [known[tau] for tau in taus]
