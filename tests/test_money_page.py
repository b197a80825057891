"""Shows that docs/money.md is true: its instance prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import epd_opt
from epd_opt.render import plan_text
from epd_opt.source import parse
from epd_opt.tariffs import tariff_document, tariffs_text

PAGE = (Path(__file__).parents[1] / "docs" / "money.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.S | re.M)


def test_the_page_prints_what_the_program_does() -> None:
    """The tables are those of the plan of the instance on the page."""
    document = parse(blocks("yaml")[0], "money.md").value
    assert blocks("text")[0] == tariffs_text(tariff_document(epd_opt.solve(document).document))


def test_the_day_on_the_page_is_what_the_plan_says() -> None:
    """Hours, commitment and single tariffs are those of the second instance."""
    document = parse(blocks("yaml")[1], "money.md").value
    assert blocks("text")[1] in plan_text(epd_opt.solve(document).document) + "\n"
