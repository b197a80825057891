"""`epd-opt predict` gives rows back with predictions, says how far they are off, and refuses files that cannot be meant."""

import csv
import io
import json

import pytest

from epd_opt.cli import main

HEADER = "model,dtype,gpu,engine,n_gpu,tp,isl,osl,concurrency,ttft_ms,itl_ms"
ROWS = (
    "meta-llama/Llama-3.1-70B,fp8,h200_sxm,vllm,8,8,1024,1024,16,108.9,9.7",
    "meta-llama/Llama-3.1-70B,fp8,h200_sxm,vllm,8,8,8192,1024,16,480,13.4",
    "No-Such-Model,fp8,h200_sxm,vllm,8,8,1024,1024,16,,",
)


@pytest.fixture
def epd_opt(monkeypatch, capsys, tmp_path):
    """Run the command on a file of these lines; exit code, standard output and standard error."""

    def call(*lines, options=()):
        path = tmp_path / "runs.csv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        monkeypatch.setattr("sys.argv", ["epd-opt", "predict", str(path), *options])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return ended.value.code, captured.out, captured.err.replace(str(path), "runs.csv")

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
        ([HEADER, ROWS[0].replace("9.7", "0.0097")], "these look like seconds: multiply by 1000"),
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


def test_a_file_that_is_not_there_ends_with_three(monkeypatch, capsys):
    """With its name."""
    monkeypatch.setattr("sys.argv", ["epd-opt", "predict", "nowhere.csv"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 3
    assert "nowhere.csv" in capsys.readouterr().err
