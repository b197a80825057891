"""Small plans of every placement, and runs of them."""

from __future__ import annotations

from functools import cache
from typing import Any

import epd_opt
from epd_opt.restore import resolved_plan
from epd_opt.simulate.run import Run, run

WAYS = {
    "integrated": ["integrated"],
    "shared": ["shared"],
    "encoder_pool": ["encoder_pool", "prefill_decode"],
    "encode_prefill": ["encode_prefill", "decode"],
    "apart": ["encoder_pool", "prefill", "decode"],
}
"""Placements offered; what is chosen covers all stages."""


def photos(**changes: Any) -> dict[str, Any]:
    """A small multimodal model, text and photos, one GPU."""
    return {
        "schema": "epd-opt/instance/v1",
        "name": "photos",
        "model": "Qwen2.5-VL-7B",
        "engine": "vllm",
        "precision": {"weights": "bf16", "kv_cache": "bf16", "encoder": "bf16"},
        "workload": {
            "classes": [
                {
                    "name": "chat",
                    "rate_per_s": 60,
                    "text_tokens": {"mean": 500, "p95": 1500},
                    "output_tokens": {"mean": 60, "p95": 160},
                    "slo": {"ttft_ms": 1000, "itl_ms": 40},
                },
                {
                    "name": "photo",
                    "rate_per_s": 30,
                    "text_tokens": 100,
                    "images": {"count": {"values": [[1, 0.5], [4, 0.5]]}, "width_px": 640, "height_px": 480},
                    "output_tokens": 100,
                    "slo": {"ttft_ms": 3000, "itl_ms": 40},
                },
            ]
        },
        "devices": [{"sku": "H100-SXM", "price": {"usd_per_hour": 3.49}, "stock": 32, "tensor_parallel": [1]}],
        **changes,
    }


@cache
def plan_of(way: str) -> epd_opt.Plan:
    """The plan where only the placements of one of `WAYS` are on offer."""
    return epd_opt.solve(photos(placements=WAYS[way]))


def run_of(plan: epd_opt.Plan, *, requests: int = 600, seed: int = 1, **options: Any) -> Run:
    """A run of a plan."""
    chosen: dict[str, Any] = {
        "trace": None,
        "policy": "least-loaded",
        "failures": (),
        "progress": lambda _: None,
        **options,
    }
    return run(plan.document, resolved_plan(plan.document), requests=requests, seed=seed, **chosen)
