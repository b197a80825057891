"""Shows that the recipes of docs/extend.md work as they are printed: every file on the page is used as it stands."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import epd_models.placement
import epd_opt
from epd_models.placement import PLACEMENTS, Placement
from epd_opt.formulation.constraints import FAMILIES

PAGE = Path(__file__).parents[1] / "docs" / "extend.md"
FILES = dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.S | re.M))
PROMPTS: dict[str, Any] = {
    "schema": "epd-opt/instance/v1",
    "model": "Qwen2.5-VL-7B",
    "engine": "vllm",
    "workload": {
        "classes": [
            {
                "name": "chat",
                "rate_per_s": 8,
                "text_tokens": 800,
                "output_tokens": 200,
                "slo": {"ttft_ms": 1500, "itl_ms": 60},
            },
            {
                "name": "photo",
                "rate_per_s": 2,
                "text_tokens": 200,
                "images": {"count": 2, "width_px": 896, "height_px": 672},
                "output_tokens": 200,
                "slo": {"ttft_ms": 3000, "itl_ms": 80},
            },
        ]
    },
    "devices": [{"sku": "A100-80-SXM", "price": {"usd_per_hour": 1.9}, "tensor_parallel": [1], "stock": 16}],
}


def module(monkeypatch: pytest.MonkeyPatch, path: str) -> types.ModuleType:
    """The page's file as the module that it would be in its place."""
    name = path.split("/", 1)[1].removesuffix(".py").replace("/", ".")
    made = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, made)
    exec(compile(FILES[path], path, "exec"), made.__dict__)
    return made


def test_a_device_and_a_model_of_ones_own_are_planned_with(tmp_path: Path) -> None:
    for name in ("my-npu.yaml", "my-model.yaml", "npu.yaml"):
        (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    plan = epd_opt.solve(epd_opt.read(tmp_path / "npu.yaml"))
    assert plan.status == "optimal"
    assert {pool.sku for pool in plan.pools} == {"MY-NPU"}


def test_a_placement_of_ones_own_serves_whom_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    text = module(monkeypatch, "models/epd_models/placement/text.py")
    line = FILES["models/epd_models/placement/table.py"]
    added = eval("{" + line + "}", {"text": text, "Placement": Placement})
    monkeypatch.setitem(PLACEMENTS, "text", added["text"])  # type: ignore[arg-type]
    assert epd_models.placement.PLACEMENTS["text"].stages == ("prefill", "decode")
    plan = epd_opt.solve({**PROMPTS, "placements": ["text", "integrated"]})
    assert plan.status == "optimal"
    serves = {pool.placement: set(pool.serves) for pool in plan.pools}
    assert "photo" in serves["integrated"]
    assert serves.get("text", {"chat"}) == {"chat"}
    chat_only = {"classes": [c for c in PROMPTS["workload"]["classes"] if c["name"] == "chat"]}
    alone = epd_opt.solve({**PROMPTS, "placements": ["text"], "workload": chat_only})
    assert {pool.placement for pool in alone.pools} == {"text"}
    assert epd_opt.solve({**PROMPTS, "placements": ["text"]}).status == "infeasible"


def test_a_constraint_of_ones_own_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    split = {**PROMPTS, "placements": ["encode_prefill", "decode", "integrated"]}
    split["devices"] = [
        {**PROMPTS["devices"][0], "stages": ["encode", "prefill"]},
        {**PROMPTS["devices"][0], "name": "other"},
    ]
    free = epd_opt.solve({**split, "placements": ["encode_prefill", "decode"]})
    assert len(free.pools) >= 2
    family = module(monkeypatch, "solver/epd_opt/formulation/constraints/few_pools.py").few_pools
    monkeypatch.setattr(sys.modules["epd_opt.formulation.build"], "FAMILIES", (*FAMILIES, family))
    assert len(epd_opt.solve(split).pools) == 1
    assert epd_opt.solve({**split, "placements": ["encode_prefill", "decode"]}).status == "infeasible"
