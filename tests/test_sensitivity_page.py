"""Shows that docs/sensitivity.md is true: its instance prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path

from ruamel.yaml import YAML

import epd_opt
from epd_opt.sensitivity import tolerance

PAGE = (Path(__file__).parents[1] / "docs" / "sensitivity.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.S | re.M)


def test_the_page_prints_what_the_program_does() -> None:
    """All outputs are those of the instance on the page."""
    document = YAML(typ="safe").load(blocks("yaml")[0])
    ((path, values),) = re.findall(r"--vary (\S+)=(\S+)` prints", PAGE)
    study, tolerances, price = blocks("text")
    assert str(epd_opt.sensitivity(document, {path: values})) == study
    assert str(tolerance(epd_opt.solve(document))) == tolerances
    assert str(epd_opt.break_even(document, "small")) == price
