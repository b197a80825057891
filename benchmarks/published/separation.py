"""vLLM's encoder separation on four A100: four integrated workers against one encoder and three workers for the rest."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from epd_models.loop import predicted_interval
from published.fleets import Document, goodput, instance, loop_of
from published.row import Row

SWEEP_END = 24.0
"""Largest rate offered, requests/s: a goodput of as much is a lower bound."""
_GOODPUT = "goodput (P99 TTFT<20s & P99 TPOT<100ms)"
_TOPOLOGIES = {"DP4 (integrated x4)": "DP4", "1E3PD": "1E3PD"}


def case(images: int, text: int, topology: str, rate: float = 8.0) -> Document:
    """The workload on one of the two fleets."""
    devices: list[dict[str, Any]] = [{"sku": "A100-80-SXM", "name": "pd", "stock": 4, "tensor_parallel": [1]}]
    placements = ["integrated"]
    if topology == "1E3PD":
        devices[0]["stock"] = 3
        devices.append({"sku": "A100-80-SXM", "name": "e", "stock": 1, "stages": ["encode"]})
        placements = ["encoder_pool", "prefill_decode"]
    return instance(
        model="Qwen3-VL-4B",
        engine={"name": "vllm", "max_batched_tokens": 2048},
        precision={"weights": "bf16", "kv_cache": "bf16", "encoder": "bf16"},
        classes=[
            {
                "name": "photo",
                "rate_per_s": rate,
                "text_tokens": text,
                "images": {"count": images, "width_px": 640, "height_px": 640},
                "output_tokens": 150,
                "slo": {"ttft_ms": 20_000, "itl_ms": 100, "percentile": 99},
            }
        ],
        devices=devices,
        placements=placements,
    )


def saturated(images: int, text: int, topology: str) -> float:
    """Requests/s at which some part of the fleet is always busy."""
    if topology == "DP4":
        loop = loop_of(case(images, text, topology), "integrated", "pd").loop
        assert loop is not None
        return 4.0 / loop.classes[0].seconds
    document = case(images, text, topology)
    loop = loop_of(document, "prefill_decode", "pd").loop
    assert loop is not None
    pool = loop_of(document, "encoder_pool", "e")
    encoding = pool.queues[0].services[0].mean / pool.encoder_processes
    return min(3.0 / loop.classes[0].seconds, 1.0 / max(encoding, *(row.need({"photo": 1.0}) for row in pool.rows)))


def slow_interval(images: int, text: int, topology: str) -> float:
    """99th percentile of a request's mean interval at 4 requests/s, seconds."""
    placement, replicas = ("integrated", 4) if topology == "DP4" else ("prefill_decode", 3)
    loop = loop_of(case(images, text, topology), placement, "pd").loop
    assert loop is not None
    return predicted_interval(loop, {"photo": 4.0}, replicas, 0.99)["photo"][1]


def rows(folder: Path) -> dict[str, list[Row]]:
    """Goodput, raw throughput in overload, and the slowest requests' intervals."""
    result: dict[str, list[Row]] = {"goodput": [], "overload": [], "intervals": []}
    raw: dict[tuple[int, int], dict[str, tuple[float, float]]] = {}
    with (folder / "epd_runs.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            topology = _TOPOLOGIES.get(line["topology"])
            if topology is None or line["model"] != "Qwen3-VL-4B-Instruct":
                continue
            images, text, measured = int(line["images_per_req"]), int(line["text_tokens"]), float(line["value"])
            name = f"{topology}, {images} image{'s' if images > 1 else ''}, {text} text tokens"
            if line["metric"] == _GOODPUT:
                found = goodput(case(images, text, topology))
                ended = measured == SWEEP_END
                result["goodput"].append(
                    Row(case=name, measured=measured, predicted=found, unit="requests/s", within=0.35, censored=ended)
                )
            elif line["metric"] == "saturated request throughput":
                found = saturated(images, text, topology)
                raw.setdefault((images, text), {})[topology] = measured, found
                result["overload"].append(Row(case=name, measured=measured, predicted=found, unit="requests/s"))
            elif line["metric"] == "P99 TPOT":
                found = slow_interval(images, text, topology) * 1e3
                result["intervals"].append(Row(case=name, measured=measured, predicted=found, unit="ms"))
    together, apart = raw[1, 2000]["DP4"], raw[1, 2000]["1E3PD"]
    gains = [100.0 * (new / old - 1.0) for new, old in zip(apart, together, strict=True)]
    result["overload"].append(
        Row(case="gain of 1E3PD, 1 image, 2000 text tokens", measured=gains[0], predicted=gains[1], unit="%", within=10.0)
    )
    return result
