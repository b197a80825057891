"""Units and money of a fleet, worked out by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from epd_models.row import Row
from epd_opt.accounting import cheapest_holdings, holdings, pool_units, spares, total_usd_per_hour, ways_to_hold
from epd_opt.problem import Limits
from epd_opt.solution import PoolSolution, Solution
from support.problems import arc, candidate, offer, planning_problem

PASSAGE = arc("chat", "encoded", "done")
ROWS = [Row(kind="rate", load=(("chat", 0.5),))]


def pool(key: str, replicas: int, rate: float, **changes: object) -> PoolSolution:
    """A pool that serves chats."""
    made = candidate(key, [PASSAGE], ROWS, **changes)  # type: ignore[arg-type]
    return PoolSolution(candidate=made, replicas=replicas, flows={PASSAGE: rate})


def test_whole_lots_are_bought() -> None:
    """Nine units in lots of eight are two lots, unless an owned one fills up."""
    (bought,) = ways_to_hold(offer("a", 1.0, lot=8), 9)
    assert (bought.bought, bought.owned, bought.installed, bought.usd_per_hour) == (16, 0, 16, 16.0)
    (filled,) = ways_to_hold(offer("a", 1.0, lot=8, owned=3), 9)
    assert (filled.bought, filled.owned, filled.usd_per_hour) == (8, 1, 8.0)


def test_owned_units_that_cost_more_than_rented_ones_are_kept_in_reserve() -> None:
    """Renting is cheaper, but four rented units are more at hand than three owned ones: both ways stand."""
    rented, owned = ways_to_hold(offer("a", 1.0, lot=4, owned=3, owned_usd_per_hour=2.0), 3)
    assert (rented.bought, rented.owned, rented.usd_per_hour) == (4, 0, 4.0)
    assert (owned.bought, owned.owned, owned.usd_per_hour) == (0, 3, 6.0)


def test_stock_bounds_bought_and_owned_together() -> None:
    """A lot of four exceeds a stock of three, however cheap it is; without enough of either there is no way."""
    (only,) = ways_to_hold(offer("a", 1.0, lot=4, owned=3, stock=3, owned_usd_per_hour=2.0), 3)
    assert (only.bought, only.owned) == (0, 3)
    assert ways_to_hold(offer("a", 1.0, stock=3), 4) == []


def test_limits_choose_among_the_ways() -> None:
    """Where a device limit or a power limit rules the cheapest holding out, the next one is taken."""
    terms = offer("a", 1.0, lot=4, owned=3, owned_usd_per_hour=2.0, power_w=1000.0)
    for limits, bought in ((Limits(), 4), (Limits(devices=3), 0), (Limits(power_w=3500.0), 0), (Limits(devices=4), 4)):
        problem = planning_problem({"chat": 1.0}, [], [terms], limits=limits)
        assert cheapest_holdings(problem, {"a": 3})["a"].bought == bought


def test_parts_of_units_add_up_before_they_are_rounded() -> None:
    """Three half units and one quarter unit of one entry take two units."""
    half, quarter = pool("half", 3, 4.0, units=Fraction(1, 2)), pool("quarter", 1, 2.0, units=Fraction(1, 4))
    problem = planning_problem({"chat": 6.0}, [half.candidate, quarter.candidate], [offer("a", 3.0)])
    assert pool_units(problem, [half, quarter]) == [Fraction(3, 2), Fraction(1, 4)]
    fleet = holdings(problem, Solution(pools=(half, quarter), ways={}))
    assert (fleet["a"].used, fleet["a"].usd_per_hour) == (2, 6.0)


def test_spares_stand_once_for_each_physical_pool() -> None:
    """Two operating points of one pool share its spares; the same name on another device is another pool."""
    near, tight = pool("near", 2, 4.0, pool="p"), pool("tight", 1, 2.0, pool="p")
    other = pool("other", 1, 2.0, pool="p", device="b")
    problem = planning_problem(
        {"chat": 8.0},
        [near.candidate, tight.candidate, other.candidate],
        [offer("a", 3.0), offer("b", 1.0)],
        spare_replicas=2,
    )
    assert spares(problem, [near, tight, other]) == [2, 0, 2]
    fleet = holdings(problem, Solution(pools=(near, tight, other), ways={}))
    assert (fleet["a"].used, fleet["b"].used) == (5, 3)
    assert total_usd_per_hour(fleet) == pytest.approx(18.0)


def test_energy_is_idle_power_of_units_and_work_at_the_mean_rate() -> None:
    """Two replicas of two units, 0.25 USD/h idle each; 4 requests/s for 0.5 s on two units at 1/3600 USD a second."""
    busy = pool("busy", 2, 4.0, units=2, busy_s={"chat": 0.5})
    terms = offer("a", 1.0, used_usd_per_hour=0.25, busy_usd_per_unit_second=1 / 3600)
    problem = planning_problem({"chat": 4.0}, [busy.candidate], [terms])
    fleet = holdings(problem, Solution(pools=(busy,), ways={}))
    assert fleet["a"].usd_per_hour == pytest.approx(4 * 1.0 + 4 * 0.25 + 4.0 * 0.5 * 2)
