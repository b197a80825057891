"""docs/constraints.md says what the program does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from epd_opt import solve

PAGE = (Path(__file__).parents[1] / "docs" / "constraints.md").read_text(encoding="utf-8")


def test_the_examples_cost_what_the_page_says() -> None:
    """Each instance on the page has the hourly cost that stands below it."""
    found = re.findall(r"```yaml\n(.*?)# ([\d.]+) USD/h\n```", PAGE, flags=re.DOTALL)
    assert len(found) == PAGE.count("```yaml")
    for text, cost in found:
        assert solve(YAML(typ="safe").load(text)).cost.usd_per_hour == pytest.approx(float(cost))


def test_keys_are_those_of_the_format() -> None:
    """Every key in the table can be written in an instance."""
    parts = (Path(__file__).parents[1] / "solver" / "epd_opt" / "instance").glob("*.py")
    schema = "".join(part.read_text(encoding="utf-8") for part in parts)
    table = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    for name in re.findall(r"[a-z_]+", " ".join(re.findall(r"`([^`]+)`", " ".join(table)))):
        assert re.search(rf"\b{name}\b", schema), name
