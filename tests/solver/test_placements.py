"""Each placement is the optimum's choice somewhere, by its economics alone, and gives way when a figure moves."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import epd_opt
from epd_opt.offering import offering
from epd_opt.resolve import resolve
from support.documents import modelled

INSTANCES = Path(__file__).parents[2] / "instances"

PAGES: dict[str, Any] = {
    "schema": "epd-opt/instance/v1",
    "name": "pages",
    "model": "Qwen3-VL-32B",
    "engine": "vllm",
    "precision": {"weights": "fp8", "kv_cache": "fp8", "encoder": "bf16"},
    "workload": {
        "classes": [
            {
                "name": "page",
                "rate_per_s": 12,
                "text_tokens": 2500,
                "images": {"count": 1, "tokens": 500, "source_megapixels": 1},
                "output_tokens": 500,
                "slo": {"ttft_ms": 3000, "itl_ms": 40},
            }
        ]
    },
    "devices": [
        {"sku": "H100-SXM", "price": {"purchase_usd": 30000}, "tensor_parallel": [1, 2]},
        {"sku": "Gaudi3", "price": {"purchase_usd": 15625}, "stages": ["decode"], "tensor_parallel": [1, 2]},
    ],
}
"""Long prompts with one small image; the cheap accelerator only decodes."""

BIG_ENCODER: dict[str, Any] = {
    "schema": "epd-opt/instance/v1",
    "name": "big-encoder",
    "model": "InternVL3-38B",
    "engine": "vllm",
    "precision": {"weights": "fp8", "kv_cache": "fp8", "encoder": "bf16"},
    "workload": {
        "classes": [
            {
                "name": "photo",
                "rate_per_s": 1.5,
                "text_tokens": 300,
                "images": {"count": 3, "width_px": 896, "height_px": 896},
                "output_tokens": 300,
                "slo": {"ttft_ms": 3000, "itl_ms": 60},
            }
        ]
    },
    "devices": [{"sku": "H100-SXM", "name": "gpu", "price": {"usd_per_hour": 3.49}, "tensor_parallel": [1, 2]}],
}
"""A vision transformer of six billion parameters: two encoder processes take 24 GB."""

WRITTEN_HERE = {"pages": PAGES, "big-encoder": BIG_ENCODER}

TEN, ONE, LONG, TEXT = "ten-images", "one-gpu-type", "long-output", "gpu-prefill-npu-decode"


@cache
def optimum(name: str, *overrides: str) -> epd_opt.Plan:
    source = WRITTEN_HERE.get(name, INSTANCES / f"{name}.yaml")
    plan = epd_opt.solve(epd_opt.read(source, overrides=overrides))
    assert plan.status == "optimal"
    return plan


def placed(plan: epd_opt.Plan) -> dict[str, set[str]]:
    """SKUs that each placement uses."""
    result: dict[str, set[str]] = {}
    for pool in plan.pools:
        result.setdefault(pool.placement, set()).add(pool.sku)
    return result


def test_long_outputs_fill_the_cache_so_one_loop_does_it_all() -> None:
    """Encoder processes beside the language model would take KV memory, which binds; encoding hardly ever happens."""
    assert set(placed(optimum(LONG))) == {"integrated"}


def test_many_images_do_not_stay_in_the_loop() -> None:
    """Twelve images per request instead of one would stall every sequence in the loop while they are encoded."""
    assert "integrated" not in placed(optimum(LONG, "workload.classes.solve.images.count=12"))


def test_with_one_gpu_type_images_are_encoded_beside_the_language_model() -> None:
    """A device for encoders alone costs as much as a device for the language model, and overlap is free."""
    assert set(placed(optimum(ONE))) == {"shared"}


@pytest.mark.parametrize("sku", ["H100-SXM", "L40S"])
def test_encoders_that_do_not_fit_beside_the_language_model_go_elsewhere(sku: str) -> None:
    """Of 80 GB or less, the share left beside the language model is too small for two large vision transformers."""
    assert "shared" not in placed(optimum("big-encoder", f"devices.gpu.sku={sku}"))


def test_cheap_cards_encode_albums() -> None:
    """A card at a tenth of the price encodes as many images, limited by the host, as the dear one would."""
    used = placed(optimum(TEN))
    assert used["encoder_pool"] == {"RTX-6000D"}
    assert used["prefill_decode"] == {"GB200"}


def test_cheap_cards_are_not_worth_it_for_single_images() -> None:
    """One image per request leaves the encoders beside the language model idle most of the time."""
    assert "encoder_pool" not in placed(optimum(TEN, "workload.classes.album.images.count=1"))


def test_dear_cards_leave_no_worker_without_its_encoders() -> None:
    """At the GB200's own rent, a card of its own for encoding no longer pays, so nothing feeds prefill-decode workers."""
    used = placed(optimum(TEN, "devices.RTX-6000D.price={usd_per_hour: 4.54}"))
    assert not {"encoder_pool", "prefill_decode"} & set(used)


def test_prompts_are_read_on_gpus_and_answers_written_on_cheap_memory_bandwidth() -> None:
    """Memory bandwidth costs less on the bought accelerator than on the rented GPU, which keeps the compute-bound part."""
    used = placed(optimum(TEXT))
    assert used["prefill"] == {"H200-SXM"}
    assert "Gaudi3" in used["decode"]
    assert "H200-SXM" not in used["decode"]


def test_a_slow_network_keeps_prefill_and_decode_together() -> None:
    """At 5 Gbit/s, KV caches of several hundred megabytes are late for the first token."""
    assert set(placed(optimum(TEXT, "network.gbit_per_s_per_device=5"))) == {"prefill_decode"}


def test_few_images_are_encoded_where_the_prompt_is_read() -> None:
    """One image takes little of a prompt's time, so it needs no encoders of its own; decode is cheaper elsewhere."""
    used = placed(optimum("pages"))
    assert used["encode_prefill"] == {"H100-SXM"}
    assert used["decode"] == {"Gaudi3"}


def test_encode_prefill_needs_a_network_to_hand_over() -> None:
    """At 2 Gbit/s, the KV cache of 3000 tokens takes too long; every worker writes what it has read."""
    assert not {"encode_prefill", "decode"} & set(placed(optimum("pages", "network.gbit_per_s_per_device=2")))


def test_engines_that_reserve_whole_outputs_hold_more_memory() -> None:
    """Reserving room for the last token holds as much as if every step were the last one; nothing else changes."""
    document = modelled(engine="trtllm")
    document["workload"]["classes"][0]["output_tokens"] = 1000
    resolved = resolve(epd_opt.Instance.model_validate(document))
    assert resolved.engine.reserves_output
    growing = replace(resolved, engine=replace(resolved.engine, reserves_output=False))
    held = []
    for given in (resolved, growing):
        pools = [b.pool for b in offering(given).behaviours.values() if b.pool.placement == "prefill_decode"]
        loop = min(pools, key=lambda pool: pool.settings.itl_level_s).loop
        assert loop is not None
        held.append(next(c.held for c in loop.classes if c.name == "chat"))
    # Prompts of 800 tokens: contexts of 1,800 throughout, of 1,300 on average.
    assert held[0] / held[1] == pytest.approx(1800 / 1300, rel=0.05)
