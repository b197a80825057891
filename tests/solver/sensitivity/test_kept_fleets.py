"""Whether a kept fleet serves another demand, and at what cost, is what routing it by other means says."""

from __future__ import annotations

import pytest

import epd_opt
from epd_opt.keeping.fleet import Fleet, kept
from epd_opt.offering import offering
from epd_opt.paths import set_value
from epd_opt.resolve import Resolved, resolve
from epd_opt.sensitivity.point import clocked
from support.documents import measured, modelled
from support.enumeration import fleet_cost, paths_of, routing_energy

ALBUM, CHAT = "workload.classes.album.rate_per_s", "workload.classes.chat.rate_per_s"
RATES = [(3, 12), (3, 14.9), (3.4, 12), (3.7, 7), (1, 20), (0.5, 6), (2.4, 15), (4, 3)]


def test_some_are_served_and_some_are_not() -> None:
    """Both answers are among those compared."""
    plan = epd_opt.solve(measured())
    answers = {_kept(plan, rates) is None for rates in RATES}
    assert answers == {True, False}


@pytest.mark.parametrize("rates", RATES)
def test_kept_fleets_serve_what_routing_finds(rates: tuple[float, float]) -> None:
    """With the plan's counts, spares set aside, scipy routes the demand over the paths exactly where the fleet is said to
    serve it; then both come to the same cost, energy included."""
    plan = epd_opt.solve(measured())
    problem = offering(_resolved(rates)).problem
    counts = [sum(pool.replicas for pool in plan.pools if pool.key == candidate.key) for candidate in problem.candidates]
    paths = {demand.name: list(paths_of(problem.candidates, demand.name)) for demand in problem.demands}
    energy, fixed = routing_energy(problem, counts, paths), fleet_cost(problem, counts)
    found = _kept(plan, rates)
    if energy is None or fixed is None:
        assert found is None
    else:
        assert found == pytest.approx(fixed + energy, rel=1e-6)


def _resolved(rates: tuple[float, float]) -> Resolved:
    document = set_value(set_value(measured(), ALBUM, rates[0]), CHAT, rates[1])
    document["workload"]["classes"][1]["mean_rate_per_s"] = rates[1] / 2
    return resolve(epd_opt.Instance(**document))


def _kept(plan: epd_opt.Plan, rates: tuple[float, float]) -> float | None:
    resolved = _resolved(rates)
    found = kept(Fleet.of(plan.document), resolved, clocked(resolved))
    assert found.feasible is not None
    return found.usd_per_hour


def test_a_placement_that_is_needless_without_images_still_stands_in_the_fleet() -> None:
    """Without images nothing is planned with encoders beside the language model, where others do the same; a fleet that has
    them serves all the same, as it does when its tolerance is asked for."""
    document = set_value(modelled(), "workload.classes.photo.rate_per_s", 0.5)
    plan = epd_opt.solve({**document, "placements": ["shared"]})
    count = "workload.classes.photo.images.count"
    point = epd_opt.sensitivity(document, {count: [0]}, plan=plan, switches=False).document.points[0]
    assert {pool.placement for pool in plan.pools} == {"shared"}
    assert point.kept_fleet is not None
    assert point.kept_fleet.feasible
    assert point.regret_usd_per_hour is not None
    assert point.regret_usd_per_hour >= 0.0
