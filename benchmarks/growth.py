"""How planning time grows with SKUs, classes and demand, phase by phase, and what naive alternatives take.

Usage: python benchmarks/growth.py [--only skus|classes|demand|naive|mix] [--threads N] [--seconds S] [--cases FOLDER]

Each line is a process of its own: seconds by the wall for candidates, pruning, shortlist, building, solving and verifying,
and the most memory it held. Ratios hold within one run on one machine. The reference is the first line of each table: six
SKUs, tensor parallel 1 to 8, all placements, three classes, gap 0.1 %.

The table "mix" plans mixes of GPU types from measured rates per type and size of request, as files in a folder state them
(``gpu_info`` with cost and rates, ``workload_distribution``, ``total_request_rate``, ``slice_factor``), without a gap, with
every back-end, at one, ten and a hundred times their demand. Beside it stands the formulation of Melange (Griggs et al.,
"Melange: Cost Efficient Large Language Model Serving by Exploiting GPU Heterogeneity", 2024): every size's requests are cut
into equal slices, each of which goes whole to one type.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

SKUS = {
    "H100-SXM": 3.49,
    "H200-SXM": 4.20,
    "B200-SXM": 6.50,
    "A100-80-SXM": 1.79,
    "L40S": 0.95,
    "RTX-PRO-6000-SE": 1.65,
    "MI300X": 2.60,
    "GB200": 7.60,
    "L4": 0.62,
    "MI325X": 3.10,
    "RTX-6000D": 1.10,
    "H100-PCIe": 2.40,
}
"""US dollars per hour, of the size that was asked in 2026; stated for the benchmark only."""


def classes() -> list[dict[str, Any]]:
    """Eight classes, from chat to clips."""

    def one(name: str, rate: float, text: Any, output: Any, ttft: float, itl: float, **vision: Any) -> dict[str, Any]:
        slo = {"ttft_ms": ttft, "itl_ms": itl, "percentile": 95}
        return {"name": name, "rate_per_s": rate, "text_tokens": text, "output_tokens": output, "slo": slo, **vision}

    def images(count: int, width: int, height: int) -> dict[str, Any]:
        return {"images": {"count": count, "width_px": width, "height_px": height}}

    return [
        one("chat", 40, {"mean": 900, "p95": 3000}, {"mean": 300, "p95": 800}, 1000, 50),
        one("album", 8, 200, 400, 4000, 60, **images(6, 1280, 960)),
        one("photo", 15, 150, 200, 1500, 50, **images(1, 1024, 768)),
        one("code", 10, {"mean": 2500, "p95": 9000}, {"mean": 150, "p95": 500}, 2000, 40),
        one("reason", 3, 600, {"mean": 2500, "p95": 7000}, 2000, 45),
        one("scan", 4, 300, 600, 5000, 60, **images(4, 1240, 1754)),
        one("search", 25, {"mean": 3500, "p95": 6000}, 120, 2500, 80),
        one("icon", 12, 80, 60, 900, 60, **images(1, 448, 448)),
    ]


def instance(skus: int, kinds: int, demand: float, gap: float, threads: int) -> dict[str, Any]:
    """The first so many SKUs and classes, at a multiple of their rates."""
    wanted = [{**c, "rate_per_s": c["rate_per_s"] * demand} for c in classes()[:kinds]]
    offered = [
        {"sku": sku, "price": {"usd_per_hour": price}, "tensor_parallel": [1, 2, 4, 8]}
        for sku, price in list(SKUS.items())[:skus]
    ]
    return {
        "schema": "epd-opt/instance/v1",
        "name": f"{skus} SKUs, {kinds} classes, demand x{demand:g}",
        "model": "Qwen3-VL-30B-A3B",
        "engine": "vllm",
        "workload": {"classes": wanted},
        "devices": offered,
        "solver": {"gap": gap, "threads": threads, "time_limit_s": 600},
    }


def mix(path: Path, demand: float) -> dict[str, Any]:
    """A stated mix of GPU types at a multiple of its demand, as an instance of measured workers."""
    given = json.loads(path.read_text(encoding="utf-8"))["input"]
    rates = [share * given["total_request_rate"] * demand for row in given["workload_distribution"] for share in row]
    names = [f"size-{b:03d}" for b in range(len(rates))]
    return {
        "schema": "epd-opt/instance/v1",
        "name": f"{path.stem}, demand x{demand:g}",
        "candidates": {"modelled": False},
        "workload": {"classes": [{"name": name, "rate_per_s": rate} for name, rate in zip(names, rates, strict=True)]},
        "devices": [{"sku": sku, "price": {"usd_per_hour": gpu["cost"]}} for sku, gpu in given["gpu_info"].items()],
        "workers": [
            {
                "name": sku,
                "sku": sku,
                "devices": 1,
                "stages": ["prefill", "decode"],
                "max_rate_per_s": dict(zip(names, itertools.chain(*gpu["tputs"]), strict=True)),
            }
            for sku, gpu in given["gpu_info"].items()
        ],
        "solver": {"gap": 0.0, "time_limit_s": 60},
    }


def sliced(case: dict[str, Any], slices: int) -> dict[str, Any]:
    """Plan a mix by whole slices, with HiGHS; run in a process of its own."""
    import pulp

    from epd_opt.backends import Settings, backend

    began = time.perf_counter()
    model = pulp.LpProblem("slices", pulp.LpMinimize)
    prices = {entry["sku"]: entry["price"]["usd_per_hour"] for entry in case["devices"]}
    counts = {sku: model.add_variable(f"n_{g}", 0, 10**6, cat=pulp.LpInteger) for g, sku in enumerate(prices)}
    model.setObjective(pulp.lpSum(prices[sku] * count for sku, count in counts.items()))
    loads: dict[str, list[Any]] = {sku: [] for sku in prices}
    for c, wanted in enumerate(entry for entry in case["workload"]["classes"] if entry["rate_per_s"] > 0):
        for s in range(slices):
            taken = []
            for g, worker in enumerate(case["workers"]):
                most = worker["max_rate_per_s"][wanted["name"]]
                if most > 0:
                    taken.append(model.add_variable(f"x_{c}_{s}_{g}", 0, 1, cat=pulp.LpInteger))
                    loads[worker["sku"]].append(wanted["rate_per_s"] / slices / most * taken[-1])
            model.addConstraint(pulp.lpSum(taken) == 1, f"slice_{c}_{s}")
    for g, sku in enumerate(prices):
        model.addConstraint(pulp.lpSum(loads[sku]) <= counts[sku], f"type_{g}")
    seconds = {**dict.fromkeys(PHASES, 0.0), "build": time.perf_counter() - began}
    settings = Settings(gap=0.0, time_limit_s=case["solver"]["time_limit_s"], threads=case["solver"]["threads"])
    began = time.perf_counter()
    outcome = backend("highs").solve(model, settings)
    seconds["solve"] = time.perf_counter() - began
    return {
        "candidates": [len(model.variables())],
        "seconds": seconds,
        "ended": outcome.termination,
        "usd_per_hour": outcome.objective,
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def measured(case: dict[str, Any], way: str) -> dict[str, Any]:
    """Plan one case in one way, by the wall; run in a process of its own. Back-ends of other processes have begun theirs
    before."""
    import pulp

    import epd_opt
    from epd_opt.assemble import feasible_document
    from epd_opt.backends import HIGHS, Clock, Settings, backend
    from epd_opt.formulation import build
    from epd_opt.offering import offering
    from epd_opt.plan import Plan
    from epd_opt.prune import prune
    from epd_opt.resolve import resolve
    from epd_opt.search import Found
    from epd_opt.shortlist import Scout, Shortlist
    from epd_opt.solution import replica_counts, route
    from epd_opt.verify import verify

    name = way if way in ("cbc", "scip", "cp_sat") else "highs"
    if way == name:
        started = pulp.LpProblem("started", pulp.LpMinimize)
        started.setObjective(started.add_variable("x", 0, 1, cat=pulp.LpInteger))
        started.addConstraint(started.variables()[0] >= 1, "row")
        backend(name).solve(started, Settings(gap=0.0, time_limit_s=60.0, threads=1))
    began = time.perf_counter()
    seconds: dict[str, float] = {}

    def mark(phase: str) -> None:
        nonlocal began
        seconds[phase] = time.perf_counter() - began
        began = time.perf_counter()

    found = epd_opt.Instance.model_validate(case)
    settings = Settings(gap=found.solver.gap, time_limit_s=found.solver.time_limit_s, threads=found.solver.threads)
    clock = Clock(settings.time_limit_s or 600.0)
    scout = Scout(settings=settings, clock=clock)
    whole = way in ("unpruned", "pruned")
    resolved = resolve(found)
    offered = offering(resolved, screen=None if whole else scout.worth_staffing)
    problem = offered.problem
    every = len(problem.candidates)
    mark("candidates")
    problem = problem if way == "unpruned" else prune(problem)
    left = len(problem.candidates)
    mark("prune")
    listed = Shortlist(problem=problem)
    if not whole:
        listed = scout.shortlist(problem)
    mark("shortlist")
    formulation = build(listed.problem)
    mark("build")
    outcome = backend(name).solve(formulation.model, replace(settings, start=listed.start(formulation)))
    mark("solve")
    if outcome.values is not None:
        solution = route(formulation, replica_counts(formulation, outcome), HIGHS, settings)
        assert solution is not None
        ended = Found(multiple=1.0, offered=offered, formulation=formulation, outcome=outcome)
        verify(Plan(feasible_document(resolved, ended, solution, began)), offered=offered, resolved=resolved)
    mark("verify")
    return {
        "candidates": [every, left, len(listed.problem.candidates)],
        "seconds": seconds,
        "ended": outcome.termination,
        "usd_per_hour": None if outcome.objective is None else outcome.objective / formulation.scale.factor,
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


PHASES = ("candidates", "prune", "shortlist", "build", "solve", "verify")


def line(title: str, result: dict[str, Any], solver: float) -> float:
    """Print a line; returns the seconds in solvers, relaxations and the incumbent included but for those that screen pools,
    which stand with the candidates."""
    seconds = result["seconds"]
    spent = float(seconds["shortlist"] + seconds["solve"])
    counts = "/".join(str(count) for count in result["candidates"])
    times = "  ".join(f"{seconds[phase]:9.2f}" for phase in PHASES)
    cost = "-" if result["usd_per_hour"] is None else f"{result['usd_per_hour']:.2f}"
    ratio = f"x{spent / solver:.1f}" if solver else "x1.0"
    print(
        f"{title:<34} {counts:>18}  {times}  {ratio:>7}  {cost:>10}  {result['ended']:<11} {result['mib']:6.0f}", flush=True
    )
    return spent


def run(case: dict[str, Any], way: str, limit: float) -> dict[str, Any] | None:
    """Measure in a process of its own; None where it took longer than the limit."""
    command = [sys.executable, __file__, "--case", json.dumps(case), "--way", way]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=True)
    except subprocess.TimeoutExpired:
        return None
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def table(title: str, cases: list[tuple[str, dict[str, Any], str]], limit: float) -> None:
    """A table whose ratios are against its first line."""
    head = "  ".join(f"{phase:>9}" for phase in PHASES)
    print(f"\n{title:<34} {'all/pruned/listed':>18}  {head}  {'solvers':>7}  {'USD/h':>10}  {'ended':<11} {'MiB':>6}")
    first = 0.0
    for name, case, way in cases:
        result = run(case, way, limit)
        if result is None:
            print(f"{name:<34} {'':>18}  longer than {limit:g} s", flush=True)
            continue
        spent = line(name, result, first)
        first = first or spent


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["skus", "classes", "demand", "naive", "mix"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=300.0, help="limit per line")
    beside = Path(__file__).parents[2] / "shared" / "validation" / "gpu_mix"
    parser.add_argument("--cases", type=Path, default=beside, help="folder of stated mixes, for the table mix")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--way", default="listed", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.case:
        case, way = json.loads(asked.case), asked.way
        print(json.dumps(sliced(case, int(way.split()[1])) if way.startswith("slices") else measured(case, way)))
        return

    def reference(skus: int = 6, kinds: int = 3, demand: float = 1.0, gap: float = 0.001) -> dict[str, Any]:
        return instance(skus, kinds, demand, gap, asked.threads)

    tables = {
        "skus": [(f"{n} SKUs", reference(skus=n), "listed") for n in (6, 3, 9, 12)],
        "classes": [(f"{n} classes", reference(kinds=n), "listed") for n in (3, 1, 5, 8)]
        + [("12 SKUs, 8 classes, gap 0.5 %", reference(skus=12, kinds=8, gap=0.005), "listed")],
        "demand": [(f"{63 * x:,.0f} requests/s", reference(demand=x), "listed") for x in (1, 0.1, 10, 100, 1600)],
        "naive": [
            (name, reference(), way) for name, way in (("shortlist, then HiGHS", "listed"), ("pruned, HiGHS", "pruned"))
        ]
        + [("unpruned, HiGHS", reference(), "unpruned")]
        + [(f"shortlist, then {way}", reference(), way) for way in ("cbc", "scip", "cp_sat")],
    }
    for name, cases in tables.items():
        if asked.only in (None, name):
            table(name, cases, asked.seconds)
    if asked.only in (None, "mix"):
        for path in sorted(asked.cases.glob("*.json")):
            slices = json.loads(path.read_text(encoding="utf-8"))["input"]["slice_factor"]
            for demand in (1, 10, 100):
                mixed = mix(path, demand)
                mixed["solver"]["threads"] = asked.threads
                ways = [(f"{way}, rates split", mixed, way) for way in ("highs", "cbc", "scip", "cp_sat")]
                table(mixed["name"], [*ways, (f"{slices} slices, HiGHS", mixed, f"slices {slices}")], asked.seconds)


if __name__ == "__main__":
    main()
