"""One fleet for several occasions: against enumeration, and against the model of a single one."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from epd_models.row import Row
from epd_opt.backends import backend
from epd_opt.formulation import build, build_occasions
from epd_opt.formulation.occasions import COUPLINGS
from epd_opt.problem import Aim, Limits, Occasion
from support.enumerated_occasions import least
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
    """Replicas with spares against what stands, each occasion's cost against the level, the weight that may be left, and
    SKUs that are hired against those that count."""
    passage, row = [arc("chat", "encoded", "done")], [Row(kind="rate", load=(("chat", 0.5),))]
    points = [candidate(key, passage, row, pool="pool", busy_s={"chat": 0.5}) for key in ("near", "tight")]
    terms = offer("a", 2.0, busy_usd_per_unit_second=1 / 14400)
    points.append(candidate("other", passage, row, device="b"))
    limits = Limits(skus=1)
    problem = planning_problem({"chat": 4.0}, points, [terms, offer("b", 3.0)], spare_replicas=1, limits=limits)
    dear = replace(problem, offers=(replace(terms, busy_usd_per_unit_second=1 / 7200), offer("b", 3.0)))
    given = [Occasion(name="day", weight=0.75, problem=problem), Occasion(name="peak", weight=0.25, problem=dear)]
    built = build_occasions(given, Aim(minimise="cvar", level=0.5, held_share=0.75), ["b"])
    lines = [
        f" {name}: {expression(row)} {SENSES[row.sense]} {0.0 - row.constant:.12g}"
        for coupling in COUPLINGS
        for name, row in coupling(built)
    ]
    check("occasions", ["Minimize", f" cost: {expression(built.model.objective)}", "Subject To", *lines])
