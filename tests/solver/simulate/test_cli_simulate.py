"""`epd-opt simulate` prints tables or strict JSON, checks targets and ends with the right code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

import jsonschema  # type: ignore[import-untyped]
import pytest

from epd_opt.instance import Instance, instance_sha256
from epd_opt.simulate.document import simulation_json_schema
from support.commands import Run
from support.fleets import plan_of


def refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is not JSON")


@pytest.fixture
def simulate(run: Run, tmp_path: Path) -> Any:
    """Run the command on a plan; exit code, standard output and standard error."""

    def call(*options: str, way: str = "shared", changed: Any = None) -> tuple[int, str, str]:
        path = tmp_path / "plan.json"
        document = plan_of(way).to_dict()
        if changed is not None:
            changed(document)
        path.write_text(json.dumps(document), encoding="utf-8")
        return run("simulate", path, *options)

    return call


def test_the_report_is_one_strict_json_document(simulate: Any) -> None:
    """It follows its schema, has the keys of the contract, and another run prints the same bytes."""
    code, out, err = simulate("--json", "--requests", "300", "--seeds", "2")
    report = json.loads(out, parse_constant=refuse)
    jsonschema.Draft202012Validator(simulation_json_schema()).validate(report)
    assert (code, err) == (0, "")
    assert report["schema"] == "epd-opt/simulation/v1"
    chat = report["classes"]["chat"]
    assert {"requests", "ttft_ms", "itl_ms", "attainment", "attainment_ci95", "target_met"} <= set(chat)
    assert {"p50", "p90", "p95", "p99"} <= set(chat["ttft_ms"])
    assert {"ttft", "itl", "both"} <= set(chat["attainment"])
    assert sum(outcome["requests"] for outcome in report["classes"].values()) == 600
    assert simulate("--json", "--requests", "300", "--seeds", "2")[1] == out


def test_the_table_names_classes_and_pools(simulate: Any) -> None:
    """People read who got what, and from whom."""
    code, out, _ = simulate("--requests", "300")
    assert code == 0
    assert "all targets met" in out
    assert all(name in out for name in ("chat", "photo", "shared-H100-SXM-tp1"))


def test_check_exits_with_seven_where_a_target_is_missed(simulate: Any) -> None:
    """A TTFT that nobody can meet breaches; without --check the same report ends well."""

    def harder(document: dict[str, Any]) -> None:
        document["instance_document"]["workload"]["classes"][0]["slo"]["ttft_ms"] = 13
        document["provenance"]["instance_sha256"] = instance_sha256(Instance(**document["instance_document"]))

    code, _, err = simulate("--requests", "200", "--check", changed=harder)
    assert code == 7
    assert "targets missed: chat" in err
    assert simulate("--requests", "200", changed=harder)[0] == 0
    assert simulate("--requests", "200", "--check")[0] == 0


def test_a_plan_without_pools_is_refused(simulate: Any) -> None:
    """There is nothing to simulate in what could not be planned."""

    def empty(document: dict[str, Any]) -> None:
        document.update(status="infeasible", pools=[], classes={}, cost=None, devices={})

    code, _, err = simulate(changed=empty)
    assert code == 3
    assert "nothing to simulate" in err


def test_files_are_written(simulate: Any, tmp_path: Path) -> None:
    """The report with -o, the picture with --plot."""
    pytest.importorskip("matplotlib")
    report, picture = tmp_path / "report.json", tmp_path / "times.png"
    code, _, _ = simulate("--requests", "200", "-o", str(report), "--plot", str(picture))
    assert code == 0
    assert json.loads(report.read_text(encoding="utf-8"), parse_constant=refuse)["instance"] == "photos"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_trace_is_sent_as_it_stands(simulate: Any, tmp_path: Path) -> None:
    """Its requests go to the classes that they resemble, and the note names the file."""
    rows = ["arrival_s,input_text_tokens,num_images,image_tokens,output_tokens"]
    rows += [f"{0.05 * i:.2f},{400 + i % 7},{i % 2},{(i % 2) * 400},{50 + i % 5}" for i in range(400)]
    trace = tmp_path / "requests.csv"
    trace.write_text("\n".join(rows) + "\n", encoding="utf-8")
    code, out, _ = simulate("--trace", str(trace), "--json")
    report = json.loads(out, parse_constant=refuse)
    assert code == 0
    assert report["arrivals"] == "trace requests.csv"
    counts = [outcome["requests"] for outcome in report["classes"].values()]
    assert 340 <= sum(counts) <= 400
    assert abs(counts[0] - counts[1]) <= 1


def test_traces_of_other_formats_are_read_with_their_options(simulate: Any, tmp_path: Path) -> None:
    """Dates without image tokens are read with --format and --image-tokens; options without a trace are refused."""
    rows = ["TIMESTAMP,NumImages,ContextTokens,GeneratedTokens"]
    rows += [f"2024-10-15 10:00:{i // 10:02d}.{i % 10}00,{i % 2},{500 + i % 7},{50 + i % 5}" for i in range(400)]
    trace = tmp_path / "requests.csv"
    trace.write_text("\n".join(rows) + "\n", encoding="utf-8")
    options = ("--format", "azure-lmm", "--time-unit", "iso", "--image-tokens", "256")
    code, out, _ = simulate("--trace", str(trace), *options, "--json")
    assert code == 0
    assert set(json.loads(out)["classes"]) == {"chat", "photo"}
    assert simulate("--trace", str(trace))[0] == 3
    for option, value in (("--format", "common"), ("--time-unit", "ms"), ("--image-tokens", "256")):
        code, _, err = simulate(option, value)
        assert (code, option in err, "--trace FILE" in err) == (2, True, True)


def test_files_that_cannot_be_written_end_the_run_before_it_begins(simulate: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """A moving picture, a missing folder and a place where nothing can be made: exit code 2, and no request is sent."""
    monkeypatch.setattr("epd_opt.cli.simulating.simulate", lambda *_, **__: pytest.fail("the run began"))
    unwritable = tmp_path / ("n" * 300 + ".json")
    for options, told in (
        (("--plot", str(tmp_path / "times.gif")), "found .gif, expected .png, .pdf or .svg"),
        (("--plot", str(tmp_path / "times")), "found no ending"),
        (("-o", str(tmp_path / "absent" / "report.json")), "there is no directory"),
        (("-o", str(unwritable)), "cannot write"),
    ):
        code, _, err = simulate(*options)
        assert (code, told in err) == (2, True), err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.json"]


@pytest.mark.parametrize("card", ["engine", "model"])
def test_a_plan_of_another_version_asks_to_be_made_again(simulate: Any, card: str) -> None:
    """A card that cannot be read is a fault of the input, told with the version that wrote it."""

    def older(document: dict[str, Any]) -> None:
        document["cards"][card]["formerly"] = 1
        document["provenance"]["epd_opt"] = "0.0.1"

    code, _, err = simulate(changed=older)
    assert code == 3
    assert f"{card}.formerly: " in err
    assert "epd-opt 0.0.1 made the plan" in err
    assert "solve its instance again" in err
