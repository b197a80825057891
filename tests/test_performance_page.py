"""The examples and tables of docs/performance-sources.md follow the code."""

import re
from pathlib import Path

from ruamel.yaml import YAML

import epd_opt
from epd_models.stage_rows import OPTIONAL, REQUIRED, TIMES, read_stage_rows
from support.documents import modelled

PAGE = (Path(__file__).parents[1] / "docs" / "performance-sources.md").read_text(encoding="utf-8")


def test_the_example_devices_are_valid(tmp_path, monkeypatch):
    """Every form of the page's device entries reads, with a file of its name beside the instance."""
    entries = YAML(typ="safe").load(re.search(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)[1])["devices"]
    (tmp_path / "runs.csv").write_text("stage\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    read = epd_opt.read(modelled(devices=entries))
    assert [entry.performance and entry.performance.source for entry in read.devices] == [None, "profile", "silicon"]


def test_the_example_rows_read():
    """The page's stage times are rows of decode and prefill."""
    rows = read_stage_rows(re.search(r"```\n(stage,.*?)```", PAGE, flags=re.DOTALL)[1])
    assert [(row.stage, row.cut.label) for row in rows] == [("decode", "tp2"), ("prefill", "tp2")]


def test_the_table_names_every_column():
    """The columns of stage times are those that are read."""
    cells = " ".join(re.findall(r"^\| (`[a-z_`, or]+`) \|", PAGE, flags=re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", cells)) == {*REQUIRED, *OPTIONAL, *TIMES}
