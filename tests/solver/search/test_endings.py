"""Searches that are stopped keep what they have found, say what is proved of it, and make nothing up."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import pulp
import pytest

from epd_opt import Plan, solve
from epd_opt.backends import BACKENDS, Outcome, Settings
from epd_opt.backends.highs import Highs
from epd_opt.verify import verify
from solver.backends.hard import hard_instance
from support.documents import measured
from support.interrupting import SOLVING, interrupted

RANGE = {"minimise": "cost_per_request", "rate_multiple": [0.5, 1.5]}


class Halting(Highs):
    """HiGHS, stopped in one of its solves: with its solution and half a proof, or with nothing."""

    def __init__(self, halt_at: int, *, empty: bool) -> None:
        self.solves, self._halt_at, self._empty = 0, halt_at, empty

    def solve(self, model: pulp.LpProblem, settings: Settings) -> Outcome:
        self.solves += 1
        outcome = super().solve(model, settings)
        if self.solves != self._halt_at:
            return outcome
        if self._empty:
            return dataclasses.replace(outcome, termination="interrupted", values=None, objective=None, bound=None)
        assert outcome.objective is not None
        worse = outcome.objective - 0.25 * abs(outcome.objective)
        return dataclasses.replace(outcome, termination="interrupted", bound=worse)


def halted(monkeypatch: pytest.MonkeyPatch, objective: Any, halt_at: int, *, empty: bool) -> Plan:
    """The plan of a search whose solve of this number is interrupted."""
    monkeypatch.setitem(BACKENDS, "highs", Halting(halt_at, empty=empty))
    return solve(measured(objective=objective, limits={"usd_per_hour": 25}))


def test_goodput_stopped_with_a_fleet_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The multiple of the solution so far, the bound that was proved, the fleet found with it, and what is open is said."""
    plan = halted(monkeypatch, "goodput", 1, empty=False)
    whole = solve(measured(objective="goodput", limits={"usd_per_hour": 25}))
    assert plan.status == "feasible"
    assert plan.goodput.multiple == pytest.approx(whole.goodput.multiple)
    assert plan.goodput.multiple * 1.1 < plan.goodput.bound_multiple
    assert plan.goodput.gap > 0.1
    assert "it is not proved that no cheaper fleet serves as much" in plan.warnings
    verify(Plan.load(plan.to_dict()))


def test_goodput_proved_but_stopped_before_the_cheapest_fleet_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The multiple is what the status is about; that the fleet may not be the cheapest is a warning."""
    plan = halted(monkeypatch, "goodput", 2, empty=True)
    assert plan.status == "optimal"
    assert plan.goodput.gap == pytest.approx(0.0, abs=1e-6)
    assert plan.cost.gap > 0.5
    assert "it is not proved that no cheaper fleet serves as much" in plan.warnings
    verify(Plan.load(plan.to_dict()))


@pytest.mark.parametrize("objective", ["goodput", RANGE], ids=["goodput", "range"])
def test_a_search_stopped_without_a_fleet_has_no_numbers(monkeypatch: pytest.MonkeyPatch, objective: Any) -> None:
    """No multiple, no cost and no pools."""
    plan = halted(monkeypatch, objective, 1, empty=True)
    assert (plan.status, plan.document.cost, plan.document.pools) == ("stopped", None, [])
    assert plan.document.goodput is None
    assert plan.document.rate_multiple is None


def test_a_range_stopped_with_a_fleet_keeps_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not proved, with a bound on the cost of a request that is below what is best."""
    plan = halted(monkeypatch, RANGE, 1, empty=False)
    best = solve(measured(objective=RANGE, limits={"usd_per_hour": 25}))
    assert plan.status == "feasible"
    assert 0 < plan.rate_multiple.bound_usd_per_request < best.cost.usd_per_request * (1 + 1e-9)
    assert plan.cost.gap > 0.0
    verify(Plan.load(plan.to_dict()))


@pytest.mark.parametrize("objective", ["goodput", RANGE], ids=["goodput", "range"])
def test_the_clock_holds_over_all_steps(objective: Any) -> None:
    """Two seconds on an instance that takes longer: the run ends within two seconds more, and what is not proved says so."""
    began = time.monotonic()
    changes = {"limits": {"usd_per_hour": 2000}, "solver": {"gap": 0.0, "time_limit_s": 2.0, "threads": 1}}
    plan = solve(hard_instance(skus=12, classes=8) | {"objective": objective, **changes})
    assert time.monotonic() - began < 2.0 + 2.0
    assert plan.status in ("feasible", "stopped", "optimal")
    if plan.status != "optimal" and plan.document.cost is not None:
        assert (plan.document.goodput or plan.document.cost).gap > 0.0


def test_a_limit_that_is_over_before_the_first_programme_stops() -> None:
    """A millisecond is gone before there is a bound: stopped."""
    plan = solve(measured(objective="goodput", solver={"time_limit_s": 1e-3}, limits={"devices": 9}))
    assert plan.status == "stopped"


def test_ctrl_c_in_the_second_step_keeps_the_multiple_of_the_first(tmp_path: Path) -> None:
    """Exit 0, for the multiple is proved, and a warning that the fleet may not be the cheapest."""
    file = tmp_path / "hard.json"
    file.write_text(
        json.dumps(hard_instance(skus=12, classes=8) | {"objective": "goodput", "limits": {"usd_per_hour": 150}})
    )
    code, out, err = interrupted(file, "rows", "rows", SOLVING)
    assert (code, "Traceback" in err) == (0, False)
    document = json.loads(out)
    assert document["goodput"]["gap"] < 1e-6
    assert "it is not proved that no cheaper fleet serves as much" in document["warnings"]
