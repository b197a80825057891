"""Shows that docs/explain.md is true: its instance prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

import epd_opt
from epd_opt.explain import explain
from epd_opt.paths import set_value

PAGE = (Path(__file__).parents[1] / "docs" / "explain.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.S | re.M)


@pytest.mark.parametrize("which", [0, 1], ids=["feasible", "infeasible"])
def test_the_page_prints_what_the_program_does(which: int) -> None:
    """Both outputs are those of the instance on the page, with the options that stand above them."""
    document = YAML(typ="safe").load(blocks("yaml")[0])
    if which == 0:
        found = explain(document, why_not=["integrated"], share="album=0.5", without=["small"])
    else:
        assert "--set devices.big.stock=4" in PAGE
        found = explain(epd_opt.read(set_value(document, "devices.big.stock", 4)))
    assert str(found) == blocks("text")[which]
