"""Units and money of a fleet, in plain arithmetic from whole counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from epd_opt.problem import Offer, PlanningProblem
from epd_opt.solution import PoolSolution, Solution


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """Units of one device entry: in use, owned among them, bought in whole lots, and what they cost per hour."""

    used: int
    owned: int
    bought: int
    usd_per_hour: float

    @property
    def installed(self) -> int:
        """Units at hand: bought ones and owned ones in use."""
        return self.bought + self.owned


def holding(offer: Offer, units: Fraction, busy_unit_seconds: float) -> Holding:
    """The cheapest way to hold ``units`` units: owned ones first unless buying is cheaper.

    Parameters
    ----------
    units : Fraction
        Units that all pools of the entry take, spares included.
    busy_unit_seconds : float
        Unit-seconds of work per second.
    """
    used = math.ceil(units)
    choices = []
    for lots in range(-(-used // offer.lot) + 1):
        bought = lots * offer.lot
        owned = max(0, used - bought)
        if owned <= offer.owned:
            cost = bought * offer.usd_per_hour + owned * offer.owned_usd_per_hour
            choices.append((cost, bought, owned))
    cost, bought, owned = min(choices)
    energy = used * offer.used_usd_per_hour + 3600.0 * busy_unit_seconds * offer.busy_usd_per_unit_second
    return Holding(used=used, owned=owned, bought=bought, usd_per_hour=cost + energy)


def spares(problem: PlanningProblem, pools: Sequence[PoolSolution]) -> list[int]:
    """Spare replicas counted for each pool: all of a physical pool's stand with its first operating point."""
    seen: set[str] = set()
    result = []
    for pool in pools:
        first = pool.candidate.pool not in seen
        seen.add(pool.candidate.pool)
        result.append(problem.spare_replicas if first else 0)
    return result


def pool_units(problem: PlanningProblem, pools: Sequence[PoolSolution]) -> list[Fraction]:
    """Sold units of each pool, spares included."""
    return [
        (pool.replicas + spare) * pool.candidate.units
        for pool, spare in zip(pools, spares(problem, pools), strict=True)
    ]


def holdings(problem: PlanningProblem, solution: Solution) -> Mapping[str, Holding]:
    """Holdings of every device entry that some pool uses, by name."""
    units = pool_units(problem, solution.pools)
    means = {demand.name: demand.mean_rate / demand.rate for demand in problem.demands}
    result = {}
    for name in sorted({pool.candidate.device for pool in solution.pools}):
        members = [i for i, pool in enumerate(solution.pools) if pool.candidate.device == name]
        busy = sum(
            rate * means[served] * solution.pools[i].candidate.busy_s[served] * float(solution.pools[i].candidate.units)
            for i in members
            for served, rate in solution.pools[i].serves().items()
        )
        result[name] = holding(problem.offer(name), sum((units[i] for i in members), Fraction(0)), busy)
    return result


def total_usd_per_hour(fleet: Mapping[str, Holding]) -> float:
    """Hourly cost of a fleet."""
    return math.fsum(held.usd_per_hour for held in fleet.values())
