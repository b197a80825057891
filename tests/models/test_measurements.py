"""Files of measurements are read as they stand; what cannot be meant is named by line, column and nearest right thing."""

import os
from pathlib import Path

import pytest

from epd_models.measurements import REQUIRED, MeasurementsError, contradictions, duplicates, read_measurements

HEADER = ",".join(REQUIRED)
GOOD = "meta-llama/Llama-3.1-70B,fp8,h200_sxm,vllm,8,8,1024,1024,16,108.9,9.7"


def complaints(*lines, header=HEADER):
    """What reading a file of these lines complains of."""
    with pytest.raises(MeasurementsError) as caught:
        read_measurements("\n".join([header, *lines]) + "\n", file="runs.csv")
    return str(caught.value)


def test_a_row_is_read_with_its_line_and_times_in_seconds():
    """The header is line 1; columns that nobody asks for are carried along."""
    text = f"{HEADER},lab\n{GOOD},attic\n"
    (row,) = read_measurements(text)
    assert (row.line, row.ttft_s, row.itl_s) == (2, pytest.approx(0.1089), pytest.approx(0.0097))
    assert (row.degree("tp"), row.degree("pp"), row.text("lab"), row.text("notes")) == (8, 1, "attic", "")


def test_empty_times_and_layout_names_are_allowed():
    """`predict` needs no measured times, and says itself that it cannot read a layout name."""
    (row,) = read_measurements(f"{HEADER}\nm,fp8,g,e,4,DEP4,1024,512-1536,max,,\n")
    assert (row.ttft_s, row.itl_s) == (None, None)
    assert "tp" not in row.numbers
    assert "osl" not in row.numbers


def test_missing_columns_are_named_with_the_column_that_may_be_meant():
    """A file with a column of seconds gets told which unit is wanted."""
    said = complaints(header=HEADER.replace("itl_ms", "itl_s").replace("concurrency", "concurency"))
    assert said.startswith("runs.csv:1: columns concurrency, itl_ms are missing")
    assert "is 'concurency' meant for concurrency?" in said
    assert "is 'itl_s' meant for itl_ms, in milliseconds?" in said


def test_a_column_given_twice_is_refused():
    """Which of the two counts is nobody's guess."""
    assert "runs.csv:1: gpu: the column stands 2 times" in complaints(header=f"{HEADER},gpu")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (",9.7", ",-9.7", "runs.csv:2: itl_ms: expected a number above 0, found -9.7"),
        (",9.7", ",nan", "runs.csv:2: itl_ms: expected a number above 0, found nan"),
        (",9.7", ",9.7 ms", "runs.csv:2: itl_ms: expected milliseconds, found '9.7 ms'"),
        (",16,", ",0,", "runs.csv:2: concurrency: expected a number above 0, found 0"),
        (",8,8,", ",8,2.5,", "runs.csv:2: tp: expected a whole number, found 2.5"),
        (",9.7", "", "runs.csv:2: expected 11 cells as in the header, found 10"),
    ],
)
def test_numbers_that_cannot_be_are_named_by_line_and_column(old, new, expected):
    """Negative, not finite, with a unit, zero clients, half a degree, a cell too few."""
    assert expected in complaints(GOOD.replace(old, new))


def test_all_complaints_come_together():
    """Two bad rows, two sentences."""
    said = complaints(GOOD.replace("9.7", "-1"), GOOD, GOOD.replace("108.9", "inf"))
    assert [line.split(":")[1] for line in said.splitlines()] == ["2", "4"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            ",9.7",
            ",0.0097",
            "runs.csv:2: itl_ms: expected milliseconds, found 0.0097 (this looks like seconds: multiply by 1000",
        ),
        ("108.9", "0.1089", "runs.csv:2: ttft_ms: expected milliseconds, found 0.1089 (this looks like seconds"),
        (",9.7", ",97000", "runs.csv:2: itl_ms: expected milliseconds, found 97000 (this looks like microseconds: divide"),
    ],
)
def test_other_units_in_a_column_of_milliseconds_are_noticed(old, new, expected):
    """No engine answers a token every 0.0097 ms, and nobody waits 97 s for one; one such row is enough."""
    assert expected in complaints(GOOD.replace(old, new), GOOD)


def test_other_separators_are_named():
    """A table exported where decimal numbers have commas."""
    said = complaints(GOOD.replace(",", ";"), header=HEADER.replace(",", ";"))
    assert said.startswith(
        "runs.csv:1: the columns are separated by semicolons, expected commas (save it as CSV with commas"
    )
    assert "separated by tabs" in complaints(GOOD, header=HEADER.replace(",", "\t"))


def test_a_byte_order_mark_and_empty_lines_are_passed_over():
    """As spreadsheets write them."""
    (row,) = read_measurements(f"\ufeff{HEADER}\r\n\r\n{GOOD}\r\n,,,,,,,,,,\r\n")
    assert (row.text("model"), row.line) == ("meta-llama/Llama-3.1-70B", 3)


def test_a_file_of_bad_rows_is_not_listed_to_the_end():
    """Twenty complaints, then how many more."""
    said = complaints(*[GOOD.replace("9.7", "-1")] * 50).splitlines()
    assert len(said) == 21
    assert said[-1] == "runs.csv:22: and 30 more from here on"


def test_rows_that_contradict_earlier_ones_are_found():
    """The same setting twice as fast; a tenth faster is another day, another concurrency another setting."""
    lines = [GOOD, GOOD.replace("9.7", "4.7"), GOOD.replace("9.7", "8.8"), GOOD.replace(",16,", ",8,").replace("9.7", "4")]
    rows = read_measurements("\n".join([HEADER, *lines]) + "\n")
    assert contradictions(rows) == [(3, 2, "itl_ms", pytest.approx(4.7 / 9.7))]


@pytest.mark.parametrize(("text", "expected"), [("", "the file is empty"), (HEADER + "\n", "a header and no rows")])
def test_files_without_rows_are_refused(text, expected):
    """Nothing to predict is a mistake of whoever made the file."""
    with pytest.raises(MeasurementsError, match=expected):
        read_measurements(text)


def test_rows_that_repeat_an_earlier_one_are_found():
    """Same setting and same times; a run of another day differs in its times."""
    rows = read_measurements("\n".join([HEADER, GOOD, GOOD.replace("9.7", "9.8"), GOOD]) + "\n")
    assert duplicates(rows) == [(4, 2)]


def test_the_shared_table_reads_without_complaint():
    """2,455 public rows, layout names and empty cells included."""
    path = Path(os.environ.get("EPD_VALIDATION", "../shared/validation")) / "serving_runs.csv"
    if not path.exists():
        pytest.skip(f"{path} is not on this machine")
    assert len(read_measurements(path.read_text(encoding="utf-8"))) == 2455
