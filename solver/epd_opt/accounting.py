"""Units and money of a fleet, in plain arithmetic from whole counts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from epd_opt.nodes import Nodes, counted
from epd_opt.packing import Groups, Terms, groups_of, least
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


def ways_to_hold(offer: Offer, used: int, groups: Groups | None = None) -> list[Holding]:
    """The ways to hold units that no other one beats on both cost and units at hand, cheapest first.

    Whole lots may bring more units than are used; with owned ones beside them they may come out even, at another cost.
    Costs leave energy out. Empty where stock and owned units do not suffice.

    Parameters
    ----------
    groups : mapping, optional
        What must stand in servers and racks by sizes, where that is known.
    """
    if offer.nodes is not None and groups and _packs(offer, groups, used):
        return _packed_holdings(offer, offer.nodes, used, groups)
    found: list[Holding] = []
    ordered = -(-offer.minimum // offer.lot)
    for lots in range(offer.lots_for(max(0, used - offer.owned)), max(offer.lots_for(used), ordered) + 1):
        bought = lots * offer.lot
        if 0 < lots < ordered:
            continue
        owned = max(0, used - offer.kept_by(bought))
        if owned <= offer.owned and (offer.stock is None or bought + owned <= offer.stock):
            found.append(_holding(offer, used, bought, owned))
    found.sort(key=lambda held: (held.usd_per_hour, held.installed, held.bought))
    return [held for i, held in enumerate(found) if all(held.installed < other.installed for other in found[:i])]


def _holding(offer: Offer, used: int, bought: int, owned: int) -> Holding:
    cost = bought * offer.usd_per_hour + owned * offer.owned_usd_per_hour
    return Holding(used=used, owned=owned, bought=bought, usd_per_hour=cost)


def _packed_holdings(offer: Offer, nodes: Nodes, used: int, groups: Groups) -> list[Holding]:
    """The cheapest way to hold groups that must be packed, and the one with the fewest units at hand if it is another."""
    terms = Terms(
        lot=offer.lot,
        owned=offer.owned,
        stock=offer.stock,
        most=None if offer.for_sale else 0,
        kept_share=1.0 / (1.0 + offer.interruption_allowance),
        minimum=offer.minimum,
        usd=offer.usd_per_hour,
        owned_usd=offer.owned_usd_per_hour,
    )
    ways = [least(nodes, groups, terms), least(nodes, groups, replace(terms, usd=1.0, owned_usd=1.0))]
    return [_holding(offer, used, *way) for way in dict.fromkeys(ways) if way is not None]


def _packs(offer: Offer, groups: Groups, used: int) -> bool:
    """Whether groups may take more units than there are in them."""
    nodes = offer.nodes
    assert nodes is not None
    return (nodes.whole or offer.owned >= nodes.chunk) and not counted(nodes, groups, used, offer.owned)


def cheapest_holdings(
    problem: PlanningProblem, used: Mapping[str, int], groups: Mapping[str, Groups] | None = None
) -> dict[str, Holding]:
    """The cheapest way to hold units of several entries within the limits on devices, power and racks, energy left
    out.

    Where no way keeps the limits, the cheapest one that does not. ``groups``: see :func:`ways_to_hold`.
    """
    offers = {name: problem.offer(name) for name in used}
    limits = problem.limits

    def kept(fleet: Sequence[Holding]) -> bool:
        devices = sum(held.installed for held in fleet)
        power = math.fsum(offer.power_w * held.installed for offer, held in zip(offers.values(), fleet, strict=True))
        racks = sum(limits.racks_of(offer, held.installed) for offer, held in zip(offers.values(), fleet, strict=True))
        return (
            (limits.devices is None or devices <= limits.devices)
            and (limits.power_w is None or power <= limits.power_w * (1 + 1e-9))
            and (limits.racks is None or racks <= limits.racks)
        )

    ways = [ways_to_hold(offers[name], units, (groups or {}).get(name)) for name, units in used.items()]
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
    replicas: dict[tuple[str, str], int] = {}
    for pool in pools:
        replicas[pool.candidate.physical] = replicas.get(pool.candidate.physical, 0) + pool.replicas
    for pool in pools:
        first = pool.candidate.physical not in seen
        seen.add(pool.candidate.physical)
        result.append(problem.standing_by(replicas[pool.candidate.physical]) if first else 0)
    return result


def pool_units(problem: PlanningProblem, pools: Sequence[PoolSolution]) -> list[Fraction]:
    """Sold units of each pool, spares included."""
    return [
        (pool.replicas + spare) * pool.candidate.units for pool, spare in zip(pools, spares(problem, pools), strict=True)
    ]


def standing_groups(offers: Mapping[str, Offer], standing: Iterable[tuple[str, Fraction, int]]) -> dict[str, Groups]:
    """What must stand in servers and racks, by device entry; only entries of whose servers something is known.

    Parameters
    ----------
    standing : iterable of (str, Fraction, int)
        Device entry, units per replica, and replicas with spares of each pool.
    """
    of_entry: dict[str, list[tuple[Fraction, int]]] = {}
    for device, units, count in standing:
        of_entry.setdefault(device, []).append((units, count))
    shapes = {name: offers[name].nodes for name in sorted(of_entry)}
    return {name: groups_of(nodes, of_entry[name]) for name, nodes in shapes.items() if nodes is not None}


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
    held = cheapest_holdings(
        problem,
        {name: math.ceil(units[name]) for name in sorted(units)},
        standing_groups(
            {name: problem.offer(name) for name in units},
            (
                (pool.candidate.device, pool.candidate.units, pool.replicas + spare)
                for pool, spare in zip(solution.pools, spares(problem, solution.pools), strict=True)
            ),
        ),
    )
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
