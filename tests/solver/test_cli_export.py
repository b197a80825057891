"""Shows how `epd-opt export` writes: to standard output or whole to a file, with help where it cannot."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

import epd_opt
from epd_opt.cli.main import cli
from epd_opt.export import EXPORTERS
from support.documents import measured


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plans") / "plan.json"
    epd_opt.solve(measured()).save(path)
    return path


def run(*arguments: str, stdin: str | None = None) -> str:
    result = CliRunner().invoke(cli, ["export", *arguments], input=stdin, standalone_mode=False)
    if result.exception:
        raise result.exception
    return result.stdout


def test_standard_output_and_file_say_the_same(plan: Path, tmp_path: Path) -> None:
    for to in set(EXPORTERS) - {"xlsx"}:
        printed = run(str(plan), "--to", to)
        assert run(str(plan), "--to", to, "-o", str(tmp_path / to)) == ""
        assert (tmp_path / to).read_text(encoding="utf-8") == printed
        assert run("-", "--to", to, stdin=plan.read_text(encoding="utf-8")) == printed
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(set(EXPORTERS) - {"xlsx"})


def test_a_failed_write_leaves_the_old_file(plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "bill.csv"
    kept.write_text("old", encoding="utf-8")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(epd_opt.UsageError, match="cannot write: No space left"):
        run(str(plan), "--to", "bom-csv", "-o", str(kept))
    assert [(path.name, path.read_text(encoding="utf-8")) for path in tmp_path.iterdir()] == [("bill.csv", "old")]


def test_a_workbook_needs_a_file(plan: Path) -> None:
    with pytest.raises(epd_opt.UsageError, match="--to xlsx is not text: give -o PATH"):
        run(str(plan), "--to", "xlsx")


def test_what_cannot_be_exported_says_why(tmp_path: Path) -> None:
    broke = epd_opt.solve(measured(limits={"usd_per_hour": 1}))
    with pytest.raises(epd_opt.UsageError, match="is infeasible: there is no fleet to export"):
        broke.export("bom-csv")
    with pytest.raises(epd_opt.UsageError, match="did you mean bom-csv"):
        broke.export("bom_csv")
    with pytest.raises(epd_opt.UsageError, match="there is no directory"):
        run("plan.json", "--to", "bom-csv", "-o", str(tmp_path / "absent" / "x"))
