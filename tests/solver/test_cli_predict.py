"""`epd-opt predict` gives rows back with predictions, says how far they are off, and refuses files that cannot be meant."""

import csv
import io
import json

import pytest

HEADER = "model,dtype,gpu,engine,n_gpu,tp,isl,osl,concurrency,ttft_ms,itl_ms"
ROWS = (
    "meta-llama/Llama-3.1-70B,fp8,h200_sxm,vllm,8,8,1024,1024,16,108.9,9.7",
    "meta-llama/Llama-3.1-70B,fp8,h200_sxm,vllm,8,8,8192,1024,16,480,13.4",
    "No-Such-Model,fp8,h200_sxm,vllm,8,8,1024,1024,16,,",
)


@pytest.fixture
def epd_opt(run, tmp_path):
    """Run the command on a file of these lines; exit code, standard output and standard error."""

    def call(*lines, options=()):
        path = tmp_path / "runs.csv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        code, out, err = run("predict", path, *options)
        return code, out, err.replace(str(path), "runs.csv")

    return call


def test_rows_come_back_in_order_with_predictions_and_reasons(epd_opt):
    """The third row names no model: its predictions stay empty."""
    code, out, err = epd_opt(HEADER, *ROWS)
    table = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert list(table[0]) == [*HEADER.split(","), "predicted_ttft_ms", "predicted_itl_ms", "reason"]
    assert [float(row["predicted_itl_ms"]) for row in table[:2]] == [
        pytest.approx(9.7, rel=0.2),
        pytest.approx(13.4, rel=0.2),
    ]
    assert (table[2]["predicted_ttft_ms"], table[2]["predicted_itl_ms"]) == ("", "")
    assert "no model card is called 'No-Such-Model'" in table[2]["reason"]
    assert "1 row not predicted" in err


def test_predictions_of_an_earlier_run_are_replaced(epd_opt):
    """What the command wrote it reads again."""
    _, first, _ = epd_opt(HEADER, *ROWS)
    _, second, _ = epd_opt(*first.splitlines())
    assert second == first


def test_errors_are_summed_up_by_group(epd_opt):
    """Against measurements of exactly the predictions, doubled: 50 per cent."""
    _, out, _ = epd_opt(HEADER, ROWS[0])
    predicted = next(csv.DictReader(io.StringIO(out)))
    doubled = [2 * float(predicted[name]) for name in ("predicted_ttft_ms", "predicted_itl_ms")]
    line = ROWS[0].rsplit(",", 2)[0] + ",{},{}".format(*doubled)
    code, out, _ = epd_opt(HEADER, line, ROWS[2], options=["--json"])
    summary = {group["model"]: group for group in json.loads(out)["summary"]}
    assert code == 0
    assert summary["meta-llama/Llama-3.1-70B"]["itl_median_error_percent"] == pytest.approx(50, abs=0.01)
    assert summary["meta-llama/Llama-3.1-70B"]["ttft_bias_percent"] == pytest.approx(-50, abs=0.01)
    assert (summary["No-Such-Model"]["predicted"], summary["No-Such-Model"]["itl_mean_error_percent"]) == (0, None)
    assert summary["all"]["rows"] == 2


def test_output_goes_to_a_file_and_repeats_are_warned_of(epd_opt, tmp_path):
    """Nothing on standard output, the warning on standard error; quiet keeps both silent."""
    code, out, err = epd_opt(HEADER, ROWS[0], ROWS[0], options=["-o", str(tmp_path / "out.csv")])
    assert (code, out) == (0, "")
    assert "warning: runs.csv:3: says the same as line 2" in err
    assert len((tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()) == 3
    assert epd_opt(HEADER, ROWS[0], ROWS[0], options=["-q", "-o", str(tmp_path / "out.csv")]) == (0, "", "")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([HEADER.replace("itl_ms", "itl"), ROWS[0]], "runs.csv:1:1: column itl_ms is missing (is 'itl' meant for itl_ms"),
        ([HEADER, ROWS[0].replace("9.7", "-9.7")], "runs.csv:2:1: itl_ms: expected a number above 0, found -9.7"),
        ([HEADER, ROWS[0].replace("9.7", "0.0097")], "this looks like seconds: multiply by 1000"),
        ([HEADER, ROWS[2]], "runs.csv:2:1: no model card is called 'No-Such-Model'"),
        (
            [HEADER, ROWS[0].replace("h200_sxm", "h2oo_sxm")],
            "runs.csv:2:1: no device card is called 'h2oo_sxm'; did you mean",
        ),
    ],
)
def test_files_that_cannot_be_meant_end_with_three(epd_opt, lines, expected):
    """Missing columns, negative times, seconds for milliseconds, nothing but unknown names."""
    code, out, err = epd_opt(*lines)
    assert (code, out) == (3, "")
    assert expected in err


def test_a_file_that_is_not_there_ends_with_three(run):
    """With its name."""
    code, _, err = run("predict", "nowhere.csv")
    assert code == 3
    assert "nowhere.csv" in err


def test_prefill_and_decode_apart_are_summed_up_by_themselves(epd_opt):
    """A row of each mode: each has its line, and so have both together."""
    header = f"{HEADER},mode,notes"
    apart = "deepseek-ai/DeepSeek-V3,fp8,h200_sxm,trtllm,64,8,8192,1024,768,8836,44.0,disagg,P5(tp8 mep8) D3(adp8 mep8)"
    code, out, err = epd_opt(header, f"{ROWS[0]},agg,", apart, options=["--json"])
    summary = json.loads(out)["summary"]
    assert code == 0
    assert [(group["model"], group["mode"], group["rows"]) for group in summary[2:]] == [
        ("all", "agg", 1),
        ("all", "disagg", 1),
        ("all", "", 2),
    ]
    assert summary[1]["itl_median_error_percent"] < 30
    assert "disagg" in err


def test_measured_times_that_contradict_themselves_are_remarked(epd_opt):
    """448 prompts of 15,000 tokens in 7.6 s on two GB200 (silicon_sample.csv, Apache-2.0 package aiconfigurator) are more
    than their peak FLOP/s; the prediction stands beside the remark."""
    line = "nvidia/Qwen3-32B-NVFP4,fp4,gb200,trtllm,2,2,15000,500,448,746.4,13.666"
    code, out, _ = epd_opt(HEADER, line)
    (row,) = csv.DictReader(io.StringIO(out))
    assert code == 0
    assert float(row["predicted_itl_ms"]) > 50
    assert "the device takes" in row["reason"]


def test_times_of_the_same_setting_far_apart_are_warned_of(epd_opt):
    """Which of the two is right is not ours to say."""
    code, _, err = epd_opt(HEADER, ROWS[0], ROWS[0].replace("9.7", "4.85"))
    assert code == 0
    assert "warning: runs.csv:3: itl_ms is 0.5 times that of line 2, the same setting; both count" in err


def test_layouts_and_limits_in_cells(epd_opt):
    """A layout name gets a reason with a hint; a limit of sequences lengthens the wait and shortens the interval."""
    header = f"{HEADER},max_sequences"
    rows = [f"{ROWS[0].replace(',16,', ',128,')},{limit}" for limit in ("", "8")]
    code, out, _ = epd_opt(header, f"{ROWS[0].replace(',8,8,', ',8,DEP8,')},", *rows)
    layout, free, limited = csv.DictReader(io.StringIO(out))
    assert code == 0
    assert layout["reason"] == (
        "tp is 'DEP8', not a number; give the degrees of a layout as numbers in tp, pp, attention_dp and moe_ep"
    )
    assert float(limited["predicted_itl_ms"]) < float(free["predicted_itl_ms"])
    assert float(limited["predicted_ttft_ms"]) > 10 * float(free["predicted_ttft_ms"])


def test_files_that_are_no_tables_end_with_three(epd_opt, run, tmp_path):
    """Nothing in it, semicolons, a picture."""
    assert "the file is empty" in epd_opt("")[2]
    assert "separated by semicolons, expected commas" in epd_opt(HEADER.replace(",", ";"), ROWS[0].replace(",", ";"))[2]
    (tmp_path / "picture.csv").write_bytes(b"\x89PNG\r\n\x1a\n")
    assert run("predict", tmp_path / "picture.csv")[0] == 3
