"""What the best fleet for several occasions comes to, by enumeration: every fleet, every way to hold it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction

from epd_opt.problem import Aim, Occasion, PlanningProblem, measured
from support.enumeration import _holdings, paths_of, routing_energy


def serving(occasion: Occasion) -> list[tuple[dict[tuple[str, str], int], float]]:
    """Replicas of each physical pool, spares included, that serve an occasion, and the least energy of its work."""
    problem = occasion.problem
    paths = {demand.name: list(paths_of(problem.candidates, demand.name)) for demand in problem.demands}
    rates = {demand.name: demand.rate for demand in problem.demands}
    most = []
    for one in problem.candidates:
        needs = [row.need({name: rates[name] for name in one.classes}) for row in one.rows]
        most.append(max(1, -int(-max(needs, default=1.0) // 1)))
    found = []
    for counts in itertools.product(*(range(count + 1) for count in most)):
        energy = routing_energy(problem, counts, paths)
        if energy is not None:
            stands: dict[tuple[str, str], int] = {}
            for one, count in zip(problem.candidates, counts, strict=True):
                if count:
                    stands[one.physical] = stands.get(one.physical, problem.spare_replicas) + count
            found.append((stands, energy))
    return found


def costs(problems: Sequence[PlanningProblem], stands: dict[tuple[str, str], int]) -> Iterator[list[float]]:
    """Hourly cost at each occasion of every way to hold a fleet within stock and limits, energy of work left out."""
    first = problems[0]
    units: dict[str, Fraction] = {}
    sizes = {one.physical: one.units for problem in problems for one in problem.candidates}
    for physical, count in stands.items():
        units[physical[0]] = units.get(physical[0], Fraction(0)) + count * sizes[physical]
    used = {name: -int(-taken // 1) for name, taken in units.items()}
    for held in itertools.product(*(_holdings(first.offer(name), count) for name, count in used.items())):
        installed = {name: bought + owned for name, (bought, owned) in zip(used, held, strict=True)}
        limits = first.limits
        if limits.devices is not None and sum(installed.values()) > limits.devices:
            continue
        power = sum(first.offer(name).power_w * count for name, count in installed.items())
        if limits.power_w is not None and power > limits.power_w:
            continue
        yield [
            sum(
                bought * problem.offer(name).usd_per_hour
                + owned * problem.offer(name).owned_usd_per_hour
                + used[name] * problem.offer(name).used_usd_per_hour
                for name, (bought, owned) in zip(used, held, strict=True)
            )
            for problem in problems
        ]


def least(given: tuple[Occasion, ...], aim: Aim) -> float | None:
    """The least that an aim can come to, over every fleet, every way to hold it and every choice of what is left."""
    ways = [serving(occasion) for occasion in given]
    problems = [occasion.problem for occasion in given]
    limit = problems[0].limits.usd_per_hour
    pools = sorted({one.physical for problem in problems for one in problem.candidates})
    tops = [max((s.get(pool, 0) for way in ways for s, _ in way), default=0) for pool in pools]
    best: float | None = None
    for counts in itertools.product(*(range(top + 1) for top in tops)):
        stands = {pool: count for pool, count in zip(pools, counts, strict=True) if count}
        energies = [
            min((e for s, e in way if all(stands.get(pool, 0) >= n for pool, n in s.items())), default=None) for way in ways
        ]
        for fixed in costs(problems, stands):
            options = _options(fixed, energies, aim)
            for choice in itertools.product(*options):
                lost = sum(o.weight for o, (kept, _) in zip(given, choice, strict=True) if not kept)
                if lost > 1.0 - aim.held_share + 1e-9:
                    continue
                if limit is not None and max(cost for _, cost in choice) > limit * (1 + 1e-9):
                    continue
                value = measured(aim, [(o.weight, cost) for o, (_, cost) in zip(given, choice, strict=True)])
                best = value if best is None else min(best, value)
    return best


def _options(fixed: list[float], energies: list[float | None], aim: Aim) -> list[list[tuple[bool, float]]]:
    """For each occasion, whether it is served and what it then costs."""
    return [
        ([] if energy is None else [(True, base + energy)]) + ([(False, base)] if aim.held_share < 1.0 else [])
        for base, energy in zip(fixed, energies, strict=True)
    ]
