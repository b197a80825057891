"""The stored study of GPU prefill and NPU decode is what is solved now, and the pages say what it says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from npu import page, stored
from npu.devices import rates
from npu.question import Question, answered
from npu.stored import alone, find

TABLES = stored.tables()
GAP = 0.002
"""Of the study's solves: two fleets within it may swap."""


def asked(row: Any) -> Question:
    return Question(**row["asked"])


@pytest.mark.parametrize(
    ("table", "which"),
    [
        ("fleets", {"way": "split", "gpu": "H200-SXM", "model": None}),
        ("fleets", {"way": "pair", "gpu": "H200-SXM", "npu": "Gaudi3", "model": None}),
        ("fleets", {"way": "integrated", "gpu": "B200-SXM", "model": "Llama-3.1-8B"}),
        ("reverse", {"way": "reverse", "gpu": "H200-SXM", "npu": "Gaudi3", "model": None}),
        ("lengths", {"way": "pair", "gpu": "B200-SXM", "npu": "Gaudi3", "prompt": 4000.0, "answer": 60.0}),
        ("targets", {"way": "split", "gpu": "B200-SXM", "ttft_ms": 1000.0, "itl_ms": 30.0}),
        ("network", {"gbit": 25.0, "conversion": 1.0, "prompt": None}),
    ],
)
def test_a_stored_fleet_costs_what_it_costs_now(table: str, which: dict[str, Any]) -> None:
    """Cost per hour of single rows, within twice the solver's gap."""
    row = find(TABLES[table], **which)
    assert answered(asked(row))["usd_per_hour"] == pytest.approx(row["usd_per_hour"], rel=2 * GAP)


@pytest.mark.parametrize(("npu", "gpu", "as_gpu"), [("Gaudi3", "H200-SXM", None), ("RBLN-REBEL100-CR13", "B200-SXM", True)])
def test_at_the_break_even_price_both_fleets_cost_the_same(npu: str, gpu: str, as_gpu: bool | None) -> None:
    """The pair's cost at the stored price is the GPU's alone, within a hundredth."""
    row = find(TABLES["break_evens"], npu=npu, gpu=gpu, as_gpu=as_gpu, model=None)
    found = answered(replace(asked(row), npu_price=row["break_even"]))["usd_per_hour"]
    assert found == pytest.approx(row["usd_per_hour"], rel=0.01)


def test_a_stored_goodput_is_reached_now() -> None:
    """Requests/s of H200 alone for a million dollars, within twice the gap of that table."""
    row = find(TABLES["capital"], way="one vendor", gpu="H200-SXM")
    assert answered(asked(row))["requests_per_s"] == pytest.approx(row["requests_per_s"], rel=0.01)


def test_single_devices_are_as_fast_as_stored() -> None:
    """Tokens/s that REBEL100 reads and writes, as estimated and as a GPU."""
    for row in TABLES["devices"]:
        if row["sku"] == "RBLN-REBEL100-CR13":
            found = rates(row["sku"], row["model"], as_gpu=row["as_gpu"])
            assert found is not None
            assert found == pytest.approx({part: row[part] for part in found}, rel=1e-3)


@pytest.mark.parametrize("file", [page.PAGE, page.GUIDE], ids=lambda file: file.stem)
def test_the_pages_show_the_stored_rows(file: Path) -> None:
    """Every table and every sentence with figures is the one made from the data file."""
    text = file.read_text(encoding="utf-8")
    assert page.filled(text, TABLES) == text
    assert "<!-- end -->" in text


def cost(table: str, **which: Any) -> float:
    return float(find(TABLES[table], **which)["usd_per_hour"])


def best(gpu: str, **which: Any) -> float:
    return float(alone(TABLES["fleets"], gpu, **which)["usd_per_hour"])


def test_the_conclusions_follow_from_the_rows() -> None:
    """Directions that the pages state in words: who is cheaper than whom."""
    gaudi = {gpu: cost("fleets", way="pair", gpu=gpu, npu="Gaudi3", model=None) for gpu in ("H200-SXM", "B200-SXM")}
    assert 0.95 < gaudi["H200-SXM"] / best("H200-SXM", model=None) < 1.0
    assert cost("reverse", way="reverse", gpu="H200-SXM", npu="Gaudi3", model=None) < gaudi["H200-SXM"]
    assert best("B200-SXM", model=None) < min(gaudi.values())
    assert cost("fleets", way="one vendor", gpu="Gaudi3", model=None) < gaudi["H200-SXM"]
    for gpu in gaudi:
        assert cost("loads", way="split", gpu=gpu, rate=1.0) > cost("loads", way="integrated", gpu=gpu, rate=1.0)
        for way, dearer in (("split", False), ("integrated", True)):
            other = "integrated" if way == "split" else "split"
            long = {"gpu": gpu, "prompt": 4000.0, "answer": 60.0}
            assert (cost("lengths", way=way, **long) > cost("lengths", way=other, **long)) is dearer
    assert all(row["simulated"]["target_met"] for row in TABLES["simulated"])
    prices = [row.get("break_even", 0.0) for row in TABLES["break_evens"] if row["asked"]["npu"] == "RNGD"]
    assert max(prices[:4]) < 7000.0, "RNGD's guessed range lies above its break-even prices on the 70B model"
