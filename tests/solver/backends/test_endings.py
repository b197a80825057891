"""Whatever ends a run - the clock, the keyboard, a solver that dies - what is known is kept and nothing is made up."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pulp
import pytest

import epd_opt
from epd_opt.backends import BACKENDS, Outcome, Settings, SolverFailed
from epd_opt.backends.guard import supervise
from epd_opt.backends.process import solve_in_child
from solver.backends.hard import hard_instance
from solver.backends.models import cover, market_split
from support.interrupting import HALFWAY, interrupted

USABLE = [name for name, solver in BACKENDS.items() if solver.availability().usable]
LONG = Settings(gap=0.0, time_limit_s=60.0, threads=1)


class Deaf:
    """A solver that stops at nothing; counts how it is treated."""

    def __init__(self, *, interrupt: bool = False) -> None:
        self.log: list[str] = []
        self._interrupt = interrupt

    def wait(self, seconds: float | None) -> bool:
        self.log.append("wait")
        if self._interrupt and len(self.log) == 1:
            raise KeyboardInterrupt
        return False

    def ask_to_stop(self) -> None:
        self.log.append("ask")

    def give_up(self) -> None:
        self.log.append("give up")


@pytest.mark.parametrize(("interrupt", "ending"), [(False, "late"), (True, "interrupted")])
def test_a_solver_that_does_not_stop_is_asked_once_and_left(interrupt: bool, ending: str) -> None:
    """After its limit, or an interrupt, it gets one request and one grace, then nobody waits for it any more."""
    run = Deaf(interrupt=interrupt)
    assert supervise(run, 0.0) == ending
    assert run.log == ["wait", "ask", "wait", "give up"]


def interrupted_solve(name: str, model: pulp.LpProblem, after_s: float = 0.8) -> Outcome:
    """Solve, with a Ctrl-C after a moment; children have started before."""
    BACKENDS[name].solve(cover(8), LONG)
    timer = threading.Timer(after_s, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        return BACKENDS[name].solve(model, LONG)
    finally:
        timer.cancel()


@pytest.mark.parametrize("name", USABLE)
def test_an_interrupt_keeps_the_incumbent(name: str) -> None:
    """Ctrl-C on a hard cover: interrupted, with the best solution where the back-end says that it survives; bound apart.

    Later where a busy machine has found none so far.
    """
    keeps = BACKENDS[name].capabilities.interrupt
    for after_s in (0.8, 3.0, 10.0):
        found = interrupted_solve(name, cover(130), after_s)
        assert found.termination == "interrupted"
        assert found.seconds < 30.0
        if found.values is not None or not keeps:
            break
    assert (found.values is not None) == keeps
    if found.objective is not None and found.bound is not None:
        assert found.bound < found.objective


@pytest.mark.parametrize("name", USABLE)
def test_an_interrupt_without_incumbent_leaves_nothing(name: str) -> None:
    """Ctrl-C before anything was found: interrupted, and no values that could be read as a free plan."""
    found = interrupted_solve(name, market_split(6))
    assert (found.termination, found.values, found.objective) == ("interrupted", None, None)


def test_a_solver_that_dies_is_told_apart_from_one_that_stops() -> None:
    """A child process that ends by itself, or whose solver raises, is an error with the last it said."""
    with pytest.raises(SolverFailed, match="ended without an answer"):
        solve_in_child("sys:exit", (), 20.0)
    answer = solve_in_child("math:sqrt", (), 20.0)
    assert (answer.termination, answer.values) == ("error", None)
    assert answer.note.startswith("TypeError")


class Sleepy:
    """Once unpickled, a minute has passed: in place of a solver that overruns its limit and hears nothing."""

    def __reduce__(self) -> tuple[Callable[[float], None], tuple[float]]:
        return time.sleep, (60.0,)


def test_after_an_overrun_the_next_solve_starts_afresh() -> None:
    """A child that sleeps through its limit is ended, and the next job gets an answer."""
    began = time.monotonic()
    assert solve_in_child("math:sqrt", (Sleepy(),), 1.0).termination == "time_limit"
    assert time.monotonic() - began < 1.0 + 2.0
    assert solve_in_child("math:sqrt", (), 20.0).termination == "error"


def test_a_limit_that_is_over_before_the_solve_stops_without_numbers() -> None:
    """A millisecond is gone before the first candidate: stopped, no cost, no pools - not a free plan."""
    plan = epd_opt.solve(hard_instance() | {"solver": {"time_limit_s": 0.001}})
    assert (plan.status, plan.document.cost, plan.document.pools) == ("stopped", None, [])


@pytest.mark.parametrize("limit_s", [0.001, 3.0])
@pytest.mark.parametrize("price", [0.0, 1.5])
@pytest.mark.parametrize("name", USABLE)
def test_free_and_equal_devices_have_numbers_only_with_a_plan(name: str, price: float, limit_s: float) -> None:
    """Six equal SKUs, free or not: a millisecond leaves nothing; what three seconds leave has devices for its cost, and a
    bound that a proof meets."""
    workload = {"classes": [{"name": name, "rate_per_s": rate} for name, rate in (("chat", 7.7), ("mail", 20.3))]}
    plan = epd_opt.solve(
        hard_instance(skus=6, classes=2)
        | {
            "workload": workload,
            "devices": [{"sku": f"S{i}", "price": {"usd_per_hour": price}, "stock": 40} for i in range(6)],
            "workers": [
                {"name": f"w{i}", "sku": f"S{i}", "devices": 1, "stages": ["prefill", "decode"], "max_rate_per_s": 2}
                for i in range(6)
            ],
            "solver": {"name": name, "gap": 0.0, "time_limit_s": limit_s, "threads": 1},
        }
    )
    document = plan.document
    used = sum(use.used for use in document.devices.values())
    if limit_s < 1.0 or plan.status == "stopped":
        assert (plan.status, document.cost, document.pools, used) == ("stopped", None, [], 0)
        return
    assert plan.status in ("optimal", "feasible")
    assert used >= 14
    assert plan.cost.usd_per_hour == pytest.approx(price * used)
    assert plan.cost.bound_usd_per_hour <= plan.cost.usd_per_hour
    if plan.status == "optimal":
        assert used == 14
        assert plan.cost.bound_usd_per_hour == pytest.approx(plan.cost.usd_per_hour)


@pytest.mark.parametrize("name", USABLE)
def test_a_limit_on_a_hard_instance_holds(name: str) -> None:
    """Two seconds on an instance that takes much longer: a plan that is not proved, or none, within two seconds more."""
    plan = epd_opt.solve(hard_instance() | {"solver": {"name": name, "gap": 0.0, "time_limit_s": 2.0, "threads": 2}})
    assert plan.document.provenance.seconds < 2.0 + 2.0
    assert plan.status in ("feasible", "stopped")
    if plan.status == "feasible":
        assert plan.cost.bound_usd_per_hour < plan.cost.usd_per_hour
        assert plan.cost.gap > 0.0
    else:
        assert plan.document.cost is None


def test_ctrl_c_prints_the_best_plan_so_far_as_not_proved(tmp_path: Path) -> None:
    """Exit 5, and one JSON document of status feasible whose bound is below its cost."""
    file = tmp_path / "hard.json"
    file.write_text(json.dumps(hard_instance()))
    code, out, err = interrupted(file, "rows", HALFWAY)
    assert (code, "Traceback" in err) == (5, False)
    document = json.loads(out)
    assert document["status"] == "feasible"
    assert 0 < document["cost"]["bound_usd_per_hour"] < document["cost"]["usd_per_hour"]


def test_ctrl_c_before_any_plan_ends_with_6_and_no_numbers(tmp_path: Path) -> None:
    """Right after the programme is built there is no plan: exit 6; nothing that could be read as one."""
    file = tmp_path / "hard.json"
    file.write_text(json.dumps(hard_instance(skus=30, classes=20)))
    code, out, err = interrupted(file, "rows")
    assert (code, "Traceback" in err) == (6, False)
    assert not out or json.loads(out)["cost"] is None
