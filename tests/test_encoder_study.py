"""Shows that docs/encoder-separation.md is true: rows computed anew agree with the kept tables, and the page shows those."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from encoder_study import TABLES
from encoding.case import Case, break_even, planned
from encoding.moves import cheapest
from encoding.page import PAGES, filled
from encoding.prose import cited, only
from encoding.table import number, written

KEPT = {name: table.kept() for name, table in TABLES.items()}
SAMPLE = (
    ("published-by-output", {"kind": "shared", "output": "128"}),
    ("published-by-images", {"kind": "separate", "tokens": "256", "images": "10"}),
    ("published-ampere", {"images": "2", "text": "400"}),
    ("prices", {"basis": "owned", "sku": "RTX-6000D"}),
    ("cards", {"kind": "separate", "cards": "1"}),
    ("cost", {"basis": "rented", "images": "10", "rate": "400", "way": "separate", "card": "L40S"}),
    ("load", {"basis": "owned", "rate": "4"}),
    ("network", {"gbit": "20", "images": "10", "tokens": "256"}),
    ("levers", {"lever": "output tokens", "value": "4096"}),
    ("break-even", {"card": "L40S", "lever": "images", "value": "10"}),
    ("map", {"text": "500", "images": "2", "output": "1024"}),
)
LOOSE = {"_percent": 1.5, "_share": 0.05, "against_": 0.05}
"""How far columns with these words in their names may move: points, or shares of a GPU's price."""


@pytest.mark.parametrize(("name", "key"), SAMPLE, ids=[name for name, _ in SAMPLE])
def test_a_row_computed_anew_agrees(name: str, key: dict[str, str]) -> None:
    """Costs within one per cent, gains within one and a half points: what solving to a gap allows."""
    table = TABLES[name]
    (given,) = [k for k in table.keys if all(written(k[column]) == value for column, value in key.items())]
    kept, found = only(KEPT[name], **key), table.row(given)
    assert list(found) == list(kept)
    for column in found:
        try:
            before, after = number(kept[column]), number(found[column])
        except ValueError:
            continue
        slack = next((abs_ for word, abs_ in LOOSE.items() if word in column), 0.01 * abs(before))
        if "usd" in column or slack != 0.01 * abs(before) or name.startswith("published"):
            assert after == pytest.approx(before, abs=slack, nan_ok=True), column


@pytest.mark.parametrize("name", TABLES)
def test_every_row_is_kept(name: str) -> None:
    """A kept table has the rows of its keys, in their order."""
    table = TABLES[name]
    assert [{column: kept[column] for column in key} for kept, key in zip(KEPT[name], table.keys, strict=True)] == [
        {column: written(value) for column, value in key.items()} for key in table.keys
    ]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_shows_the_kept_tables(path: Path) -> None:
    """Filling the page in again changes nothing."""
    text = path.read_text(encoding="utf-8")
    assert filled(text, KEPT) == text


def test_a_break_even_is_one() -> None:
    """A card a tenth cheaper than its break-even beats sharing, one a tenth dearer does not."""
    rented = replace(Case(card="L40S"), gpu_usd=1.0)
    price = break_even(rented)
    shared = planned(rented, "shared").usd
    assert planned(replace(rented, card_usd=0.9 * price), "separate").usd < shared
    assert planned(replace(rented, card_usd=1.1 * price), "separate").usd > shared


def test_the_cheapest_is_the_simplest_of_equals() -> None:
    """Ways that cost the same within the gap are told apart by their order, infeasible ones are passed over."""
    assert cheapest({"integrated": math.nan, "shared": 1.001, "separate": 1.0}) == "shared"
    assert cheapest({"integrated": 1.5, "shared": 1.1, "separate": 1.0}) == "separate"
    assert cheapest({"integrated": math.nan}) == "none"


def test_a_sentence_cites_one_cell() -> None:
    """A citation becomes its figure, and one of no row, or of several, is an error."""
    tables = {"prices": [{"sku": "L4", "usd": "0.5", "kind": "card"}, {"sku": "L40S", "usd": "-1.5", "kind": "card"}]}
    assert cited("{prices | sku=L4 | usd | .2f}, {prices | sku=L40S | usd | abs}, {prices | kind=card | count}", tables) == (
        "0.50, 2, 2"
    )
    for where in ("sku=L5", "kind=card"):
        with pytest.raises(ValueError, match="rows have"):
            cited(f"{{prices | {where} | usd}}", tables)
