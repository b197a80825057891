"""What a solver's bound proves about cost, and what it must not claim."""

from __future__ import annotations

import pytest

import epd_opt
from epd_models.row import Row
from epd_opt.backends import Outcome
from epd_opt.bound import proved_bound
from epd_opt.formulation import Formulation, build
from epd_opt.problem import Offer
from support.documents import measured
from support.problems import arc, candidate, offer, planning_problem, random_problem
from support.solving import solved


def formulation(*offers: Offer) -> Formulation:
    """Ten requests/s that a pool of any of the entries serves at two a replica."""
    passage, rows = [arc("chat", "encoded", "done")], [Row(kind="rate", load=(("chat", 0.5),))]
    return build(planning_problem({"chat": 10.0}, [candidate(o.name, passage, rows, device=o.name) for o in offers], offers))


def proved(built: Formulation, bound_usd: float | None, cost: float) -> tuple[float, float]:
    """Bound and gap where the solver's own bound stands at ``bound_usd`` in dollars, on its scale."""
    bound = None if bound_usd is None else bound_usd * built.scale.factor
    outcome = Outcome(termination="optimal", values=None, objective=None, bound=bound, seconds=0.0, solver="test")
    return proved_bound(built, outcome, cost)


def test_no_bound_proves_nothing() -> None:
    """Without a bound every cost is possible, and only a free plan needs no proof."""
    built = formulation(offer("a", 3.0))
    assert proved(built, None, 15.0) == (0.0, 1.0)
    assert proved(built, None, 0.0) == (0.0, 0.0)


def test_a_bound_is_rounded_up_to_the_common_price() -> None:
    """With every cost a multiple of 3 USD, more than 12 means 15; with 3 and 2.5 USD, more than 14.2 means 14.5."""
    assert proved(formulation(offer("a", 3.0)), 12.1, 15.0) == pytest.approx((15.0, 0.0))
    assert proved(formulation(offer("a", 3.0), offer("b", 2.5)), 14.2, 15.0) == pytest.approx((14.5, 0.5 / 15.0))


def test_lots_make_the_common_price_larger() -> None:
    """Units at 0.1 USD in lots of 30 cost multiples of 3 USD."""
    assert proved(formulation(offer("a", 0.1, lot=30)), 3.2, 6.0) == pytest.approx((6.0, 0.0))


def test_energy_and_running_costs_have_no_common_price() -> None:
    """The bound stays where it is, less the most that ties may weigh."""
    terms = [
        offer("a", 3.0, used_usd_per_hour=0.1),
        offer("a", 3.0, owned=1, owned_usd_per_hour=0.1),
        offer("a", 3.0, busy_usd_per_unit_second=1e-6),
    ]
    for term in terms:
        bound, gap = proved(formulation(term), 12.1, 15.0)
        assert bound == pytest.approx(12.1, rel=1e-5)
        assert bound < 12.1
        assert gap == pytest.approx(1 - bound / 15.0)


def test_running_costs_of_units_that_nobody_owns_do_not_matter() -> None:
    """Rented entries keep their common price."""
    assert proved(formulation(offer("a", 3.0, owned_usd_per_hour=0.1)), 12.1, 15.0) == pytest.approx((15.0, 0.0))


def test_arithmetic_noise_is_not_rounded_up() -> None:
    """A bound a hair above 12 USD does not prove 15; one that ties alone hold up proves the price they hold it to."""
    built = formulation(offer("a", 3.0), offer("b", 2.5))
    assert proved(built, 12.0 + 1e-9, 15.0)[0] == pytest.approx(12.0)


def test_a_bound_never_exceeds_the_cost() -> None:
    """Nor falls below zero."""
    built = formulation(offer("a", 3.0))
    assert proved(built, 18.5, 15.0) == (15.0, 0.0)
    assert proved(built, -1.0, 15.0) == (0.0, 1.0)


@pytest.mark.parametrize("seed", range(2000, 2015))
def test_optima_are_proved(seed: int) -> None:
    """At gap 0 the proved gap is no more than the ties can hide."""
    found = solved(random_problem(seed, energy=True))
    if found is not None:
        assert found.bound <= found.usd_per_hour
        assert found.bound == pytest.approx(found.usd_per_hour, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize(("dearest", "status"), [(9.0, "optimal"), (1e9, "feasible")])
def test_ties_that_outweigh_the_cost_prove_nothing(dearest: float, status: str) -> None:
    """Ties weigh as the dearest price on offer does; where that leaves no bound worth the name, the plan is not proved."""
    document = measured()
    document["devices"].append({"sku": "dear", "price": {"usd_per_hour": dearest}})
    document["workers"].append({**document["workers"][1], "name": "dear whole", "sku": "dear"})
    plan = epd_opt.solve(document)
    assert plan.status == status
    assert (plan.cost.gap > 0.1) == (status == "feasible")
