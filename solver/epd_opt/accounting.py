"""Units and money of a fleet, in plain arithmetic from whole counts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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


def ways_to_hold(offer: Offer, used: int) -> list[Holding]:
    """The ways to hold units that no other one beats on both cost and units at hand: at most two, cheapest first.

    Whole lots may bring more units than are used; with owned ones beside them they may come out even, at another cost.
    Costs leave energy out. Empty where stock and owned units do not suffice.
    """
    found: list[Holding] = []
    for lots in range(offer.lots_for(max(0, used - offer.owned)), offer.lots_for(used) + 1):
        bought = lots * offer.lot
        owned = max(0, used - offer.kept_by(bought))
        if owned <= offer.owned and (offer.stock is None or bought + owned <= offer.stock):
            cost = bought * offer.usd_per_hour + owned * offer.owned_usd_per_hour
            found.append(Holding(used=used, owned=owned, bought=bought, usd_per_hour=cost))
    found.sort(key=lambda held: (held.usd_per_hour, held.installed, held.bought))
    return [held for i, held in enumerate(found) if all(held.installed < other.installed for other in found[:i])]


def cheapest_holdings(problem: PlanningProblem, used: Mapping[str, int]) -> dict[str, Holding]:
    """The cheapest way to hold units of several entries within the limits on devices and power, energy left out.

    Where no way keeps the limits, the cheapest one that does not.
    """
    offers = {name: problem.offer(name) for name in used}
    limits = problem.limits

    def kept(fleet: Sequence[Holding]) -> bool:
        devices = sum(held.installed for held in fleet)
        power = math.fsum(offer.power_w * held.installed for offer, held in zip(offers.values(), fleet, strict=True))
        return (limits.devices is None or devices <= limits.devices) and (
            limits.power_w is None or power <= limits.power_w * (1 + 1e-9)
        )

    ways = [ways_to_hold(offers[name], units) for name, units in used.items()]
    if not all(ways):
        raise ValueError("stock and owned units do not cover the units in use")
    cheapest = tuple(choices[0] for choices in ways)
    if not kept(cheapest):
        fleets = filter(kept, itertools.product(*ways))
        cheapest = min(fleets, key=lambda fleet: math.fsum(held.usd_per_hour for held in fleet), default=cheapest)
    return dict(zip(used, cheapest, strict=True))


def spares(problem: PlanningProblem, pools: Sequence[PoolSolution]) -> list[int]:
    """Spare replicas counted for each pool: all of a physical pool's stand with its first operating point."""
    seen: set[tuple[str, str]] = set()
    result = []
    for pool in pools:
        first = pool.candidate.physical not in seen
        seen.add(pool.candidate.physical)
        result.append(problem.spare_replicas if first else 0)
    return result


def pool_units(problem: PlanningProblem, pools: Sequence[PoolSolution]) -> list[Fraction]:
    """Sold units of each pool, spares included."""
    return [
        (pool.replicas + spare) * pool.candidate.units for pool, spare in zip(pools, spares(problem, pools), strict=True)
    ]


def energy_usd_per_hour(offer: Offer, used: int, busy_unit_seconds: float) -> float:
    """Idle energy of units in use, and energy of ``busy_unit_seconds`` unit-seconds of work per second."""
    return used * offer.used_usd_per_hour + 3600.0 * busy_unit_seconds * offer.busy_usd_per_unit_second


def busy_units(problem: PlanningProblem, solution: Solution) -> dict[str, float]:
    """Unit-seconds of work per second, at the mean rates, of every device entry that some pool uses, by name."""
    busy: dict[str, float] = {}
    means = {demand.name: demand.mean_rate / demand.rate for demand in problem.demands}
    for pool in solution.pools:
        candidate = pool.candidate
        busy[candidate.device] = busy.get(candidate.device, 0.0) + sum(
            rate * means[served] * candidate.busy_s[served] * float(candidate.units)
            for served, rate in pool.serves().items()
        )
    return busy


def holdings(problem: PlanningProblem, solution: Solution) -> Mapping[str, Holding]:
    """Holdings of every device entry that some pool uses, by name."""
    units: dict[str, Fraction] = {}
    for pool, taken in zip(solution.pools, pool_units(problem, solution.pools), strict=True):
        units[pool.candidate.device] = units.get(pool.candidate.device, Fraction(0)) + taken
    busy = busy_units(problem, solution)
    held = cheapest_holdings(problem, {name: math.ceil(units[name]) for name in sorted(units)})
    return {
        name: replace(h, usd_per_hour=h.usd_per_hour + energy_usd_per_hour(problem.offer(name), h.used, busy[name]))
        for name, h in held.items()
    }


def billed_usd_per_hour(offer: Offer, bought: int, usd_per_hour: float) -> float:
    """Of the cost of an entry, what invoices of an hour show."""
    return usd_per_hour - bought * offer.amortised_usd_per_hour


def total_usd_per_hour(fleet: Mapping[str, Holding]) -> float:
    """Hourly cost of a fleet."""
    return math.fsum(held.usd_per_hour for held in fleet.values())
