"""Searching abstract problems the way the pipeline does, without documents."""

from __future__ import annotations

from dataclasses import replace

from epd_opt.backends import Clock, Clocked, Outcome, Settings, backend
from epd_opt.formulation import build
from epd_opt.problem import PlanningProblem
from epd_opt.search.ceiling import ceiling
from epd_opt.search.goodput import Largest, largest
from epd_opt.search.ratio import Dinkelbach
from epd_opt.search.task import Means, pruned


def means(*, solver: str = "highs", gap: float = 0.0, seconds: float = 60.0) -> Means:
    """A solver on one thread."""
    clocked = Clocked(solver=backend(solver), clock=Clock(seconds))
    return Means(solver=clocked, settings=Settings(gap=gap, time_limit_s=None, threads=1))


def bound_of(problem: PlanningProblem, *, slim: bool = True) -> float:
    """The multiple that no fleet exceeds."""
    return ceiling(pruned(problem) if slim else problem, Clock(60.0))


def goodput(problem: PlanningProblem, *, slim: bool = True, **options: object) -> Largest | None:
    """The largest multiple; None where no demand is served."""
    most = bound_of(problem, slim=slim)
    if most == 0.0:
        return None
    found = largest(pruned(problem, most) if slim else problem, most, means(**options))  # type: ignore[arg-type]
    assert not isinstance(found, Outcome)
    return found


def cheapest_ratio(problem: PlanningProblem, low: float, high: float, *, slim: bool = True, **options: object) -> Dinkelbach:
    """The search for the least cost per request over a range of multiples, at its end."""
    whole = pruned(problem, high) if slim else problem
    formulation = build(replace(whole.at(high), least_served=low / high))
    search = Dinkelbach(means=means(**options), formulation=formulation, least=low / high)  # type: ignore[arg-type]
    search.run()
    return search
