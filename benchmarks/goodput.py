"""The largest multiple of the demand by one linear maximum, against bisection over the demand with plans at fixed rates.

Usage: python benchmarks/goodput.py [--whole] [INSTANCE...]     default: files in instances/, each under a budget of its own

Both choose among the same candidates. Bisection starts from the stated demand, doubles or halves it until one multiple is
served and one is not, and closes in to the instance's gap. At each multiple it asks either for any fleet at all ("any"), or
for the cheapest within the gap ("plan"), which is what somebody gets who asks this program for plan after plan. Seconds are
of pruning, building and solving; making candidates is left out on both sides, which favours bisection, where each ordinary
plan makes its own. They are CPU seconds of one thread.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pulp

import epd_opt
from epd_opt.backends import Clock, Clocked, Outcome, Settings, backend
from epd_opt.formulation import build
from epd_opt.offering import offering_at
from epd_opt.problem import PlanningProblem
from epd_opt.prune import prune
from epd_opt.resolve import resolve
from epd_opt.search.ceiling import ceiling
from epd_opt.search.goodput import largest
from epd_opt.search.task import Means, pruned

BUDGETS = {
    "one-gpu-type": 40.0,
    "text-and-images": 40.0,
    "ten-images": 40.0,
    "long-output": 80.0,
    "measured-workers": 500.0,
}
"""US dollars per hour: about twice what the instance costs at its stated rates."""
LIMIT_S = 60.0


def once(problem: PlanningProblem, settings: Settings) -> tuple[float, float, float]:
    """Multiple by the linear maximum, its bound, and that of the linear programmes."""
    clock = Clock(10 * LIMIT_S)
    slim = pruned(problem)
    most = ceiling(slim, clock)
    means = Means(solver=Clocked(solver=backend("highs"), clock=clock), settings=settings)
    found = largest(pruned(slim, most), most, means)
    if found is None or isinstance(found, Outcome):
        raise SystemExit("no multiple within the time limit")
    return found.multiple, found.bound, most


def served(problem: PlanningProblem, settings: Settings, multiple: float, *, any_fleet: bool) -> bool:
    """Whether there is a fleet for a multiple of the demand."""
    formulation = build(prune(problem.at(multiple)))
    if any_fleet:
        formulation.model.setObjective(pulp.LpAffineExpression())
        settings = replace(settings, gap=1.0)
    outcome = backend("highs").solve(formulation.model, replace(settings, time_limit_s=LIMIT_S))
    return outcome.values is not None


def bisection(serves: Callable[[float], bool], gap: float) -> tuple[float, int]:
    """The multiple that bisection ends with, and how many plans it asked for."""
    steps, low = 1, 1.0
    if serves(low):
        while serves(2.0 * low):
            low, steps = 2.0 * low, steps + 1
        steps += 1
        high = 2.0 * low
    else:
        while not serves(low):
            low, steps = low / 2.0, steps + 1
        high = 2.0 * low
    while high > low * (1.0 + gap):
        middle = (low + high) / 2.0
        steps += 1
        low, high = (middle, high) if serves(middle) else (low, middle)
    return low, steps


def whole(path: Path) -> str:
    """A line of the table of whole runs: CPU seconds of this process on one thread."""
    document = epd_opt.read(path).document()
    document["solver"] = {**document.get("solver", {}), "threads": 1, "time_limit_s": LIMIT_S}
    if path.stem in BUDGETS:
        document["limits"] = {**document.get("limits", {}), "usd_per_hour": BUDGETS[path.stem]}
    began = time.process_time()
    best = epd_opt.solve({**document, "objective": "goodput"}).goodput
    one = time.process_time() - began

    def serves(multiple: float) -> bool:
        classes = [
            {**stated, **{key: stated[key] * multiple for key in ("rate_per_s", "mean_rate_per_s") if key in stated}}
            for stated in document["workload"]["classes"]
        ]
        changed = {**document, "workload": {"classes": classes}, "objective": "cost_per_request"}
        return bool(epd_opt.solve(changed, mends=False).document.pools)

    began = time.process_time()
    found, steps = bisection(serves, epd_opt.read(path).solver.gap)
    many = time.process_time() - began
    return f"{path.stem:20}{best.multiple:10.4f}{found:10.4f}{steps:7}{one:9.2f}{many:9.2f}{many / one:7.1f}"


def main(arguments: list[str]) -> None:
    """Print a line per instance as soon as it is known."""
    users = "--whole" in arguments
    arguments = [argument for argument in arguments if argument != "--whole"]
    folder = Path(__file__).parents[1] / "instances"
    paths = [Path(argument) for argument in arguments] or [folder / f"{name}.yaml" for name in BUDGETS]
    if users:
        print("instance              goodput bisection  steps  seconds  seconds  ratio")
        for path in paths:
            print(whole(path), flush=True)
        return
    print("instance            candidates  multiple   bound     LPs  seconds", end="")
    print("    any: steps  seconds  ratio   plan: seconds  ratio")
    for path in paths:
        instance = epd_opt.read(path)
        resolved = resolve(instance)
        if path.stem in BUDGETS:
            resolved = replace(resolved, limits=replace(resolved.limits, usd_per_hour=BUDGETS[path.stem]))
        settings = Settings(gap=instance.solver.gap, time_limit_s=None, threads=1)
        problem = offering_at(resolved, [2.0]).problem
        marks = [time.process_time()]
        multiple, bound, most = once(problem, settings)
        marks.append(time.process_time())
        by_any, steps = bisection(lambda m: served(problem, settings, m, any_fleet=True), instance.solver.gap)  # noqa: B023
        marks.append(time.process_time())
        by_plan, _ = bisection(lambda m: served(problem, settings, m, any_fleet=False), instance.solver.gap)  # noqa: B023
        marks.append(time.process_time())
        one, any_s, plan_s = (after - before for before, after in itertools.pairwise(marks))
        line = f"{path.stem:20}{len(problem.candidates):10}{multiple:10.4f}{bound:8.4f}{most:8.3f}{one:9.2f}"
        line += f"{steps:14}{any_s:9.2f}{any_s / one:7.1f}{plan_s:16.2f}{plan_s / one:7.1f}"
        wrong = [found for found in (by_any, by_plan) if not multiple * (1 - 2e-3) <= found <= bound * (1 + 1e-6)]
        print(line + (f"   bisection ended at {wrong}" if wrong else ""), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
