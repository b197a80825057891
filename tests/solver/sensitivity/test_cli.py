"""`epd-opt sensitivity` and `epd-opt tolerance`: documents on standard output, files in the folder, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from epd_opt.sensitivity import (
    break_even_json_schema,
    marginal_json_schema,
    study_json_schema,
    tolerance_json_schema,
    tornado_json_schema,
)
from support.commands import Run
from support.documents import measured

CHAT = "workload.classes.chat.rate_per_s"


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    file = tmp_path / "instance.json"
    file.write_text(json.dumps(measured()), encoding="utf-8")
    return file


def _strict(text: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(text, parse_constant=lambda _: pytest.fail("not strict"))
    return content


def test_a_study_on_standard_output_and_in_its_folder(run: Run, instance: Path, tmp_path: Path) -> None:
    """With --json standard output is one document of the schema, the same as study.json, and points.jsonl has a line for
    every point; nothing stands on standard error."""
    folder = tmp_path / "study"
    code, out, err = run(
        "sensitivity", instance, "--vary", f"{CHAT}=7,12", "-o", folder, "--json", "--workers", 1, "--no-switches"
    )
    assert (code, err) == (0, "")
    study = _strict(out)
    jsonschema.validate(study, study_json_schema())
    assert study == _strict((folder / "study.json").read_text(encoding="utf-8"))
    lines = [_strict(line) for line in (folder / "points.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["point"] for line in lines] == study["points"]


def test_the_fleet_of_a_plan_is_kept_in_place_of_the_best(run: Run, instance: Path, tmp_path: Path) -> None:
    """With --plan the fleet of another plan is today's: bought for more demand, it costs more than what is best."""
    plan = tmp_path / "plan.json"
    assert run("solve", instance, "--set", f"{CHAT}=20", "-o", plan)[0] == 0
    code, out, _ = run("sensitivity", instance, "--vary", f"{CHAT}=12,20", "--plan", plan, "--json", "--workers", 1)
    assert code == 0
    at_twelve, at_twenty = _strict(out)["points"]
    assert at_twelve["regret_usd_per_hour"] > 1.0
    assert at_twenty["regret_usd_per_hour"] == 0.0


@pytest.mark.parametrize(
    ("vary", "code"),
    [
        (f"{CHAT}=12,5000", 0),
        ("devices.big.stock=0,1", 4),
        (f"{CHAT}=-1,12", 5),
        (f"{CHAT}=-2,-1", 3),
        (f"{CHAT}=-1:12", 3),
        (f"{CHAT}", 2),
    ],
)
def test_exit_codes(run: Run, instance: Path, vary: str, code: int) -> None:
    """Proved, also where some points have no plan; no plan anywhere; a failed point; nothing but failures; a range with
    an end that no point can have; wrong usage."""
    found, _, err = run("sensitivity", instance, "--vary", vary, "--workers", 1, "--set", "devices.small.stock=40")
    assert found == code, err


def test_the_tables_name_regret_and_what_breaks(run: Run, instance: Path) -> None:
    """The terminal page has a row for every point and says what breaks."""
    code, out, _ = run("sensitivity", instance, "--vary", f"{CHAT}=x1,x2", "--workers", 1)
    assert code == 0
    assert "regret" in out
    assert "x2: reader-big has 3 replicas, spares included; 5 would do and writer-small has 6" in out


def test_tolerance_takes_a_plan(run: Run, instance: Path, tmp_path: Path) -> None:
    """A plan file is enough; the JSON is of its schema, the table names what breaks; an instance is no plan."""
    plan = tmp_path / "plan.json"
    run("solve", instance, "-o", plan)
    code, out, err = run("tolerance", plan, "--json", "--workers", 1)
    assert (code, err) == (0, "")
    jsonschema.validate(_strict(out), tolerance_json_schema())
    assert "writer-small has 6" in run("tolerance", plan, "--workers", 1)[1]
    assert run("tolerance", instance)[0] == 3


def test_a_break_even_as_text_and_as_json(run: Run, instance: Path) -> None:
    """The answer on one line, the JSON of its schema; a budget that nothing fits in ends with 4, an unknown path with 3."""
    code, out, err = run("break-even", instance, "big", "--placement", "prefill_decode")
    assert (code, err) == (0, "")
    assert "prefill_decode on big" in out
    code, out, _ = run("break-even", instance, "devices.big.price.usd_per_hour", "--json")
    assert code == 0
    jsonschema.validate(_strict(out), break_even_json_schema())
    assert run("break-even", instance, "limits.usd_per_hour", "--sku", "big", "--low", 1, "--high", 90)[0] == 4
    assert run("break-even", instance, "devices.bigg.stock", "--sku", "big")[0] == 3


def test_tornados_and_marginal_values(run: Run, instance: Path) -> None:
    """Both take an instance; the JSON is of its schema, the tables name the inputs; an unknown input ends with 3."""
    code, out, err = run("tornado", instance, "--input", CHAT, "--json", "--workers", 1)
    assert (code, err) == (0, "")
    jsonschema.validate(_strict(out), tornado_json_schema())
    assert "chat.rate_per_s" in run("tornado", instance, "--input", CHAT, "--by", 0.1, "--workers", 1)[1]
    code, out, err = run("marginal", instance, "--json", "--workers", 1)
    assert (code, err) == (0, "")
    jsonschema.validate(_strict(out), marginal_json_schema())
    assert "stock of big +1" in run("marginal", instance, "--workers", 1)[1]
    assert run("tornado", instance, "--input", "devices.bigg.stock", "--workers", 1)[0] == 3
