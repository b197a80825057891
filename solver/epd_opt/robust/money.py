"""What a fleet for all scenarios costs in each of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from epd_opt.accounting import Holding, busy_units, energy_usd_per_hour, standing_groups, total_usd_per_hour, ways_to_hold
from epd_opt.problem import Aim, Offer, PlanningProblem, measured
from epd_opt.robust.scene import Physical
from epd_opt.robust.search import FleetFound, Served


def sizes_of(found: FleetFound) -> dict[Physical, Fraction]:
    """Sold units per replica of every physical pool that stands."""
    return {
        one.physical: one.units
        for served in found.served
        for one in served.scene.offered.problem.candidates
        if one.physical in found.stands
    }


def units_of(found: FleetFound) -> dict[str, int]:
    """Sold units in use of each device entry, by name."""
    units: dict[str, Fraction] = {}
    sizes = sizes_of(found)
    for physical, count in found.stands.items():
        units[physical[0]] = units.get(physical[0], Fraction(0)) + count * sizes[physical]
    return {name: math.ceil(units[name]) for name in sorted(units)}


def held_in_each(found: FleetFound, aim: Aim) -> tuple[dict[str, Holding], ...]:
    """How the fleet is held, with its cost in each scenario: the way that is best by the aim within the limits."""
    units = units_of(found)
    problems = [served.scene.resolved for served in found.served]
    offers = [{offer.name: offer for offer in resolved.offers} for resolved in problems]
    busy = [_busy(served) for served in found.served]
    limits = problems[0].limits

    def costs(way: Mapping[str, Holding]) -> tuple[dict[str, Holding], ...]:
        return tuple(
            {name: replace(held, usd_per_hour=_cost(own[name], held, work.get(name, 0.0))) for name, held in way.items()}
            for own, work in zip(offers, busy, strict=True)
        )

    def kept(each: Sequence[Mapping[str, Holding]]) -> bool:
        installed = {name: held.installed for name, held in each[0].items()}
        power = math.fsum(offers[0][name].power_w * count for name, count in installed.items())
        dearest = max(total_usd_per_hour(way) for way in each)
        return (
            (limits.devices is None or sum(installed.values()) <= limits.devices)
            and (limits.power_w is None or power <= limits.power_w * (1 + 1e-9))
            and (limits.usd_per_hour is None or dearest <= limits.usd_per_hour * (1 + 1e-9))
        )

    def value(each: Sequence[Mapping[str, Holding]]) -> float:
        weights = [served.scene.case.weight for served in found.served]
        return measured(aim, [(w, total_usd_per_hour(way)) for w, way in zip(weights, each, strict=True)])

    sizes = sizes_of(found)
    standing = [(physical[0], sizes[physical], count) for physical, count in found.stands.items()]
    each_way = [costs(way) for way in _ways(units, offers, standing)]
    if not each_way:
        raise ValueError("stock and owned units do not cover the units in use")
    return min(filter(kept, each_way), key=value, default=min(each_way, key=value))


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
