"""Instances as plain documents, to solve as they stand or with changes."""

from __future__ import annotations

import copy
from typing import Any


def modelled(**changes: Any) -> dict[str, Any]:
    """A small modelled instance: a 7B vision model on two SKUs, text and images, all placements; one second to solve."""
    document: dict[str, Any] = {
        "schema": "epd-opt/instance/v1",
        "name": "small",
        "model": "Qwen2.5-VL-7B",
        "engine": {"name": "vllm", "max_sequences": 256},
        "workload": {
            "classes": [
                {
                    "name": "chat",
                    "rate_per_s": 12,
                    "text_tokens": 800,
                    "output_tokens": 200,
                    "slo": {"ttft_ms": 1500, "itl_ms": 60},
                },
                {
                    "name": "photo",
                    "rate_per_s": 2.5,
                    "text_tokens": 200,
                    "images": {"count": 2, "width_px": 896, "height_px": 672},
                    "output_tokens": 200,
                    "slo": {"ttft_ms": 3000, "itl_ms": 80},
                },
            ]
        },
        "devices": [
            {"sku": "A100-80-SXM", "price": {"usd_per_hour": 1.9}, "tensor_parallel": [1]},
            {"sku": "L4", "price": {"usd_per_hour": 0.7}, "stages": ["encode"]},
        ],
        "solver": {"gap": 0.0, "threads": 1},
    }
    return {**copy.deepcopy(document), **changes}


def measured(**changes: Any) -> dict[str, Any]:
    """An instance of measured workers with split stages, rent and purchase, owned units, lots and a spare."""
    document: dict[str, Any] = {
        "schema": "epd-opt/instance/v1",
        "name": "measured",
        "candidates": {"modelled": False},
        "workload": {
            "classes": [
                {"name": "album", "rate_per_s": 3, "images": {"count": 10, "tokens": 256}},
                {"name": "chat", "rate_per_s": 12, "mean_rate_per_s": 7},
            ]
        },
        "devices": [
            {"sku": "big", "price": {"usd_per_hour": 4.5}, "stock": 16},
            {"sku": "small", "price": {"purchase_usd": 7000, "pack": 2}, "owned": 2, "power_w": 400, "idle_power_w": 60},
        ],
        "workers": [
            {"name": "encoder", "sku": "small", "devices": 1, "stages": ["encode"], "max_rate_per_s": 1.2},
            {
                "name": "whole",
                "sku": "big",
                "devices": 2,
                "stages": ["prefill", "decode"],
                "max_rate_per_s": {"album": 2, "chat": 5},
            },
            {"name": "reader", "sku": "big", "devices": 1, "stages": ["prefill"], "max_rate_per_s": {"default": 8}},
            {"name": "writer", "sku": "small", "devices": 2, "stages": ["decode"], "max_rate_per_s": {"default": 3}},
        ],
        "redundancy": {"spare_replicas": 1},
        "solver": {"gap": 0.0, "threads": 1},
    }
    return {**copy.deepcopy(document), **changes}


def day() -> dict[str, Any]:
    """An afternoon on reserved and hired units, a night in which most of those reserved stand idle."""
    document = measured(workload={"classes": [{"name": "chat", "rate_per_s": 40, "hourly": [0.1] * 12 + [1.0] * 12}]})
    prices: dict[str, Any] = {
        "kept": {"reserved": {"usd_per_hour": 0.6, "term_years": 1, "upfront_share": 0.5}},
        "hired": {"usd_per_hour": {"EUR": 2}},
        "spot": {"spot": {"usd_per_hour": 1.7, "interruption_allowance": 0.5}},
    }
    document["devices"] = [
        {"sku": "X", "name": name, "price": price, "stock": 12 if name == "hired" else 8} for name, price in prices.items()
    ]
    document["workers"] = [{"name": "w", "sku": "X", "devices": 1, "stages": ["prefill", "decode"], "max_rate_per_s": 4}]
    return {**document, "currencies": {"EUR": {"usd_per_unit": 1.1, "source": "the bank"}}, "redundancy": {}}
