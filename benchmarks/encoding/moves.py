"""What moves the answer: break-even prices, load, network, the levers one by one, and the map."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from encoding.case import Case, break_even, planned
from encoding.costs import priced
from encoding.table import Table, Value
from epd_models import catalog

BASE = Case()
BASES = {"owned": "RTX-6000D", "rented": "L40S"}
"""Encoder card of each basis of prices."""


def even(card: str, lever: str, value: str) -> dict[str, Value]:
    """Rent of an encoder card, as a share of a GPU's, below which it beats sharing."""
    case = replace(BASE, card=card, **LEVERS[lever][value])
    return {"against_shared": break_even(case), "against_integrated": break_even(case, "integrated")}


def loaded(basis: str, rate: float) -> dict[str, Value]:
    """Few requests or many: what each way costs, and how busy the encoders of the separate fleet are."""
    case = priced(replace(BASE, rate=rate), basis, BASES[basis])
    ways = {way: planned(case, way) for way in ("integrated", "shared", "separate", "cheapest")}
    separate = ways["separate"]
    result: dict[str, Value] = {f"{way}_usd_per_1000": found.usd for way, found in ways.items()}
    return result | {
        "separate_gpus": separate.gpus,
        "separate_cards": separate.cards,
        "encoder_device_used": separate.used("encoder_pool", "compute"),
        "separate_against_shared_percent": 100.0 * (separate.usd / ways["shared"].usd - 1.0),
        "cheapest_fleet": ways["cheapest"].fleet,
    }


def crossed(gbit: float, images: int, tokens: int) -> dict[str, Value]:
    """A slow network and a fast one: cost, first token and load of the links of separate encoders."""
    case = replace(BASE, network_gbit=gbit, images=images, tokens=tokens)
    found, shared = planned(case, "separate"), planned(case, "shared")
    return {
        "usd_per_1000": found.usd,
        "against_shared_percent": 100.0 * (found.usd / shared.usd - 1.0),
        "ttft_ms": found.ttft_ms,
        "sending_link_used": found.used("encoder_pool", "link"),
        "receiving_link_used": found.used("prefill_decode", "link"),
        "fleet": found.fleet,
    }


def moved(lever: str, value: str) -> dict[str, Value]:
    """One lever at one value: both decisions' savings and the card's break-even, owned devices."""
    case = replace(BASE, **LEVERS[lever][value])
    ways = {way: planned(case, way) for way in ("integrated", "shared", "dedicated", "separate")}
    costs = {way: found.usd for way, found in ways.items()}
    return {
        "encoding_share_percent": 100.0 * (1.0 - ways["separate"].gpus / ways["integrated"].gpus),
        **{f"{way}_usd_per_1000": usd for way, usd in costs.items()},
        "own_process_saves_percent": 100.0 * (1.0 - costs["shared"] / costs["integrated"]),
        "own_gpu_saves_percent": 100.0 * (1.0 - costs["dedicated"] / costs["shared"]),
        "own_card_saves_percent": 100.0 * (1.0 - costs["separate"] / costs["shared"]),
        "break_even_share": break_even(case),
        "separate_gpus": ways["separate"].gpus,
        "separate_cards": ways["separate"].cards,
    }


def mapped(text: int, images: int, output: int) -> dict[str, Value]:
    """A place on the map: what each way costs, and the cheapest with one type of GPU and with the card."""
    case = replace(BASE, text=text, images=images, output=output)
    costs = {way: planned(case, way).usd for way in ("integrated", "shared", "dedicated", "separate")}
    one_type = {way: usd for way, usd in costs.items() if way != "separate"}
    return {
        **{f"{way}_usd_per_1000": usd for way, usd in costs.items()},
        "one_gpu_type": cheapest(one_type),
        "with_card": cheapest(costs),
    }


def cheapest(costs: Mapping[str, float]) -> str:
    """The least of those that are feasible; the simpler of two that lie within the solver's gap."""
    known = {way: usd for way, usd in costs.items() if not math.isnan(usd)}
    least = min(known.values(), default=math.nan)
    return next((way for way, usd in known.items() if usd <= least * 1.002), "none")


def host(factor: float) -> tuple[tuple[str, float], ...]:
    """The engine's host work per image, at another speed."""
    card = catalog.engine_card("vllm")
    names = ("host_ms_per_image", "host_ms_per_megapixel", "host_ms_per_resized_megapixel")
    return tuple((name, factor * float(card[name])) for name in names)


LEVERS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "images": {str(n): {"images": n} for n in (1, 2, 5, 10, 20, 50)},
    "tokens per image": {str(t): {"tokens": t} for t in (64, 128, 256, 512, 1024, 2048)},
    "source megapixels": {str(m): {"megapixels": m} for m in (0.26, 0.92, 3.7, 12.0)},
    "video": {f"{s} s": {"clip_s": float(s)} for s in (10, 30)},
    "output tokens": {str(n): {"output": n} for n in (32, 128, 512, 1024, 2048, 4096)},
    "text tokens": {str(n): {"text": n} for n in (300, 1000, 3000, 9000)},
    "text requests": {f"{s} %": {"text_share": s / 100.0} for s in (0, 50, 90)},
    "model": {
        "Qwen3.5-4B": {"model": "Qwen3.5-4B"},
        "Qwen3.5-9B": {"model": "Qwen3.5-9B"},
        "Qwen3.5-27B": {"model": "Qwen3.5-27B"},
        "Qwen3.5-35B-A3B": {"model": "Qwen3.5-35B-A3B"},
        "Qwen3.5-122B-A10B": {},
        "Qwen3.5-397B-A17B": {"model": "Qwen3.5-397B-A17B", "tensor": (2, 4)},
    },
    "weights": {
        "bf16 on 2 GB200": {"weights": "bf16", "tensor": (2,)},
        "fp8": {"weights": "fp8"},
        "nvfp4": {},
    },
    "cores per card": {str(n): {"card_cores": n} for n in (2, 4, 8)},
    "processes per card": {str(n): {"habits": (("pool_processes", n),)} for n in (1, 2, 8)},
    "processes beside a model": {"1": {"habits": (("encoder_processes", 1),)}},
    "host work per image": {f"x {x:g}": {"habits": host(x)} for x in (0.0, 0.5, 2.0)},
    "drag of sharing": {f"{d:g} %": {"habits": (("shared_drag", d / 100.0),)} for d in (0, 4.5)},
    "memory kept when sharing": {f"{m:g}": {"habits": (("shared_memory_fraction", m),)} for m in (0.85, 0.9)},
    "sharing": {"without drag, all memory": {"habits": (("shared_drag", 0.0), ("shared_memory_fraction", 0.9))}},
    "ttft target": {f"{s:g} s": {"ttft_ms": 1e3 * s} for s in (1, 3, 30)},
    "itl target": {f"{ms} ms": {"itl_ms": float(ms)} for ms in (30, 50, 100)},
    "requests/s": {f"{rate:g}": {"rate": rate} for rate in (10.0, 40.0, 400.0)},
}
"""What each lever sets at each of its values; all else as in `BASE`."""
EVEN = ("images", "output tokens", "requests/s")
TABLES = (
    Table(
        name="load",
        keys=tuple(
            {"basis": basis, "rate": float(rate)}
            for basis in BASES
            for rate in (0.5, 1, 2, 4, 6, 8, 10, 12, 16, 24, 32, 48, 64, 128, 512)
        ),
        cell=loaded,
    ),
    Table(
        name="network",
        keys=tuple(
            {"gbit": gbit, "images": n, "tokens": t}
            for n, t in ((10, 256), (10, 1024), (50, 256))
            for gbit in (1.0, 5.0, 20.0, 400.0)
        ),
        cell=crossed,
    ),
    Table(
        name="levers",
        keys=tuple({"lever": lever, "value": value} for lever, values in LEVERS.items() for value in values),
        cell=moved,
    ),
    Table(
        name="break-even",
        keys=tuple(
            {"card": card, "lever": lever, "value": value}
            for card in ("L4", "L40S", "RTX-PRO-6000-SE")
            for lever in EVEN
            for value in LEVERS[lever]
        ),
        cell=even,
    ),
    Table(
        name="map",
        keys=tuple(
            {"text": text, "images": n, "output": m}
            for text in (500, 9000)
            for n in (1, 2, 5, 10, 20, 50)
            for m in (32, 128, 512, 1024, 2048, 4096)
        ),
        cell=mapped,
    ),
)
