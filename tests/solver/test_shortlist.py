"""The shortlist leaves out only what no better plan can use, and hands its plan on."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import epd_opt
from epd_models.candidate import Candidate
from epd_opt import pricing
from epd_opt import shortlist as module
from epd_opt.backends import HIGHS, Clock, OutOfTime, out_of_time
from epd_opt.formulation import Question, build
from epd_opt.nodes import Nodes
from epd_opt.offering import Screen, offering
from epd_opt.problem import Limits, PlanningProblem
from epd_opt.prune import prune
from epd_opt.resolve import resolve
from epd_opt.shortlist import Scout, Shortlist
from support.documents import modelled
from support.problems import random_problem
from support.solving import EXACT

PLENTY = 100.0


@pytest.fixture
def greedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even tiny problems are shortlisted, candidate by candidate."""
    for where, name, value in (
        (module, "ENOUGH", 0),
        (module, "_THOROUGH", replace(module._THOROUGH, most=6)),
        (pricing, "FIRST", 2),
        (pricing, "JOINING", 1),
    ):
        monkeypatch.setattr(where, name, value)


def listed(problem: PlanningProblem, *questions: Question) -> Shortlist:
    """The shortlist of a problem, with all the time in the world."""
    return Scout(settings=EXACT, clock=Clock(PLENTY)).shortlist(problem, questions)


def objective(problem: PlanningProblem, *questions: Question) -> float | None:
    """Least cost with its ties, US dollars per hour."""
    formulation = build(problem, questions)
    outcome = HIGHS.solve(formulation.model, EXACT)
    return None if outcome.objective is None else outcome.objective / formulation.scale.factor


@pytest.mark.usefixtures("greedy")
@pytest.mark.parametrize("seed", [*range(15), *range(1000, 1010)])
def test_the_optimum_survives(seed: int) -> None:
    """Random problems cost the same over the shortlist as over all candidates, infeasible ones stay so."""
    problem = prune(random_problem(seed, energy=seed >= 1000))
    short = listed(problem)
    whole = objective(problem)
    if whole is None:
        assert objective(short.problem) is None
        return
    dearest = max(offer.usd_per_hour for offer in problem.offers)
    assert objective(short.problem) == pytest.approx(whole, rel=2e-5, abs=1e-5 * dearest)
    assert short.bound <= whole * (1 + 1e-9) + 1e-5 * dearest


@pytest.mark.usefixtures("greedy")
@pytest.mark.parametrize("seed", range(12))
def test_groups_in_servers_survive(seed: int) -> None:
    """Where replicas of uneven sizes stand in servers of four, the shortlist keeps the optimum of packing them."""
    problem = random_problem(seed)
    nodes = Nodes(unit=2, inner=8, domain=8, chunk=4, whole=True)
    sizes = {c.pool: Fraction(s) for c, s in zip(problem.candidates, itertools.cycle(("3/2", 1, 3, "1/2", 2)), strict=False)}
    problem = replace(
        problem,
        offers=tuple(replace(o, lot=4, stock=None, nodes=nodes) for o in problem.offers),
        candidates=tuple(replace(c, units=sizes[c.pool]) for c in problem.candidates),
        limits=replace(problem.limits, devices=None),
    )
    assert build(problem).variables.nodes
    whole, short = objective(problem), objective(listed(prune(problem)).problem)
    assert (whole is None) == (short is None)
    assert whole is None or short == pytest.approx(whole, rel=2e-5, abs=1e-4)


@pytest.mark.usefixtures("greedy")
@pytest.mark.parametrize("seed", range(8))
def test_wishes_survive(seed: int) -> None:
    """With few SKUs, a required entry, smallest orders or a zone to lose, the shortlist keeps the optimum."""
    problem = prune(replace(random_problem(seed), limits=Limits()))
    one = problem.offers[seed % len(problem.offers)].name
    for asked in (
        replace(problem, limits=Limits(skus=1)),
        replace(problem, limits=Limits(required=((one, (one,)),))),
        replace(problem, offers=tuple(replace(o, minimum=5) for o in problem.offers)),
        replace(problem, zones=3, lost_zones=1),
    ):
        whole, short = objective(asked), objective(listed(asked).problem)
        assert (whole is None) == (short is None)
        assert whole is None or short == pytest.approx(whole, rel=2e-5, abs=1e-4)


@pytest.mark.usefixtures("greedy")
def test_something_is_left_out() -> None:
    """Over many random problems a good part of the candidates goes."""
    pairs = [(prune(problem), listed(prune(problem))) for problem in map(random_problem, range(40))]
    before = sum(len(problem.candidates) for problem, short in pairs if short.incumbent)
    after = sum(len(short.problem.candidates) for _, short in pairs if short.incumbent)
    assert 0 < after < 0.9 * before


@pytest.mark.usefixtures("greedy")
@pytest.mark.parametrize("seed", range(5))
def test_using_what_was_left_out_costs_more(seed: int) -> None:
    """Every plan that opens a candidate which is not on the list costs more than the plan that was found."""
    problem = prune(random_problem(seed))
    short = listed(problem)
    if short.incumbent is None:
        return
    names = {candidate.key for candidate in short.problem.candidates}
    found = short.incumbent.outcome.objective
    assert found is not None
    for candidate in problem.candidates:
        if candidate.key not in names:
            forced = objective(problem, opened(candidate))
            assert forced is None or forced > found / short.incumbent.formulation.scale.factor


def opened(candidate: Candidate) -> Question:
    """Ask what it takes to open a candidate."""

    def rows(_: object, sets: object, v: object) -> Iterator[tuple[str, object]]:
        k = sets.candidates.index(candidate) if candidate in sets.candidates else None  # type: ignore[attr-defined]
        if k is not None:
            yield "opened", v.open[k] >= 1  # type: ignore[attr-defined]

    return Question(rows=rows, favours=lambda other: other.key == candidate.key)  # type: ignore[arg-type]


@pytest.mark.usefixtures("greedy")
@pytest.mark.parametrize("seed", range(4))
def test_what_a_question_favours_stays(seed: int) -> None:
    """A question that forces a dear candidate has the same answer over the shortlist."""
    problem = prune(random_problem(seed))
    for candidate in problem.candidates:
        question = opened(candidate)
        whole, short = objective(problem, question), objective(listed(problem, question).problem, question)
        assert (whole is None) == (short is None)
        assert whole is None or short == pytest.approx(whole, rel=2e-5, abs=1e-4)


@pytest.mark.usefixtures("greedy")
def test_the_plan_found_on_the_way_is_handed_on() -> None:
    """Its values are a solution of the larger programme, and stand where no time is left to improve them."""
    problem = prune(offering(resolve(epd_opt.Instance.model_validate(modelled()))).problem)
    short = listed(problem)
    assert short.incumbent is not None
    formulation = build(short.problem)
    values = short.incumbent.values(formulation)
    found = short.incumbent.outcome.objective
    assert found is not None
    handed = found * formulation.scale.factor / short.incumbent.formulation.scale.factor
    assert sum(c * values[variable.name] for variable, c in formulation.model.objective.items()) == pytest.approx(handed)
    improved = HIGHS.solve(formulation.model, replace(EXACT, start=short.start(formulation))).objective
    assert improved is not None
    assert improved <= handed * (1.0 + 1e-6)
    late = short.known(formulation, out_of_time(HIGHS))
    assert late.termination == "time_limit"
    assert late.values == values
    assert late.bound is not None
    assert late.objective is not None
    assert 0.0 < late.bound <= late.objective


@pytest.mark.usefixtures("greedy")
@pytest.mark.parametrize("seed", range(10))
def test_what_the_plan_leaves_closed_may_be_missing(seed: int) -> None:
    """The plan stands in a programme that lacks every candidate which it does not use."""
    problem = prune(random_problem(seed))
    short = listed(problem)
    if short.incumbent is None:
        return
    values, v = short.incumbent.outcome.values, short.incumbent.formulation.variables
    assert values is not None
    tried = short.incumbent.formulation.sets.candidates
    used = tuple(candidate for k, candidate in enumerate(tried) if values[v.open[k].name] > 0.5)
    formulation = build(replace(problem, candidates=used))
    there = short.incumbent.values(formulation)
    kept = sum(there[variable.name] for variable in formulation.variables.replicas)
    assert kept == sum(values[variable.name] for variable in v.replicas)


def offered(document: dict[str, Any], screen: Screen | None = None) -> PlanningProblem:
    """What is on offer for a document, pools screened or not."""
    return offering(resolve(epd_opt.Instance.model_validate(document)), screen=screen).problem


WAYS: list[tuple[str, dict[str, Any], bool]] = [
    ("all", {}, True),
    ("apart", {"placements": ["encoder_pool", "encode_prefill", "prefill", "decode"]}, True),
    ("spares", {"limits": {"devices": 9}, "redundancy": {"spare_replicas": 1}}, True),
    ("too few", {"limits": {"devices": 1}}, False),
]


@pytest.mark.usefixtures("greedy")
@pytest.mark.parametrize("large", [10**9, 0], ids=["best first", "of different pools first"])
@pytest.mark.parametrize(("changes", "fewer"), [way[1:] for way in WAYS], ids=[way[0] for way in WAYS])
def test_the_optimum_survives_where_few_pools_are_staffed(
    changes: dict[str, Any], fewer: bool, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Screening pools before their operating points are found leaves the cost as it is; where there is nothing to gain or no
    plan, all pools are staffed."""
    monkeypatch.setattr(module, "_SEEDS", 12)
    monkeypatch.setattr(module, "_LARGE", large)
    document = modelled(**changes)
    asked: list[tuple[int, int]] = []

    def screen(outlines: PlanningProblem, staffed: Callable[[Collection[str]], PlanningProblem]) -> Collection[str]:
        keys = Scout(settings=EXACT, clock=Clock(PLENTY)).worth_staffing(outlines, staffed)
        asked.append((len(outlines.candidates), len(keys)))
        return keys

    whole, screened = prune(offered(document)), prune(offered(document, screen))
    cost = objective(whole)
    if cost is None:
        assert objective(screened) is None
    else:
        assert objective(screened) == pytest.approx(cost, rel=2e-5)
    assert len(asked) == 1
    assert (asked[0][1] < asked[0][0]) == fewer


@pytest.mark.usefixtures("greedy")
def test_a_plan_found_early_stands_where_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the clock ends once there is a plan, that plan is what is known, between the bound and no less than the best."""
    monkeypatch.setattr(module, "_SEEDS", 12)

    class Ending(Clock):
        over = False

        @property
        def left_s(self) -> float:
            return 0.0 if self.over else super().left_s

    clock = Ending(PLENTY)
    scout = Scout(settings=EXACT, clock=clock)

    def looked(*given: Any) -> None:
        look(scout, *given)
        clock.over = True

    look = Scout._look
    monkeypatch.setattr(scout, "_look", looked)
    problem = offered(modelled(), scout.worth_staffing)
    with pytest.raises(OutOfTime):
        prune(problem, clock.check)
    assert scout.incumbent is not None
    assert not scout.whole
    short = scout.shortlist(problem)
    formulation = build(short.problem)
    outcome = short.known(formulation, out_of_time(HIGHS))
    assert outcome.values is not None
    assert outcome.bound is not None
    assert outcome.objective is not None
    best = objective(prune(offered(modelled())))
    assert best is not None
    assert outcome.bound <= best * formulation.scale.factor * (1 + 2e-5)
    assert best * formulation.scale.factor <= outcome.objective * (1 + 2e-5)


@pytest.mark.usefixtures("greedy")
def test_a_plan_stands_where_the_time_ends_before_all_is_priced() -> None:
    """What was staffed for is left out where there is no time to price it; the plan stands for it, with its bound."""
    clock = Clock(PLENTY)
    scout = Scout(settings=EXACT, clock=clock, eager=False)
    problem = prune(offered(modelled(), scout.worth_staffing))
    assert scout.incumbent is not None
    assert scout.whole
    scout.clock = Clock(0.0)
    short = scout.shortlist(problem)
    assert not short.whole
    assert short.incumbent is scout.incumbent
    assert short.problem is scout.incumbent.formulation.sets.problem
    assert short.bound == scout.bound


@pytest.mark.usefixtures("greedy")
def test_a_plan_that_is_good_enough_ends_the_screening(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a wide gap the first plan found is kept, its pools alone are staffed, and the bound that comes with it holds; the
    solver, which knows few candidates then, proves nothing."""
    monkeypatch.setattr(module, "_SEEDS", 12)
    best = objective(prune(offered(modelled())))
    assert best is not None
    scout = Scout(settings=replace(EXACT, gap=0.3), clock=Clock(PLENTY))
    few = offered(modelled(), scout.worth_staffing)
    assert not scout.whole
    assert len(few.candidates) < len(offered(modelled()).candidates)
    short = scout.shortlist(few)
    formulation = build(short.problem)
    outcome = short.known(formulation, HIGHS.solve(formulation.model, EXACT))
    assert outcome.termination != "optimal"
    assert outcome.bound is not None
    assert outcome.bound <= best * formulation.scale.factor * (1 + 2e-5)

    plan = epd_opt.solve(modelled(solver={"gap": 0.3}))
    assert plan.status == "optimal"
    assert plan.cost.gap <= 0.3
    assert plan.cost.bound_usd_per_hour <= best * (1 + 1e-9) <= plan.cost.usd_per_hour * (1 + 2e-5)


@pytest.mark.parametrize("name", ["gpu-prefill-npu-decode", "text-and-images"])
def test_bounds_over_outlines_hold_for_shipped_instances(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No relaxation met on the way to a plan lies above what the plan costs, and the plan costs what it does without any
    screening."""
    bounds: list[float] = []

    def noted(*given: Any, **more: Any) -> Any:
        priced = price(*given, **more)
        bounds.append(priced.bound)
        return priced

    price = module.priced
    monkeypatch.setattr(module, "priced", noted)
    path = str(Path(__file__).parents[2] / "instances" / f"{name}.yaml")
    cost = epd_opt.solve(path).cost.usd_per_hour
    assert bounds
    assert max(bounds) <= cost * (1 + 2e-5)
    monkeypatch.setattr(module, "ENOUGH", 10**9)
    assert cost == pytest.approx(epd_opt.solve(path).cost.usd_per_hour, rel=2e-3)


@pytest.mark.parametrize("seed", range(60, 70))
def test_prices_do_not_depend_on_where_they_start(seed: int, greedy: None) -> None:
    """From a relaxation over other candidates, or over none of these, the bound is the same and as good as for all."""
    problem = prune(random_problem(seed))
    first = pricing.priced(problem, EXACT, Clock(PLENTY)) if problem.candidates else None
    if first is None:
        return
    formulation = build(problem)
    whole = HIGHS.relaxation(formulation.model, EXACT)
    assert whole is not None
    assert first.bound == pytest.approx(whole.objective / formulation.scale.factor, rel=1e-6)
    keys = [candidate.key for candidate in problem.candidates]
    for known in (frozenset[str](), frozenset(keys[:1]), frozenset(keys[-1:]), frozenset(["of another problem"])):
        again = pricing.priced(problem, EXACT, Clock(PLENTY), before=replace(first, solved=known))
        assert again is not None
        assert again.bound == pytest.approx(first.bound, rel=1e-6)


def test_outlines_ask_for_no_more_than_operating_points() -> None:
    """At any flow an operating point needs as many replicas as the outline of its pool, and goes no way that it lacks."""
    seen: list[tuple[Candidate, list[Candidate]]] = []

    def screen(outlines: PlanningProblem, staffed: Callable[[Collection[str]], PlanningProblem]) -> Collection[str]:
        seen.extend((outline, list(staffed([outline.key]).candidates)) for outline in outlines.candidates)
        return [outline.key for outline in outlines.candidates]

    offered(modelled(), screen)
    random = np.random.default_rng(5)
    points = 0
    for outline, staffed in seen:
        ways = {(arc.request_class, arc.start.state, arc.end.state) for arc in outline.arcs}
        for point in staffed:
            points += 1
            assert {(arc.request_class, arc.start.state, arc.end.state) for arc in point.arcs} <= ways
            for _ in range(4):
                flows = {name: float(random.exponential(10.0)) for name in point.classes}
                least = max((row.need(flows) for row in outline.rows), default=0.0)
                assert max(max(row.need(flows) for row in point.rows), 1.0) >= least * (1 - 1e-9)
            for arc in point.arcs:
                same = [a for a in outline.arcs if a.request_class == arc.request_class and arc.start.may_pass_for(a.start)]
                assert any(a.end.level <= arc.end.level for a in same)
    assert points > 80
