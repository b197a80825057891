"""Every back-end that is usable here gives the right answers, keeps status, incumbent and bound apart, and holds limits.

Solvers that are not installed are skipped, with what to install.
"""

from __future__ import annotations

import time

import pytest

from epd_opt.backends import BACKENDS, Backend, Outcome, Settings
from epd_opt.errors import UsageError
from solver.backends.models import cover, market_split, model_of

EXACT = Settings(gap=0.0, time_limit_s=60.0, threads=1)
USABLE = [name for name, found in BACKENDS.items() if found.availability().usable]


@pytest.fixture(params=USABLE)
def solver(request: pytest.FixtureRequest) -> Backend:
    return BACKENDS[request.param]


@pytest.mark.parametrize("name", ["cbc", "scip", "cp_sat"])
def test_the_suite_runs_on_every_solver_that_packages_bring(name: str) -> None:
    """CBC comes with PuLP, SCIP and CP-SAT with OR-Tools: where they are missing, the rest of this file skips them."""
    missing = BACKENDS[name].availability().missing
    if missing:
        pytest.skip(f"{name} is not installed: {missing}")
    assert name in USABLE


@pytest.mark.parametrize("name", [name for name in BACKENDS if name not in USABLE])
def test_solvers_that_are_not_installed_say_what_to_install(name: str) -> None:
    """Asked to solve, an absent solver refuses with what to install; so does its description."""
    missing = BACKENDS[name].availability().missing
    with pytest.raises(UsageError) as refused:
        BACKENDS[name].solve(model_of([("x", 0, 1, True)], {"x": 1}, [({"x": 1}, ">=", 1)]), EXACT)
    assert missing in str(refused.value)
    assert missing in BACKENDS[name].describe()


def check(found: Outcome, objective: float, values: dict[str, float] | None = None) -> None:
    """Optimal, at this objective, with a bound that proves it."""
    assert (found.termination, found.note) == ("optimal", "")
    assert found.objective == pytest.approx(objective, rel=1e-6, abs=1e-9)
    assert found.bound == pytest.approx(objective, rel=2e-6, abs=1e-6)
    assert found.bound is not None
    assert found.bound <= found.objective
    if values is not None:
        assert found.values == pytest.approx(values, abs=1e-6)


def test_whole_numbers(solver: Backend) -> None:
    """2 x + 3 y >= 12.5 at costs 2 and 2.5 with whole x, y: two x and three y, at 11.5; a constant counts along."""
    model = model_of([("x", 0, 10, True), ("y", 0, 10, True)], {"x": 2, "y": 2.5}, [({"x": 2, "y": 3}, ">=", 12.5)])
    model.setObjective(model.objective + 7.0)
    check(solver.solve(model, EXACT), 18.5, {"x": 2, "y": 3})


def test_a_fixed_charge_with_continuous_flow(solver: Backend) -> None:
    """Split one unit of flow: pool A takes 0.4 per replica at 3, B a third at 2; three B carry it at 6 + opening 1."""
    variables = [("a", 0, 1, False), ("b", 0, 1, False), ("n", 0, 9, True), ("m", 0, 9, True), ("y", 0, 1, True)]
    rows = [
        ({"a": 1, "b": 1}, "==", 1.0),
        ({"a": 2.5, "n": -1}, "<=", 0.0),
        ({"b": 3.0, "m": -1}, "<=", 0.0),
        ({"m": 1, "y": -9}, "<=", 0.0),
    ]
    found = solver.solve(model_of(variables, {"n": 3, "m": 2, "y": 1}, rows), EXACT)
    check(found, 7.0, {"b": 1, "m": 3, "n": 0, "y": 1, "a": 0})


def test_thirds_that_no_grid_holds(solver: Backend) -> None:
    """A third of the flow fills one replica to the brim and two thirds the other; a coarse grid would want a third one."""
    variables = [("a", 0, 1, False), ("b", 0, 1, False), ("n", 0, 5, True), ("m", 0, 5, True)]
    rows = [
        ({"a": 1, "b": 1}, "==", 1.0),
        ({"a": 3, "n": -1}, "<=", 0.0),
        ({"b": 1.5, "m": -1}, "<=", 0.0),
    ]
    check(solver.solve(model_of(variables, {"n": 1, "m": 1}, rows), EXACT), 2.0, None)
    rows = [*rows, ({"b": 1}, "<=", 2 / 3), ({"a": 1}, "<=", 1 / 3)]
    found = solver.solve(model_of(variables, {"n": 1, "m": 1}, rows), EXACT)
    check(found, 2.0, {"a": 1 / 3, "b": 2 / 3, "n": 1, "m": 1})


def test_a_hair_above_a_whole_number_takes_one_more(solver: Backend) -> None:
    """A load of 5000.001 replicas takes 5001, though it exceeds 5000 by two parts in ten million only."""
    rows = [({"x": 1}, "==", 1.0), ({"x": 5000.001, "n": -1}, "<=", 0.0)]
    found = solver.solve(model_of([("x", 0, 1, False), ("n", 0, 9000, True)], {"n": 1}, rows), EXACT)
    check(found, 5001.0, {"x": 1, "n": 5001})


def test_linear_programmes(solver: Backend) -> None:
    """Without whole numbers the optimum proves itself: x as far as it goes, the rest y."""
    rows = [({"x": 1, "y": 1}, "==", 4), ({"x": 1}, "<=", 3), ({"x": 1, "y": -1}, ">=", -1)]
    found = solver.solve(model_of([("x", 0, 10, False), ("y", 0, 10, False)], {"x": 1, "y": 2}, rows), EXACT)
    check(found, 5.0, {"x": 3, "y": 1})


@pytest.mark.parametrize("whole", [True, False])
def test_infeasible_models_have_no_values(solver: Backend, whole: bool) -> None:
    """No incumbent: neither values nor an objective that could be read as a free plan."""
    rows = [({"x": 2, "y": 2}, "==", 1), ({"x": 1}, ">=", 0 if whole else 2)]
    found = solver.solve(model_of([("x", 0, 1, whole), ("y", 0, 1, whole)], {"x": 1}, rows), EXACT)
    assert (found.termination, found.values, found.objective) == ("infeasible", None, None)


def test_unbounded_models_are_told_from_infeasible_ones_or_refused(solver: Backend) -> None:
    """Costs below zero without an end: unbounded, no values; a solver that needs bounds says which variable lacks one."""
    model = model_of([("x", 0, None, True), ("y", 0, 1, True)], {"x": -1}, [({"x": 1, "y": -1}, ">=", 0)])
    if not solver.capabilities.unbounded_variables:
        with pytest.raises(UsageError, match="'x' lacks one"):
            solver.solve(model, EXACT)
        return
    found = solver.solve(model, EXACT)
    assert (found.termination, found.values) == ("unbounded", None)


def test_without_costs_any_solution_is_optimal(solver: Backend) -> None:
    """Prices of zero: nothing pulls the plan down, and the answer is optimal at 0, within rows and bounds."""
    rows = [({"x": 20, "n": -1}, "<=", 0), ({"x": 1}, "==", 1)]
    found = solver.solve(model_of([("n", 0, 50, True), ("x", 0, 1, False)], {"n": 0.0}, rows), EXACT)
    check(found, 0.0)
    assert found.values is not None
    assert 20 <= found.values["n"] <= 50


def test_ties_are_broken_by_small_weights(solver: Backend) -> None:
    """Ten equal ways at 1000 each, told apart by weights of one millionth: every solver takes the first."""
    names = [f"w{i}" for i in range(10)]
    cost = {name: 1000.0 + 1e-3 * i for i, name in enumerate(names)}
    model = model_of([(name, 0, 9, True) for name in names], cost, [(dict.fromkeys(names, 1.0), ">=", 2.5)])
    check(solver.solve(model, EXACT), 3000.0, {name: 3.0 if name == "w0" else 0.0 for name in names})


def test_rows_and_models_without_variables_are_judged(solver: Backend) -> None:
    """A row without variables holds or does not, whatever else there is; a model without variables costs its constant."""
    for sense, right, termination in ((">=", 1.0, "infeasible"), ("<=", 1.0, "optimal"), ("==", 0.0, "optimal")):
        model = model_of([("x", 1, 3, True)], {"x": 1.0}, [({}, sense, right)])
        assert solver.solve(model, EXACT).termination == termination
        assert solver.solve(model_of([], {}, [({}, sense, right)]), EXACT).termination == termination


def test_negative_bounds_fixed_variables_and_both_senses(solver: Backend) -> None:
    """x from -7, y fixed at -2, z whole from -3: z is dearer, so it goes down to -3, and x to the rest of -5.5."""
    variables = [("x", -7, 4, False), ("y", -2, -2, True), ("z", -3, 3, True)]
    rows = [({"x": 1, "z": 1}, ">=", -5.5), ({"z": 1, "y": -1}, "<=", 1)]
    found = solver.solve(model_of(variables, {"x": 1, "z": 1.25, "y": 0.5}, rows), EXACT)
    check(found, -2.5 - 3.75 - 1.0, {"x": -2.5, "y": -2, "z": -3})


def test_tiny_rates_do_not_vanish(solver: Backend) -> None:
    """A rate of 1e-7 of one class beside thousands of another, as shares: its worker is bought all the same."""
    variables = [("rare", 0, 1, False), ("bulk", 0, 1, False), ("n", 0, 1, True), ("m", 0, 9000, True), ("y", 0, 1, True)]
    rows = [
        ({"rare": 1}, "==", 1),
        ({"bulk": 1}, "==", 1),
        ({"rare": 1, "y": -1}, "<=", 0),
        ({"rare": 1e-7, "n": -1}, "<=", 0),
        ({"n": -1, "y": 1}, "<=", 0),
        ({"bulk": 4321.5, "m": -1}, "<=", 0),
    ]
    found = solver.solve(model_of(variables, {"n": 3, "m": 2}, rows), EXACT)
    check(found, 3 + 2 * 4322.0, {"rare": 1, "bulk": 1, "n": 1, "m": 4322, "y": 1})


def test_a_big_constant_never_drops_a_fixed_charge(solver: Backend) -> None:
    """With 1e7 in place of a tight bound, a tolerance opens the pool for nothing: the answer is right or it is none."""
    variables = [("n", 0, 1e7, True), ("y", 0, 1, True)]
    for big in (10.0, 1e7):
        rows = [({"n": 1}, ">=", 0.5), ({"n": 1, "y": -big}, "<=", 0)]
        found = solver.solve(model_of(variables, {"n": 1, "y": 100}, rows), EXACT)
        if big < 1e7 or found.termination == "optimal":
            check(found, 101.0, {"n": 1, "y": 1})
        assert found.values is None or found.values["y"] == 1


def test_the_gap_is_kept(solver: Backend) -> None:
    """At a gap of a fifth the bound may stay that far below the incumbent, and no farther."""
    found = solver.solve(cover(30), Settings(gap=0.2, time_limit_s=30.0, threads=1))
    assert found.termination == "optimal"
    assert found.objective is not None
    assert found.bound is not None
    assert 0.8 * found.objective * (1 - 1e-6) <= found.bound <= found.objective
    exact = BACKENDS["highs"].solve(cover(30), EXACT).objective
    assert exact is not None
    assert found.bound <= exact * (1 + 1e-9)
    assert found.objective >= exact * (1 - 1e-9)


@pytest.mark.parametrize("limit", [0.001, 0.7])
def test_the_clock_ends_a_solve_and_the_incumbent_is_true(solver: Backend, limit: float) -> None:
    """Stopped, never called optimal; back within the limit and 2 s; bound below incumbent, where they are known."""
    began = time.monotonic()
    found = solver.solve(cover(130), Settings(gap=0.0, time_limit_s=limit, threads=2))
    assert time.monotonic() - began < limit + 2.0
    assert found.termination == "time_limit"
    if found.objective is not None:
        assert found.values is not None
        cost = {f"x{i}": float(100 + (i * 37) % 61) for i in range(130)}
        assert found.objective == pytest.approx(sum(cost[name] * value for name, value in found.values.items()))
        assert found.bound is None or found.bound < found.objective


def test_the_clock_ends_a_solve_without_incumbent(solver: Backend) -> None:
    """Nothing found: no values, no objective, and no claim that there is nothing."""
    found = solver.solve(market_split(6), Settings(gap=0.0, time_limit_s=0.6, threads=1))
    assert (found.termination, found.values, found.objective) == ("time_limit", None, None)


def test_threads_may_change_between_solves(solver: Backend) -> None:
    """One process solves with one thread, with two, and with one again, to the same optimum and the same counts."""
    found = [solver.solve(cover(16), Settings(gap=0.0, time_limit_s=30.0, threads=n)) for n in (1, 2, 1)]
    assert len({round(outcome.objective or 0.0, 6) for outcome in found}) == 1
    assert found[0].values == found[2].values


def test_back_ends_take_turns_in_one_process(solver: Backend) -> None:
    """HiGHS, the other, HiGHS, the other: each finds the optimum as if it were alone."""
    expected = BACKENDS["highs"].solve(cover(12), EXACT).objective
    assert expected is not None
    for turn in (BACKENDS["highs"], solver, BACKENDS["highs"], solver):
        check(turn.solve(cover(12), EXACT), expected)


def test_a_start_is_used_or_ignored_but_never_believed(solver: Backend) -> None:
    """A good start, half a start and a start that breaks a row all lead to the optimum."""
    model = model_of([("x", 0, 10, True), ("y", 0, 10, True)], {"x": 2, "y": 2.5}, [({"x": 2, "y": 3}, ">=", 12.5)])
    for start in ({"x": 2.0, "y": 3.0}, {"y": 5.0}, {"x": 0.0, "y": 0.0}):
        check(solver.solve(model, Settings(gap=0.0, time_limit_s=30.0, threads=1, start=start)), 11.5)
