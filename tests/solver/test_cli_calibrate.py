"""`epd-opt calibrate` writes a card that changes a plan and says whose measurements it rests on; it refuses what tells too
little."""

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from tests.support.synthetic_runs import HEADER, measured_rows

import epd_opt

SLOW = {"bandwidth_share": 0.66, "kv_bandwidth_share": 0.35, "sequence_overhead_s": 60e-6, "opening_share": 0.1}
FEW = {"models": ("Llama-3.1-70B",), "degrees": (2, 8), "clients": (1, 16, 128)}


@pytest.fixture
def epd_opt_calibrate(run, tmp_path):
    """Run the command on a file of these lines; exit code, standard output and standard error."""

    def call(*lines, options=()):
        path = tmp_path / "runs.csv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        code, out, err = run("calibrate", path, *options)
        return code, out, err.replace(str(tmp_path), ".")

    return call


def chat(**entry):
    """A text-only instance on H100s."""
    return {
        "schema": "epd-opt/instance/v1",
        "name": "chat",
        "model": "Llama-3.1-70B",
        "engine": "vllm",
        "precision": {"weights": "fp8", "kv_cache": "fp8"},
        "workload": {
            "classes": [
                {
                    "name": "chat",
                    "rate_per_s": 80,
                    "text_tokens": 1000,
                    "output_tokens": 400,
                    "slo": {"ttft_ms": 3000, "itl_ms": 45, "percentile": 95},
                }
            ]
        },
        "devices": [{"sku": "H100-SXM", "price": {"usd_per_hour": 2.5}, "tensor_parallel": [4], **entry}],
        "placements": ["prefill_decode"],
        "solver": {"gap": 0.0},
    }


def test_a_card_changes_a_plan_which_names_the_measurements(epd_opt_calibrate, tmp_path):
    """Decode that takes half as long again needs more replicas; the plan says whose coefficients they are, with date and
    rows, and carries them."""
    code, out, err = epd_opt_calibrate(HEADER, *measured_rows(SLOW, **FEW), options=["-o", str(tmp_path / "mine.yaml")])
    assert (code, out) == (0, "")
    assert "24 of 24 rows used" in err
    assert "not identified by these rows, kept as shipped: " in err
    file = tmp_path / "instance.yaml"
    YAML().dump(chat(coefficients="mine.yaml"), file)
    shipped, mine = epd_opt.solve(chat()), epd_opt.solve(epd_opt.read(file))
    assert mine.cost.usd_per_hour > shipped.cost.usd_per_hour
    said = [one for one in mine.assumptions if "achieved shares" in one.text]
    assert [one.confidence for one in said] == ["user"]
    assert "measured by the user: runs.csv, 24 rows in 4 groups, 20" in said[0].source
    decode = next(times for times in mine.pools[0].times if times.stage == "decode")
    assert "coefficients measured by the user: runs.csv" in decode.note
    (tmp_path / "mine.yaml").unlink()
    again = epd_opt.solve(epd_opt.read(mine.instance_document))
    assert again.cost.usd_per_hour == mine.cost.usd_per_hour


def test_the_report_as_json_is_one_document(epd_opt_calibrate):
    """Rows used and dropped, errors before and on groups left out, every coefficient with what became of it."""
    rows = measured_rows(SLOW, **FEW)
    code, out, err = epd_opt_calibrate(HEADER, *rows, rows[0], options=["--json", "-q"])
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert document["schema"] == "epd-opt/calibration/v1"
    assert document["rows"] == {"read": 25, "used": 24, "dropped": [{"line": 26, "reason": "says the same as line 2"}]}
    (one,) = document["calibrated"]
    assert (one["architecture"], one["engine"], one["groups"]) == ("hopper", "vllm", 4)
    assert one["held_out"]["itl"]["median"] < 0.08 < one["before"]["itl"]["median"]
    assert "expert_share" in one["not_identified"]
    moved = one["coefficients"]["sequence_overhead_us"]
    assert moved["shipped"] < 20 < 40 < moved["fitted"] < 66
    assert moved["identified"]
    assert document["cards"]["hopper"]["vllm"]["sequence_overhead_us"] == pytest.approx(moved["fitted"], rel=0.01)


def test_reasons_that_differ_in_figures_alone_are_told_once(epd_opt_calibrate):
    """Three repeats of three lines take one line of the report; the rows have theirs in JSON."""
    rows = measured_rows(SLOW, **FEW)
    code, _, err = epd_opt_calibrate(HEADER, *rows, *rows[:3])
    assert code == 0
    assert "line 26: 3 rows not used: says the same as line 2; likewise the others\n" in err
    assert err.count("says the same") == 1


def test_several_architectures_give_a_card_each(epd_opt_calibrate, tmp_path):
    """The file is called after each of them."""
    rows = measured_rows(SLOW, **FEW) + measured_rows({}, **FEW, gpu="B200-SXM")
    code, _, _ = epd_opt_calibrate(HEADER, *rows, options=["-q", "-o", str(tmp_path / "card.yaml")])
    assert code == 0
    assert sorted(path.name for path in tmp_path.glob("card*")) == ["card-blackwell.yaml", "card-hopper.yaml"]
    assert YAML(typ="safe").load(tmp_path / "card-blackwell.yaml")["from"] == "blackwell"


def test_files_that_tell_too_little_end_with_three(epd_opt_calibrate):
    """With what there is, what is needed, and why rows were dropped."""
    rows = measured_rows({}, models=("Llama-3.1-70B",), degrees=(4,), clients=(1,))[:3]
    code, out, err = epd_opt_calibrate(HEADER, *rows, rows[0].replace("H100-SXM", "H1OO"))
    assert (code, out) == (3, "")
    assert "runs.csv:2:1: hopper with vllm: 3 usable rows in 3 groups" in err
    assert "runs.csv:5:1: 1 row not used: no device card is called 'H1OO'" in err


@pytest.mark.parametrize(
    ("coefficients", "complaint"),
    [
        ({"from": "blackwell", "vllm": {}}, "start from 'blackwell'; those of H100-SXM start from 'hopper'"),
        ({"vllm": {"bandwidth_share": 1.4}}, "expected a share of at most 1, found 1.4"),
        ({"vllm": {"bandwith_share": 0.8}}, "'bandwith_share' is not a key"),
        ("nowhere.yaml", "no such file"),
    ],
)
def test_coefficients_that_make_no_sense_are_refused(coefficients, complaint):
    """Of another architecture, out of range, misspelt, not there."""
    with pytest.raises(epd_opt.InvalidInput, match=complaint.replace("'", ".")):
        epd_opt.solve(epd_opt.read(chat(coefficients=coefficients)))


def test_coefficients_of_another_engine_are_warned_of():
    """They would change nothing."""
    plan = epd_opt.solve(chat(coefficients={"sglang": {"bandwidth_share": 0.7}}))
    assert any("its coefficients are of sglang; those of vllm stay as shipped" in text for text in plan.warnings)


def test_figures_given_by_hand_are_the_users(tmp_path: Path):
    """Without a source they are said to be the instance's."""
    plan = epd_opt.solve(chat(coefficients={"vllm": {"bandwidth_share": 0.7}}))
    (said,) = (one for one in plan.assumptions if "achieved shares" in one.text)
    assert (said.source, said.confidence) == ("devices.H100-SXM.coefficients", "user")
