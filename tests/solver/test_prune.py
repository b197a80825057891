"""What pruning leaves out can never matter; what might, stays."""

from __future__ import annotations

import pytest

from epd_models.candidate import Candidate
from epd_models.row import Row
from epd_models.transfer import Sender
from epd_opt.problem import PlanningProblem
from epd_opt.prune import connected, lean, prune
from support.documents import modelled
from support.problems import arc, candidate, offer, planning_problem
from support.solving import solved

FAST, SLOW = Sender(bandwidth=2.0), Sender(bandwidth=1.0)
WHOLE = [arc("chat", "encoded", "done")]


def point(key: str, load: float, setup: float = 0.0, **changes: object) -> Candidate:
    """An operating point of one pool."""
    rows = [Row(kind="work", load=(("chat", load),), setup=setup)]
    return candidate(key, WHOLE, rows, pool="pool", **changes)  # type: ignore[arg-type]


def kept(*candidates: Candidate, rate: float = 40.0, tariff: float = 0.0) -> list[str]:
    """Keys that pruning keeps."""
    offers = [offer(name, busy_usd_per_unit_second=tariff) for name in sorted({c.device for c in candidates})]
    return [c.key for c in prune(planning_problem({"chat": rate}, candidates, offers)).candidates]


def test_a_point_that_asks_for_more_everywhere_goes() -> None:
    """Of two points of one pool, the one with larger load and setup is left out."""
    assert kept(point("a", 0.5, 1.0), point("b", 0.4, 0.5)) == ["b"]


def test_points_that_trade_load_for_setup_both_stay() -> None:
    """A small setup wins in small pools, a small load in large ones."""
    assert kept(point("a", 0.5, 1.5), point("b", 0.4, 2.5)) == ["a", "b"]


def test_of_equals_the_first_stays() -> None:
    """Equal points are one; the choice does not depend on their order."""
    assert kept(point("b", 0.5), point("a", 0.5)) == ["a"]


def test_pools_are_not_compared_with_each_other() -> None:
    """A worse pool on another device entry may be all that the stock allows."""
    assert kept(point("a", 0.5, device="a"), point("b", 0.4, device="b")) == ["a", "b"]


def test_a_point_that_works_less_stays_where_work_costs_energy() -> None:
    """More replicas may be worth less energy; without a tariff they are not."""
    frugal, small = point("frugal", 0.5, busy_s={"chat": 0.1}), point("small", 0.4, busy_s={"chat": 0.2})
    assert kept(frugal, small, tariff=1e-4) == ["frugal", "small"]
    assert kept(frugal, small) == ["small"]


def test_arcs_that_lead_nowhere_go_with_their_candidates() -> None:
    """A reader whose sender no decoder takes from, and a decoder that waits for a level nobody meets, are left out."""
    row = [Row(kind="work", load=(("chat", 0.5),))]
    reader = candidate("reader", [arc("chat", "encoded", "prefilled", to=(FAST, 1))], row)
    lost = candidate("lost", [arc("chat", "encoded", "prefilled", to=(SLOW, 0))], row)
    takes = [arc("chat", "prefilled", "done", given=(FAST, level)) for level in (0, 1)]
    writer = candidate("writer", takes, row)
    early = candidate("early", [arc("chat", "prefilled", "done", given=(FAST, 0))], row)
    found = {c.key: c.arcs for c in connected([reader, lost, writer, early])}
    assert set(found) == {"reader", "writer"}
    assert [a.start.level for a in found["writer"]] == [1]


def test_being_early_counts_for_later_entries() -> None:
    """A request that arrives by level 0 may leave from level 1: both arcs stay."""
    row = [Row(kind="work", load=(("chat", 0.5),))]
    reader = candidate("reader", [arc("chat", "encoded", "prefilled", to=(FAST, 0))], row)
    writer = candidate("writer", [arc("chat", "prefilled", "done", given=(FAST, 1))], row)
    assert len(connected([reader, writer])) == 2


def test_rows_that_cannot_bind_go() -> None:
    """A row that the whole demand cannot bring above one replica, or that another row implies, is left out."""
    rows = [
        Row(kind="time", load=(("chat", 0.5),)),
        Row(kind="link", load=(("chat", 0.01),)),
        Row(kind="sequences", load=(("chat", 0.25),), setup=0.5),
        Row(kind="minimum", load=(), setup=2.0),
    ]
    whole = candidate("k", WHOLE, rows)
    assert [row.kind for row in lean(whole, {"chat": 40.0}).rows] == ["time", "minimum"]


def modelled_problem() -> PlanningProblem:
    """Everything on offer for a small modelled instance with split stages."""
    from epd_opt import Instance
    from epd_opt.offering import offering
    from epd_opt.resolve import resolve

    return offering(resolve(Instance(**modelled(placements=["encoder_pool", "prefill_decode", "integrated"])))).problem


def test_pruning_a_modelled_instance_leaves_its_optimum() -> None:
    """Real candidates: fewer after pruning, and the same least cost."""
    problem = modelled_problem()
    assert len(prune(problem).candidates) < len(problem.candidates)
    slim, full = solved(problem), solved(problem, pruned=False)
    assert slim is not None
    assert full is not None
    assert slim.usd_per_hour == pytest.approx(full.usd_per_hour, rel=1e-9)
