"""HiGHS answers status, incumbent and bound apart, prints nothing, and is the same at every call."""

from __future__ import annotations

import subprocess
import sys

import pulp
import pytest

from epd_opt.backends import BACKENDS, Settings, backend
from epd_opt.errors import InvalidInput

EXACT = Settings(gap=0.0, time_limit_s=30.0, threads=1)


def knapsack(items: int, *, capacity: float = 0.5) -> pulp.LpProblem:
    """A hard little integer programme: cover a share of uneven weights at uneven costs, on many rows."""
    model = pulp.LpProblem("cover", pulp.LpMinimize)
    x = [model.add_variable(f"x{i}", 0, 1, cat=pulp.LpInteger) for i in range(items)]
    model.setObjective(pulp.LpAffineExpression([(v, 100 + (i * 37) % 61) for i, v in enumerate(x)]))
    for r in range(items // 2):
        weights = [1 + (i * 53 + r * 29) % 97 for i in range(items)]
        row = pulp.LpAffineExpression(list(zip(x, weights, strict=True))) >= capacity * sum(weights)
        model.addConstraint(row, f"row{r}")
    return model


def test_an_integer_optimum_comes_with_its_bound() -> None:
    """2 x + 3 y >= 12.5 at costs 2 and 2.5 with whole x, y: two x and three y are cheapest, at 11.5; so says the bound."""
    model = pulp.LpProblem("small", pulp.LpMinimize)
    x, y = (model.add_variable(name, 0, 10, cat=pulp.LpInteger) for name in "xy")
    model.setObjective(2 * x + 2.5 * y)
    model.addConstraint(2 * x + 3 * y >= 12.5, "row")
    found = backend("highs").solve(model, EXACT)
    assert found.termination == "optimal"
    assert found.values == pytest.approx({"x": 2.0, "y": 3.0})
    assert found.objective == pytest.approx(11.5)
    assert found.bound == pytest.approx(11.5)


def test_a_linear_programme_has_its_optimum_as_bound() -> None:
    """Without integers the optimum proves itself; equalities and both senses hold."""
    model = pulp.LpProblem("linear", pulp.LpMinimize)
    x, y = (model.add_variable(name, 0, 10) for name in "xy")
    model.setObjective(x + 2 * y)
    model.addConstraint(x + y == 4, "sum")
    model.addConstraint(x <= 3, "most")
    model.addConstraint(x - y >= -1, "least")
    found = backend("highs").solve(model, EXACT)
    assert (found.termination, found.objective, found.bound) == ("optimal", pytest.approx(5.0), pytest.approx(5.0))
    assert found.values == pytest.approx({"x": 3.0, "y": 1.0})


def test_infeasible_models_have_no_values() -> None:
    """No incumbent: no values that could be read as a free plan, and no objective."""
    model = pulp.LpProblem("impossible", pulp.LpMinimize)
    x = model.add_variable("x", 0, 1, cat=pulp.LpInteger)
    model.setObjective(pulp.LpAffineExpression([(x, 1.0)]))
    model.addConstraint(2 * x == 1, "half")
    found = backend("highs").solve(model, EXACT)
    assert (found.termination, found.values, found.objective) == ("infeasible", None, None)


@pytest.mark.parametrize(("right", "termination"), [(0.0, "optimal"), (1.0, "infeasible")])
def test_models_without_variables_are_judged(right: float, termination: str) -> None:
    """Nothing flows: 0 = 0 is a plan that does nothing, 0 = 1 is none."""
    model = pulp.LpProblem("empty", pulp.LpMinimize)
    model.setObjective(pulp.LpAffineExpression([]))
    model.addConstraint(pulp.LpConstraint(pulp.LpAffineExpression([]), pulp.LpConstraintEQ, "row", right))
    found = backend("highs").solve(model, EXACT)
    assert found.termination == termination
    assert found.values == ({} if termination == "optimal" else None)


def test_a_stopped_solve_says_so_and_keeps_bound_and_incumbent_apart() -> None:
    """Out of time: never called optimal; the bound stays below the incumbent, where there is one."""
    found = backend("highs").solve(knapsack(120), Settings(gap=0.0, time_limit_s=0.3, threads=1))
    assert found.termination == "time_limit"
    assert found.seconds < 5.0
    if found.values is not None:
        assert found.objective is not None
        assert found.bound is not None
        assert found.bound < found.objective


def test_the_gap_is_kept() -> None:
    """At a gap of a fifth the proof may stop early, and bound and incumbent are that close."""
    found = backend("highs").solve(knapsack(60), Settings(gap=0.2, time_limit_s=30.0, threads=1))
    assert found.termination == "optimal"
    assert found.objective is not None
    assert found.bound is not None
    assert found.objective - found.bound <= 0.2 * found.objective * (1 + 1e-9)


def test_threads_may_change_between_solves() -> None:
    """One process solves with one thread, then with two, then with one again, to the same optimum."""
    costs = {
        backend("highs").solve(knapsack(20), Settings(gap=0.0, time_limit_s=30.0, threads=n)).objective for n in (1, 2, 1)
    }
    assert len({round(cost, 6) for cost in costs if cost is not None}) == 1


def test_the_first_solve_of_a_process_prints_nothing() -> None:
    """Standard output belongs to the data; the library's banner stays out of it."""
    code = """
import pulp
from epd_opt.backends import Settings, backend
model = pulp.LpProblem("m", pulp.LpMinimize)
x = model.add_variable("x", 1, 2, cat=pulp.LpInteger)
model.setObjective(pulp.LpAffineExpression([(x, 1.0)]))
print(backend("highs").solve(model, Settings(gap=0.0, time_limit_s=5.0, threads=1)).objective)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1.0\n"


def test_back_ends_are_known_by_name() -> None:
    """Every back-end answers to its key and describes itself; an unknown name lists the known ones."""
    for name, solver in BACKENDS.items():
        assert backend(name) is solver
        assert solver.name == name
        assert solver.describe()
    with pytest.raises(InvalidInput, match=r"unknown solver 'abacus' \(known: .*highs"):
        backend("abacus")
