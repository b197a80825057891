"""Whole counts, canonical routing and routes from a solved model."""

from __future__ import annotations

import pytest

from epd_models.row import Row
from epd_models.transfer import Sender
from epd_opt.backends import Outcome, backend
from epd_opt.formulation import Formulation, build
from epd_opt.problem import PlanningProblem
from epd_opt.solution import Solution, replica_counts, route
from support.problems import arc, candidate, offer, planning_problem, random_problem
from support.solving import EXACT, solved

FAST, SLOW, OTHER = Sender(bandwidth=2.0), Sender(bandwidth=1.0), Sender(bandwidth=1.0, vendor="other")


def split() -> PlanningProblem:
    """A fast reader hands over early, a slow one late; one decoder takes both, another one early ones only."""
    read = [Row(kind="work", load=(("chat", 0.5),))]
    write = [Row(kind="time", load=(("chat", 0.25),))]
    return planning_problem(
        {"chat": 4.0},
        [
            candidate("early", [arc("chat", "encoded", "prefilled", to=(FAST, 0))], read),
            candidate("late", [arc("chat", "encoded", "prefilled", to=(FAST, 1))], read),
            candidate("patient", [arc("chat", "prefilled", "done", given=(FAST, 1))], write),
            candidate("strict", [arc("chat", "prefilled", "done", given=(FAST, 0))], write),
        ],
        [offer("a")],
    )


def routed(problem: PlanningProblem, **counts: int) -> Solution | None:
    """The routing over a fleet given by candidate key."""
    built = build(problem)
    known = {c.key: k for k, c in enumerate(built.sets.candidates)}
    return route(built, {known[key]: count for key, count in counts.items()}, backend("highs"), EXACT)


def outcome(built: Formulation, values: dict[str, float]) -> Outcome:
    """An incumbent with some values; the others are zero."""
    zeros = {variable.name: 0.0 for variable in built.model.variables()}
    return Outcome(termination="optimal", values=zeros | values, objective=0.0, bound=0.0, seconds=0.0, solver="test")


def test_counts_are_rounded_to_whole_replicas() -> None:
    """Solvers leave dust on integers: 1.9999999 replicas are two, 1e-9 are none."""
    built = build(split())
    assert replica_counts(built, outcome(built, {"n_0": 1.9999999, "n_2": 1e-9, "n_3": 1.0000001})) == {0: 2, 3: 1}


def test_routes_join_what_arrives_with_what_leaves() -> None:
    """Two readers and two decoders at their limits: strict takes early arrivals only, patient the rest."""
    found = routed(split(), early=1, late=1, patient=1, strict=1)
    assert found is not None
    keys = [pool.candidate.key for pool in found.pools]
    ways = {tuple(keys[p] for p, _ in way.steps): way.rate for way in found.ways["chat"]}
    assert sum(ways.values()) == pytest.approx(4.0)
    assert ("late", "strict") not in ways
    assert sum(rate for way, rate in ways.items() if way[0] == "early") == pytest.approx(2.0)
    assert sum(rate for way, rate in ways.items() if way[1] == "strict") <= 2.0 + 1e-9


def test_a_fleet_that_cannot_serve_has_no_routing() -> None:
    """One reader carries two requests/s of four; strict decoders get nothing from late readers."""
    assert routed(split(), early=1, strict=1) is None
    assert routed(split(), late=2, strict=1) is None
    assert routed(split(), early=2, strict=1) is not None


def test_routing_takes_the_least_energy() -> None:
    """Both pools have room for all; the requests go where they cost least, and the other pool is not needed."""
    rows = [Row(kind="rate", load=(("chat", 0.1),))]
    passage = [arc("chat", "encoded", "done")]
    hot = candidate("hot", passage, rows, busy_s={"chat": 2.0})
    mild = candidate("mild", passage, rows, busy_s={"chat": 1.0})
    problem = planning_problem({"chat": 4.0}, [hot, mild], [offer("a", busy_usd_per_unit_second=1e-4)])
    found = routed(problem, hot=1, mild=1)
    assert found is not None
    assert [(pool.candidate.key, pool.serves()) for pool in found.pools] == [("mild", pytest.approx({"chat": 4.0}))]


@pytest.mark.parametrize(("reads", "takes", "fits"), [(FAST, SLOW, True), (SLOW, FAST, False), (FAST, OTHER, False)])
def test_a_fast_sender_may_pass_for_a_slower_one_of_its_kind(reads: Sender, takes: Sender, fits: bool) -> None:
    """Decoders that take prompts from a slow sender take them from a faster one, not the other way round, and none from a
    sender of another kind."""
    rows = [Row(kind="work", load=(("chat", 0.1),))]
    problem = planning_problem(
        {"chat": 4.0},
        [
            candidate("reader", [arc("chat", "encoded", "prefilled", to=(reads, 0))], rows),
            candidate("decoder", [arc("chat", "prefilled", "done", given=(takes, 1))], rows),
        ],
        [offer("a")],
    )
    found = routed(problem, reader=1, decoder=1)
    assert (found is not None) == fits
    if found is not None:
        (way,) = found.ways["chat"]
        assert [found.pools[p].candidate.key for p, _ in way.steps] == ["reader", "decoder"]
        assert way.rate == pytest.approx(4.0)


@pytest.mark.parametrize("swift", ["a-strict", "z-strict"])
def test_small_flows_beside_large_ones_add_up(swift: str) -> None:
    """What few requests do that arrive early is what their ways carry, however many arrive late."""
    few, rest = [Row(kind="work", load=(("chat", 0.5),))], [Row(kind="work", load=(("chat", 1e-4),))]
    problem = planning_problem(
        {"chat": 4000.0},
        [
            candidate("early", [arc("chat", "encoded", "prefilled", to=(FAST, 0))], few),
            candidate("late", [arc("chat", "encoded", "prefilled", to=(FAST, 1))], rest),
            candidate("patient", [arc("chat", "prefilled", "done", given=(FAST, 1))], rest),
            candidate(swift, [arc("chat", "prefilled", "done", given=(FAST, 0))], rest),
        ],
        [offer("a")],
    )
    found = routed(problem, early=1, late=1, patient=1, **{swift: 1})
    assert found is not None
    carried = dict.fromkeys(range(len(found.pools)), 0.0)
    for way in found.ways["chat"]:
        for p, _ in way.steps:
            carried[p] += way.rate
    for p, pool in enumerate(found.pools):
        assert carried[p] == pytest.approx(pool.serves()["chat"], rel=1e-9)


@pytest.mark.parametrize("seed", range(3000, 3020))
def test_routes_carry_exactly_the_flows(seed: int) -> None:
    """On random problems, ways add up to each class's rate and to each pool's flow, and keep the order of stages."""
    problem = random_problem(seed)
    found = solved(problem)
    if found is None:
        return
    carried: dict[tuple[int, str], float] = {}
    for demand in problem.demands:
        ways = found.solution.ways[demand.name]
        assert sum(way.rate for way in ways) == pytest.approx(demand.rate, rel=1e-7)
        for way in ways:
            for p, passage in way.steps:
                carried[p, demand.name] = carried.get((p, demand.name), 0.0) + way.rate
                assert passage.request_class == demand.name
            for (_, before), (_, after) in zip(way.steps, way.steps[1:], strict=False):
                assert before.end.may_pass_for(after.start)
                assert before.end.level <= after.start.level
            assert way.steps[0][1].start.sender is None
            assert way.steps[-1][1].end.state == "done"
    for p, pool in enumerate(found.solution.pools):
        for name, rate in pool.serves().items():
            assert carried[p, name] == pytest.approx(rate, rel=1e-6)


def test_ties_go_to_the_first_candidate_and_the_fewest_units() -> None:
    """Of equal plans the one with fewer units, then the first in canonical order; the same at every solve."""
    passage = [arc("chat", "encoded", "done")]
    pair = candidate("pair", passage, [Row(kind="rate", load=(("chat", 0.25),))], units=2, device="b")
    twins = [candidate(key, passage, [Row(kind="rate", load=(("chat", 0.25),))]) for key in ("x", "y")]
    problem = planning_problem({"chat": 8.0}, [pair, *twins], [offer("a", 2.0), offer("b", 1.0)])
    for _ in range(3):
        found = solved(problem)
        assert found is not None
        assert found.counts == {"x": 2}
