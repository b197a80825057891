"""The stored rows, looked up by what was asked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[2] / "docs" / "data" / "npu-study.json"
NAMES = {
    "H100-SXM": "H100",
    "H200-SXM": "H200",
    "B200-SXM": "B200",
    "Gaudi3": "Gaudi 3",
    "RBLN-REBEL100-CR13": "REBEL100",
    "RBLN-ATOM-Max-CA25": "ATOM-Max",
    "Ascend-910C": "Ascend 910C",
    "TPU-v6e": "TPU v6e",
    "TPU-v7-Ironwood": "TPU v7",
}
Row = Mapping[str, Any]


def tables() -> dict[str, list[dict[str, Any]]]:
    """Every table of the data file."""
    found: dict[str, list[dict[str, Any]]] = json.loads(DATA.read_text(encoding="utf-8"))
    return found


def keep(table: str, rows: Sequence[Row], order: Sequence[str]) -> None:
    """Put a table into the data file, one row a line, and leave the others as they are."""
    DATA.parent.mkdir(exist_ok=True)
    found: dict[str, Any] = {**(tables() if DATA.exists() else {}), table: rows}
    texts = (
        f'"{each}": [\n' + ",\n".join(json.dumps(row) for row in found[each]) + "\n]" for each in order if each in found
    )
    DATA.write_text("{\n" + ",\n".join(texts) + "\n}\n", encoding="utf-8")


def name(sku: str) -> str:
    """A device's name in tables and pictures."""
    return NAMES.get(sku, sku)


def find(rows: Sequence[Row], **asked: Any) -> Row:
    """The first row whose question states these values, and the base case's where None is given."""
    for row in rows:
        if all(row["asked"].get(key) == value for key, value in asked.items()):
            return row
    raise KeyError(asked)


def alone(rows: Sequence[Row], gpu: str, **asked: Any) -> Row:
    """The cheaper of the two ways of one GPU: all stages together, or prefill and decode apart."""
    ways = [find(rows, way=way, gpu=gpu, **asked) for way in ("integrated", "split")]
    return min(ways, key=lambda row: row.get("usd_per_hour", float("inf")))
