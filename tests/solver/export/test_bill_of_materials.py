"""Shows that bills of materials add up to the plan, and that spreadsheets read names as text and numbers as numbers."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import pytest

import epd_opt
from epd_opt.document import PlanDocument
from epd_opt.export import export
from epd_opt.export.bill import bill_of_materials
from support.documents import measured, modelled

NASTY = ["=1+1", "+cmd|' /C calc'!A0", "-2", "@SUM(A1)", "\tx", '=HYPERLINK("http://x")', 'a "quoted", name\nin two lines']


@pytest.fixture(scope="module")
def split() -> PlanDocument:
    """Rented and bought devices, two owned ones, lots of two, one spare each."""
    return epd_opt.solve(measured()).document


@pytest.fixture(scope="module")
def lots() -> PlanDocument:
    """Devices that come in lots of eight, priced by the server, on one entry with a price from its card."""
    document = modelled(placements=["encoder_pool", "prefill_decode"])
    document["devices"][0]["stages"] = ["prefill", "decode"]
    document["devices"][0]["price"] = {"purchase_usd": 96000, "per": "server"}
    document["devices"][1]["price"] = {"usd_per_hour": 0.7, "pack": 4}
    return epd_opt.solve(document).document


def table(document: PlanDocument) -> list[dict[str, str]]:
    content = export(document, "bom-csv").content
    assert isinstance(content, str)
    return list(csv.DictReader(io.StringIO(content)))


def total(rows: list[dict[str, str]], column: str) -> float:
    return math.fsum(float(row[column]) for row in rows)


@pytest.mark.parametrize("plan", ["split", "lots"])
def test_columns_add_up_to_the_plan(plan: str, request: pytest.FixtureRequest) -> None:
    document: PlanDocument = request.getfixturevalue(plan)
    rows, cost = table(document), document.cost
    assert cost is not None
    assert total(rows, "x_CostPerHour") == pytest.approx(cost.usd_per_hour, rel=1e-12)
    assert total(rows, "x_CostPerMonth") == pytest.approx(cost.usd_per_month, rel=1e-12)
    assert total(rows, "x_Capex") == pytest.approx(cost.capex_usd, rel=1e-12)
    assert total(rows, "x_PowerKw") == pytest.approx(cost.power_kw, rel=1e-12)
    devices = [row for row in rows if row["x_Item"] == "device"]
    assert total(devices, "PricingQuantity") == sum(use.bought + use.owned for use in document.devices.values())
    for row in rows:
        if row["x_Basis"] == "purchase":
            each = float(row["PricingQuantity"]) * float(row["ContractedUnitPrice"])
            assert each == pytest.approx(float(row["x_Capex"]), rel=1e-12)


@pytest.mark.parametrize("plan", ["split", "lots"])
def test_each_entry_adds_up(plan: str, request: pytest.FixtureRequest) -> None:
    document: PlanDocument = request.getfixturevalue(plan)
    lines = bill_of_materials(document)
    for name, use in document.devices.items():
        own = [line for line in lines if line.device == name]
        assert math.fsum(line.hourly for line in own) == pytest.approx(use.usd_per_hour, rel=1e-12)
        for origin, count in (("bought", use.bought), ("owned", use.owned)):
            assert sum(x.quantity for x in own if x.item == "device" and x.origin == origin) == count
    for pool in document.pools:
        assert sum(line.quantity for line in lines if line.pool == pool.name) == pool.devices


def test_roles(split: PlanDocument, lots: PlanDocument) -> None:
    spare = [line for line in bill_of_materials(split) if line.role == "spare"]
    assert {line.pool: line.quantity for line in spare} == {"reader-big": 1, "encoder-small": 1, "writer-small": 2}
    assert sum(line.quantity for line in bill_of_materials(split) if line.role == "existing") == 2
    unused = {line.device: (line.quantity, line.reason) for line in bill_of_materials(lots) if line.role == "unused"}
    assert unused == {"A100-80-SXM": (5, "comes with lots of 8"), "L4": (3, "comes with lots of 4")}
    assert {name: use.bought - use.used for name, use in lots.devices.items()} == {"A100-80-SXM": 5, "L4": 3}


def test_a_price_of_the_card_brings_its_date_and_source(lots: PlanDocument) -> None:
    """The server's price is eight times what the card of the A100 calls typical; the card of the L4 knows no 0.7."""
    dates = {(line.device, line.item): (line.price_date, line.price_source) for line in bill_of_materials(lots)}
    assert dates["A100-80-SXM", "device"][0] == "2026"
    assert "mercatus-ai.com" in dates["A100-80-SXM", "device"][1]
    assert dates["L4", "device"] == ("", "devices.L4.price")


@pytest.fixture(scope="module")
def nasty() -> PlanDocument:
    """Workers, devices and the plan itself with names that spreadsheets would run."""
    document = measured(name=NASTY[0])
    names = {"big": NASTY[1], "small": NASTY[5]}
    for entry in document["devices"]:
        entry["sku"] = names[entry["sku"]]
    for worker, name in zip(document["workers"], [NASTY[6], *NASTY[2:5]], strict=True):
        worker["sku"], worker["name"] = names[worker["sku"]], name
    return epd_opt.solve(document).document


def test_no_cell_of_the_csv_is_a_formula(nasty: PlanDocument) -> None:
    content = export(nasty, "bom-csv").content
    assert isinstance(content, str)
    rows = list(csv.reader(io.StringIO(content)))
    texts = [cell for row in rows for cell in row if not _number(cell)]
    assert not [cell for cell in texts if cell[:1] in "=+-@\t\r" and cell]
    assert "'" + NASTY[1] in texts


def _number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_the_workbook_holds_texts_and_numbers(nasty: PlanDocument, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="workbooks need the extra: pip install -e '.[xlsx]'")
    epd_opt.Plan(nasty).export("xlsx", tmp_path / "bill.xlsx")
    book = openpyxl.load_workbook(tmp_path / "bill.xlsx")
    assert book.sheetnames == ["Bill of materials", "Plan"]
    names, *rows, last = book["Bill of materials"].iter_rows()
    assert not [cell.coordinate for sheet in book for row in sheet.iter_rows() for cell in row if cell.data_type == "f"]
    assert NASTY[1] in {cell.value for row in rows for cell in row}
    assert book["Plan"]["B1"].value == NASTY[0]
    column = {cell.value: index for index, cell in enumerate(names)}
    cost = nasty.cost
    assert cost is not None
    for name, expected in {
        "x_CostPerHour": cost.usd_per_hour,
        "x_CostPerMonth": cost.usd_per_month,
        "x_Capex": cost.capex_usd,
        "x_PowerKw": cost.power_kw,
    }.items():
        cells = [row[column[name]] for row in rows]
        assert {cell.data_type for cell in cells} == {"n"}
        assert math.fsum(cell.value for cell in cells) == pytest.approx(expected, rel=1e-12)
        assert last[column[name]].value == pytest.approx(expected, rel=1e-12)
    installed = sum(use.bought + use.owned for use in nasty.devices.values())
    assert last[column["PricingQuantity"]].value == installed


def test_equal_plans_give_equal_workbooks(split: PlanDocument) -> None:
    pytest.importorskip("openpyxl", reason="workbooks need the extra: pip install -e '.[xlsx]'")
    again: dict[str, Any] = split.model_dump(mode="json", by_alias=True)
    assert export(split, "xlsx").content == export(PlanDocument.model_validate(again), "xlsx").content


def test_without_openpyxl_the_extra_is_named(split: PlanDocument, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(epd_opt.UsageError, match=r"pip install 'epd-opt\[xlsx\]'"):
        export(split, "xlsx")
