"""Kernel tables are asked once, kept safely, and stand in plans for what they cover and nothing else."""

import dataclasses
import json
import pickle
import sys
import threading

import numpy as np
import pytest

from epd_models.parallelism import Parallelism
from epd_models.queries import StageTimes
from epd_models.ratios import LanguageRatios
from epd_models.source import SourceUnavailable, Subject, Uncovered
from epd_models.sources import kernel_tables, silicon
from epd_models.sources.kernel_tables import NotCovered, Question, Table, table_of
from epd_models.stages.prefill import prefill_time
from support.kernel_tables import FakePackage
from support.profiles import with_source
from support.workers import worker

PLAIN = worker("Qwen3-32B", "H100-SXM", tensor=2)


@pytest.fixture(autouse=True)
def apart(tmp_path, monkeypatch):
    """Each test has caches of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kernel_tables.forget()
    yield tmp_path / "epd-opt" / "silicon" / "1.0"
    kernel_tables.forget()


def source(built=PLAIN, *, package=None, embedded=None, **settings):
    """The source of a worker's entry."""
    parts = {key: getattr(built, key) for key in ("model", "device", "precision", "engine")}
    return silicon.of_package(settings, Subject(entry="x", **parts), package, embedded=embedded or {})


QUESTION = Question(
    checkpoint="Qwen/Qwen3-32B",
    system="h100_sxm",
    backend="vllm",
    tensor=2,
    pipeline=1,
    attention_data=1,
    expert=1,
    expert_slices=1,
    modes=(),
    longest=40960,
)


def test_times_are_those_of_the_tables():
    """On the grid, iterations and prompts take what the package says, request overheads of the engine on top."""
    times = StageTimes(with_source(PLAIN, source(package=FakePackage())))
    assert times.decode_s(64.0, 1024.0) == pytest.approx((5.0 + 6.4 + 0.065536) * 1e-3, rel=1e-4)
    fixed = PLAIN.engine.request_overhead_s + prefill_time(PLAIN).per_prompt
    assert times.first_token_s(2048.0) == pytest.approx((2.0 + 102.4) * 1e-3 + fixed, rel=1e-4)


def test_between_the_points_of_the_grid_times_stay_close():
    """Off the grid, interpolated ratios come within a few per cent of what the package would say."""
    times = StageTimes(with_source(PLAIN, source(package=FakePackage())))
    batch, context = np.array([3.0, 45.0, 300.0]), np.array([200.0, 1500.0, 5000.0])
    expected = (5.0 + 0.1 * batch + 1e-6 * batch * context) * 1e-3
    assert times.decode_s(batch, context) == pytest.approx(expected, rel=0.04)


def test_batches_count_on_every_rank_of_attention_data_parallelism():
    """A batch of 64 over eight ranks is a batch of 8 for the package, and its experts are spread over the ranks."""
    package = FakePackage()
    built = worker("DeepSeek-V3", "H200-SXM", weights="fp8", kv_cache="fp8", engine="sglang", attention_data=8, expert=8)
    times = StageTimes(with_source(built, source(built, package=package)))
    assert times.decode_s(64.0, 1024.0) == pytest.approx((5.0 + 0.8 + 1e-6 * 8 * 1024) * 1e-3, rel=1e-4)
    asked = package.asked[0]
    assert (asked.tensor, asked.attention_data, asked.expert, asked.expert_slices) == (1, 8, 8, 1)


def test_formats_are_asked_as_the_checkpoint_has_them():
    """Weights in another format than published are a checkpoint in that format where there is one, else a mode."""
    package = FakePackage()
    source(package=package).language(PLAIN)
    assert (package.asked[-1].checkpoint, package.asked[-1].modes) == (
        "Qwen/Qwen3-32B",
        (("kvcache_quant_mode", "bfloat16"),),
    )
    narrow = worker("Qwen3-32B", "H100-SXM", weights="fp8", kv_cache="fp8", tensor=2)
    source(narrow, package=package).language(narrow)
    assert package.asked[-1].checkpoint == "Qwen/Qwen3-32B-FP8"
    four = worker("Qwen3-32B", "H100-SXM", weights="int4", tensor=2)
    source(four, package=package).language(four)
    assert ("gemm_quant_mode", "int4_wo") in package.asked[-1].modes


def test_what_the_tables_do_not_cover_is_refused_or_falls_back_with_a_word():
    """A worker that the package refuses has no times, unless the analytic model was asked to stand in."""
    eight = worker("Qwen3-32B", "H100-SXM", tensor=8)
    strict = source(package=FakePackage())
    with pytest.raises(
        Uncovered, match=r"does not cover Qwen3-32B in bf16 on H100-SXM tp8 with vllm: num_heads 64 is not what was"
    ):
        strict.check(eight, "decode")
    strict.check(PLAIN, "decode")
    strict.check(eight, "encode")
    lenient = source(package=FakePackage(), fallback="analytic")
    lenient.check(eight, "decode")
    assert lenient.language(eight) == LanguageRatios()
    origin = lenient.origin(eight, "prefill")
    assert origin.source == "analytic"
    assert "does not cover" in origin.warning
    assert lenient.origin(PLAIN, "prefill").source == "silicon"
    assert lenient.origin(PLAIN, "encode").source == "analytic"


@pytest.mark.parametrize(
    ("built", "complaint"),
    [
        (worker("Qwen3-32B", "MI300X"), "no tables of MI300X"),
        (worker("Qwen2.5-VL-7B", "H100-SXM"), "does not know the model Qwen2.5-VL-7B"),
        (worker("Qwen3-32B", "H100-SXM", engine="generic"), "the engine is generic"),
    ],
)
def test_what_the_package_does_not_know_at_all_is_said_before_any_plan(built, complaint):
    """An unknown device, model or engine is an error at once, or analytic with a warning where that was asked for."""
    with pytest.raises(SourceUnavailable, match=f"{complaint}.*fallback: analytic"):
        source(built, package=FakePackage())
    lenient = source(built, package=FakePackage(), fallback="analytic")
    assert complaint in lenient.origin(built, "decode").warning


def test_tables_far_from_the_model_are_pointed_out():
    """Where tables and model differ by more than a factor of two in the median, the plan says by how much."""
    assert "times the analytic model's time" in source(package=FakePackage(factor=20.0)).origin(PLAIN, "decode").warning
    assert source(package=FakePackage(factor=2.5)).origin(PLAIN, "decode").warning == ""


def test_a_missing_package_says_how_to_install_it(monkeypatch):
    """Without the extra, the message holds the command that installs it; tables of a plan do without."""
    monkeypatch.setattr(silicon, "installed", lambda: None)
    parts = {key: getattr(PLAIN, key) for key in ("model", "device", "precision", "engine")}
    with pytest.raises(SourceUnavailable, match=r"pip install 'epd-opt\[silicon\]'"):
        silicon.build({}, Subject(entry="x", **parts), embedded={})
    first = source(package=FakePackage())
    expected = first.language(PLAIN)
    again = silicon.build({}, Subject(entry="x", **parts), embedded=json.loads(json.dumps(first.embedded())))
    assert again.language(PLAIN) == expected
    with pytest.raises(Uncovered, match="the plan holds no table of it"):
        again.check(dataclasses.replace(PLAIN, cut=Parallelism(tensor=4)), "decode")


def test_tables_are_asked_once_and_kept_on_disk(apart):
    """A second source asks the process's cache, a new process the disk; neither asks the package again."""
    package = FakePackage()
    first = table_of(QUESTION, package)
    assert table_of(QUESTION, package) == first
    assert len(package.asked) == 1
    assert len(list(apart.glob("*.json"))) == 1
    kernel_tables.forget()
    assert table_of(QUESTION, package) == first
    assert len(package.asked) == 1


@pytest.mark.parametrize("damage", ["empty", "cut", "digits", "other question", "negative", "folder"])
def test_damaged_files_are_asked_anew_and_mended(apart, damage):
    """A file that is empty, half written, altered or of another question counts as absent."""
    package = FakePackage()
    first = table_of(QUESTION, package)
    (path,) = apart.glob("*.json")
    text = path.read_text(encoding="utf-8")
    content = json.loads(text)
    if damage == "digits":
        content["table"]["prompts"][0][1] *= 2
    elif damage == "negative":
        content["table"]["prompts"][0][1] = -1.0
    elif damage == "other question":
        content["question"]["tensor"] = 4
    path.write_text({"empty": "", "cut": text[:100]}.get(damage, json.dumps(content)), encoding="utf-8")
    if damage == "folder":
        path.unlink()
        path.mkdir()
    kernel_tables.forget()
    assert table_of(QUESTION, package) == first
    assert len(package.asked) == 2
    if damage != "folder":
        kernel_tables.forget()
        assert table_of(QUESTION, package) == first
        assert len(package.asked) == 2


def test_many_writers_leave_one_whole_file(apart):
    """Threads that ask and write at once all get the table, and the file that remains is whole."""
    found = []

    def ask():
        found.append(kernel_tables._read(path, QUESTION) or table)
        kernel_tables._write(path, QUESTION, table)

    table = table_of(QUESTION, FakePackage())
    (path,) = apart.glob("*.json")
    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [table] * 16
    assert kernel_tables._read(path, QUESTION) == table
    assert list(apart.iterdir()) == [path]


def test_a_disk_that_refuses_is_no_error(tmp_path):
    """Where nothing can be written, tables are asked and used all the same."""
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    assert table_of(QUESTION, FakePackage(), folder=blocked).prompts


def test_a_user_without_a_home_keeps_tables_in_the_process(monkeypatch):
    """Where no home can be found, nothing is written and tables are used all the same."""

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(kernel_tables.Path, "home", homeless)
    assert kernel_tables.cache_folder() is None
    assert table_of(QUESTION, FakePackage()).prompts


def test_a_source_travels_between_processes():
    """A silicon source and its answers survive pickling, as studies with several workers need."""
    first = source(package=FakePackage())
    expected = first.language(PLAIN)
    assert pickle.loads(pickle.dumps(first)).language(PLAIN) == expected


def test_a_plan_without_any_table_needs_no_package(monkeypatch):
    """Where the model stood in for every worker, the plan still reads without the package."""
    eight = worker("Qwen3-32B", "H100-SXM", tensor=8)
    lenient = source(package=FakePackage(), fallback="analytic")
    assert lenient.language(eight) == LanguageRatios()
    monkeypatch.setattr(silicon, "installed", lambda: None)
    parts = {key: getattr(eight, key) for key in ("model", "device", "precision", "engine")}
    again = silicon.build({"fallback": "analytic"}, Subject(entry="x", **parts), embedded=lenient.embedded())
    assert again.language(eight) == LanguageRatios()


def test_a_broken_package_says_so(monkeypatch):
    """A package that is installed and cannot be imported is an error that says why."""
    monkeypatch.setitem(sys.modules, "aiconfigurator_core.sdk.common", None)
    with pytest.raises(SourceUnavailable, match="installed but cannot be imported"):
        kernel_tables.Installed().knows("Qwen/Qwen3-32B")


def test_refusals_are_remembered_in_the_process_only(apart):
    """A question that failed is not asked twice in a run, and leaves no file."""
    package, question = FakePackage(), dataclasses.replace(QUESTION, tensor=8)
    for _ in range(2):
        with pytest.raises(NotCovered, match="num_heads"):
            table_of(question, package)
    assert len(package.asked) == 1
    assert not apart.exists() or not list(apart.iterdir())


def test_tables_leave_out_what_the_package_cannot_say():
    """Points that fail are left out of a table; the others stay."""
    table = table_of(QUESTION, FakePackage())
    assert max(batch for batch, _, _ in table.iterations) == 512
    assert max(context for _, context, _ in table.iterations) == 32768
    assert Table.of_plain(json.loads(json.dumps(table.plain()))) == table


def test_the_package_itself_answers():
    """With the extra installed, more sequences and tokens take longer, and two devices less long than one."""
    package = kernel_tables.installed()
    if package is None:
        pytest.skip("the extra `silicon` (aiconfigurator-core) is not installed")
    one = worker("Qwen3-8B", "A100-80-SXM")
    two = worker("Qwen3-8B", "A100-80-SXM", tensor=2)
    found = source(one, package=package)
    assert found.origin(one, "decode").source == "silicon"
    times = [StageTimes(with_source(built, found)) for built in (one, two)]
    small, large = times[0].decode_s(np.array([1.0, 128.0]), 1024.0)
    assert 0.002 < small < large < 0.2
    assert times[1].decode_s(128.0, 1024.0) < large
    assert times[0].prefill_s(512.0) < times[0].prefill_s(4096.0)
    assert not package.knows("nobody/Nothing")
    assert package.has_system("h200_sxm")
    assert not package.has_system("mi300x")
