"""The optimum of a small planning problem by enumeration: every fleet, routed over paths by scipy's linear programming.

Nothing here uses the programme under test beyond the value types of a problem.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

from epd_models.candidate import Arc, Candidate
from epd_opt.problem import Offer, PlanningProblem

Path = tuple[tuple[int, Arc], ...]


def cheapest(problem: PlanningProblem) -> float | None:
    """Least hourly cost over all fleets; None where no fleet serves the demand within the limits."""
    paths = {demand.name: list(paths_of(problem.candidates, demand.name)) for demand in problem.demands}
    ranges = [range(_most(problem, candidate) + 1) for candidate in problem.candidates]
    fleets = []
    for counts in itertools.product(*ranges):
        fixed = fleet_cost(problem, counts)
        if fixed is not None:
            fleets.append((fixed, counts))
    best: float | None = None
    for fixed, counts in sorted(fleets):
        if best is not None and fixed >= best:
            break
        energy = routing_energy(problem, counts, paths)
        if energy is None:
            continue
        total = fixed + energy
        over = problem.limits.usd_per_hour is not None and total > problem.limits.usd_per_hour * (1 + 1e-9)
        if not over and (best is None or total < best):
            best = total
    return best


def _most(problem: PlanningProblem, candidate: Candidate) -> int:
    """Replicas that carry the whole demand of all classes, and in small problems one more, to see that it never helps."""
    rates = {demand.name: demand.rate for demand in problem.demands}
    served = {a.request_class for a in candidate.arcs}
    needs = [sum(load * rates[name] for name, load in row.load if name in served) + row.setup for row in candidate.rows]
    return max(1, math.ceil(max(needs, default=1.0) - 1e-9)) + (len(problem.candidates) <= 3)


def paths_of(candidates: Sequence[Candidate], name: str) -> Iterator[Path]:
    """Ways from a class's source to its end; a hand-over joins what arrives by a level with what leaves by it or later,
    and what a sender hands over with what a slower one of its kind may."""
    arcs = [(k, a) for k, c in enumerate(candidates) for a in c.arcs if a.request_class == name]

    def onward(path: Path) -> Iterator[Path]:
        last = path[-1][1].end
        if last.state == "done":
            yield path
            return
        for k, a in arcs:
            given = a.start.sender
            if given is None or last.sender is None or (a.start.state, given.kind) != (last.state, last.sender.kind):
                continue
            if given.bandwidth <= last.sender.bandwidth and a.start.level >= last.level:
                yield from onward((*path, (k, a)))

    for k, a in arcs:
        if a.start.sender is None:
            yield from onward(((k, a),))


def fleet_cost(problem: PlanningProblem, counts: Sequence[int]) -> float | None:
    """Hourly cost of holding a fleet, the energy of its work left out; None where it breaks stock or limits."""
    units: dict[str, Fraction] = {}
    pools: set[str] = set()
    for candidate, count in zip(problem.candidates, counts, strict=True):
        if count:
            spare = 0 if candidate.pool in pools else problem.spare_replicas
            pools.add(candidate.pool)
            units[candidate.device] = units.get(candidate.device, Fraction(0)) + (count + spare) * candidate.units
    offers = {offer.name: offer for offer in problem.offers}
    best: float | None = None
    for holdings in itertools.product(*(_holdings(offers[name], math.ceil(used)) for name, used in units.items())):
        cost = installed = power = 0.0
        racks = 0
        for (bought, owned), (name, used) in zip(holdings, units.items(), strict=True):
            terms = offers[name]
            cost += bought * terms.usd_per_hour + owned * terms.owned_usd_per_hour
            cost += math.ceil(used) * terms.used_usd_per_hour
            installed += bought + owned
            power += (bought + owned) * terms.power_w
            racks += _racks(problem.limits.rack_w, terms.power_w, bought + owned)
        limits = problem.limits
        if limits.racks is not None and racks > limits.racks:
            continue
        if limits.devices is not None and installed > limits.devices:
            continue
        if limits.power_w is not None and power > limits.power_w:
            continue
        if limits.usd_per_hour is not None and cost > limits.usd_per_hour * (1 + 1e-9):
            continue
        best = cost if best is None else min(best, cost)
    return best


def _racks(rack_w: float | None, power_w: float, units: int) -> int:
    """Racks that are filled one after the other with single units."""
    racks, room = 0, 0.0
    for _ in range(units if rack_w is not None and power_w else 0):
        if power_w > room:
            racks, room = racks + 1, rack_w or 0.0
        room -= power_w
    return racks


def _holdings(offer: Offer, used: int) -> list[tuple[int, int]]:
    """Ways to hold units in use: (bought in whole lots, owned)."""
    result = []
    for owned in range(min(offer.owned, used) + 1):
        bought = math.ceil((used - owned) / offer.lot) * offer.lot
        if 0 < bought < offer.minimum:
            bought = math.ceil(offer.minimum / offer.lot) * offer.lot
        if offer.stock is None or bought + owned <= offer.stock:
            result.append((bought, owned))
    return result


def routing_energy(problem: PlanningProblem, counts: Sequence[int], paths: dict[str, list[Path]]) -> float | None:
    """Least energy cost per hour of serving the demand with these replicas; None where they cannot."""
    columns = [(name, path) for name, ways in paths.items() for path in ways if all(counts[k] for k, _ in path)]
    if {name for name, _ in columns} < set(paths):
        return None
    offers = {offer.name: offer for offer in problem.offers}
    means = {demand.name: demand.mean_rate / demand.rate for demand in problem.demands}
    price = [
        3600.0
        * means[name]
        * sum(
            problem.candidates[k].busy_s[name]
            * float(problem.candidates[k].units)
            * offers[problem.candidates[k].device].busy_usd_per_unit_second
            for k, _ in path
        )
        for name, path in columns
    ]
    served = [[float(name == demand.name) for name, _ in columns] for demand in problem.demands]
    left, right = [], []
    for k, candidate in enumerate(problem.candidates):
        for row in candidate.rows if counts[k] else ():
            if row.setup > counts[k]:
                return None
            load = dict(row.load)
            left.append([load.get(name, 0.0) if any(k == j for j, _ in path) else 0.0 for name, path in columns])
            right.append(counts[k] - row.setup)
    answer = linprog(
        price,
        A_ub=np.array(left) if left else None,
        b_ub=np.array(right) if right else None,
        A_eq=np.array(served),
        b_eq=np.array([demand.rate for demand in problem.demands]),
    )
    return float(answer.fun) if answer.status == 0 else None


def fleets(problem: PlanningProblem, most: Sequence[int]) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Fleets within stock and limits of up to so many replicas each, with what holding them costs per hour."""
    for counts in itertools.product(*(range(count + 1) for count in most)):
        fixed = fleet_cost(problem, counts)
        if fixed is not None and any(counts):
            yield fixed, counts


def sufficient(problem: PlanningProblem, multiple: float) -> list[int]:
    """Replicas of each candidate that carry a multiple of the whole demand alone; more are of no use."""
    return [_most(problem.at(multiple), candidate) for candidate in problem.candidates]


def stocked(problem: PlanningProblem) -> list[int]:
    """Replicas of each candidate that its stock allows at most; every entry needs a stock."""
    stock = {offer.name: offer.stock for offer in problem.offers}
    return [math.floor((stock[candidate.device] or 0) / candidate.units) for candidate in problem.candidates]


def largest_multiple(problem: PlanningProblem) -> float:
    """The largest multiple of the demand that some fleet serves within stock and limits; 0 where none serves any."""
    paths = {demand.name: list(paths_of(problem.candidates, demand.name)) for demand in problem.demands}
    best = 0.0
    for fixed, counts in fleets(problem, stocked(problem)):
        parts = _routing(problem, counts, paths)
        if parts is None:
            continue
        rows, room, classes, rates, energy = parts
        if problem.limits.usd_per_hour is not None:
            rows, room = np.vstack([rows, energy]), np.append(room, problem.limits.usd_per_hour - fixed)
        answer = linprog(
            [0.0] * len(energy) + [-1.0],
            A_ub=np.hstack([rows, np.zeros((len(rows), 1))]) if len(rows) else None,
            b_ub=room if len(rows) else None,
            A_eq=np.hstack([classes, -rates[:, None]]),
            b_eq=np.zeros(len(rates)),
        )
        if answer.status == 0:
            best = max(best, -float(answer.fun))
    return best


def least_ratio(problem: PlanningProblem, low: float, high: float, most: Sequence[int]) -> float | None:
    """Least cost per request over all fleets of up to so many replicas and all multiples from low to high.

    A fleet's best multiple and routing come from one linear programme over flows per request served and the inverse of
    the multiple (Charnes and Cooper).
    """
    paths = {demand.name: list(paths_of(problem.candidates, demand.name)) for demand in problem.demands}
    hourly = 3600.0 * sum(demand.mean_rate for demand in problem.demands)
    best: float | None = None
    for fixed, counts in fleets(problem, most):
        if best is not None and fixed / (hourly * high) >= best:
            continue
        parts = _routing(problem, counts, paths)
        if parts is None:
            continue
        rows, room, classes, rates, energy = parts
        left = np.hstack([rows, -room[:, None]])
        if problem.limits.usd_per_hour is not None:
            left = np.vstack([left, np.append(energy, fixed - problem.limits.usd_per_hour)])
        answer = linprog(
            np.append(energy, fixed),
            A_ub=left if len(left) else None,
            b_ub=np.zeros(len(left)) if len(left) else None,
            A_eq=np.hstack([classes, np.zeros((len(rates), 1))]),
            b_eq=rates,
            bounds=[*[(0.0, None)] * len(energy), (1.0 / high, 1.0 / low)],
        )
        if answer.status == 0:
            best = float(answer.fun) / hourly if best is None else min(best, float(answer.fun) / hourly)
    return best


def _routing(
    problem: PlanningProblem, counts: Sequence[int], paths: dict[str, list[Path]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """Over the paths that a fleet has: rows on its replicas, the room in each, which path serves which class, rates, and
    energy cost per hour of one request/s; None where a setup finds no room or a class no path."""
    columns = [(name, path) for name, ways in paths.items() for path in ways if all(counts[k] for k, _ in path)]
    if {name for name, _ in columns} < set(paths):
        return None
    offers = {offer.name: offer for offer in problem.offers}
    means = {demand.name: demand.mean_rate / demand.rate for demand in problem.demands}
    energy = [
        sum(
            3600.0
            * means[name]
            * problem.candidates[k].busy_s[name]
            * float(problem.candidates[k].units)
            * offers[problem.candidates[k].device].busy_usd_per_unit_second
            for k, _ in path
        )
        for name, path in columns
    ]
    rows, room = [], []
    for k, candidate in enumerate(problem.candidates):
        for row in candidate.rows if counts[k] else ():
            if row.setup > counts[k]:
                return None
            load = dict(row.load)
            rows.append([load.get(name, 0.0) if any(k == j for j, _ in path) else 0.0 for name, path in columns])
            room.append(counts[k] - row.setup)
    classes = [[float(name == demand.name) for name, _ in columns] for demand in problem.demands]
    return (
        np.array(rows).reshape(-1, len(columns)),
        np.array(room),
        np.array(classes),
        np.array([demand.rate for demand in problem.demands]),
        np.array(energy),
    )
