"""The same programmes with every back-end that is usable here: whether costs agree within the gap, and time against HiGHS.

Usage: python benchmarks/compare_backends.py [--limit SECONDS] [--gap G] [--threads N] [INSTANCE...]
default: every file in instances/, 30 s per solve, each instance's own gap and threads

Candidates are built once per instance, so seconds are those of the back-end alone, its child process included. Ratios hold
within one run on one machine; where the clock stopped a solve they are lower bounds.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import epd_opt
from epd_opt.backends import BACKENDS, Outcome, Settings
from epd_opt.formulation import Formulation, build
from epd_opt.formulation.objective import cost_expression
from epd_opt.offering import offering
from epd_opt.prune import prune
from epd_opt.resolve import resolve

COLUMNS = ("instance", "solver", "ended", "USD/h", "bound below", "seconds", "x HiGHS")
WIDTHS = (24, 10, 11, 12, 12, 8, 8)


def cost_of(formulation: Formulation, outcome: Outcome) -> float | None:
    """Hourly cost of an incumbent in US dollars, without the tie-breaks of the objective."""
    if outcome.values is None:
        return None
    terms = cost_expression(formulation.sets, formulation.variables)
    return sum(coefficient * outcome.values[variable.name] for variable, coefficient in terms)


def row(cells: tuple[str, ...]) -> str:
    """A line of the table."""
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True)).rstrip()


def compare(path: Path, limit: float, gap: float | None, threads: int | None) -> bool:
    """Print a line per back-end; whether the costs of all that proved one agree within the gap."""
    instance = epd_opt.read(path)
    wanted = instance.solver
    gap = wanted.gap if gap is None else gap
    settings = Settings(gap=gap, time_limit_s=limit, threads=threads or wanted.threads)
    formulation = build(prune(offering(resolve(instance)).problem))
    seconds_of_highs = 0.0
    proved = []
    for name, solver in BACKENDS.items():
        if not solver.availability().usable:
            continue
        outcome = solver.solve(formulation.model, settings)
        cost = cost_of(formulation, outcome)
        if name == "highs":
            seconds_of_highs = outcome.seconds
        if outcome.termination == "optimal" and cost is not None:
            proved.append(cost)
        below = None
        if outcome.objective and outcome.bound is not None:
            below = (outcome.objective - outcome.bound) / outcome.objective
        cells = (
            path.stem,
            name,
            outcome.termination,
            "-" if cost is None else f"{cost:.6g}",
            "-" if below is None else f"{below:.3%}",
            f"{outcome.seconds:.2f}",
            f"{'>' if outcome.termination == 'time_limit' else ''}{outcome.seconds / seconds_of_highs:.2f}",
        )
        print(row(cells), flush=True)
    return not proved or max(proved) <= min(proved) * (1.0 + gap) + 1e-6


def main() -> None:
    """Print the table; exit code 1 where costs do not agree."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("instances", nargs="*", type=Path)
    parser.add_argument("--limit", type=float, default=30.0, help="wall-clock seconds per solve")
    parser.add_argument("--gap", type=float, help="relative gap, in place of each instance's own")
    parser.add_argument("--threads", type=int, help="threads, in place of each instance's own")
    options = parser.parse_args()
    shipped = sorted((Path(__file__).parents[1] / "instances").glob("*.yaml"))
    paths = options.instances or [path for path in shipped if not epd_opt.read(path).scenarios]
    print(row(COLUMNS))
    apart = [path.stem for path in paths if not compare(path, options.limit, options.gap, options.threads)]
    if apart:
        raise SystemExit(f"costs do not agree within the gap: {', '.join(apart)}")


if __name__ == "__main__":
    main()
