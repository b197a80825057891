"""Measured times of language models on A100: what the coefficients of Ampere were set by."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

from epd_models import catalog
from epd_models.architecture import Architecture
from epd_models.parallelism import Parallelism
from epd_models.precision import Precision
from epd_models.stages.decode import decode_step
from epd_models.stages.prefill import prefill_time
from epd_models.worker import Worker
from published.row import Row

_LONG = ("1024", "2048", "4096")
_OPT = {"facebook/opt-13b": (40, 5120), "facebook/opt-66b": (64, 9216)}


def rows(folder: Path) -> list[Row]:
    """Splitwise's Llama-2-70B, and DistServe's fits of vLLM (OPT)."""
    return [*_splitwise(folder / "measured"), *_distserve(folder / "measured")]


def _splitwise(folder: Path) -> list[Row]:
    found = []
    for line in _lines(folder / "splitwise_a100_h100_latency.csv"):
        if line["model"] != "llama2-70b" or line["hardware"] != "a100-80gb" or line["batch_size"] != "1":
            continue
        if line["token_size"] != "128" or int(line["prompt_size"]) > 4096:
            continue
        built = worker(catalog.model("Llama-2-70B"), int(line["tensor_parallel"]))
        name = f"Splitwise, Llama-2-70B TP{built.cut.tensor}, {line['prompt_size']} tokens"
        prompt = float(line["prompt_size"])
        found.append(_row(f"{name}: prompt", float(line["prompt_ms"]), prompt_s(built, prompt)))
        found.append(_row(f"{name}: token", float(line["token_ms"]), decode_step(built, sequences=1.0).seconds(1.0, prompt)))
    return [
        _median(
            found, "Splitwise, Llama-2-70B TP2 to TP8, 1024 to 4096 tokens: prompts", ": prompt", ("1024", "2048", "4096")
        ),
        _median(found, "Splitwise, Llama-2-70B TP2 to TP8: tokens", ": token", ()),
    ]


def _distserve(folder: Path) -> list[Row]:
    found = []
    for line in _lines(folder / "distserve_a100_fit_coefficients.csv"):
        if line["engine"] != "vllm" or line["tp"] == "3":
            continue
        layers, hidden = _OPT[line["model"]]
        built = worker(opt(layers, hidden), int(line["tp"]))
        name = f"DistServe's fit of vLLM, {line['model']} TP{line['tp']}"
        for tokens in (512.0, 2048.0):
            a, b, c = (float(line[f"prefill_{term}"]) for term in "abc")
            found.append(_row(f"{name}: prompt", a + b * tokens + c * tokens**2, prompt_s(built, tokens)))
        for batch in (1.0, 16.0, 64.0):
            a, b, c = (float(line[f"decoding_smallbs_{term}"]) for term in "abc")
            measured = a + b * batch * 512.0 + c * batch
            found.append(_row(f"{name}: token", measured, decode_step(built, sequences=batch).seconds(batch, 512.0)))
    return [
        _median(found, "DistServe's fits of vLLM, OPT-13B and 66B: prompts of 512 and 2048 tokens", ": prompt", ()),
        _median(found, "DistServe's fits of vLLM, OPT-13B and 66B: tokens at batch 1, 16, 64", ": token", ()),
    ]


def _median(rows: list[Row], name: str, end: str, sizes: tuple[str, ...]) -> Row:
    chosen = [row for row in rows if row.case.endswith(end) and (not sizes or row.case.split()[-3].rstrip(",") in sizes)]
    error = 100.0 * median(abs(row.error) for row in chosen)
    return Row(case=f"{name}, median error of {len(chosen)}", measured=math.nan, predicted=error, unit="%", within=35.0)


def _row(name: str, measured_ms: float, seconds: float) -> Row:
    return Row(case=name, measured=measured_ms, predicted=1e3 * seconds, unit="ms")


def prompt_s(built: Worker, tokens: float) -> float:
    """Seconds of a prompt that is read alone."""
    prefill = prefill_time(built)
    return float(prefill.busy_s(np.array([tokens]))[0]) + prefill.per_chunk


def worker(model: Architecture, tensor: int) -> Worker:
    """A replica on A100 under vLLM, 16 bits throughout."""
    return Worker.checked(
        model=model,
        device=catalog.device("A100-80-SXM"),
        cut=Parallelism(tensor=tensor),
        precision=Precision(weights="bf16", kv_cache="bf16"),
        engine=catalog.engine("vllm"),
    )


def opt(layers: int, hidden: int) -> Architecture:
    """An OPT model from Llama-2-70B's card: every head has keys and values of its own, feed-forward four times as wide."""
    base = catalog.model("Llama-2-70B")
    vocab, heads = 50_272, hidden // 128
    group = replace(base.attention[0], layers=layers, heads=heads, kv_heads=heads, head_dim=128)
    parameters = 12.0 * layers * hidden**2 + float(vocab) * hidden
    return replace(
        base,
        name="OPT",
        parameters=parameters,
        active_parameters=parameters,
        tied_embeddings=True,
        gated_mlp=False,
        layers=layers,
        hidden=hidden,
        vocab=vocab,
        attention=(group,),
    )


def _lines(path: Path) -> list[Mapping[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
