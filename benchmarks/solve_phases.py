"""Where the time goes when instances are solved: candidates, pruning, building, solving, verifying.

Usage: python benchmarks/solve_phases.py [INSTANCE...]     default: every file in instances/
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

import epd_opt
from epd_opt.backends import Settings, backend
from epd_opt.formulation import build
from epd_opt.offering import offering
from epd_opt.prune import prune
from epd_opt.resolve import resolve
from epd_opt.verify import verify

COLUMNS = (
    "candidates",
    "pruned",
    "rows",
    "resolve s",
    "candidates s",
    "prune s",
    "build s",
    "solve s",
    "verify s",
    "status",
)


def phases(path: Path) -> list[str]:
    """One row of the table; "verify" includes what a check needs to rebuild from the plan document alone."""
    marks = [time.perf_counter()]

    def mark() -> None:
        marks.append(time.perf_counter())

    instance = epd_opt.read(path)
    resolved = resolve(instance)
    mark()
    offered = offering(resolved)
    mark()
    problem = prune(offered.problem)
    mark()
    formulation = build(problem)
    mark()
    wanted = instance.solver
    settings = Settings(gap=wanted.gap, time_limit_s=wanted.time_limit_s, threads=wanted.threads)
    outcome = backend(wanted.name).solve(formulation.model, settings)
    mark()
    plan = epd_opt.solve(instance)
    start = time.perf_counter()
    verify(plan)
    seconds = [after - before for before, after in itertools.pairwise(marks)]
    seconds.append(time.perf_counter() - start)
    counts = (len(offered.problem.candidates), len(problem.candidates), len(formulation.model.constraints))
    return [*(f"{count}" for count in counts), *(f"{second:.2f}" for second in seconds), outcome.termination]


def main(arguments: list[str]) -> None:
    """Print the table, a line as soon as it is known."""
    paths = [Path(argument) for argument in arguments]
    shipped = sorted((Path(__file__).parents[1] / "instances").glob("*.yaml"))
    paths = paths or [path for path in shipped if not epd_opt.read(path).scenarios]
    width = max(len(path.stem) for path in paths)
    print("  ".join(["instance".ljust(width), *COLUMNS]))
    for path in paths:
        cells = [cell.rjust(len(title)) for cell, title in zip(phases(path), COLUMNS, strict=True)]
        print("  ".join([path.stem.ljust(width), *cells]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
