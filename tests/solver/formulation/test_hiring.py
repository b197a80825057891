"""A fleet for several occasions beside units that each hires for itself: against enumeration and against simpler plans."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

import pytest

from epd_opt.backends import backend
from epd_opt.formulation import build, build_occasions
from epd_opt.problem import Aim, Limits, Occasion, Offer
from solver.formulation.test_occasions import occasions
from support.enumerated_occasions import serving
from support.enumeration import _holdings
from support.solving import EXACT

Pools = Mapping[tuple[str, str], int]
SEEDS = (1, 3, 8, 11, 13, 14, 15, 19, 20, 24, 30, 31, 34, 39)


def hourly(seed: int) -> tuple[tuple[Occasion, ...], frozenset[str]]:
    """Occasions with alike prices, and the device entries that are paid by the hour."""
    dice, given = random.Random(seed), occasions(seed)
    offers = given[0].problem.offers
    given = tuple(replace(one, problem=replace(one.problem, offers=offers)) for one in given)
    names = [offer.name for offer in offers]
    return given, frozenset(name for name in names if dice.random() < 0.6) or frozenset(names[:1])


def ways(
    stands: Pools, sizes: Mapping[tuple[str, str], Fraction], offers: Mapping[str, Offer]
) -> Iterator[tuple[float, ...]]:
    """Ways to hold the units of replicas: (cost per hour, units, watts)."""
    units: dict[str, Fraction] = {}
    for physical, count in stands.items():
        units[physical[0]] = units.get(physical[0], Fraction(0)) + count * sizes[physical]
    used = {name: -int(-taken // 1) for name, taken in units.items()}
    for held in itertools.product(*(_holdings(offers[name], count) for name, count in used.items())):
        cost, installed, power = 0.0, 0, 0.0
        for (name, count), (bought, owned) in zip(used.items(), held, strict=True):
            terms = offers[name]
            cost += bought * terms.usd_per_hour + owned * terms.owned_usd_per_hour + count * terms.used_usd_per_hour
            installed += bought + owned
            power += (bought + owned) * terms.power_w
        yield cost, installed, power


def least(given: tuple[Occasion, ...], by_the_hour: frozenset[str]) -> float | None:
    """The least expected cost over every fleet, and over everything that each occasion may hire beside it."""
    offers = {offer.name: offer for offer in given[0].problem.offers}
    sizes = {one.physical: one.units for o in given for one in o.problem.candidates}
    served = [serving(occasion) for occasion in given]
    standing = sorted(pool for pool in sizes if pool[0] not in by_the_hour)
    tops = [max((s.get(pool, 0) for each in served for s, _ in each), default=0) for pool in standing]
    best: float | None = None
    for counts in itertools.product(*(range(top + 1) for top in tops)):
        stands = {pool: count for pool, count in zip(standing, counts, strict=True) if count}
        for fleet in ways(stands, sizes, offers):
            each = [
                _cheapest(o, _beside(found, stands, by_the_hour), fleet, sizes, offers)
                for o, found in zip(given, served, strict=True)
            ]
            if None not in each:
                value = sum(o.weight * (cost or 0.0) for o, cost in zip(given, each, strict=True))
                best = value if best is None else min(best, value)
    return best


def _beside(
    served: list[tuple[dict[tuple[str, str], int], float]], stands: Pools, by_the_hour: frozenset[str]
) -> Iterator[tuple[Pools, float]]:
    """What is hired, and the energy of the work, of every way to serve an occasion that the fleet is enough for."""
    for running, energy in served:
        hired = {pool: count for pool, count in running.items() if pool[0] in by_the_hour}
        if all(count <= stands.get(pool, 0) for pool, count in running.items() if pool not in hired):
            yield hired, energy


def _cheapest(
    occasion: Occasion,
    served: Iterator[tuple[Pools, float]],
    fleet: tuple[float, ...],
    sizes: Mapping[tuple[str, str], Fraction],
    offers: Mapping[str, Offer],
) -> float | None:
    """The least cost of an occasion beside a fleet, within its limits."""
    limits, best = occasion.problem.limits, None
    for hired, energy in served:
        for cost, units, watts in ways(hired, sizes, offers):
            total = fleet[0] + cost + energy
            if limits.devices is not None and fleet[1] + units > limits.devices:
                continue
            if limits.power_w is not None and fleet[2] + watts > limits.power_w:
                continue
            if limits.usd_per_hour is not None and total > limits.usd_per_hour * (1 + 1e-9):
                continue
            best = total if best is None else min(best, total)
    return best


def solved(given: tuple[Occasion, ...], by_the_hour: frozenset[str]) -> float | None:
    built = build_occasions(given, Aim(), by_the_hour)
    outcome = backend("highs").solve(built.model, EXACT)
    assert outcome.termination in ("optimal", "infeasible")
    return None if outcome.objective is None else outcome.objective / built.scale.factor


@pytest.mark.parametrize("seed", SEEDS)
def test_the_model_agrees_with_enumeration(seed: int) -> None:
    """Fleets and hired units of small random problems: the model finds the least, or that there is none."""
    given, by_the_hour = hourly(seed)
    expected, found = least(given, by_the_hour), solved(given, by_the_hour)
    assert (found is None) == (expected is None)
    if expected is not None:
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_hiring_is_never_dearer_than_one_fleet_for_all(seed: int) -> None:
    """Whatever is hired by the hour could have been held all the time."""
    given, by_the_hour = hourly(seed)
    one, found = solved(given, frozenset()), solved(given, by_the_hour)
    if one is not None:
        assert found is not None
        assert found <= one * (1 + 1e-6) + 1e-6


@pytest.mark.parametrize("seed", [8, 11, 19, 30])
def test_hiring_everything_is_a_plan_for_each_occasion(seed: int) -> None:
    """Then nothing is shared: the cost is the mean of the occasions' own optima."""
    given, _ = hourly(seed)
    given = tuple(replace(one, problem=replace(one.problem, limits=Limits())) for one in given)
    alone = []
    for occasion in given:
        built = build(occasion.problem)
        outcome = backend("highs").solve(built.model, EXACT)
        assert outcome.objective is not None
        alone.append(occasion.weight * outcome.objective / built.scale.factor)
    everything = frozenset(offer.name for offer in given[0].problem.offers)
    assert solved(given, everything) == pytest.approx(sum(alone), rel=1e-4)
