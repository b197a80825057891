"""Spares for single failures and for the loss of zones, counted by hand and by losing every zone."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from epd_opt import InvalidInput, solve
from epd_opt.problem import PlanningProblem
from support.documents import measured
from support.problems import planning_problem, random_problem
from support.solving import solved


def redundant(spare: int, zones: int, lost: int) -> PlanningProblem:
    """Nothing but its redundancy."""
    return replace(planning_problem({}, [], [], spare_replicas=spare), zones=zones, lost_zones=lost)


@pytest.mark.parametrize(
    ("needed", "spare", "zones", "lost", "standing"),
    [
        (4, 0, 3, 1, 6),  # 2+2+2
        (5, 0, 3, 1, 8),  # 3+3+2
        (1, 0, 3, 1, 2),  # 1+1+0
        (6, 0, 3, 1, 9),  # 3+3+3
        (3, 0, 2, 1, 6),  # 3+3
        (4, 0, 5, 2, 8),  # 2+2+2+1+1
        (7, 1, 1, 0, 8),  # N+1
        (7, 2, 3, 1, 11),  # 4+4+3: four spares are more than two
        (1, 3, 3, 1, 4),  # three spares are more than one
    ],
)
def test_counts_by_hand(needed: int, spare: int, zones: int, lost: int, standing: int) -> None:
    """Replicas that a pool of so many takes."""
    assert needed + redundant(spare, zones, lost).standing_by(needed) == standing


def left_after_the_worst(standing: int, zones: int, lost: int) -> int:
    """Replicas that are left when the worst choice of zones is lost, dealt one by one to the zones in turn."""
    each = [len(range(zone, standing, zones)) for zone in range(zones)]
    return min(standing - sum(gone) for gone in itertools.combinations(each, lost))


def test_the_rule_is_the_least_that_survives() -> None:
    """For all small pools and zones: enough is left, and one replica less would leave too few."""
    for zones, lost, needed in itertools.product(range(2, 7), range(1, 6), range(1, 25)):
        if lost < zones:
            standing = needed + redundant(0, zones, lost).standing_by(needed)
            assert left_after_the_worst(standing, zones, lost) >= needed
            assert left_after_the_worst(standing - 1, zones, lost) < needed


@pytest.mark.parametrize("seed", range(25))
def test_the_optimum_counts_zones_as_the_rule_does(seed: int) -> None:
    """Random problems: the plan of least cost carries the rule's spares, and costs at most what the plan without zones costs
    once they are added to it."""
    problem = replace(random_problem(seed), spare_replicas=seed % 2, zones=3, lost_zones=1)
    found, plain = solved(problem), solved(replace(problem, zones=1, lost_zones=0))
    assert plain is not None or found is None
    if found is not None and plain is not None:
        assert found.bound == pytest.approx(found.usd_per_hour, rel=2e-5, abs=1e-4)
        assert found.usd_per_hour >= plain.usd_per_hour - 1e-9
        assert solved(problem, pruned=False).usd_per_hour == pytest.approx(found.usd_per_hour)  # type: ignore[union-attr]


def test_plans_survive_a_zone() -> None:
    """Pools of four, two and five replicas take two, one and three more, and plans say so."""
    plan = solve(measured(redundancy={"spare_replicas": 1, "zones": 3, "survive_zones": 1}))
    assert plan.status == "optimal"
    for pool in plan.pools:
        assert left_after_the_worst(pool.replicas + pool.spare_replicas, 3, 1) == pool.replicas
    assert "after the loss of any 1" in str(plan)


def test_some_zone_must_be_left() -> None:
    """Losing all zones is refused, where it stands."""
    with pytest.raises(InvalidInput, match="expected less than zones = 2"):
        solve(measured(redundancy={"zones": 2, "survive_zones": 2}))


@pytest.mark.parametrize("survive", [0, 1])
def test_any_number_of_zones_is_counted(survive: int) -> None:
    """Zones beyond all counting hold a replica each, and one more stands for one that may be lost."""
    plan = solve(measured(redundancy={"zones": 10**12, "survive_zones": survive}))
    assert [pool.spare_replicas for pool in plan.pools] == [survive] * len(plan.pools)
