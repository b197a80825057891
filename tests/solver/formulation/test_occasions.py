"""One fleet for several occasions: against enumeration, and against the model of a single one."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import pytest

from epd_models.row import Row
from epd_opt.backends import backend
from epd_opt.formulation import build, build_occasions
from epd_opt.formulation.occasions import COUPLINGS
from epd_opt.problem import Aim, Occasion, PlanningProblem, measured
from support.enumeration import _holdings, _paths, routing_energy
from support.golden import SENSES, check, expression
from support.problems import arc, candidate, offer, planning_problem, random_problem
from support.solving import EXACT

AIMS = (
    Aim(),
    Aim(minimise="worst_cost"),
    Aim(minimise="cvar", level=0.5),
    Aim(held_share=0.6),
    Aim(minimise="worst_cost", held_share=0.45),
)


def occasions(seed: int) -> tuple[Occasion, ...]:
    """Two or three occasions of a random problem: other rates, other prices of work, and sometimes a class is absent."""
    dice, problem = random.Random(seed), random_problem(seed, energy=True)
    problem = replace(problem, candidates=problem.candidates[:3])
    weights = [dice.choice([1.0, 2.0, 3.0]) for _ in range(dice.choice([2, 2, 3]))]
    result = []
    for index, weight in enumerate(weights):
        kept = problem.demands if index == 0 or len(problem.demands) < 2 else problem.demands[dice.choice([0, 1]) :]
        names = {demand.name for demand in kept}
        demands = tuple(demand.at(dice.choice([0.3, 0.8, 1.4])) for demand in kept)
        dearer = dice.choice([0.5, 1.0, 3.0])
        offers = tuple(
            replace(
                offer,
                busy_usd_per_unit_second=offer.busy_usd_per_unit_second * dearer,
                owned_usd_per_hour=offer.owned_usd_per_hour * dearer,
            )
            for offer in problem.offers
        )
        candidates = tuple(
            replace(
                one,
                arcs=tuple(arc for arc in one.arcs if arc.request_class in names),
                rows=tuple(row.only(names) for row in one.rows),
            )
            for one in problem.candidates
        )
        own = replace(problem, demands=demands, offers=offers, candidates=tuple(one for one in candidates if one.arcs))
        result.append(Occasion(name=f"o{index}", weight=weight / sum(weights), problem=own))
    return tuple(result)


def serving(occasion: Occasion) -> list[tuple[dict[tuple[str, str], int], float]]:
    """Replicas of each physical pool, spares included, that serve an occasion, and the least energy of its work."""
    problem = occasion.problem
    paths = {demand.name: list(_paths(problem.candidates, demand.name)) for demand in problem.demands}
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


def solved(given: tuple[Occasion, ...], aim: Aim) -> float | None:
    """What the model says: the aim's value, ties left out; None where nothing is feasible."""
    built = build_occasions(given, aim)
    outcome = backend("highs").solve(built.model, EXACT)
    if outcome.termination == "infeasible":
        return None
    assert outcome.termination == "optimal"
    assert outcome.objective is not None
    return outcome.objective / built.scale.factor


SEEDS = (1, 3, 8, 11, 13, 14, 15, 19, 20, 24, 30, 31, 34, 39)
"""Some have no fleet at all, or only where an occasion may be left."""


@pytest.mark.parametrize("seed", SEEDS)
def test_the_model_agrees_with_enumeration(seed: int) -> None:
    """Every aim over every fleet of small random problems: the model finds the least, or that there is none."""
    given = occasions(seed)
    for aim in AIMS:
        expected, found = least(given, aim), solved(given, aim)
        assert (found is None) == (expected is None), aim
        if expected is not None:
            assert found == pytest.approx(expected, rel=1e-4, abs=1e-4), aim


@pytest.mark.parametrize("seed", [8, 11, 19, 30])
def test_one_occasion_is_the_model_of_one(seed: int) -> None:
    """With a single occasion every aim has the optimum of the plain model, its ties among it."""
    only = replace(occasions(seed)[0], weight=1.0)
    plain = backend("highs").solve(build(only.problem).model, EXACT)
    for aim in AIMS[:3]:
        outcome = backend("highs").solve(build_occasions([only], aim).model, EXACT)
        assert outcome.termination == plain.termination == "optimal"
        assert outcome.objective == pytest.approx(plain.objective, rel=1e-9)


@pytest.mark.parametrize("seed", [8, 19, 20, 30, 34])
def test_the_value_at_risk_lies_between_the_mean_and_the_worst(seed: int) -> None:
    """At level 0 it is the expected cost, near 1 the worst, and it never falls as the level rises."""
    given = occasions(seed)
    levels = [solved(given, Aim(minimise="cvar", level=level)) for level in (0.0, 0.3, 0.6, 0.9, 0.999)]
    expected, worst = solved(given, Aim()), solved(given, Aim(minimise="worst_cost"))
    assert levels[0] == pytest.approx(expected, rel=1e-6)
    assert levels[-1] == pytest.approx(worst, rel=1e-6)
    assert all(low <= high * (1 + 1e-6) for low, high in itertools.pairwise(levels) if low and high)


def test_couplings_are_those_of_the_golden_file() -> None:
    """Replicas with spares against what stands, each occasion's cost against the level, the weight that may be left."""
    passage, row = [arc("chat", "encoded", "done")], [Row(kind="rate", load=(("chat", 0.5),))]
    points = [candidate(key, passage, row, pool="pool", busy_s={"chat": 0.5}) for key in ("near", "tight")]
    terms = offer("a", 2.0, busy_usd_per_unit_second=1 / 14400)
    problem = planning_problem({"chat": 4.0}, points, [terms], spare_replicas=1)
    dear = replace(problem, offers=(replace(terms, busy_usd_per_unit_second=1 / 7200),))
    given = [Occasion(name="day", weight=0.75, problem=problem), Occasion(name="peak", weight=0.25, problem=dear)]
    built = build_occasions(given, Aim(minimise="cvar", level=0.5, held_share=0.75))
    lines = [
        f" {name}: {expression(row)} {SENSES[row.sense]} {0.0 - row.constant:.12g}"
        for coupling in COUPLINGS
        for name, row in coupling(built)
    ]
    check("occasions", ["Minimize", f" cost: {expression(built.model.objective)}", "Subject To", *lines])
