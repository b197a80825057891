"""Published closed loops of equal requests: the twin beside the measurement, and beside the formulas of `predict`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import epd_opt
from epd_models.calibrate import shipped_values
from epd_models.calibrate.card import as_card
from epd_models.calibrate.fitting import fit
from epd_models.calibrate.reduced import reduce_runs
from epd_models.calibrate.sample import Usable, sort_rows
from epd_models.measurements import Measurement
from epd_models.parallelism import Parallelism
from epd_models.placement.replica import built_replica
from epd_models.pool import Settings
from epd_models.serving import predict
from epd_opt.cli.measured import read_rows
from epd_opt.offering import context_of, loads_of
from epd_opt.resolve import resolve
from epd_opt.simulate.clock import Clock
from epd_opt.simulate.job import Job
from epd_opt.simulate.lane import Lane
from epd_opt.simulate.times import LaneTimes

ROUNDS = 10
"""Requests of each client, the first of which all clients send together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """A worker at rising concurrency.

    Attributes
    ----------
    rungs : tuple of (int, float, float)
        Concurrency, TPOT and TTFT in ms as published.
    """

    title: str
    model: str
    sku: str
    tensor: int
    engine: str
    prompt: int
    output: int
    rungs: tuple[tuple[int, float, float], ...]


R1 = Ladder(
    title="R1 Llama-3.1-70B FP8, 8 H200, TP8, TensorRT-LLM, 1024/1024",
    model="Llama-3.1-70B",
    sku="H200-SXM",
    tensor=8,
    engine="trtllm",
    prompt=1024,
    output=1024,
    rungs=((4, 6.26, 69), (8, 6.72, 82), (16, 7.69, 103), (32, 9.30, 143), (64, 13.51, 225), (128, 21.64, 324)),
)
R2 = Ladder(
    title="R2 Qwen3-32B FP8, 2 H100, TP2, TensorRT-LLM, 1024/512",
    model="Qwen3-32B",
    sku="H100-SXM",
    tensor=2,
    engine="trtllm",
    prompt=1024,
    output=512,
    rungs=((8, 10.4, 147), (16, 11.7, 186), (32, 14.8, 216), (64, 18.6, 312), (128, 27.1, 577)),
)


def ladders() -> Iterator[str]:
    """The twin beside what was published, and beside the formulas, which have the same stage times."""
    for ladder in (R1, R2):
        yield from ("", ladder.title, "")
        yield "| clients | TPOT ms | simulated | off % | formula | TTFT ms | simulated | off % | formula | spread | burst |"
        yield "|---|---|---|---|---|---|---|---|---|---|---|"
        said = predict([_row(ladder, clients) for clients, _, _ in ladder.rungs])
        for (clients, tpot, ttft), prediction in zip(ladder.rungs, said, strict=True):
            spread, burst = (closed_loop(ladder, clients=clients, together=together) for together in (False, True))
            interval, first = ten_rounds(spread, burst)
            assert prediction.times is not None
            yield (
                f"| {clients} | {tpot} | {interval:.2f} | {_off(interval, tpot)} | {prediction.times.itl_s * 1e3:.2f} "
                f"| {ttft} | {first:.0f} | {_off(first, ttft)} | {prediction.times.ttft_s * 1e3:.0f} "
                f"| {spread[1]:.0f} | {burst[1]:.0f} |"
            )


def why(runs: Path) -> Iterator[str]:
    """R1 with coefficients fitted to other parts of its own table, and what the table says of more devices.

    Parameters
    ----------
    runs : Path
        The measurements that the ladder is taken from, as `epd-opt predict` reads them.
    """
    rows, _ = read_rows(str(runs))
    table = [one for one in sort_rows(rows)[0] if _of_the_same_table(one.row)]
    fits = {
        "as shipped": None,
        "fitted to the 18 rows with 8192 output tokens, TP1 to TP4": _fitted(table, lambda n: n["osl"] == 8192),
        "fitted to its own rungs 4, 16 and 64": _fitted(table, lambda n: n["tp"] == 8 and n["concurrency"] in (4, 16, 64)),
    }
    yield "| coefficients | " + " | ".join(f"{clients} clients" for clients, _, _ in R1.rungs) + " |"
    yield "|---" * (len(R1.rungs) + 1) + "|"
    for name, card in fits.items():
        cells = []
        for clients, tpot, ttft in R1.rungs:
            loops = (closed_loop(R1, clients=clients, together=together, coefficients=card) for together in (False, True))
            interval, first = ten_rounds(*loops)
            cells.append(f"{_off(interval, tpot)}, {_off(first, ttft)}")
        yield f"| {name} | {' | '.join(cells)} |"
    yield ""
    yield "| TPOT ms at 1024/1024, measured (formula as shipped) | TP2 | TP4 | TP8 |"
    yield "|---|---|---|---|"
    for clients in (4, 64, 128):
        cells = [_measured(table, tensor, clients) for tensor in (2, 4, 8)]
        yield f"| {clients} clients | {' | '.join(cells)} |"


def _of_the_same_table(row: Measurement) -> bool:
    return all(
        word in row.text(key).lower()
        for key, word in (("model", "llama-3.1-70b"), ("gpu", "h200"), ("engine", "trtllm"), ("dtype", "fp8"))
    )


def _fitted(table: Sequence[Usable], kept: Any) -> Mapping[str, float]:
    chosen = [one for one in table if kept(one.row.numbers)]
    shipped = shipped_values(chosen[0].family)
    return as_card(fit(reduce_runs([(one.run, one.row) for one in chosen]), centre=shipped))


def _measured(table: Sequence[Usable], tensor: int, clients: int) -> str:
    wanted = {"tp": tensor, "isl": 1024, "osl": 1024, "concurrency": clients}
    (one,) = [one for one in table if all(one.row.numbers[key] == value for key, value in wanted.items())]
    (said,) = predict([one.row])
    assert said.times is not None
    return f"{one.row.numbers['itl_ms']:.2f} ({said.times.itl_s * 1e3:.2f})"


def ten_rounds(spread: tuple[float, float], burst: tuple[float, float]) -> tuple[float, float]:
    """Means over ten rounds of which the first is a burst: interval and first token."""
    return tuple(steady + (opening - steady) / ROUNDS for steady, opening in zip(spread, burst, strict=True))  # type: ignore[return-value]


def _off(found: float, known: float) -> str:
    return f"{100 * (found / known - 1):+.0f}"


def _row(ladder: Ladder, clients: int) -> Measurement:
    texts = {"model": ladder.model, "dtype": "fp8", "gpu": ladder.sku, "engine": ladder.engine}
    numbers = {
        "n_gpu": ladder.tensor,
        "tp": ladder.tensor,
        "isl": ladder.prompt,
        "osl": ladder.output,
        "concurrency": clients,
    }
    cells = texts | {key: str(value) for key, value in numbers.items()}
    return Measurement(line=1, cells=cells, numbers={key: float(value) for key, value in numbers.items()})


class _Clients:
    """A fixed number of clients, each of which sends its next request when the last one is answered."""

    def __init__(self, clock: Clock, rounds: int) -> None:
        self.clock, self.rounds = clock, rounds
        self.lane: Lane | None = None
        self.overhead_s = 0.0
        self.sent = 0
        self.last_s = 0.0
        self.done: list[tuple[Job, float]] = []

    def send(self, time: float, sizes: tuple[float, float]) -> None:
        one = Job(label=0, arrival_s=time, prompt=sizes[0], cached=0.0, output=sizes[1], measured=True)
        assert self.lane is not None
        self.sent += 1
        self.last_s = time
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
    ladder: Ladder, *, clients: int, together: bool, coefficients: Mapping[str, float] | None = None
) -> tuple[float, float]:
    """Mean TPOT and TTFT, ms: of the first round where all clients begin together, else of clients that begin at random over
    the life of a request, once all of them have begun and until the first of them stops."""
    device = {"sku": ladder.sku, "price": {"usd_per_hour": 1}, "tensor_parallel": [ladder.tensor]}
    if coefficients is not None:
        device["coefficients"] = {ladder.engine: dict(coefficients)}
    instance = epd_opt.read(
        {
            "schema": "epd-opt/instance/v1",
            "name": "ladder",
            "model": ladder.model,
            "engine": {"name": ladder.engine, "max_sequences": 256},
            "precision": {"weights": "fp8", "kv_cache": "fp8"},
            "workload": {
                "classes": [
                    {
                        "name": "run",
                        "rate_per_s": 1,
                        "text_tokens": ladder.prompt,
                        "output_tokens": ladder.output,
                        "slo": {"ttft_ms": 60000, "itl_ms": 1000},
                    }
                ]
            },
            "devices": [device],
        }
    )
    resolved = resolve(instance)
    context = context_of(resolved, loads_of(resolved)[0])
    cut = Parallelism(tensor=ladder.tensor)
    replica = built_replica(context, resolved.entries[0], cut, "prefill_decode", Settings(itl_level_s=0.1))
    clock = Clock()
    driver = _Clients(clock, rounds=(ROUNDS + 2) * clients)
    driver.lane = Lane(clock, LaneTimes(replica), driver, decodes=True)
    driver.overhead_s = resolved.engine.request_overhead_s
    life = ladder.output * replica.step(clients).fixed
    starts = np.zeros(clients) if together else np.sort(np.random.default_rng(1).uniform(0.0, life, clients))
    for start in starts.tolist():
        clock.at(start, driver.send, (float(ladder.prompt), float(ladder.output)))
    while clock.step():
        pass
    if together:
        counted = [(one, at) for one, at in driver.done if one.arrival_s == 0.0]
    else:
        counted = [(one, at) for one, at in driver.done if one.arrival_s >= 2.0 * life and at <= driver.last_s]
    interval = float(np.mean([one.interval_s(at) for one, at in counted]))
    return 1e3 * interval, 1e3 * float(np.mean([one.first_s - one.arrival_s for one, _ in counted]))
