"""What a fleet for all scenarios costs in each of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from epd_opt.accounting import Holding, busy_units, energy_usd_per_hour, standing_groups, total_usd_per_hour, ways_to_hold
from epd_opt.problem import Aim, Limits, Offer, PlanningProblem, measured
from epd_opt.robust.scene import Physical
from epd_opt.robust.search import FleetFound, Served


def sizes_of(found: FleetFound) -> dict[Physical, Fraction]:
    """Sold units per replica of every physical pool that stands or is hired."""
    known = {*found.stands, *(physical for own in found.hired for physical in own)}
    return {
        one.physical: one.units
        for served in found.served
        for one in served.scene.offered.problem.candidates
        if one.physical in known
    }


def units_of(found: FleetFound, replicas: Mapping[Physical, int]) -> dict[str, int]:
    """Sold units that replicas take of each device entry, by name."""
    units: dict[str, Fraction] = {}
    sizes = sizes_of(found)
    for physical, count in replicas.items():
        units[physical[0]] = units.get(physical[0], Fraction(0)) + count * sizes[physical]
    return {name: math.ceil(units[name]) for name in sorted(units)}


def held_in_each(found: FleetFound, aim: Aim) -> tuple[dict[str, Holding], ...]:
    """How the fleet and what is hired beside it are held, with their cost in each scenario: the way that is best by the aim
    within the limits."""
    resolved = [served.scene.resolved for served in found.served]
    offers = [{offer.name: offer for offer in one.offers} for one in resolved]
    busy = [_busy(served) for served in found.served]
    weights = [served.scene.case.weight for served in found.served]
    sizes = sizes_of(found)

    def standing(replicas: Mapping[Physical, int]) -> list[tuple[str, Fraction, int]]:
        return [(physical[0], sizes[physical], count) for physical, count in replicas.items()]

    hired = [
        list(_ways(units_of(found, own), [terms], standing(own))) for own, terms in zip(found.hired, offers, strict=True)
    ]

    def cheapest(index: int, fleet: Mapping[str, Holding]) -> tuple[bool, dict[str, Holding]]:
        """Whether limits are kept in a scenario, and what all of it costs there."""
        terms, work = offers[index], busy[index]
        each = [
            {name: replace(h, usd_per_hour=_cost(terms[name], h, work.get(name, 0.0))) for name, h in way.items()}
            for way in ({**fleet, **own} for own in hired[index])
        ]
        kept = [way for way in each if within_limits(way, terms, resolved[index].limits)]
        return bool(kept), min(kept or each, key=total_usd_per_hour)

    best: tuple[bool, float, tuple[dict[str, Holding], ...]] | None = None
    for fleet in _ways(units_of(found, found.stands), offers, standing(found.stands)):
        each = [cheapest(index, fleet) for index in range(len(offers))]
        ways = tuple(way for _, way in each)
        costs = [(weight, total_usd_per_hour(way)) for weight, way in zip(weights, ways, strict=True)]
        broken, value = not all(kept for kept, _ in each), measured(aim, costs)
        if best is None or (broken, value) < best[:2]:
            best = broken, value, ways
    if best is None:
        raise ValueError("stock and owned units do not cover the units in use")
    return best[2]


def within_limits(held: Mapping[str, Holding], offers: Mapping[str, Offer], limits: Limits) -> bool:
    """Whether units of several entries keep the limits on devices, power, racks and hourly cost."""
    power = math.fsum(offers[name].power_w * way.installed for name, way in held.items())
    return (
        (limits.devices is None or sum(way.installed for way in held.values()) <= limits.devices)
        and (limits.power_w is None or power <= limits.power_w * (1 + 1e-9))
        and (limits.racks is None or sum(limits.racks_of(offers[n], w.installed) for n, w in held.items()) <= limits.racks)
        and (limits.usd_per_hour is None or total_usd_per_hour(held) <= limits.usd_per_hour * (1 + 1e-9))
    )


def _ways(
    units: Mapping[str, int], offers: Sequence[Mapping[str, Offer]], standing: Sequence[tuple[str, Fraction, int]]
) -> Iterator[dict[str, Holding]]:
    """Ways to hold units, each of which is worth having at the prices of some scenario."""
    choices, groups = [], standing_groups(offers[0], standing)
    for name, used in units.items():
        ways = {(w.owned, w.bought): w for own in offers for w in ways_to_hold(own[name], used, groups.get(name))}
        choices.append([ways[key] for key in sorted(ways)])
    for chosen in itertools.product(*choices):
        yield dict(zip(units, chosen, strict=True))


def _cost(offer: Offer, held: Holding, busy_unit_seconds: float) -> float:
    holding = held.bought * offer.usd_per_hour + held.owned * offer.owned_usd_per_hour
    return holding + energy_usd_per_hour(offer, held.used, busy_unit_seconds)


def _busy(served: Served) -> dict[str, float]:
    return {} if served.solution is None else busy_units(served.scene.offered.problem, served.solution)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A pool that runs in a scenario, with the units it takes."""

    device: str
    units: float


def shared_costs(running: Sequence[Running], held: Mapping[str, Holding]) -> list[float]:
    """The whole fleet's cost over the pools that run: each entry's over its own by units; what stands idle as a whole is
    shared by all in proportion to what they cost, or to their units where nothing costs."""
    taken: dict[str, float] = {}
    for pool in running:
        taken[pool.device] = taken.get(pool.device, 0.0) + pool.units
    own = [held[pool.device].usd_per_hour * pool.units / taken[pool.device] for pool in running]
    idle = math.fsum(way.usd_per_hour for name, way in held.items() if name not in taken)
    keys = own if math.fsum(own) > 0.0 else [pool.units for pool in running]
    whole = math.fsum(keys)
    return [cost + idle * key / whole for cost, key in zip(own, keys, strict=True)] if whole else own


def requests_per_hour(problem: PlanningProblem) -> float:
    """Mean requests per hour of all classes."""
    return 3600.0 * math.fsum(demand.mean_rate for demand in problem.demands)
