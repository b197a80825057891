"""`epd-opt explain` takes plans and instances, answers on standard output, and ends as solving does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.commands import Run

DESK = """\
schema: epd-opt/instance/v1
name: desk
candidates: {modelled: false}
workload:
  classes:
    - {name: "chat [bold]", rate_per_s: 9}
devices:
  - {sku: A, price: {usd_per_hour: 2}, stock: 8}
  - {sku: "B: [x]", price: {usd_per_hour: 7}}
workers:
  - {name: w, sku: A, devices: 1, stages: [prefill, decode], max_rate_per_s: 4}
  - {name: v, sku: "B: [x]", devices: 1, stages: [prefill, decode], max_rate_per_s: 10}
"""


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    file = tmp_path / "desk.yaml"
    file.write_text(DESK, encoding="utf-8")
    return file


def test_plan_and_instance_say_the_same(run: Run, desk: Path, tmp_path: Path) -> None:
    """A plan on standard input, a plan file and its instance are explained alike."""
    plan = tmp_path / "plan.json"
    run("solve", desk, "-o", plan)
    outputs = []
    for source, stdin in ((desk, ""), (plan, ""), ("-", plan.read_text(encoding="utf-8")), ("-", DESK)):
        code, out, err = run("explain", source, "--json", stdin=stdin)
        assert (code, err) == (0, "")
        document = json.loads(out)
        assert document.pop("seconds") >= 0.0
        outputs.append(document)
    assert all(output == outputs[0] for output in outputs)
    assert outputs[0]["schema"] == "epd-opt/explanation/v1"


def test_the_page(run: Run, desk: Path) -> None:
    """The page names the pool, its room, the other structure and the answers, odd names as they are."""
    code, out, err = run("explain", desk, "--why-not", "B: [x]", "--share", "chat [bold]=1", "--without", "A")
    assert (code, err) == (0, "")
    assert "desk: $6.00/h, proved" in out
    assert "+33.3%" in out
    assert "1. $7.00/h, +$1.00/h (+16.7%): prefill_decode on B: [x] in place of prefill_decode on A" in out
    assert "with B: [x] for at least 100% of chat [bold]" in out
    assert "without A\n" in out


def test_infeasible(run: Run, desk: Path) -> None:
    """Exit code 4, and the change to make as it is typed."""
    code, out, _ = run("explain", desk, "--set", "devices.A.stock=1", "--set", "limits.usd_per_hour=6.5")
    assert code == 4
    assert "--set 'devices.A.stock=3'" in out
    assert "--set 'limits.usd_per_hour=7'" in out
    code, out, _ = run("explain", desk, "--set", "devices.A.stock=1", "--set", "limits.usd_per_hour=6.5", "--json")
    assert code == 4
    mends = json.loads(out)["infeasibility"]["mends"]
    assert {"devices.A.stock", "limits.usd_per_hour", 'workload.classes["chat [bold]"].rate_per_s'} == {
        mend["change"] for mend in mends
    }


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--why-not", "C"], 2, "'C' is no placement and no device"),
        (["--why-not", "A", "--share", "2"], 2, "up to 1"),
        (["--solver", "hihgs"], 2, "did you mean highs"),
        (["--set", "limits.usd_per_hours=3"], 3, "usd_per_hour"),
    ],
)
def test_wrong_usage(run: Run, desk: Path, arguments: list[str], code: int, said: str) -> None:
    """What cannot be meant ends with its exit code and the nearest right thing, and prints no answer."""
    ended, out, err = run("explain", desk, *arguments)
    assert (ended, out) == (code, "")
    assert said in err


def test_values_of_a_plan_are_not_changed(run: Run, desk: Path, tmp_path: Path) -> None:
    """A plan is explained as it stands."""
    run("solve", desk, "-o", tmp_path / "plan.json")
    code, _, err = run("explain", tmp_path / "plan.json", "--set", "limits.devices=3")
    assert code == 2
    assert "--set changes an instance" in err


def test_no_such_file(run: Run, tmp_path: Path) -> None:
    """A missing file is said to be missing."""
    code, out, err = run("explain", tmp_path / "desk.yaml")
    assert (code, out) == (3, "")
    assert "no such file" in err
