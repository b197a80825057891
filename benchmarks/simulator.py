"""What the simulator is worth: closed results, published ladders, shipped instances, speed.

Usage: python benchmarks/simulator.py [queues] [ladders] [instances] [speed]     default: all; needs the repository's tests
"""

from __future__ import annotations

import math
import resource
import sys
import time
from pathlib import Path

import numpy as np

import epd_opt
from epd_models.parallelism import Parallelism
from epd_models.placement.replica import built_replica
from epd_models.pool import Settings
from epd_opt.offering import context_of, loads_of
from epd_opt.resolve import resolve
from epd_opt.simulate.clock import Clock
from epd_opt.simulate.encoders import EncoderBank
from epd_opt.simulate.job import Job
from epd_opt.simulate.lane import Lane
from epd_opt.simulate.times import LaneTimes

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from support.lanes import PlainEncoders, PlainTimes, job, through_lane  # noqa: E402

REQUESTS, SEEDS = 20_000, 3
LADDERS = {
    "R1 Llama-3.1-70B FP8, 8 H200, TP8, TensorRT-LLM, 1024/1024": (
        ("Llama-3.1-70B", "H200-SXM", 8, "trtllm", 1024, 1024),
        ((4, 6.26, 69), (8, 6.72, 82), (16, 7.69, 103), (32, 9.30, 143), (64, 13.51, 225), (128, 21.64, 324)),
    ),
    "R2 Qwen3-32B FP8, 2 H100, TP2, TensorRT-LLM, 1024/512": (
        ("Qwen3-32B", "H100-SXM", 2, "trtllm", 1024, 512),
        ((8, 10.4, 147), (16, 11.7, 186), (32, 14.8, 216), (64, 18.6, 312), (128, 27.1, 577)),
    ),
}
"""Model, SKU, tensor degree, engine, tokens in and out; concurrency, TPOT and TTFT in ms as published."""


def main() -> None:
    """Print the tables that are asked for."""
    wanted = sys.argv[1:] or ["queues", "ladders", "instances", "speed"]
    for name in wanted:
        print(f"\n## {name}\n")
        {"queues": queues, "ladders": ladders, "instances": instances, "speed": speed}[name]()


def queues() -> None:
    """Waits and occupancy against closed results."""
    print("| queue | quantity | simulated | closed result | off % |\n|---|---|---|---|---|")
    for servers, use in ((1, 0.5), (1, 0.8), (4, 0.8), (16, 0.9)):
        load = use * servers
        found = _encoder_waits(servers, load)
        known = erlang_c(servers, load)
        _compare(f"M/M/{servers}, {use:.0%}", "P(wait)", float((found > 1e-9).mean()), known)
        _compare(f"M/M/{servers}, {use:.0%}", "mean wait", float(found.mean()), known / (servers - load))
    for use in (0.5, 0.7, 0.9):
        arrivals = np.cumsum(np.random.default_rng(2).exponential(1.0 / use, 200_000)).tolist()
        jobs = [job(at, 10) for at in arrivals]
        seen, _ = through_lane(PlainTimes(per_prompt_token=0.1, budget=10), jobs, decodes=False)
        waits = np.array([seen.read[one] - one.arrival_s - 1.0 for one in jobs])[10_000:]
        _compare(f"M/D/1, {use:.0%}", "mean wait", float(waits.mean()), use / (2 * (1 - use)))
    rng = np.random.default_rng(3)
    arrivals = np.cumsum(rng.exponential(0.1, 100_000)).tolist()
    jobs = [job(at, 1, out) for at, out in zip(arrivals, rng.choice([11.0, 51.0], 100_000).tolist(), strict=True)]
    seen, _ = through_lane(PlainTimes(fixed=0.05), jobs, decodes=True)
    grid = np.linspace(arrivals[1000], arrivals[-1000], 20_000)
    starts, ends = np.sort([one.first_s for one in jobs]), np.sort([seen.done[one] for one in jobs])
    held = np.searchsorted(starts, grid, side="right") - np.searchsorted(ends, grid, side="right")
    _compare("M/G/∞", "mean in flight", float(held.mean()), 15.0)
    _compare("M/G/∞", "variance in flight", float(held.var()), 15.0)


def _encoder_waits(servers: int, load: float, count: int = 200_000) -> np.ndarray:
    rng = np.random.default_rng(servers)
    clock, ends = Clock(), {}
    times = PlainEncoders(processes=servers)
    bank = EncoderBank(clock, times, lambda at, one: ends.update({one: at}))  # type: ignore[arg-type]
    arrivals = np.cumsum(rng.exponential(1.0 / load, count)).tolist()
    sent = []
    for at, seconds in zip(arrivals, rng.exponential(1.0, count).tolist(), strict=True):
        clock.run_until(at)
        one = job(at, 1)
        one.megapixels, one.image, one.images = seconds, object(), 1  # type: ignore[assignment]
        sent.append(one)
        bank.submit(at, one, 1)
    while clock.step():
        pass
    waits = np.array([ends[one] - one.arrival_s - one.megapixels for one in sent])[count // 20 :]
    return np.where(waits < 1e-7, 0.0, waits)


def erlang_c(servers: int, load: float) -> float:
    """Probability that an arrival at M/M/n waits."""
    terms = [load**k / math.factorial(k) for k in range(servers)]
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(terms) + last)


def _compare(queue: str, quantity: str, found: float, known: float) -> None:
    print(f"| {queue} | {quantity} | {found:.4f} | {known:.4f} | {100 * (found / known - 1):+.1f} |")


def ladders() -> None:
    """Published closed loops of ten rounds: the first a burst of all clients, the others spread over a request's life.

    Equal lengths keep whatever spacing the clients have. Were they in step for all rounds, the prompts of a burst would
    be read together every time and first tokens come many times later than published ones do.
    """
    for title, (setup, rungs) in LADDERS.items():
        print(f"\n{title}\n")
        print("| concurrency | TPOT ms | simulated | off % | TTFT ms | ten rounds | off % | spread rounds | burst |")
        print("|---|---|---|---|---|---|---|---|---|")
        for clients, tpot, ttft in rungs:
            spread, burst = (closed_loop(*setup, clients=clients, together=together) for together in (False, True))
            interval, first = (0.9 * steady + 0.1 * opening for steady, opening in zip(spread, burst, strict=True))
            print(
                f"| {clients} | {tpot} | {interval:.2f} | {100 * (interval / tpot - 1):+.0f} | {ttft} | {first:.0f} "
                f"| {100 * (first / ttft - 1):+.0f} | {spread[1]:.0f} | {burst[1]:.0f} |"
            )


class _Clients:
    """A fixed number of clients, each of which sends its next request when the last one is answered."""

    def __init__(self, clock: Clock, rounds: int) -> None:
        self.clock, self.rounds = clock, rounds
        self.lane: Lane | None = None
        self.overhead_s = 0.0
        self.sent = self.answers = 0
        self.done: list[tuple[Job, float]] = []

    def send(self, time: float, sizes: tuple[float, float]) -> None:
        one = Job(label=0, arrival_s=time, prompt=sizes[0], cached=0.0, output=sizes[1], measured=True)
        assert self.lane is not None
        self.sent += 1
        self.lane.expect(one)
        self.clock.at(time + self.overhead_s + self.lane.times.latency_s(one), self.lane.accept, one)

    def answered(self, time: float, one: Job) -> None:
        self.done.append((one, time))
        if self.sent < self.rounds:
            self.send(time, (one.prompt, one.output))

    def prompt_read(self, time: float, one: Job) -> None: ...

    def refused(self, time: float, one: Job) -> None: ...

    def pull(self, time: float, one: Job) -> None: ...


def closed_loop(
    model: str, sku: str, tensor: int, engine: str, prompt: int, output: int, *, clients: int, together: bool
) -> tuple[float, float]:
    """Mean TPOT and TTFT, ms: of the first round where all clients begin together, else of ten rounds of clients that
    begin at random over the life of a request."""
    instance = epd_opt.read(
        {
            "schema": "epd-opt/instance/v1",
            "name": "ladder",
            "model": model,
            "engine": {"name": engine, "max_sequences": 256},
            "precision": {"weights": "fp8", "kv_cache": "fp8"},
            "workload": {
                "classes": [
                    {"name": "run", "rate_per_s": 1, "text_tokens": prompt, "output_tokens": output,
                     "slo": {"ttft_ms": 60000, "itl_ms": 1000}}
                ]
            },
            "devices": [{"sku": sku, "price": {"usd_per_hour": 1}, "tensor_parallel": [tensor]}],
        }
    )  # fmt: skip
    resolved = resolve(instance)
    context = context_of(resolved, loads_of(resolved)[0])
    cut = Parallelism(tensor=tensor)
    replica = built_replica(context, resolved.entries[0], cut, "prefill_decode", Settings(itl_level_s=0.1))
    clock = Clock()
    driver = _Clients(clock, rounds=10 * clients)
    driver.lane = Lane(clock, LaneTimes(replica), driver, decodes=True)
    driver.overhead_s = resolved.engine.request_overhead_s
    life = output * replica.step(clients).fixed
    starts = np.zeros(clients) if together else np.sort(np.random.default_rng(1).uniform(0.0, life, clients))
    for start in starts.tolist():
        clock.at(start, driver.send, (float(prompt), float(output)))
    while clock.step():
        pass
    counted = [(one, at) for one, at in driver.done if not together or one.arrival_s == 0.0]
    interval = float(np.mean([one.interval_s(at) for one, at in counted]))
    return 1e3 * interval, 1e3 * float(np.mean([one.first_s - one.arrival_s for one, _ in counted]))


def instances() -> None:
    """Shipped instances: attainment, predicted against simulated times, and fleets with fewer replicas."""
    print("| instance | class | TTFT p95: predicted | simulated | kept | ITL p95: predicted | simulated | kept | met |")
    print("|---|---|---|---|---|---|---|---|---|")
    losses = []
    for path in sorted((ROOT / "instances").glob("*.yaml")):
        plan = epd_opt.solve(path)
        found = epd_opt.simulate(plan, requests=REQUESTS, seeds=SEEDS)
        for name, outcome in found.classes.items():
            said, kept = plan.classes[name], outcome.attainment
            cells = [path.stem, name, _ms(said.ttft_ms), _ms(outcome.ttft_ms.p95), f"{kept.ttft:.4f}"]
            cells += [
                _ms(said.itl_ms),
                _ms(outcome.itl_ms.p95),
                f"{kept.itl:.4f}",
                "yes" if outcome.target_met else "**no**",
            ]
            print(f"| {' | '.join(cells)} |", flush=True)
        losses += list(_losses(path.stem, plan))
    print("\n| instance | pool | replicas | least that meet the targets | fewer by |\n|---|---|---|---|---|")
    for line in losses:
        print(line)


def _losses(stem: str, plan: epd_opt.Plan) -> list[str]:
    """For each pool, the fewest replicas with which all targets are met, everything else the same."""
    lines = []
    for i, pool in enumerate(plan.pools):
        least = pool.replicas
        while least > 1 and epd_opt.simulate(_with(plan, i, least - 1), requests=REQUESTS // 2).target_met:
            least -= 1
        allowed = max(2, math.ceil(0.1 * pool.replicas) + 1)
        lost = pool.replicas - least
        lines.append(f"| {stem} | {pool.name} | {pool.replicas} | {least} | {lost}{'' if lost < allowed else ' **idle**'} |")
    return lines


def _with(plan: epd_opt.Plan, index: int, replicas: int) -> epd_opt.Plan:
    pools = list(plan.pools)
    pools[index] = pools[index].model_copy(update={"replicas": replicas})
    return epd_opt.Plan(plan.document.model_copy(update={"pools": pools}))


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def speed() -> None:
    """Requests per second of CPU time, and memory, on the albums' instance."""
    plan = epd_opt.solve(ROOT / "instances" / "ten-images.yaml")
    print("| requests that count | simulated | CPU s | requests/s | peak memory MiB |\n|---|---|---|---|---|")
    for count in (5_000, 20_000, 80_000):
        start = time.process_time()
        found = epd_opt.simulate(plan, requests=count)
        seconds = time.process_time() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        simulated = found.simulated_requests
        print(f"| {count:,} | {simulated:,} | {seconds:.2f} | {simulated / seconds:,.0f} | {peak:.0f} |")


if __name__ == "__main__":
    main()
