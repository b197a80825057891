"""Traces of every format become the same arrivals, in order and in little memory, or a complaint with file and line."""

from __future__ import annotations

import gzip
import io
import random
import sys
import tracemalloc
from pathlib import Path

import pytest

from epd_opt.errors import InvalidInput
from epd_opt.simulate import traces
from epd_opt.simulate.arrivals import Arrival
from epd_opt.simulate.traces import REORDERED_ROWS, Trace, merged

SHARED = Path(__file__).parents[4] / "shared" / "traces"
COMMON = "arrival_s,input_text_tokens,num_images,image_tokens,output_tokens"


@pytest.fixture
def write(tmp_path):
    """Write lines to a file of this name."""

    def write(*lines, name="trace.csv"):
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write


def sizes(trace):
    """Time, text, images, image tokens, output and hits of every arrival."""
    return [
        (round(a.time_s, 6), a.text_tokens, a.image_count, a.image_tokens, a.output_tokens, a.cached_tokens) for a in trace
    ]


def complaint(source, **options):
    """What reading it says, without its folder."""
    with pytest.raises(InvalidInput) as refused:
        list(Trace(source=source, **options))
    return str(refused.value).replace(f"{Path(source).parent}/", "")


def test_common_columns_are_read_whatever_their_order(write):
    """Times count from the first arrival; hits of a prefix cache and sizes in pixels are kept where they stand."""
    path = write(
        "output_tokens,num_images,arrival_s,image_tokens,input_text_tokens,prefix_hit_tokens_inf_cache,note",
        "44,0,10.5,0,374,0,x",
        '109,2,12,512,396,64,"a, b"',
    )
    assert sizes(Trace(source=path)) == [(0.0, 374, 0, 0.0, 44, None), (1.5, 396, 2, 512.0, 109, None)]
    assert [row[-1] for row in sizes(Trace(source=path, prefix_hits=True))] == [0, 64]
    sized = write(
        "arrival_s,input_text_tokens,num_images,image_width_px,image_height_px,output_tokens",
        "0,5,2,640,480,7",
        "1,5,0,0,0,7",
    )
    assert [a.image_sizes for a in Trace(source=sized)] == [((640, 480), (640, 480)), ()]


def test_azure_dates_with_seven_digits_are_read(write):
    """TIMESTAMP of the Azure traces has tenths of microseconds; a zone is understood as well."""
    plain = write(
        "TIMESTAMP,ContextTokens,GeneratedTokens",
        "2023-11-16 23:59:59.9799600,374,44",
        "2023-11-17 00:00:01.4800000,396,109",
    )
    assert sizes(Trace(source=plain)) == [(0.0, 374, 0, 0.0, 44, None), (1.50004, 396, 0, 0.0, 109, None)]
    zoned = write(
        "TIMESTAMP,ContextTokens,GeneratedTokens", "2024-05-10 00:00:00+00:00,1,2", "2024-05-10 02:00:03+02:00,1,2"
    )
    assert [time for time, *_ in sizes(Trace(source=zoned))] == [0.0, 3.0]


def test_azure_prompts_with_images_are_taken_apart(write):
    """ContextTokens holds image tokens: they are taken out as stated, and never more than there are."""
    path = write(
        "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens",
        "2024-10-15 00:00:00,0,500,9",
        "2024-10-15 00:00:01,2,1500,9",
        "2024-10-15 00:00:02,1,400,9",
    )
    assert "azure" not in complaint(path)
    assert "trace.csv:3:1: ContextTokens: counts the tokens of text and images together (--image-tokens N" in complaint(path)
    trace = Trace(source=path, tokens_per_image=576)
    assert sizes(trace) == [(0.0, 500, 0, 0.0, 9, None), (1.0, 348, 2, 1152.0, 9, None), (2.0, 0, 1, 400.0, 9, None)]
    assert trace.notes() == [
        f"{path}: in 1 row the whole prompt is shorter than 576 tokens per image; their images take all of it"
    ]


def test_mooncake_json_lines_are_read_in_milliseconds(write):
    """Hits of an unlimited prefix cache follow from block identifiers, where they are asked for."""
    path = write(
        '{"timestamp": 1000, "input_length": 1200, "output_length": 500, "hash_ids": [1, 2, 3]}',
        '{"timestamp": 4000, "input_length": 1300, "output_length": 10, "hash_ids": [1, 2, 4]}',
        name="trace.jsonl",
    )
    assert sizes(Trace(source=path)) == [(0.0, 1200, 0, 0.0, 500, None), (3.0, 1300, 0, 0.0, 10, None)]
    assert [row[-1] for row in sizes(Trace(source=path, prefix_hits=True))] == [0, 1024]


def test_burstgpt_columns_are_read_and_failed_requests_left_out(write):
    """A request without response tokens failed: it is counted, not planned for."""
    path = write(
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type",
        "5,ChatGPT,472,18,490,Conversation log",
        "45,ChatGPT,1087,0,1087,Conversation log",
        "118,GPT-4,417,276,693,Conversation log",
    )
    trace = Trace(source=path)
    assert sizes(trace) == [(0.0, 472, 0, 0.0, 18, None), (113.0, 417, 0, 0.0, 276, None)]
    assert trace.format.name == "burstgpt"
    assert trace.notes() == [f"{path}: left out 1 row without output tokens (failed requests)"]


def test_gzip_and_standard_input_are_read(write, tmp_path, monkeypatch):
    """Compression is told by content, not by name; - is standard input."""
    text = f"{COMMON}\n0,1,0,0,2\n1,3,0,0,4\n"
    packed = tmp_path / "trace.data"
    packed.write_bytes(gzip.compress(text.encode()))
    plain = write(*text.splitlines())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(text.encode()))))
    piped = Trace(source="-")
    assert sizes(Trace(source=packed)) == sizes(Trace(source=plain)) == sizes(piped)
    with pytest.raises(InvalidInput, match="standard input can be read once"):
        next(iter(piped))


def test_small_disorder_is_sorted_and_said(write):
    """One row stands late by two seconds."""
    trace = Trace(source=write(COMMON, "0,1,0,0,1", "3,2,0,0,1", "1,3,0,0,1", "4,4,0,0,1"))
    assert [row[1] for row in sizes(trace)] == [1, 3, 2, 4]
    assert [note.partition(": ")[2] for note in trace.notes()] == ["sorted 1 row that stood up to 2 s late in the file"]


def test_great_disorder_is_refused(write):
    """A row that belongs before more rows than are held back cannot be put right in a stream."""
    rows = [f"{10 + index},1,0,0,1" for index in range(2 * REORDERED_ROWS)]
    assert "not sorted by time" in complaint(write(COMMON, *rows, "0,1,0,0,1"))


def test_memory_does_not_grow_with_the_trace(write, monkeypatch):
    """Reading three times the rows takes no more memory."""
    monkeypatch.setattr(traces, "REORDERED_ROWS", 300)
    rng = random.Random(1)
    rows = [f"{index},{rng.randint(1, 3000)},0,0,5" for index in range(6000)]
    peaks = []
    for count in (2000, 6000):
        path = write(COMMON, *rows[:count])
        tracemalloc.start()
        assert sum(1 for _ in Trace(source=path)) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]


def test_traces_are_merged_from_their_starts_to_the_first_end(write):
    """The longer trace is cut where the shorter ends."""
    one = Trace(source=write(COMMON, "100,1,0,0,1", "102,1,0,0,1", "103,1,0,0,1", name="one.csv"))
    two = Trace(source=write(COMMON, *(f"{index},2,0,0,1" for index in range(10)), name="two.csv"))
    times = [(arrival.time_s, arrival.text_tokens) for arrival in merged([one, two])]
    assert times == [(0.0, 1), (0.0, 2), (1.0, 2), (2.0, 1), (2.0, 2), (3.0, 1)]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([""], "trace.csv:1:1: empty, expected arrival_s, input_text_tokens, output_tokens"),
        ([COMMON], "trace.csv:1:1: a header and no rows"),
        ([COMMON, "0,5,0,0,0"], "none of the 1 rows has a prompt and an output"),
        (["arrival_s,text_tokens,output_tokens"], "is 'text_tokens' meant for input_text_tokens?"),
        (["arrival_s;input_text_tokens;output_tokens"], "separate the columns by commas"),
        ([f"{COMMON},output_tokens", "0,1,0,0,1,1"], "the column output_tokens stands 2 times"),
        ([COMMON, "0,1,0,0,1", "1,1,0,0"], "trace.csv:3:1: expected 5 cells as in the header, found 4"),
        ([COMMON, "0,1,0,0,1", "-1,1,0,0,1"], "trace.csv:3:1: arrival_s: found '-1', expected a finite number, at least 0"),
        ([COMMON, "nan,1,0,0,1"], "arrival_s: found 'nan', expected a finite number"),
        ([COMMON, "2023-11-16 18:17:03,1,0,0,1"], "this is a date: pass --time-unit iso"),
        ([COMMON, "1700000000000,1,0,0,1"], "beyond the year 2500 in this unit (pass --time-unit ms)"),
        ([COMMON, "0,-5,0,0,1"], "input_text_tokens: found '-5', expected a whole number, at least 0"),
        (
            [COMMON, "0,1,0,0,99999999999999999999"],
            "99999', expected at most 1,000,000,000",
        ),
        (["{", '  "schema": 1}'], "trace.csv:1:1: not a JSON object"),
        ([COMMON, "0,1.5,0,0,1"], "input_text_tokens: found '1.5', expected a whole number"),
        ([COMMON, "0,NaN,0,0,1"], "input_text_tokens: found 'NaN', expected a whole number"),
        ([COMMON, "0,1,0,0,"], "output_tokens: found '', expected a whole number"),
        ([COMMON, "0,1,0,77,1"], "image_tokens: found 77 image tokens in a request without images"),
        ([COMMON, "0,1,2,0,1"], "image_tokens: found 2 images of 0 tokens (--image-tokens N"),
        (["TIMESTAMP,ContextTokens,GeneratedTokens", "12.5,1,1"], "for numbers pass --time-unit s, ms or us"),
        (
            ["TIMESTAMP,ContextTokens,GeneratedTokens", "2024-05-10 00:00:00,1,2", "2024-05-10 00:00:01Z,1,2"],
            "with a time zone, unlike the rows above",
        ),
        (['{"timestamp": 0, "input_length": 5, "output_length": 1}', "{broken"], "trace.csv:2:1: not a JSON object"),
        (['{"timestamp": 0, "input_length": 5, "output_length": null}'], "output_length: found nothing"),
    ],
)
def test_bad_traces_are_refused_with_file_and_line(write, lines, said):
    """What was found and expected, and what to do about it."""
    assert said in complaint(write(*lines))


def test_more_hits_than_prompt_are_refused_where_hits_are_wanted(write):
    """The prompt is all that can be found."""
    path = write(f"{COMMON},cached_tokens", "0,5,0,0,1,9")
    assert "cached_tokens: found 9, expected at most the prompt's 5 tokens" in complaint(path, prefix_hits=True)
    assert len(list(Trace(source=path))) == 1


def test_several_problems_are_shown_at_once_and_many_cut_short(write):
    """Ten are enough."""
    few = complaint(write(COMMON, "0,x,0,0,1", "0,1,0,0,1", "0,1,0,0,y")).splitlines()
    assert [line.split(":")[1] for line in few] == ["2", "4"]
    many = complaint(write(COMMON, *["0,x,0,0,1"] * 50)).splitlines()
    assert len(many) == 10
    assert "rows below are not looked at" in many[-1]


def test_damaged_and_foreign_files_are_refused(tmp_path, write):
    """Truncated gzip, bytes that are no text, folders and missing files."""
    rng = random.Random(2)
    rows = "\n".join(f"{index},{rng.randint(1, 9999)},0,0,{rng.randint(1, 9999)}" for index in range(5000))
    packed = gzip.compress(f"{COMMON}\n{rows}\n".encode())
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(packed[: len(packed) // 2])
    assert "the compressed data break off or are damaged" in complaint(cut)
    foreign = tmp_path / "trace.parquet"
    foreign.write_bytes(b"PAR1\xff\xfe\x00")
    assert "byte 0xff is not UTF-8" in complaint(foreign)
    assert "cannot be read" in complaint(tmp_path)
    assert "No such file" in complaint(tmp_path / "none.csv")
    assert "columns TIMESTAMP, ContextTokens, NumImages, GeneratedTokens are missing" in complaint(
        write(COMMON, "0,1,0,0,1"), form="azure-lmm"
    )


def test_whole_seconds_that_look_like_milliseconds_are_pointed_out(write):
    """A request every ninety seconds, on the second, is more often a request every ninety milliseconds."""
    trace = Trace(source=write(COMMON, *(f"{90 * index},1,0,0,1" for index in range(200))))
    assert sum(1 for _ in trace) == 200
    assert "pass --time-unit ms" in trace.notes()[0]
    assert list(Trace(source=trace.source, time_unit="ms"))[1] == Arrival(0.09, None, 1.0, 1.0, 0, 0.0)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the samples of public traces are not here")
@pytest.mark.parametrize(
    ("name", "rows", "images"),
    [("azure_llm_2023_code", 8819, 0), ("mooncake_conversation", 12031, 0), ("servegen_mm_image_10h_25min", 18650, 28867)],
)
def test_samples_of_public_traces_are_read_whole(name, rows, images):
    """As many rows, and images, as their list says."""
    arrivals = list(Trace(source=SHARED / f"{name}.csv.gz"))
    assert len(arrivals) == rows
    assert sum(arrival.image_count for arrival in arrivals) == pytest.approx(images, rel=0.01)
