"""What a point of a study takes, beside solving the same instance by itself.

Usage: python benchmarks/study.py [INSTANCE] [--only prices|stock|demand] [--workers N] [--alone N]

Each study has 200 points in two dimensions, solved by N processes: prices move (20 of the second device by 10 of the
first), stock and price (10 by 20), or demand (the rate of the last class by its images, 10 by 20). Beside each, some of its
points are solved by `epd_opt.solve` alone in one process, with the cards already loaded. Times are processor seconds but for
the wall's; ratios hold within one run on one machine. ``solved`` counts the points that were planned by themselves.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import epd_opt
from epd_opt.sensitivity.price_path import price_path
from epd_opt.sensitivity.shift import dimension, shifted


def studies(document: dict[str, Any]) -> dict[str, dict[str, list[Any]]]:
    """Values by path of each study."""
    first, second = document["devices"][:2]
    one, other = price_path(first), price_path(second)
    assert one is not None
    assert other is not None
    request = document["workload"]["classes"][-1]["name"]
    whole = f"devices.{first['name']}.stock"
    return {
        "prices": {one: _factors(0.5, 1.5, 10), other: _factors(0.25, 5.0, 20)},
        "stock": {whole: list(range(6, 16)), other: _factors(0.25, 5.0, 20)},
        "demand": {
            f"workload.classes.{request}.rate_per_s": _factors(0.5, 1.5, 10),
            f"workload.classes.{request}.images.count": list(range(1, 21)),
        },
    }


def _factors(low: float, high: float, steps: int) -> list[float]:
    return [round(low + (high - low) * i / (steps - 1), 4) for i in range(steps)]


def processor_s() -> float:
    """Processor time of this process and its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    """Run the studies that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("instance", nargs="?", default="instances/ten-images.yaml")
    parser.add_argument("--only", choices=["prices", "stock", "demand"])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--alone", type=int, default=10)
    options = parser.parse_args()
    instance = epd_opt.read(options.instance, overrides=["solver.threads=1"])
    document = instance.document()
    epd_opt.solve(instance)
    print(
        f"{'study':8} {'points':>6} {'solved':>6} {'wall s':>7} {'cpu s':>7} {'cpu s/point':>12} {'alone':>7} {'times':>6}"
    )
    for name, vary in studies(document).items():
        if options.only not in (None, name):
            continue
        moved = [dimension(path, values, document, scaled=isinstance(values[0], float)) for path, values in vary.items()]
        start, used = time.perf_counter(), processor_s()
        study = epd_opt.sensitivity(instance, moved, workers=options.workers)
        wall, used = time.perf_counter() - start, processor_s() - used
        points = study.document.points
        step = max(1, len(points) // options.alone)
        start_alone, solved = time.process_time(), points[step // 2 :: step]
        for point in solved:
            plan = epd_opt.solve(shifted(document, [(m, point.at[m.path]) for m in moved]))
            costs = [0.0 if cost is None else cost.usd_per_hour for cost in (plan.cost, point.cost)]
            if abs(costs[0] - costs[1]) > 2.0 * instance.solver.gap * max(costs):
                print(f"  differs at {point.at}: {costs[0]} and {costs[1]}")
        alone = (time.process_time() - start_alone) / len(solved)
        each, planned = used / len(points), sum(point.found == "solved" for point in points)
        row = f"{name:8} {len(points):6} {planned:6} {wall:7.1f} {used:7.1f} {each:12.3f} {alone:7.3f} {alone / each:6.2f}"
        print(row, flush=True)


if __name__ == "__main__":
    main()
