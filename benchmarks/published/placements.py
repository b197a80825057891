"""Where images are encoded: in the loop, beside it, or on cards of their own (Qwen3.5-122B-A10B NVFP4 on GB200).

The published sweep's scripts (ai-dynamo/dynamo, benchmarks/multimodal/sweep/experiments/epd) say what its tables leave out:
9000 text tokens, pages of DocVQA (taken as 3.7 megapixels), 0.5 requests/s on each GPU with equal gaps unless another rate
is asked for, 128 sequences, 131,072 tokens per iteration.
"""

from __future__ import annotations

from typing import Any

from published.fleets import Document, Member, goodput, instance, mean_times
from published.row import Row

PAGE_MEGAPIXELS = 3.7
RATE_PER_GPU = 0.5
TEXT = 9000
MIXED_TEXT = 500
"""Text tokens of the mixed case; not published."""
_KINDS = ("integrated", "shared", "separate")


def case(kind: str, classes: list[dict[str, Any]], gpus: int) -> Document:
    """A fleet of so many GB200, with a card for encoding beside each two of them where those are separate."""
    devices: list[dict[str, Any]] = [{"sku": "GB200", "stock": gpus, "tensor_parallel": [1]}]
    placements = {"integrated": ["integrated"], "shared": ["shared", "prefill_decode"]}.get(kind)
    if kind == "separate":
        placements = ["encoder_pool", "prefill_decode"]
        devices.append({"sku": "RTX-6000D", "stock": max(1, gpus // 2), "stages": ["encode"]})
    fraction = 0.85
    return instance(
        model="Qwen3.5-122B-A10B",
        engine={"name": "vllm", "max_sequences": 128, "max_batched_tokens": 131_072, "memory_fraction": fraction},
        precision={"weights": "nvfp4", "kv_cache": "fp8", "encoder": "bf16"},
        classes=classes,
        devices=devices,
        placements=placements,
        network={"gbit_per_s_per_device": 20},
    )


def request(
    images: int, output: int, rate: float, *, text: int = TEXT, tokens: int = 256, name: str = "pages"
) -> dict[str, Any]:
    """A class of requests with pages of so many tokens each."""
    found: dict[str, Any] = {
        "name": name,
        "rate_per_s": rate,
        "text_tokens": text,
        "output_tokens": output,
        "interarrival_scv": 0.1,
        "slo": {"ttft_ms": 30_000, "itl_ms": 100, "percentile": 95},
    }
    if images:
        found["images"] = {"count": images, "tokens": tokens, "source_megapixels": PAGE_MEGAPIXELS}
    return found


def fleet(kind: str, gpus: int) -> list[Member]:
    """Its pools."""
    if kind == "separate":
        return [("encoder_pool", "RTX-6000D", max(1, gpus // 2)), ("prefill_decode", "GB200", gpus)]
    return [(kind, "GB200", gpus)]


def times(kind: str, images: int, output: int, gpus: int = 4, tokens: int = 256) -> tuple[float, float]:
    """Mean seconds to the first token and to the last."""
    document = case(kind, [request(images, output, RATE_PER_GPU * gpus, tokens=tokens)], gpus)
    first, between = mean_times(document, fleet(kind, gpus))["pages"]
    return first, first + (output - 1) * between


def gain(better: float, worse: float) -> float:
    """By how many per cent a time is shorter than another."""
    return 100.0 * (1.0 - better / worse)


def end_to_end() -> list[Row]:
    """Five images: how much shorter requests take, at short and at long outputs."""
    published = {128: {"shared": 11.8, "separate": 20.3}, 2048: {"shared": -2.5, "separate": 5.2}}
    rows = []
    for output, gains in published.items():
        base = times("integrated", 5, output)[1]
        for kind, measured in gains.items():
            found = gain(times(kind, 5, output)[1], base)
            name = f"5 images, {output} output tokens: end to end, {kind}"
            within = 6.0 if kind == "shared" else None
            rows.append(Row(case=name, measured=measured, predicted=found, unit="%", within=within))
    return rows


def first_tokens() -> list[Row]:
    """Ten images, and one GPU with five."""
    base = times("integrated", 10, 1024)[0]
    published = {"shared": 58.0, "separate": 50.0}
    rows = [
        Row(
            case=f"10 images, 1024 output tokens: TTFT, {kind}",
            measured=measured,
            predicted=gain(times(kind, 10, 1024)[0], base),
            unit="%",
        )
        for kind, measured in published.items()
    ]
    for kind, first_ms, last_s in (("integrated", 1457.2, 12.92), ("shared", 715.7, 11.28)):
        first, last = times(kind, 5, 1024, gpus=1)
        rows.append(Row(case=f"one GB200, 5 images: TTFT, {kind}", measured=first_ms, predicted=1e3 * first, unit="ms"))
        rows.append(Row(case=f"one GB200, 5 images: end to end, {kind}", measured=last_s, predicted=last, unit="s"))
    return rows


def most_served() -> list[Row]:
    """Ten images of 256 tokens, 1024 output tokens, intervals below 100 ms."""
    found = {kind: goodput(case(kind, [request(10, 1024, 4.0)], 4)) for kind in _KINDS}
    gained = 100.0 * (found["separate"] / found["integrated"] - 1.0)
    return [
        Row(
            case="10 images, 1024 output tokens: goodput gained by separate encoders",
            measured=70.0,
            predicted=gained,
            unit="%",
            within=20.0,
        )
    ]


def mixed() -> list[Row]:
    """Half text, half images on one GPU, at the load at which integrated text waits as long as published."""
    published = {"integrated": (92.3, 289.9), "shared": (53.3, 200.6)}

    def found(kind: str, rate: float) -> tuple[float, float]:
        classes = [
            request(0, 128, rate / 2.0, text=MIXED_TEXT, name="text"),
            request(5, 128, rate / 2.0, text=MIXED_TEXT, name="pages"),
        ]
        result = mean_times(case(kind, classes, 1), fleet(kind, 1))
        return 1e3 * result["text"][0], 1e3 * result["pages"][0]

    low, high = 0.1, 12.0
    for _ in range(30):
        rate = (low + high) / 2.0
        low, high = (rate, high) if found("integrated", rate)[0] < published["integrated"][0] else (low, rate)
    together, beside = found("integrated", low), found("shared", low)
    name = f"half text, half images of 5 pages, {low:.1f} requests/s on one GB200"
    rows = []
    for i, what in enumerate(("text", "images")):
        measured = gain(published["shared"][i], published["integrated"][i])
        within = 15.0 if what == "text" else None
        predicted = gain(beside[i], together[i])
        rows.append(Row(case=f"{name}: TTFT of {what}", measured=measured, predicted=predicted, unit="%", within=within))
    return rows


def rows() -> list[Row]:
    """All of them."""
    return [*end_to_end(), *most_served(), *mixed(), *first_tokens()]
