"""What the study asks, table by table. Each function takes the asker and gives the rows of one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import epd_opt
from npu.ask import Asker, Row
from npu.devices import rates, throughput
from npu.question import Question, guessed_range, instance

INSTANCES = Path(__file__).parents[2] / "instances"
RIVALS = ("H200-SXM", "B200-SXM")
"""GPUs that a fleet is compared on: the last two generations on the market at prices known for both rent and purchase."""
GPUS = ("H100-SXM", "H200-SXM", "B200-SXM", "GB200")
BOUGHT = ("RBLN-REBEL100-CR13", "RNGD", "Gaudi3", "Ascend-910C")
BRIEF: dict[str, Any] = {"model": "Llama-3.1-8B", "rate": 400.0, "prompt": 300.0, "answer": 150.0}
RENTED = ("Trainium2", "TPU-v6e", "TPU-v7-Ironwood")
SMALL: dict[str, Any] = {"model": "Llama-3.1-8B", "rate": 200.0}
ALBUM: dict[str, Any] = {"model": "Qwen3-VL-32B", "images": 4, "prompt": 300.0, "ttft_ms": 4000.0}
MODELS: tuple[dict[str, Any], ...] = ({}, SMALL, ALBUM)


def _ends(npu: str) -> tuple[float | None, ...]:
    """Prices to show a device at: the catalogue's (None) where there is one, else both ends of the guessed range."""
    guessed = guessed_range(npu)
    return (None,) if npu in ("Gaudi3", "Ascend-910C") or guessed is None else guessed


def devices(_: Asker) -> list[Row]:
    """What one sold unit reads and writes by itself."""
    rows: list[Row] = []
    for model in ("Llama-3.1-70B", "Llama-3.1-8B"):
        for sku in (*GPUS, "MI300X", *BOUGHT, "RBLN-ATOM-Max-CA25", *RENTED):
            for as_gpu in (False,) if sku in (*GPUS, "MI300X") else (False, True):
                found = rates(sku, model, as_gpu=as_gpu) or {}
                rows.append(
                    {"sku": sku, "model": model, "as_gpu": as_gpu, **{k: float(f"{v:.4g}") for k, v in found.items()}}
                )
    return rows


def claims(_: Asker) -> list[Row]:
    """FuriosaAI's published throughput of Llama-3.1-8B, 128 tokens in and 4,096 out on one device, and ours."""
    return [
        {"sku": sku, "published": published, "predicted": float(f"{throughput(sku, 'Llama-3.1-8B', 128.0, 4096.0):.4g}")}
        for sku, published in (("RNGD", 3935.25), ("H100-SXM", 13222.06), ("L40S", 2989.17))
    ]


def fleets(ask: Asker) -> list[Row]:
    """Fleets with and without NPUs, owned."""

    def questions() -> Iterator[Question]:
        for model in MODELS:
            for gpu in GPUS:
                yield Question(way="integrated", gpu=gpu, **model)
                yield Question(way="split", gpu=gpu, **model)
            yield Question(way="one vendor", gpu="Gaudi3", **model)
            for gpu in GPUS:
                yield Question(way="pair", gpu=gpu, npu="Gaudi3", **model)
            for gpu in RIVALS:
                yield Question(way="pair", gpu=gpu, npu="Gaudi3", as_gpu=True, **model)
                for npu in ("Ascend-910C", "RBLN-REBEL100-CR13", "RNGD"):
                    for price in _ends(npu):
                        for as_gpu in (False, True):
                            yield Question(way="pair", gpu=gpu, npu=npu, npu_price=price, as_gpu=as_gpu, **model)
        for price in _ends("RBLN-ATOM-Max-CA25"):
            yield Question(way="pair", gpu="H200-SXM", npu="RBLN-ATOM-Max-CA25", npu_price=price, **SMALL)

    return ask.rows(questions())


def reverse(ask: Asker) -> list[Row]:
    """The other way round: the NPU reads, the GPU writes."""

    def questions() -> Iterator[Question]:
        for model in MODELS[:2]:
            for gpu in RIVALS:
                yield Question(way="reverse", gpu=gpu, npu="Gaudi3", **model)
                for as_gpu in (False, True):
                    yield Question(
                        way="reverse", gpu=gpu, npu="RBLN-REBEL100-CR13", npu_price=15000.0, as_gpu=as_gpu, **model
                    )

    return ask.rows(questions())


def break_evens(ask: Asker) -> list[Row]:
    """Purchase prices at which an NPU that decodes costs as much as GPUs of one kind alone."""
    rows = []
    for model in MODELS:
        for gpu in RIVALS:
            rival = Question(way="one vendor", gpu=gpu, **model)
            for npu in BOUGHT:
                for as_gpu in (False, True):
                    pair = Question(way="pair", gpu=gpu, npu=npu, as_gpu=as_gpu, **model)
                    rows.append(ask.break_even(pair, rival))
    return rows


def brief(ask: Asker) -> list[Row]:
    """Short prompts and answers, for a card of small memory: what it costs free, and what it may cost as a GPU."""
    rows = []
    for gpu in RIVALS:
        rival = Question(way="one vendor", gpu=gpu, **BRIEF)
        pair = Question(way="pair", gpu=gpu, npu="RBLN-ATOM-Max-CA25", **BRIEF)
        rows += [ask.row(rival), ask.row(replace(pair, npu_price=0.0))]
        rows += [ask.break_even(replace(pair, as_gpu=as_gpu), rival) for as_gpu in (False, True)]
    return rows


def bandwidth(ask: Asker) -> list[Row]:
    """The same over the share of its memory bandwidth that the NPU reaches."""
    rows = []
    for gpu in RIVALS:
        rival = Question(way="one vendor", gpu=gpu)
        for npu in BOUGHT:
            for share in (0.3, 0.45, 0.6, 0.75, 0.9):
                pair = Question(way="pair", gpu=gpu, npu=npu, bandwidth_share=share)
                rows.append(ask.break_even(pair, rival))
    return rows


def rent(ask: Asker) -> list[Row]:
    """Rented devices: fleets at the catalogue's median, and the rent at which an NPU breaks even."""
    rows = ask.rows(Question(way="one vendor", gpu=gpu, rented=True) for gpu in GPUS)
    for npu in RENTED:
        for gpu in RIVALS:
            pair = Question(way="pair", gpu=gpu, npu=npu, rented=True)
            rival = Question(way="one vendor", gpu=gpu, rented=True)
            rows.append(ask.row(pair))
            rows += [ask.break_even(replace(pair, as_gpu=as_gpu), rival) for as_gpu in (False, True)]
    return rows


def power(ask: Asker) -> list[Row]:
    """What electricity does: costs over the tariff, and the tariff at which two ways cost the same."""
    rows = []
    for gpu in RIVALS:
        rival = Question(way="one vendor", gpu=gpu)
        pairs = [
            Question(way="pair", gpu=gpu, npu="Gaudi3"),
            Question(way="pair", gpu=gpu, npu="RBLN-REBEL100-CR13", npu_price=15000.0, as_gpu=True),
            Question(way="pair", gpu=gpu, npu="RNGD", npu_price=7000.0, as_gpu=True),
        ]
        rows += [ask.row(replace(asked, tariff=tariff)) for asked in (rival, *pairs) for tariff in (0.06, 0.12, 0.24)]
        for pair in pairs:
            rows.append(ask.tariff(pair, rival))
    return rows


def _three_ways(gpu: str, **changes: Any) -> Iterator[Question]:
    yield Question(way="integrated", gpu=gpu, **changes)
    yield Question(way="split", gpu=gpu, **changes)
    yield Question(way="pair", gpu=gpu, npu="Gaudi3", **changes)
    yield Question(way="pair", gpu=gpu, npu="RBLN-REBEL100-CR13", npu_price=22500.0, as_gpu=True, **changes)


PROMPTS, ANSWERS = (250.0, 1000.0, 4000.0, 12000.0), (60.0, 250.0, 1000.0, 4000.0)


def _load(prompt: float, answer: float) -> float:
    """Requests/s that keep some ten B200 busy: their seconds per token of prompts and of answers, as in the base case."""
    return float(f"{11.0 / (75e-6 * prompt + 250e-6 * answer):.2g}")


def lengths(ask: Asker) -> list[Row]:
    """Lengths of prompts and answers, at loads that keep fleets about as large."""
    rows = []
    for gpu in RIVALS:
        for prompt in PROMPTS:
            for answer in ANSWERS:
                changes = {
                    "prompt": prompt,
                    "answer": answer,
                    "rate": _load(prompt, answer),
                    "ttft_ms": 8000.0 if prompt > 4000.0 else 2000.0,
                }
                rows += ask.rows(_three_ways(gpu, **changes))
    return rows


def targets(ask: Asker) -> list[Row]:
    """Targets for the first token and between tokens."""
    rows = []
    for gpu in RIVALS:
        for ttft in (500.0, 1000.0, 4000.0):
            for itl in (20.0, 30.0, 50.0, 100.0):
                rows += ask.rows(_three_ways(gpu, ttft_ms=ttft, itl_ms=itl))
    return rows


def loads(ask: Asker) -> list[Row]:
    """Small and large fleets."""
    rows = []
    for gpu in RIVALS:
        for rate in (1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 80.0):
            rows += ask.rows(_three_ways(gpu, rate=rate))
    return rows


def network(ask: Asker) -> list[Row]:
    """The KV cache's way: bandwidth per device, and bytes added by conversion between vendors."""
    pair = Question(way="pair", gpu="H200-SXM", npu="Gaudi3")
    return ask.rows(
        replace(pair, gbit=gbit, conversion=conversion, prompt=prompt, rate=40.0 if prompt < 4000.0 else 12.0)
        for prompt in (2000.0, 8000.0)
        for gbit in (5.0, 10.0, 25.0, 100.0, 400.0)
        for conversion in (1.0, 3.0)
    )


def capital(ask: Asker) -> list[Row]:
    """The same capital spent both ways: the most requests/s for a million dollars of hardware."""

    def questions() -> Iterator[Question]:
        for gpu in RIVALS:
            same: dict[str, Any] = {"gpu": gpu, "budget": 1e6, "tariff": 0.0}
            yield Question(way="one vendor", **same)
            yield Question(way="pair", npu="Gaudi3", **same)
            for price in _ends("RBLN-REBEL100-CR13"):
                for as_gpu in (False, True):
                    yield Question(way="pair", npu="RBLN-REBEL100-CR13", npu_price=price, as_gpu=as_gpu, **same)

    return ask.rows(questions())


def _story_workloads() -> Iterator[dict[str, Any]]:
    """Dense models with much to read and with much to write."""
    for model in ({}, {"model": "Llama-3.1-8B"}):
        for prompt, answer in ((4000.0, 500.0), (500.0, 4000.0)):
            rate = _load(prompt, answer) * (6.0 if model else 1.0)
            yield {"prompt": prompt, "answer": answer, "rate": rate, **model}


def stories(ask: Asker) -> list[Row]:
    """Public claims about GPU prefill with another vendor's decode: B200 or H100 with Gaudi 3 or MI300X."""

    def questions() -> Iterator[Question]:
        for same in _story_workloads():
            for gpu in ("H100-SXM", "B200-SXM"):
                yield Question(way="integrated", gpu=gpu, **same)
                yield Question(way="split", gpu=gpu, **same)
                yield Question(way="pair", gpu=gpu, npu="Gaudi3", **same)
                yield Question(way="pair", gpu=gpu, npu="Gaudi3", as_gpu=True, **same)
                yield Question(way="pair", gpu=gpu, npu="MI300X", **same)

    return ask.rows(questions())


CLAIMED_GAIN = 1.7
"""B200 prefill and Gaudi 3 decode against B200 for both (Gimlet Labs, 2025-10-13; Intel, OCP Global Summit 2025)."""


def story_prices(ask: Asker) -> list[Row]:
    """What Gaudi 3 would have to cost for the claimed gain over B200 apart."""
    return [
        ask.break_even(
            Question(way="pair", gpu="B200-SXM", npu="Gaudi3", as_gpu=as_gpu, **same),
            Question(way="split", gpu="B200-SXM", **same),
            factor=CLAIMED_GAIN,
        )
        for same in _story_workloads()
        for as_gpu in (False, True)
    ]


def shipped(_: Asker) -> list[Row]:
    """The shipped instances in which GPUs and NPUs compete, as they stand and with GPUs alone."""
    rows: list[Row] = []
    for name in ("gpu-or-npu", "npu-images"):
        stated = epd_opt.read(INSTANCES / f"{name}.yaml")
        for gpu_only in (False, True):
            devices = tuple(entry for entry in stated.devices if not gpu_only or entry.sku == "H200-SXM")
            plan = epd_opt.solve(stated.model_copy(update={"devices": devices}))
            fleet = [
                f"{pool.replicas} {pool.placement} {pool.sku} tp{pool.parallelism.tensor}" for pool in plan.document.pools
            ]
            cost = 0.0 if plan.cost is None else float(f"{plan.cost.usd_per_hour:.5g}")
            rows.append({"instance": name, "gpu_only": gpu_only, "usd_per_hour": cost, "fleet": fleet})
    return rows


HEADLINES: dict[str, Question] = {
    "H200 alone": Question(way="one vendor", gpu="H200-SXM"),
    "H200 + Gaudi 3": Question(way="pair", gpu="H200-SXM", npu="Gaudi3"),
    "Gaudi 3 reads, H200 writes": Question(way="reverse", gpu="H200-SXM", npu="Gaudi3"),
    "B200 alone": Question(way="one vendor", gpu="B200-SXM"),
    "B200 + Gaudi 3": Question(way="pair", gpu="B200-SXM", npu="Gaudi3"),
    "B200 + REBEL100 at 15,000 USD, efficient as a GPU": Question(
        way="pair", gpu="B200-SXM", npu="RBLN-REBEL100-CR13", npu_price=15000.0, as_gpu=True
    ),
    "images: H200 + Gaudi 3": Question(way="pair", gpu="H200-SXM", npu="Gaudi3", **ALBUM),
}


def simulated(ask: Asker) -> list[Row]:
    """What requests get of the plans that the page speaks of most."""
    rows = []
    for name, asked in HEADLINES.items():
        plan = epd_opt.solve(epd_opt.Instance.model_validate(instance(asked)))
        result = epd_opt.simulate(plan, requests=20000, seed=1).to_dict()["classes"]["chat"]
        rows.append({"name": name, **ask.row(asked), "simulated": result})
    return rows


TABLES: dict[str, Callable[[Asker], list[Row]]] = {
    "devices": devices,
    "claims": claims,
    "fleets": fleets,
    "reverse": reverse,
    "break_evens": break_evens,
    "brief": brief,
    "bandwidth": bandwidth,
    "rent": rent,
    "power": power,
    "lengths": lengths,
    "targets": targets,
    "loads": loads,
    "network": network,
    "capital": capital,
    "stories": stories,
    "story_prices": story_prices,
    "shipped": shipped,
    "simulated": simulated,
}
