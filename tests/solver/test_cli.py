"""Shows that every way in which a run of the command line can end has its exit code, and that streams stay apart."""

from __future__ import annotations

import dataclasses
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pulp
import pytest

import epd_opt
from epd_opt.backends import BACKENDS, Outcome, Settings
from epd_opt.document import plan_json_schema
from support.commands import Run

CHAT = """\
schema: epd-opt/instance/v1
name: desk
candidates: {modelled: false}
workload:
  classes:
    - {name: "chat [bold]", rate_per_s: 9}
devices:
  - {sku: A, price: {usd_per_hour: 2}}
workers:
  - {name: w, sku: A, devices: 1, stages: [prefill, decode], max_rate_per_s: 4}
"""


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    file = tmp_path / "desk.yaml"
    file.write_text(CHAT)
    return file


def process(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from epd_opt.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_a_proved_plan_ends_with_0_and_prints_tables(run: Run, desk: Path) -> None:
    code, out, err = run("solve", desk)
    assert code == 0
    assert out.startswith("desk: $0.000185 per request, proved optimal\n$6.00/h")
    assert "chat [bold] 9" in out
    assert err == "warning: A has no stock limit: any number of units may be planned\n"


def test_quiet_keeps_warnings_back_and_verbose_tells_the_steps(run: Run, desk: Path) -> None:
    assert run("solve", "--quiet", desk)[2] == ""
    assert "1 candidates" in run("solve", "--verbose", desk)[2]


def test_the_first_solve_of_a_process_prints_one_strict_json_document(desk: Path) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    done = process("solve", desk, "--json")
    assert done.returncode == 0
    document = json.loads(done.stdout, parse_constant=refuse)
    jsonschema.validate(document, plan_json_schema())
    assert document["pools"][0]["serves"] == {"chat [bold]": 9.0}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["frobnicate"], "No such command 'frobnicate'"),
        (["solve"], "Missing argument 'INSTANCE'"),
        (["solve", "DESK", "--bogus"], "No such option"),
        (["solve", "DESK", "--gap", "-1"], "x>=0"),
        (["solve", "DESK", "--threads", "0"], "x>=1"),
        (["solve", "DESK", "--solver", "hihgs"], "did you mean highs?"),
        (["solve", "DESK", "--set", "solver.gap"], "expected PATH=VALUE"),
        (["solve", "DESK", "-o", "/no/such/place/plan.json"], "no directory"),
        (["solve", "DESK", "-o", "-"], "--json"),
        (["init", "DESK"], "exists already"),
        (["catalog", "devices", "H100"], "did you mean H100-SXM"),
        (["catalog", "models", "qwen3.5-122b"], "Qwen3.5-122B-A10B"),
        (["schema", "fleet"], "'instance', 'plan'"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_would_be_right(run: Run, desk: Path, arguments: list[str], said: str) -> None:
    code, out, err = run(*(str(desk) if argument == "DESK" else argument for argument in arguments))
    assert (code, out) == (2, "")
    assert said in err


@pytest.mark.parametrize("command", ["solve", "validate"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CHAT.replace("rate_per_s: 9", "rate_per_s: fast"), ":6:"),
        (CHAT.replace("sku: A, price", "sku: A, prise"), "price"),
        (CHAT + "solver: {name: hihgs}\n", "highs"),
    ],
)
def test_an_invalid_instance_ends_with_3_at_its_line(run: Run, tmp_path: Path, command: str, text: str, said: str) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(text)
    code, out, err = run(command, file)
    assert (code, out) == (3, "")
    assert "wrong.yaml" in err or "solver.name" in err
    assert said in err


def test_a_missing_file_ends_with_3_and_the_nearest_name(run: Run, desk: Path) -> None:
    code, _, err = run("solve", desk.with_name("desc.yaml"))
    assert code == 3
    assert "desk.yaml" in err


def test_an_infeasible_instance_ends_with_4_and_writes_no_plan_file(run: Run, desk: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    code, out, err = run("solve", desk, "--set", "devices.A.stock=2", "-o", plan)
    assert code == 4
    assert out.startswith("desk: infeasible\n  stock: ")
    assert "not written" in err
    assert not plan.exists()


def test_an_infeasible_document_has_reasons_and_no_cost(run: Run, desk: Path) -> None:
    code, out, _ = run("solve", desk, "--set", "devices.A.stock=2", "--json")
    document = json.loads(out)
    assert (code, document["status"], document["cost"], document["pools"]) == (4, "infeasible", None, [])
    assert document["infeasibility"]["reasons"][0]["limit"] == "stock"


class Hurried:
    """HiGHS, but the clock stops it: with an incumbent and half its bound, or with nothing."""

    name = "highs"

    def __init__(self, *, finds: bool) -> None:
        self.finds = finds

    def describe(self) -> str:
        return "stopped by the clock"

    def solve(self, model: pulp.LpProblem, settings: Settings) -> Outcome:
        outcome = HIGHS.solve(model, settings)
        if model.name == "routing":
            return outcome
        kept = {} if self.finds else {"values": None, "objective": None}
        bound = None if outcome.bound is None else outcome.bound / 2
        return dataclasses.replace(outcome, termination="time_limit", bound=bound, **kept)


HIGHS = BACKENDS["highs"]


def test_a_plan_that_is_not_proved_ends_with_5(run: Run, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "highs", Hurried(finds=True))
    code, out, _ = run("solve", desk)
    assert code == 5
    assert "not proved: the optimum may be as low as" in out


def test_no_plan_within_the_time_ends_with_6(run: Run, desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "highs", Hurried(finds=False))
    code, out, err = run("solve", desk, "-o", tmp_path / "plan.json")
    assert code == 6
    assert "stopped without a plan" in out
    assert "not written" in err
    assert not (tmp_path / "plan.json").exists()


def test_a_breached_threshold_ends_with_7_and_a_kept_one_with_0(run: Run, desk: Path) -> None:
    cost = 6.0 / (9 * 3600)
    code, _, err = run("solve", desk, "--fail-above", f"{cost * 0.999}")
    assert code == 7
    assert "above the limit" in err
    assert run("solve", desk, "--fail-above", f"{cost * 1.001}")[0] == 0


def test_a_fault_of_the_program_ends_with_1_and_its_trace(run: Run, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epd_opt, "solve", lambda *_, **__: 1 / 0)
    code, out, err = run("solve", desk)
    assert (code, out) == (1, "")
    assert "ZeroDivisionError" in err
    assert "fault of the program" in err


def test_an_interrupt_ends_with_6(run: Run, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(epd_opt, "solve", interrupted)
    assert run("solve", desk)[0] == 6


def test_a_plan_file_holds_the_document_and_can_be_loaded(run: Run, desk: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    assert run("solve", desk, "-o", file)[0] == 0
    assert epd_opt.Plan.load(file).cost.usd_per_hour == 6.0


def test_a_dash_reads_standard_input(run: Run) -> None:
    assert run("solve", "-", stdin=CHAT)[0] == 0
    code, out, err = run("validate", "-", stdin=CHAT.replace("name: desk", "nam: desk"))
    assert (code, out) == (3, "")
    assert "<stdin>:2:" in err


def test_set_overrides_values_by_their_path(run: Run, desk: Path) -> None:
    _, out, _ = run("solve", desk, "--set", "workload.classes.*.rate_per_s=13", "--set", "devices.A.price.usd_per_hour=3")
    assert "$12.00/h" in out


def test_validate_says_what_it_read_and_needs_no_solver(run: Run, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    code, out, err = run("validate", desk)
    assert (code, out) == (0, "")
    assert "desk: valid (1 classes, 1 devices, 1 measured workers)" in err


def test_version_help_and_solvers(run: Run) -> None:
    assert run("--version")[:2] == (0, f"epd-opt, version {epd_opt.__version__}\n")
    code, out, _ = run("-h")
    assert code == 0
    assert all(command in out for command in ("init", "validate", "solve", "explain", "catalog", "schema", "solvers"))
    assert "--fail-above" in run("solve", "-h")[1]
    code, out, _ = run("solvers")
    assert code == 0
    for name, solver in BACKENDS.items():
        (line,) = [line for line in out.splitlines() if line.startswith(f"{name} ")]
        assert line.endswith(solver.describe() if solver.availability().usable else solver.availability().missing)


def test_schemas_are_json_schemas(run: Run) -> None:
    for what in ("instance", "plan", "explanation", "comparison", "simulation"):
        code, out, _ = run("schema", what)
        assert code == 0
        jsonschema.Draft202012Validator.check_schema(json.loads(out))


def test_the_catalogue_lists_and_shows_cards(run: Run) -> None:
    assert "H100-SXM" in run("catalog", "devices")[1]
    assert "Qwen3.5-122B-A10B" in json.loads(run("catalog", "models", "--json")[1])
    assert json.loads(run("catalog", "devices", "h100_sxm", "--json")[1])["sku"] == "H100-SXM"
    assert "confidence" in run("catalog", "models", "Llama-3.1-8B")[1]


def test_the_starter_solves_as_it_stands(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    assert run("init", file)[0] == 0
    assert run("init")[1] == file.read_text()
    code, out, _ = run("solve", file)
    assert code == 0
    assert "proved" in out


def test_a_reader_that_leaves_early_is_no_fault(desk: Path) -> None:
    command = [sys.executable, "-c", "from epd_opt.cli import main; main()", "solve", str(desk), "--json", "-q"]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("no_color", "colored"), [("", True), ("1", False)])
def test_a_terminal_gets_colours_unless_no_color_is_set(desk: Path, no_color: str, colored: bool) -> None:
    controller, terminal = pty.openpty()
    command = [sys.executable, "-c", "from epd_opt.cli import main; main()", "solve", str(desk), "-q"]
    environment = {**os.environ, "NO_COLOR": no_color, "TERM": "xterm"}
    subprocess.run(command, stdout=terminal, stderr=subprocess.DEVNULL, env=environment, check=True)
    os.close(terminal)
    shown = os.read(controller, 65536).decode()
    os.close(controller)
    assert ("\x1b[" in shown) == colored


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"cost": NaN}', "found NaN"),
        ("{", "not a plan"),
        ("[]", "not a"),
    ],
)
@pytest.mark.parametrize("command", ["simulate", "report", "tolerance"])
def test_what_is_no_plan_is_invalid_input(run: Run, tmp_path: Path, text: str, said: str, command: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    for code, _, err in (run(command, file), run(command, "-", stdin=text)):
        assert code == 3
        assert said in err


def test_a_plan_that_does_not_hang_together_is_invalid_input(run: Run, desk: Path) -> None:
    content = json.loads(run("solve", desk, "--json")[1])
    assert run("simulate", "-", "--requests", "9", stdin=json.dumps(content))[0] == 0
    code, _, err = run("report", "-", stdin=json.dumps({**content, "pools": []}))
    assert code == 3
    assert "no pool" in err
    content["pools"][0]["replicas"] = 0
    code, _, err = run("export", "-", "--to", "vllm", stdin=json.dumps(content))
    assert code == 3
    assert "pools.0.replicas" in err


@pytest.mark.parametrize("number", ["nan", "inf", "-1"])
@pytest.mark.parametrize("option", ["--gap", "--time-limit", "--fail-above"])
def test_options_take_finite_numbers(run: Run, desk: Path, option: str, number: str) -> None:
    code, out, err = run("solve", desk, option, number)
    assert code == 2
    assert not out
    assert option in err


def test_a_share_of_nothing_is_wrong_usage(run: Run, desk: Path) -> None:
    code, _, err = run("explain", desk, "--share", "0.5")
    assert code == 2
    assert "--why-not" in err


def test_init_writes_to_standard_output(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("init", "-")[:2] == run("init")[:2]
    assert not list(tmp_path.iterdir())


def test_a_range_of_demand_too_wide_for_a_proof_is_invalid_input(run: Run, desk: Path) -> None:
    objective = "objective={minimise: cost_per_request, rate_multiple: [1.0e-12, 1]}"
    code, _, err = run("solve", desk, "--set", objective)
    assert code == 3
    assert "too wide a range" in err
