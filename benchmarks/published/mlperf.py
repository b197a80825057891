"""MLPerf Inference v5.1: tokens per second offline, and under limits, of engines tuned to the task."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from epd_models import catalog
from epd_models.parallelism import Parallelism
from epd_models.precision import Precision
from epd_models.serving import in_flight
from epd_models.stages.decode import decode_step
from epd_models.stages.prefill import prefill_time
from epd_models.worker import Worker
from published.fleets import goodput, instance
from published.row import Row

MODELS = {
    "llama2-70b-99": ("Llama-2-70B", 294.0),
    "mixtral-8x7b": ("Mixtral-8x7B", 300.0),
    "llama3.1-405b": ("Llama-3.1-405B", 9400.0),
    "llama3.1-8b": ("Llama-3.1-8B", 778.0),
}
"""Models, and mean prompt tokens of their data sets: OpenOrca; OpenOrca, GSM8K and MBXP (an estimate); LongBench and
RULER (recalled); CNN/DailyMail (recalled)."""
DEVICES = {
    "NVIDIA H200-SXM-141GB": "H200-SXM",
    "NVIDIA H100-SXM-80GB": "H100-SXM",
    "NVIDIA H200-NVL-141GB": "H200-NVL",
    "NVIDIA B200-SXM-180GB": "B200-SXM",
    "NVIDIA GB200": "GB200",
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": "RTX-PRO-6000-SE",
    "NVIDIA L40S": "L40S",
    "AMD Instinct MI300X 192GB HBM3": "MI300X",
    "AMD Instinct MI325X 256GB HBM3e": "MI325X",
}
FORMATS = {"fp8": "fp8", "fp4": "nvfp4"}
FITTED = {"llama2-70b-99", "mixtral-8x7b"}
"""Benchmarks whose rows the tuned coefficients were set by; the others are predictions."""


def worker(model: str, sku: str, weights: str) -> Worker | None:
    """The smallest replica that holds the weights and fifty sequences; None where no cut of up to eight devices does."""
    for tensor in (1, 2, 4, 8):
        built = Worker.checked(
            model=catalog.model(model),
            device=catalog.device(sku),
            cut=Parallelism(tensor=tensor),
            precision=Precision(weights=weights, kv_cache="fp8"),
            engine=catalog.engine("tuned"),
        )
        if in_flight(built, clients=50.0, prompt_tokens=1000.0, output_tokens=300.0) >= 50.0:
            return built
    return None


def offline(built: Worker, prompt: float, output: float) -> float:
    """Tokens/s of a replica whose batch is always as large as its KV memory and its engine allow."""
    most = float(built.engine.max_sequences)
    batch = in_flight(built, clients=most, prompt_tokens=prompt, output_tokens=output)
    step = decode_step(built, sequences=batch)
    reading = float(prefill_time(built).busy_s(np.array([prompt]))[0])
    return batch / (step.seconds(batch, prompt + output / 2.0) + batch * reading / output)


def limited(sku: str, devices: int, weights: str, ttft_ms: float, itl_ms: float, output: float = 293.0) -> float:
    """Tokens/s that devices serve to Llama-2-70B's requests of OpenOrca's mean lengths, 99 % of them within the limits."""
    document = instance(
        model="Llama-2-70B",
        engine="tuned",
        precision={"weights": weights, "kv_cache": "fp8"},
        classes=[
            {
                "name": "question",
                "rate_per_s": 100,
                "text_tokens": 294,
                "output_tokens": output,
                "slo": {"ttft_ms": ttft_ms, "itl_ms": itl_ms, "percentile": 99},
            }
        ],
        devices=[{"sku": sku, "stock": devices, "tensor_parallel": [1]}],
        placements=["prefill_decode"],
    )
    return goodput(document) * output


def headline() -> list[Row]:
    """Eight H200, FP8, the three scenarios."""
    built = worker("Llama-2-70B", "H200-SXM", "fp8")
    assert built is not None
    return [
        Row(
            case="8 H200 FP8, llama2-70b Offline",
            measured=35_317.0,
            predicted=8.0 * offline(built, 294.0, 293.0),
            unit="tokens/s",
            within=0.15,
        ),
        Row(
            case="8 H200 FP8, Server (TTFT 2 s, TPOT 200 ms)",
            measured=34_194.0,
            predicted=limited("H200-SXM", 8, "fp8", 2000.0, 200.0),
            unit="tokens/s",
            within=0.15,
        ),
        Row(
            case="8 H200 FP8, Interactive (450 ms, 40 ms)",
            measured=23_080.0,
            predicted=limited("H200-SXM", 8, "fp8", 450.0, 40.0),
            unit="tokens/s",
            within=0.15,
        ),
    ]


def adds_up() -> list[Row]:
    """Sixteen MI325X and eight MI300X, each by itself and together."""
    cards = {"MI325X": worker("Llama-2-70B", "MI325X", "fp8"), "MI300X": worker("Llama-2-70B", "MI300X", "fp8")}
    each = {sku: offline(built, 294.0, 301.0) for sku, built in cards.items() if built is not None}
    cases = (("16 MI325X", 65_320.0, {"MI325X": 16}), ("8 MI300X", 27_854.0, {"MI300X": 8}))
    both = ("16 MI325X and 8 MI300X together", 92_158.0, {"MI325X": 16, "MI300X": 8})
    return [
        Row(case=name, measured=value, predicted=sum(n * each[s] for s, n in counts.items()), unit="tokens/s", within=0.25)
        for name, value, counts in (*cases, both)
    ]


def offline_rows(folder: Path) -> list[Row]:
    """Median result per device of each benchmark, device and format, offline."""
    results: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    with (folder / "mlperf_v5.1.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            sku, weights = DEVICES.get(line["accelerator"]), FORMATS.get(line["weight_dtype"])
            if sku and weights and line["benchmark"] in MODELS and line["scenario"] == "Offline":
                figures = float(line["result_per_accel"]), float(line["mean_out_tokens"])
                results.setdefault((line["benchmark"], sku, weights), []).append(figures)
    rows = []
    for (benchmark, sku, weights), found in sorted(results.items()):
        model, prompt = MODELS[benchmark]
        built = worker(model, sku, weights)
        if built is not None:
            measured, output = np.median(np.array(found), axis=0).tolist()
            predicted = offline(built, prompt, output) / built.cut.tensor
            name = f"{benchmark}, {sku} {weights} ({'fitted' if benchmark in FITTED else 'not fitted'})"
            within = 0.25 if benchmark in FITTED else 0.35
            rows.append(Row(case=name, measured=measured, predicted=predicted, unit="tokens/s per device", within=within))
    return rows
