"""A profile's times are those measured: exactly where they were, between them in between, and with a word beyond them."""

import dataclasses
import math

import pytest

from epd_models import catalog
from epd_models.measurements import MeasurementsError
from epd_models.parallelism import Parallelism
from epd_models.queries import StageTimes
from epd_models.ratios import Curve, LanguageRatios, Surface
from epd_models.source import Subject, Uncovered
from epd_models.sources import SOURCES
from epd_models.stages.prefill import prefill_time
from support.profiles import loop_file, stage_file, stage_rows, with_source
from support.workers import Told, worker

PLAIN = worker("Qwen3-VL-8B", "H100-SXM")


def profile(text, built=PLAIN, *, strict=False, **changes):
    """The profile of an entry, from the text of a file."""
    subject = Subject(
        entry="H100-SXM", model=built.model, device=built.device, precision=built.precision, engine=built.engine
    )
    settings = {"file": "runs.csv", "csv": text, "strict": strict}
    return SOURCES["profile"](settings, dataclasses.replace(subject, **changes), embedded={})


def test_measured_as_modelled_changes_nothing():
    """Times of the model itself give ratios of exactly one in every stage."""
    found = profile(stage_file(*stage_rows(PLAIN)))
    ratios = found.language(PLAIN)
    assert {r for curve in ratios.decode.curves for r in curve.ratios} == {1.0}
    assert set(ratios.prefill.ratios) == {1.0}
    assert ratios.per_chunk == 1.0
    assert set(found.images(PLAIN).device.ratios) == set(found.images(PLAIN).host.ratios) == {1.0}


def test_times_are_those_measured_where_they_were_measured():
    """Whatever ratio was measured at each size, asking for that size gives the measured time back."""

    def factor(size):
        return 1.7 - 0.1 * math.log10(size)

    text = stage_file(*stage_rows(PLAIN, factor))
    times = StageTimes(with_source(PLAIN, profile(text)))
    plain = StageTimes(PLAIN)
    for batch in (1.0, 16.0, 256.0):
        assert times.decode_s(batch, 1024.0) == pytest.approx(plain.decode_s(batch, 1024.0) * factor(batch), rel=1e-5)
    fixed = PLAIN.engine.request_overhead_s + prefill_time(PLAIN).per_prompt
    for new in (128.0, 2048.0):
        expected = (plain.first_token_s(new) - fixed) * factor(new) + fixed
        assert times.first_token_s(new) == pytest.approx(expected, rel=1e-5)
    assert times.decode_s(33.0, 2000.0) == pytest.approx(plain.decode_s(33.0, 2000.0) * factor(33.0), rel=0.01)


def test_a_part_of_an_encode_moves_that_part_alone():
    """Rows that timed the host leave the device to the model, and the plan's note says so."""
    rows = [row.replace(",,,,1.0,,", ",,,,1.0,host,") for row in stage_rows(PLAIN, stages=["encode"], megapixels=[1.0])]
    found = profile(stage_file(*rows))
    assert found.images(PLAIN).device is None
    assert found.images(PLAIN).host.at == (1.0,)
    assert "device work of images is the analytic model's" in found.origin(PLAIN, "encode").note


def test_prefill_keeps_both_its_parts_positive_however_the_ratio_falls():
    """A ratio that falls steeply with the prompt leaves device work and overheads above zero, and meets every point."""

    def factor(size):
        return {128: 6.0, 512: 3.0, 2048: 0.9, 8192: 0.5}[size]

    found = profile(stage_file(*stage_rows(PLAIN, factor, stages=["prefill"])))
    ratios = found.language(PLAIN)
    assert min(ratios.prefill.ratios) > 0.0
    assert ratios.per_chunk == 0.5


SIZES = [(1024, 1024, 1), (1024, 1024, 8), (1024, 1024, 32), (4096, 1024, 1), (4096, 1024, 8)]


def test_closed_loop_runs_of_the_model_itself_change_nothing():
    """Runs that the model predicts exactly give ratios of exactly one."""
    read = profile(loop_file(PLAIN, sizes=SIZES))
    assert read.origin(PLAIN, "prefill").note == "5 rows of runs.csv, interpolated"
    found = read.language(PLAIN)
    assert {r for curve in found.decode.curves for r in curve.ratios} == {1.0}
    assert set(found.prefill.ratios) == {1.0}


def test_closed_loop_runs_give_stage_ratios_back():
    """Runs of a worker whose iterations take 1.6 and prompts 1.3 times as long tell both, apart from queues and bursts."""
    slow = Told(LanguageRatios(decode=Surface.constant(1.6), prefill=Curve.constant(1.3), per_chunk=1.3))
    text = loop_file(PLAIN, with_source(PLAIN, slow), sizes=SIZES)
    found = profile(text).language(PLAIN)
    assert found.prefill.ratios == pytest.approx([1.3] * len(found.prefill.ratios), rel=0.03)
    for curve in found.decode.curves:
        assert curve.ratios == pytest.approx([1.6] * len(curve.ratios), rel=0.01)


def test_a_run_that_tells_of_no_stage_is_left_out_with_a_word():
    """A first token behind a long queue, without an interval, tells nothing, and the profile says which line it was."""
    lines = loop_file(PLAIN, sizes=[*SIZES, (512, 1024, 256)]).splitlines()
    lines[6] = lines[6].rsplit(",", 1)[0] + ","
    found = profile("\n".join(lines))
    assert any("1 row left out (line 7)" in text and "queues" in text for text in found.remarks())


def test_a_run_that_strays_from_all_others_is_left_out_with_a_word():
    """An interval ten times those of its neighbours is no measurement of an iteration."""
    lines = loop_file(PLAIN, sizes=SIZES).splitlines()
    head, interval = lines[3].rsplit(",", 1)
    lines[3] = f"{head},{float(interval) * 10!r}"
    found = profile("\n".join(lines))
    assert any("1 row left out (line 4): its iterations stray" in text for text in found.remarks())
    curve = found.language(PLAIN).decode.curves[0]
    assert curve.ratios == pytest.approx([1.0] * len(curve.ratios), rel=0.02)


def test_a_lone_short_prompt_tells_little_of_prefill():
    """Where overheads make most of a first token and intervals hardly any of it is prompts, prefill is left to the model."""
    found = profile(loop_file(PLAIN, sizes=[(32, 2048, 1), (32, 2048, 2)]))
    assert found.language(PLAIN).prefill is None
    assert found.language(PLAIN).decode is not None


def test_stages_without_rows_are_the_models_with_a_warning():
    """Degrees and stages that nobody measured are named, with those that somebody did."""
    found = profile(stage_file(*stage_rows(PLAIN, stages=["decode"])))
    two = worker("Qwen3-VL-8B", "H100-SXM", tensor=2)
    assert found.language(two) == LanguageRatios()
    origin = found.origin(two, "decode")
    assert origin.source == "analytic"
    assert "no usable row of decode at tp2" in origin.warning
    assert "it has tp1" in origin.warning
    assert "no usable row of prefill" in found.origin(PLAIN, "prefill").warning
    assert found.origin(PLAIN, "decode").warning == ""
    assert found.origin(PLAIN, "decode").source == "profile"


def test_a_strict_profile_refuses_what_nobody_measured():
    """With strict, a stage without rows is an error that says which."""
    found = profile(stage_file(*stage_rows(PLAIN, stages=["decode"])), strict=True)
    found.check(PLAIN, "decode")
    with pytest.raises(Uncovered, match=r"no usable row of prefill at tp1.*strict"):
        found.check(PLAIN, "prefill")
    with pytest.raises(Uncovered, match="encode"):
        found.check(PLAIN, "encode")


def test_points_say_how_well_their_neighbours_predict_them():
    """The error of a profile is that of each point from its neighbours: none for a constant ratio, some for a bump."""
    flat = profile(stage_file(*stage_rows(PLAIN, lambda _: 2.0))).origin(PLAIN, "decode").fitted_error
    assert (flat.quantity, flat.median, flat.points) == ("itl", 0.0, 12)
    bump = profile(stage_file(*stage_rows(PLAIN, lambda size: 2.0 if size == 16 else 1.0))).origin(PLAIN, "decode")
    assert bump.fitted_error.p90 == pytest.approx(1.0, rel=0.5)
    lone = profile(stage_file(*stage_rows(PLAIN, stages=["decode"], batches=[8], contexts=[1000]))).origin(PLAIN, "decode")
    assert lone.fitted_error is None


def test_repeats_are_averaged():
    """Two close times of one setting count as their geometric mean."""
    one = stage_rows(PLAIN, stages=["prefill"], prompts=[1024])
    two = stage_rows(PLAIN, lambda _: 1.1, stages=["prefill"], prompts=[1024])
    found = profile(stage_file(*one, *two)).language(PLAIN)
    assert found.per_chunk == pytest.approx(1.1**0.5, rel=1e-5)


def test_the_order_of_rows_does_not_matter():
    """Rows in another order give the same profile, for stage times and for runs."""
    rows = stage_rows(PLAIN, lambda size: 1.0 + 0.01 * math.sqrt(size))
    assert profile(stage_file(*reversed(rows))).workers == profile(stage_file(*rows)).workers
    slow = Told(LanguageRatios(decode=Surface.constant(1.6), prefill=Curve.constant(1.3), per_chunk=1.3))
    head, *runs = loop_file(PLAIN, with_source(PLAIN, slow), sizes=SIZES).splitlines()
    assert profile("\n".join([head, *reversed(runs)])).workers == profile("\n".join([head, *runs])).workers


def test_rows_about_others_are_passed_over():
    """Other models, SKUs and engines in the file do not disturb; other formats of the entry's own are remarked on."""
    other = worker("Llama-3.1-8B", "H200-SXM", weights="fp8")
    narrow = worker("Qwen3-VL-8B", "H100-SXM", weights="fp8")
    text = stage_file(*stage_rows(other), *stage_rows(narrow, lambda _: 3.0, stages=["decode"]), *stage_rows(PLAIN))
    found = profile(text)
    assert set(found.language(PLAIN).prefill.ratios) == {1.0}
    assert any("weights in fp8, H100-SXM runs them in bf16" in text for text in found.remarks())


def test_unknown_names_among_rows_of_the_entry_are_remarked_on():
    """As in predictions, rows that nobody can place do not stop those that are about the entry; their lines are named."""
    found = profile(stage_file(*stage_rows(PLAIN), "prefill,Qwen3-VL-9B,H1000,,,,,100,,,5"))
    assert set(found.language(PLAIN).prefill.ratios) == {1.0}
    assert any("1 row left out (line 27): no model card is called 'Qwen3-VL-9B'" in text for text in found.remarks())
    assert any("1 row left out (line 27): no device card is called 'H1000'" in text for text in found.remarks())


def test_aliases_and_entry_names_are_names():
    """A row may call the SKU by an alias or by the entry's own name, and the checkpoint by its repository."""
    rows = [
        row.replace("Qwen3-VL-8B,H100-SXM", f"Qwen/Qwen3-VL-8B-Instruct,{name}")
        for row, name in zip(
            stage_rows(PLAIN, stages=["prefill"]), ("h100_sxm", "mine", "H100-SXM", "h100_sxm"), strict=True
        )
    ]
    found = profile(stage_file(*rows), entry="mine")
    assert len(found.language(PLAIN).prefill.at) == 4


BAD = {
    "empty": ("", r"runs.csv:1: the file is empty"),
    "no rows": ("stage,model,sku,time_ms\n", r"runs.csv:1: the file has a header and no rows"),
    "no unit": ("stage,model,sku,time\n", r"runs.csv:1: no column of times.*call 'time' time_ms or time_s"),
    "both units": ("stage,model,sku,time_ms,time_s\n", r"runs.csv:1: time_ms and time_s are both given"),
    "gpu for sku": ("stage,model,gpu,time_ms\n", r"runs.csv:1: column sku is missing \(is 'gpu' meant for sku\?\)"),
    "twice": ("stage,stage,model,sku,time_ms\n", r"runs.csv:1: stage: the column stands 2 times"),
    "unknown stage": (
        "prefil,Qwen3-VL-8B,H100-SXM,,,,,100,,,5\n",
        r"2: stage: found 'prefil'.*did you mean prefill",
    ),
    "negative": ("prefill,Qwen3-VL-8B,H100-SXM,,,,,100,,,-5\n", r"runs.csv:2: time_ms: expected a number above 0, found -5"),
    "text": ("prefill,Qwen3-VL-8B,H100-SXM,,,,,100,,,fast\n", r"runs.csv:2: time_ms: expected a number, found 'fast'"),
    "no size": ("prefill,Qwen3-VL-8B,H100-SXM,,,,,,,,5\n", r"runs.csv:2: new_tokens: is needed in a row of prefill"),
    "no time": ("prefill,Qwen3-VL-8B,H100-SXM,,,,,100,,,\n", r"runs.csv:2: time_ms: is needed in a row of prefill"),
    "cut": ("prefill,Qwen3-VL-8B,H100-SXM,,2,,,100,,,5\n", r"runs.csv:2: cut: found '2'.*tp4"),
    "illegal cut": ("prefill,Qwen3-VL-8B,H100-SXM,,tp3,,,100,,,5\n", r"runs.csv:2: cut: .*tensor"),
    "dtype": ("prefill,Qwen3-VL-8B,H100-SXM,fp9,,,,100,,,5\n", r"runs.csv:2: dtype: found 'fp9'.*did you mean fp8"),
    "part": ("prefill,Qwen3-VL-8B,H100-SXM,,,,,100,,host,5\n", r"runs.csv:2: part: found 'host' in a row of prefill"),
    "model": ("prefill,Qwen3-VL-9B,H100-SXM,,,,,100,,,5\n", r"runs.csv:2: model: .*Qwen3-VL-9B.*did you mean"),
    "sku": ("prefill,Qwen3-VL-8B,H1000,,,,,100,,,5\n", r"runs.csv:2: sku: .*'H1000'.*did you mean"),
    "other": (
        "prefill,Llama-3.1-8B,L4,,,,,100,,,5\n",
        r"2: no row is about Qwen3-VL-8B on H100-SXM.*Llama-3.1-8B on L4",
    ),
    "cells": ("prefill,Qwen3-VL-8B\n", r"runs.csv:2: expected 11 cells as in the header, found 2"),
    "columns": ("model,dtype,gpu\na,b,c\n", r"runs.csv:1: columns engine, n_gpu"),
}


@pytest.mark.parametrize("name", BAD)
def test_files_that_cannot_be_meant_say_where_and_what_instead(name):
    """Every bad file is refused at its line with what was found and the nearest right thing."""
    text, complaint = BAD[name]
    with_header = text if not text or text.startswith(("stage", "model")) else stage_file(text.strip())
    with pytest.raises(MeasurementsError, match=f"(?s){complaint}"):
        profile(with_header)


def test_contradicting_rows_are_refused_at_the_later_line():
    """Two times of one setting that differ by more than a fifth cannot both be right."""
    one = stage_rows(PLAIN, stages=["prefill"], prompts=[1024])
    two = stage_rows(PLAIN, lambda _: 1.5, stages=["prefill"], prompts=[1024])
    with pytest.raises(MeasurementsError, match=r"runs.csv:3: contradicts line 2"):
        profile(stage_file(*one, *two))


def test_another_unit_than_the_columns_is_noticed():
    """Milliseconds in a column of seconds are a thousand times what the model expects, and the message guesses so."""
    text = stage_file(*stage_rows(PLAIN)).replace("time_ms", "time_s")
    with pytest.raises(MeasurementsError, match=r"2: times of decode are 1e\+03 times.*milliseconds given as seconds"):
        profile(text)


def test_whole_encodes_and_parts_do_not_mix():
    """A file gives whole encodes or their parts."""
    rows = stage_rows(PLAIN, stages=["encode"], megapixels=[1.0, 4.0])
    rows[1] = rows[1].replace(",4.0,,", ",4.0,device,")
    with pytest.raises(MeasurementsError, match=r"runs.csv:3: part: whole encodes and parts"):
        profile(stage_file(*rows))


def test_a_model_without_a_tower_has_no_encodes():
    """Rows of encode for a text model are refused."""
    text_model = worker("Qwen3-8B")
    row = "encode,Qwen3-8B,H100-SXM,,,,,,1.0,,5"
    with pytest.raises(MeasurementsError, match=r"runs.csv:2: stage: Qwen3-8B has no vision tower"):
        profile(stage_file(row), text_model)


def test_a_device_of_ones_own_is_known_by_its_entry():
    """Rows may be about a device that no catalogue has."""
    device = dataclasses.replace(catalog.device("H100-SXM"), sku="MY-GPU", aliases=())
    built = dataclasses.replace(PLAIN, device=device)
    found = profile(stage_file(*stage_rows(built)), built, entry="MY-GPU")
    assert Parallelism() in found.workers
