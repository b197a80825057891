"""Small plans of every placement, and one with its figures pinned for golden files."""

from __future__ import annotations

from typing import Any

import epd_opt
from epd_opt.document import PlanDocument
from support.documents import measured, modelled

ODD = "it's \"5 o'clock\" $(touch x) `id` {{ .Values.x }} \\ # no: yes\nEND é 🙂"
"""A name that shells, YAML and Helm's templates all have their ideas about."""

CASES: dict[str, dict[str, Any]] = {
    "integrated": modelled(placements=["integrated"]),
    "shared": modelled(placements=["shared"]),
    "split": modelled(placements=["encoder_pool", "prefill_decode"]),
    "prompts": modelled(placements=["encode_prefill", "decode"]),
    "three": modelled(placements=["encoder_pool", "prefill", "decode"], redundancy={"spare_replicas": 1}),
    "measured": measured(),
}


def odd() -> dict[str, Any]:
    """Measured workers of one device each with odd names everywhere."""
    document = measured(name=ODD)
    for worker in document["workers"]:
        worker["name"] = ODD + worker["name"]
        worker["sku"] = ODD + worker["sku"]
    for entry in document["devices"]:
        entry["sku"] = ODD + entry["sku"]
    return document


def pinned() -> PlanDocument:
    """Encoders, prefill and decode with figures that no change of the models moves."""
    document = epd_opt.solve(CASES["three"]).document
    settings = {
        "encode": {"memory_fraction": 0.9, "encoder_processes": 2, "fan_out": 1},
        "prefill": {"memory_fraction": 0.9, "max_batched_tokens": 8192, "max_context_tokens": 4096},
        "decode": {"memory_fraction": 0.9, "max_batched_tokens": 8192, "max_context_tokens": 4096, "max_sequences": 128},
    }
    plain = document.model_dump(mode="json", by_alias=True)
    for pool in plain["pools"]:
        pool.update(replicas=2, spare_replicas=1, devices=3.0)
        pool["operating_point"] |= {"max_batched_tokens": 0, "max_sequences": 0, **settings[pool["stages"][0]]}
    plain["provenance"]["epd_opt"] = "0.1.0"
    return PlanDocument.model_validate(plain)
