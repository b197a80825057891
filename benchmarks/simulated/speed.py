"""Requests per second of CPU time, beside a plain SimPy model of one pool, and memory as a run grows."""

from __future__ import annotations

import itertools
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import epd_opt
from epd_opt.offering import loads_of
from epd_opt.restore import resolved_plan
from epd_opt.simulate.arrivals import Arrival, drawn
from epd_opt.simulate.run import sources_of
from simulated.shipped import INSTANCES

COUNTS = (5_000, 20_000, 80_000)
TRACES = (20_000, 100_000, 400_000)
POOL_REQUESTS = 4_000


def speed() -> Iterator[str]:
    """The albums' instance; each line is a process of its own."""
    yield "| requests that count | simulated | CPU s | requests/s | peak memory, MiB |"
    yield "|---|---|---|---|---|"
    for count in COUNTS:
        found = _apart("drawn", count)
        yield (
            f"| {count:,} | {found['simulated']:,} | {found['seconds']:.2f} | {found['simulated'] / found['seconds']:,.0f} "
            f"| {found['peak_mib']:.0f} |"
        )
    yield ""
    yield "| rows of the trace | bytes | CPU s | rows/s | peak memory, MiB |"
    yield "|---|---|---|---|---|"
    for count in TRACES:
        found = _apart("trace", count)
        rate = count / found["seconds"]
        yield f"| {count:,} | {found['bytes']:,} | {found['seconds']:.2f} | {rate:,.0f} | {found['peak_mib']:.0f} |"
    yield ""
    yield from _beside_simpy()


def _beside_simpy() -> Iterator[str]:
    """The language pool of the albums' instance alone, fed with prompts whose images are encoded, twin and SimPy in turn."""
    from support.simpy_pool import through_simpy

    plan = language_pool()
    (pool,) = plan.pools
    sent = arrivals(plan, POOL_REQUESTS)
    start = time.process_time()
    twin = epd_opt.simulate(plan, trace=sent)
    between = time.process_time()
    answered = through_simpy(plan, sent)
    end = time.process_time()
    ttft = _mean_ms([job.first_s - job.arrival_s for job in answered])
    counted = sum(outcome.requests for outcome in twin.classes.values())
    mine = sum(outcome.requests * (outcome.ttft_ms.mean or 0.0) for outcome in twin.classes.values()) / counted
    speeds = POOL_REQUESTS / (between - start), POOL_REQUESTS / (end - between)
    yield f"| {pool.replicas} replicas of {pool.name}, {POOL_REQUESTS:,} requests | requests/s | mean TTFT, ms |"
    yield "|---|---|---|"
    yield f"| twin | {speeds[0]:,.0f} | {mine:.2f} (without its warm-up) |"
    yield f"| plain SimPy | {speeds[1]:,.0f} | {ttft:.2f} |"
    yield f"| ratio | {speeds[0] / speeds[1]:.1f} | |"


def language_pool() -> epd_opt.Plan:
    """The albums' instance with their images' tokens as text: one pool of language workers."""
    document = epd_opt.read(INSTANCES / "ten-images.yaml").document()
    for request in document["workload"]["classes"]:
        if request.pop("images", None):
            request["text_tokens"] = 300 + 2560
    document["placements"] = ["prefill_decode"]
    return epd_opt.solve(document)


def arrivals(plan: epd_opt.Plan, count: int) -> list[Arrival]:
    """The first requests that a simulation of the plan would draw."""
    resolved = resolved_plan(plan.document)
    sources = sources_of(resolved, {load.name: load for load in loads_of(resolved)[0]})
    return list(itertools.islice(drawn(sources, 0), count))


def _mean_ms(seconds: list[float]) -> float:
    return 1e3 * float(np.mean(seconds))


def _apart(kind: str, count: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "simulated.speed", kind, str(count)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _drawn(count: int) -> dict[str, Any]:
    plan = epd_opt.solve(INSTANCES / "ten-images.yaml")
    start = time.process_time()
    found = epd_opt.simulate(plan, requests=count)
    return {"simulated": found.simulated_requests, "seconds": time.process_time() - start}


def _trace(count: int) -> dict[str, Any]:
    """A trace of the instance's own requests, from a file."""
    import tempfile

    plan = epd_opt.solve(INSTANCES / "ten-images.yaml")
    resolved = resolved_plan(plan.document)
    sources = sources_of(resolved, {load.name: load for load in loads_of(resolved)[0]})
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write("arrival_s,input_text_tokens,num_images,image_tokens,output_tokens\n")
        for one in itertools.islice(drawn(sources, 0), count):
            tokens = 256 * one.image_count
            file.write(f"{one.time_s:.6f},{one.text_tokens:.0f},{one.image_count},{tokens},{one.output_tokens:.0f}\n")
        file.flush()
        size = Path(file.name).stat().st_size
        start = time.process_time()
        epd_opt.simulate(plan, trace=file.name)
    return {"bytes": size, "seconds": time.process_time() - start}


if __name__ == "__main__":
    result = {"drawn": _drawn, "trace": _trace}[sys.argv[1]](int(sys.argv[2]))
    result["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(result))
