"""Fleets to which predictions at the real load add replicas that the limits have no room for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from epd_opt.accounting import holdings, pool_units, total_usd_per_hour, ways_to_hold
from epd_opt.address import format_path
from epd_opt.backends import HIGHS, Settings
from epd_opt.document import Infeasibility, Mend, Reason
from epd_opt.predict import reinforced
from epd_opt.problem import PlanningProblem
from epd_opt.search.task import Found
from epd_opt.solution import Solution, replica_counts, route

_ROUNDING = 1e-6


@dataclass(frozen=True, kw_only=True)
class Beyond:
    """What stands in the way of a fleet's further replicas.

    Attributes
    ----------
    points : tuple of str
        Keys of the operating points that need them.
    why : Infeasibility
        The limits that have no room for them, and what they would have to be.
    """

    points: tuple[str, ...]
    why: Infeasibility


def beyond_limits(problem: PlanningProblem, found: Found, settings: Settings) -> Beyond | None:
    """The limits that a fleet breaks with the replicas that predictions add to it; None where it keeps all of them."""
    if not found.offered.behaviours:
        return None
    solution = route(found.formulation, replica_counts(found.formulation, found.outcome), HIGHS, settings)
    if solution is None:
        return None
    real = reinforced(found.offered, solution)
    pairs = zip(solution.pools, real.pools, strict=True)
    points = tuple(pool.candidate.key for pool, more in pairs if more.replicas > pool.replicas)
    reasons = list(_broken(problem, real, points)) if points else []
    if not reasons:
        return None
    mends = [Mend(change=path, to=reason.best_reachable) for path, reason in reasons]
    return Beyond(points=points, why=Infeasibility(reasons=[reason for _, reason in reasons], mends=mends))


def _broken(problem: PlanningProblem, fleet: Solution, points: tuple[str, ...]) -> Iterator[tuple[str, Reason]]:
    """The limits that a fleet breaks, by path."""
    units: dict[str, Fraction] = {}
    for pool, taken in zip(fleet.pools, pool_units(problem, fleet.pools), strict=True):
        units[pool.candidate.device] = units.get(pool.candidate.device, Fraction(0)) + taken
    scarce = False
    for name, taken in sorted(units.items()):
        offer = problem.offer(name)
        free = replace(offer, stock=None)
        if offer.stock is not None and not ways_to_hold(offer, math.ceil(taken)):
            scarce = True
            needed = min(held.installed for held in ways_to_hold(free, math.ceil(taken)))
            yield format_path(["devices", name, "stock"]), _reason("stock", f"stock of {name}", offer.stock, needed, points)
    if scarce:
        return
    held = holdings(problem, fleet)
    power = math.fsum(problem.offer(name).power_w * each.installed for name, each in held.items())
    sums: dict[str, tuple[float | None, float]] = {
        "usd_per_hour": (problem.limits.usd_per_hour, total_usd_per_hour(held)),
        "power_kw": (None if problem.limits.power_w is None else problem.limits.power_w / 1e3, power / 1e3),
        "devices": (problem.limits.devices, sum(each.installed for each in held.values())),
        "racks": (
            problem.limits.racks,
            sum(problem.limits.racks_of(problem.offer(name), each.installed) for name, each in held.items()),
        ),
    }
    for name, (limit, total) in sums.items():
        if limit is not None and total > limit * (1.0 + _ROUNDING):
            yield f"limits.{name}", _reason(name, f"limits.{name}", limit, total, points)


def _reason(limit: str, label: str, wanted: float, needed: float, points: tuple[str, ...]) -> Reason:
    pools = ", ".join(points)
    return Reason(
        limit=limit,
        wanted=float(wanted),
        best_reachable=float(needed),
        text=f"{label} is {wanted:g}; predicted intervals ask for more replicas than the formulas of the cheapest fleet do "
        f"({pools}), for which {needed:.6g} is enough; no fleet was found that needs none",
    )
