"""Every way to get an instance wrong is reported at its line and column, with what to do about it."""

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epd_opt.errors import InvalidInput
from epd_opt.instance import Instance
from epd_opt.reading import read

PHOTOS = Path(__file__).parent / "data" / "photos.yaml"
HERE = "⌖"

# What is replaced in the valid file, by what, and a part of the complaint expected at the mark.
BROKEN = {
    "unknown key": ("limits: {usd_per_hour: 200", "limits: {⌖usd_per_our: 200", "did you mean usd_per_hour"),
    "unknown top-level key": ("name: photos", "⌖title: photos", "unknown key 'title'"),
    "rate without unit": ("rate_per_s: 12", "rate_per_s: 12\n      ⌖rate: 3", "use rate_per_s"),
    "burstiness": ("rate_per_s: 12", "rate_per_s: 12\n      ⌖burstiness: 3", "use interarrival_scv"),
    "target in seconds": ("{ttft_ms: 800,", "{ttft_ms: 800, ⌖ttft_s: 0.8,", "use ttft_ms, in milliseconds"),
    "gpu for sku": ("- sku: L4", "- sku: L4\n    ⌖gpu: L4", "use sku"),
    "key one level too high": (
        "rate_per_s: 12",
        "rate_per_s: 12\n      ⌖ttft_ms: 3",
        "ttft_ms belongs at workload.classes.slo.ttft_ms",
    ),
    "card figure on the entry": ("- sku: L4", "- sku: L4\n    ⌖memory_gb: 80", "goes under card"),
    "repeated key": ("rate_per_s: 12", "rate_per_s: 12\n      ⌖rate_per_s: 13", "first at line 10, column 7"),
    "repeated key in flow style": ("{gap: 0.001,", "{gap: 0.001, ⌖gap: 0.1,", "the key is repeated"),
    "key that is a number": ("{default: 2.0, album", "{default: 2.0, ⌖7: 1, album", "in quotes"),
    "not a number": ("rate_per_s: 12", "rate_per_s: ⌖many", "found the text 'many', expected a number"),
    "number in quotes": ("rate_per_s: 12", 'rate_per_s: ⌖"12"', "write 12, without quotes"),
    "number with its unit": ("rate_per_s: 12", "rate_per_s: ⌖12/s", "the unit is part of the key"),
    "true as a number": ("rate_per_s: 12", "rate_per_s: ⌖true", "found true, expected a number"),
    "NaN": ("rate_per_s: 12", "rate_per_s: ⌖.nan", "expected a finite number"),
    "JSON's NaN": ("rate_per_s: 12", "rate_per_s: ⌖NaN", "a finite number"),
    "infinity": ("devices: 64", "devices: ⌖.inf", "leave the key out"),
    "overflow": ("usd_per_hour: 200", "usd_per_hour: ⌖1e999", "expected a finite number"),
    "more than solvers count": ("devices: 64", "devices: ⌖1e300", "expected 0 or a number from 1e-15 to 1e+15 in size"),
    "next to nothing": ("usd_per_hour: 200", "usd_per_hour: ⌖1e-300", "expected 0 or a number from 1e-15"),
    "more requests than fleets serve": ("rate_per_s: 12", "rate_per_s: ⌖1e9", "expected at most 1e+08"),
    "negative rate": ("rate_per_s: 12", "rate_per_s: ⌖-1", "found -1, expected at least 0"),
    "rate left empty": ("rate_per_s: 12", "⌖rate_per_s:", "found nothing, expected a number"),
    "missing rate of a currency": (
        "name: photos",
        "name: photos\ncurrencies: {⌖EUR: {source: a bank}}",
        "currencies.EUR.usd_per_unit: missing (US dollars per unit",
    ),
    "unknown key of a currency": (
        "name: photos",
        "name: photos\ncurrencies: {EUR: {usd_per_unit: 1.1, source: a bank, ⌖dated: 2026}}",
        "did you mean date?",
    ),
    "missing rate": ("- name: chat\n      rate_per_s: 12", "- ⌖name: chat", "chat.rate_per_s: missing"),
    "missing output": (
        "- name: chat\n      rate_per_s: 12\n      text_tokens: {mean: 800, p95: 2400}\n      output_tokens: 300",
        "- ⌖name: chat\n      rate_per_s: 12\n      text_tokens: {mean: 800, p95: 2400}",
        "output_tokens: missing",
    ),
    "missing target": ("slo: {ttft_ms: 800, itl_ms: 60", "⌖slo: {ttft_ms: 800", "slo.itl_ms: missing"),
    "missing target in block style": ("slo:\n        ttft_ms: 3000\n", "⌖slo:\n", "slo.ttft_ms: missing"),
    "missing class name": ("- name: chat\n      rate_per_s: 12", "- ⌖rate_per_s: 12", "classes[0].name: missing"),
    "name that is a number": ("- name: chat", "- name: ⌖7", 'put it in quotes: "7"'),
    "empty name": ("- name: chat", '- name: ⌖""', "found an empty text"),
    "two classes of one name": (
        "devices:\n  - {sku",
        "    - {name: ⌖chat, rate_per_s: 1, text_tokens: 1, output_tokens: 1, slo: {ttft_ms: 90}}\ndevices:\n  - {sku",
        "two classes are called 'chat'",
    ),
    "two devices of one SKU": ("- sku: L4", "- sku: ⌖GB200", "two devices are called 'GB200'"),
    "no classes": (
        None,
        "schema: epd-opt/instance/v1\nmodel: a\ndevices: [{sku: L4}]\n⌖workload: {}",
        "classes: missing",
    ),
    "empty classes": (
        None,
        "schema: epd-opt/instance/v1\nmodel: a\ndevices: [{sku: L4}]\nworkload: {classes: ⌖[]}",
        "expected at least one entry",
    ),
    "classes as a mapping": (
        None,
        "schema: epd-opt/instance/v1\nmodel: a\ndevices: [{sku: L4}]\nworkload: {classes: ⌖{chat: {}}}",
        "found a mapping, expected a list",
    ),
    "lognormal that does not fit": ("{mean: 800, p95: 2400}", "{mean: 800, p95: ⌖4000}", "no lognormal has mean 800"),
    "lognormal below its mean": ("{mean: 800, p95: 2400}", "{mean: 800, p95: ⌖700}", "p95 must lie between 800 and"),
    "lognormal without p95": ("text_tokens: {mean: 800, p95: 2400}", "⌖text_tokens: {mean: 800}", "p95: missing"),
    "values without weight": ("{mean: 800, p95: 2400}", "{values: ⌖[[5, 0]]}", "all weights are 0"),
    "values as plain list": ("{mean: 800, p95: 2400}", "{values: [⌖200]}", "expected a list"),
    "negative weight": ("{mean: 800, p95: 2400}", "{values: [[5, ⌖-1]]}", "found -1, expected at least 0"),
    "no output": ("output_tokens: 300", "output_tokens: ⌖0", "expected at least 1"),
    "no tokens": ("text_tokens: {mean: 800, p95: 2400}", "text_tokens: ⌖0", "the class has no tokens"),
    "all cached": (
        "text_tokens: 300",
        "text_tokens: 300\n      cached_tokens: ⌖300",
        "expected less than text_tokens = 300",
    ),
    "mean above peak": ("rate_per_s: 12", "rate_per_s: 12\n      mean_rate_per_s: ⌖13", "at most rate_per_s = 12"),
    "percentile as a share": ("percentile: 95", "percentile: ⌖0.95", "percentile is in per cent: 95, not 0.95"),
    "percentile too low": ("percentile: 95", "percentile: ⌖30", "found 30, expected at least 50"),
    "percentile of 100": ("percentile: 95", "percentile: ⌖100", "found 100, expected at most 99.999"),
    "target of zero": ("{ttft_ms: 800", "{ttft_ms: ⌖0", "found 0, expected more than 0"),
    "images without a size": (
        "images: {count: 10, width_px: 1280, height_px: 720}",
        "images: ⌖{count: 10, width_px: 1280}",
        "no height_px",
    ),
    "images with two sizes": ("height_px: 720}", "height_px: 720, tokens: ⌖4}", "both given"),
    "cached share above one": ("height_px: 720}", "height_px: 720, cached_share: ⌖40}", "found 40, expected at most 1"),
    "half a pixel": ("width_px: 1280", "width_px: ⌖1280.5", "expected a whole number"),
    "unknown engine": ("{name: vllm,", "{name: ⌖vlm,", "did you mean vllm?"),
    "engine without name": (
        "engine: {name: vllm, max_sequences: 256}",
        "engine: ⌖{max_sequences: 256}",
        "name is missing",
    ),
    "engine's own option name": ("max_sequences: 256", "⌖max_num_seqs: 256", "use max_sequences"),
    "unknown format": ("{weights: fp8,", "{weights: ⌖fp9,", "expected one of bf16, fp8"),
    "unknown stage": ("stages: [encode]", "stages: [⌖encoder]", "did you mean encode?"),
    "stages as a text": ("stages: [encode]", "stages: ⌖encode", "a list of one: [encode]"),
    "no stages": ("stages: [encode]", "stages: ⌖[]", "expected at least one entry"),
    "stage listed twice": ("stages: [encode]", "stages: ⌖[encode, encode]", "'encode' is listed twice"),
    "worker with a gap": ("stages: [prefill]", "stages: ⌖[encode, decode]", "without prefill"),
    "price without amount": ("price: {purchase_usd: 2700}", "price: ⌖{per: rack}", "give usd_per_hour or purchase_usd"),
    "rent and purchase": ("{purchase_usd: 2700}", "{purchase_usd: ⌖2700, usd_per_hour: 1}", "under two names"),
    "price as a number": ("price: {purchase_usd: 2700}", "price: ⌖2700", "found 2700, expected a mapping"),
    "price per what": ("{purchase_usd: 2700}", "{purchase_usd: 2700, per: ⌖node}", "expected device or server or rack"),
    "empty pack": ("{purchase_usd: 2700}", "{purchase_usd: 2700, pack: ⌖0}", "found 0, expected at least 1"),
    "owned beyond stock": ("stock: 16", "stock: 16, owned: ⌖17", "expected at most stock = 16"),
    "broken stock": ("stock: 16", "stock: ⌖1.5", "found 1.5, expected a whole number"),
    "two spellings of parallelism": (
        "tensor_parallel: [1, 2, 4]",
        "tensor_parallel: ⌖[1], parallelism: [{tensor: 2}]",
        "both given",
    ),
    "expert degree that divides nothing": (
        "tensor_parallel: [1, 2, 4]",
        "parallelism: [{tensor: 4, expert: ⌖3}]",
        "a divisor of tensor x attention_data = 4",
    ),
    "tensor degree of zero": ("tensor_parallel: [1, 2, 4]", "tensor_parallel: [⌖0]", "found 0, expected at least 1"),
    "residual above one": ("residual: 0.0", "residual: ⌖10", "found 10, expected at most 1"),
    "PUE below one": ("pue: 1.25", "pue: ⌖0.9", "found 0.9, expected at least 1"),
    "gap below zero": ("gap: 0.001", "gap: ⌖-0.1", "expected at least 0"),
    "no time": ("time_limit_s: 60", "time_limit_s: ⌖0", "expected more than 0"),
    "no threads": ("threads: 2", "threads: ⌖0", "expected at least 1"),
    "cost over a range upside down": (
        "name: photos",
        "name: photos\nobjective: {minimise: cost_per_request, rate_multiple: ⌖[3.0, 0.5]}",
        "found [3, 0.5], expected [low, high]",
    ),
    "cost over a range from nothing": (
        "name: photos",
        "name: photos\nobjective: {minimise: cost_per_request, rate_multiple: [⌖0, 1]}",
        "expected more than 0",
    ),
    "unknown objective": ("name: photos", "name: photos\nobjective: ⌖profit", "expected cost_per_request or goodput"),
    "unknown placement": ("name: photos", "name: photos\nplacements: [⌖prefil]", "did you mean prefill?"),
    "modelled as text": ("name: photos", "name: photos\ncandidates: {modelled: ⌖no}", "expected true or false"),
    "rate of an unknown class": ("album: 0.5}", "⌖albun: 0.5}", "did you mean album?"),
    "pair of an unknown device": (
        "latency_us: 20",
        "latency_us: 20, forbidden_kv_pairs: [[GB200, ⌖GB300]]",
        "did you mean GB200?",
    ),
    "half a pair": (
        "latency_us: 20",
        "latency_us: 20, forbidden_kv_pairs: [⌖[GB200]]",
        "found 1 entry, expected one more (pairs [from, to] of device names",
    ),
    "more than a pair": (
        "latency_us: 20",
        "latency_us: 20, forbidden_kv_pairs: [⌖[GB200, L4, GB200]]",
        "found 3 entries, expected at most 2 (pairs [from, to] of device names",
    ),
    "missing model": ("model: Qwen3.5-122B-A10B\n", "", "model: missing"),
    "card that is not there": ("- sku: L4", "- sku: L4\n    card: ⌖cards/mine.yaml", "no such file"),
    "model file that is not there": ("model: Qwen3.5-122B-A10B", "model: ⌖./config.json", "no such file"),
    "missing schema": ("schema: epd-opt/instance/v1\n", "", "add schema: epd-opt/instance/v1"),
    "other version": ("instance/v1", "instance/v2", "expected epd-opt/instance/v1"),
    "a plan": ("schema: epd-opt/instance/v1", "schema: ⌖epd-opt/plan/v1", "this is a plan"),
    "a list": (None, "⌖- name: chat", "found a list, expected a mapping"),
    "a text": (None, "⌖hello", "found 'hello', expected a mapping"),
    "an empty file": (None, "⌖", "the file is empty"),
    "only a comment": (None, "⌖# nothing", "the file is empty"),
    "tab": ("network:", "⌖\tnetwork:", "indent with spaces"),
    "unclosed bracket": ("stages: [encode]\n", "stages: [encode\n", "not YAML"),
    "colon in a text": ("name: photos", "name: photos⌖: summer", "in quotes"),
    "unknown alias": ("name: photos", "name: ⌖*nobody", "undefined alias"),
    "two documents": ("devices:\n  - {sku", "⌖---\ndevices:\n  - {sku", "one instance per file"),
    "tag": ("name: photos", "name: ⌖!python/name photos", "leave the tag out"),
    "old YAML": (None, "⌖%YAML 1.1\n---\nname: a", "expected YAML 1.2"),
    "anchor that holds itself": (None, "a: ⌖&a [*a]", "contains itself"),
    "control character": ("name: photos", "name: ⌖\x07", "control character U+0007"),
}


@pytest.mark.parametrize(("old", "new", "fragment"), BROKEN.values(), ids=BROKEN)
def test_each_fault_is_reported_where_it_stands(old: str | None, new: str, fragment: str, tmp_path: Path) -> None:
    """One fault gives one problem, at the marked place, with the remedy."""
    good = PHOTOS.read_text(encoding="utf-8")
    assert old is None or good.count(old) == 1
    marked = new if old is None else good.replace(old, new)
    file = tmp_path / "broken.yaml"
    file.write_text(marked.replace(HERE, ""), encoding="utf-8")
    with pytest.raises(InvalidInput) as caught:
        read(file)
    (problem,) = caught.value.problems
    assert fragment in str(problem)
    assert problem.file == str(file)
    if HERE in marked:
        before = marked[: marked.index(HERE)]
        assert (problem.line, problem.column) == (before.count("\n") + 1, len(before) - before.rfind("\n"))
    assert str(problem).startswith(f"{file}:{problem.line}:{problem.column}: ")


def test_all_problems_of_a_file_come_together_in_its_order(tmp_path: Path) -> None:
    """Faults of different kinds in different places are one report, sorted by position."""
    text = PHOTOS.read_text(encoding="utf-8")
    for old, new in [
        ("rate_per_s: 12", "rate_per_s: -1"),
        ("itl_ms: 60", "itl: 60"),
        ("stock: 16", "stock: 16, stock: 17"),
        ("sku: L4", "sku: GB200"),
        ("pue: 1.25", "pue: 0.5"),
    ]:
        text = text.replace(old, new)
    file = tmp_path / "broken.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput) as caught:
        read(file)
    problems = caught.value.problems
    assert [(p.line, p.path) for p in problems] == [
        (10, "workload.classes.chat.rate_per_s"),
        (13, "workload.classes.chat.slo.itl_ms"),
        (13, "workload.classes.chat.slo.itl"),
        (23, "devices[0].stock"),
        (24, "devices[1].sku"),
        (28, "cost.pue"),
    ]
    assert str(caught.value).splitlines() == [str(problem) for problem in problems]
    assert caught.value.exit_code == 3


def test_aliases_cannot_fill_the_memory(tmp_path: Path) -> None:
    """Nested aliases that stand for a hundred million values are refused at the alias that goes too far."""
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"{new}: &{new} [{', '.join(['*' + old] * 10)}]" for old, new in zip("abcdefg", "bcdefgh", strict=True)]
    file = tmp_path / "laughs.yaml"
    file.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"laughs\.yaml:1:\d+: aliases add more than"):
        read(file)


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    """Brackets nested beyond what can be read are an error of the file, not a crash."""
    file = tmp_path / "deep.yaml"
    file.write_text("a: " + "[" * 5000, encoding="utf-8")
    with pytest.raises(InvalidInput, match="nested too deeply"):
        read(file)


@pytest.mark.parametrize(
    ("raw", "place", "fragment"),
    [
        (b"name: caf\xe9\n", (1, 10), "byte 0xe9 is not UTF-8"),
        (b"a: 1\nb: \x00\x01\x02", (2, 4), r"control character U\+0000"),
        (b"\x89PNG\r\n\x1a\n", (1, 1), "not UTF-8"),
    ],
    ids=["latin-1", "NUL", "picture"],
)
def test_binary_files_are_refused(raw: bytes, place: tuple[int, int], fragment: str, tmp_path: Path) -> None:
    """What is no text is refused at its first impossible byte."""
    file = tmp_path / "binary.yaml"
    file.write_bytes(raw)
    with pytest.raises(InvalidInput, match=fragment) as caught:
        read(file)
    assert (caught.value.problems[0].line, caught.value.problems[0].column) == place


def test_a_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    """A mistyped file name is answered with the nearest one in the folder."""
    (tmp_path / "photos.yaml").touch()
    with pytest.raises(InvalidInput, match=r"photo\.yaml: no such file \(did you mean photos\.yaml\?\)"):
        read(tmp_path / "photo.yaml")


def test_a_folder_is_no_instance(tmp_path: Path) -> None:
    """A folder in place of a file is refused by name."""
    with pytest.raises(InvalidInput, match="is a directory"):
        read(tmp_path)


JUNK = st.sampled_from(
    [None, True, -1, 0, 0.5, 1e400, "", "x", "1", [], [[]], {}, {"a": 1}, [1, "b"], {"values": [[1, 2]]}, {"name": []}]
)


def places(value: object, location: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Locations of all values in a document but the document itself."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in items for place in [(*location, key), *places(item, (*location, key))]]


def outcome(source: Any) -> Instance | InvalidInput:
    """The instance, or the complaint about it."""
    try:
        return read(source)
    except InvalidInput as error:
        return error


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_no_value_crashes_the_reading(data: st.DataObject) -> None:
    """Whatever stands in the place of a value, the instance is read or refused with problems that have paths."""
    document = read(PHOTOS).document()
    for _ in range(data.draw(st.integers(1, 3))):
        *above, last = data.draw(st.sampled_from(places(document)))
        holder: Any = document
        for key in above:
            holder = holder[key]
        holder[last] = copy.deepcopy(data.draw(JUNK))
    found = outcome(document)
    if isinstance(found, Instance):
        assert read(found.document()) == found
    else:
        assert found.problems
        assert all(problem.path and problem.message for problem in found.problems)


@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_no_text_crashes_the_reading(data: st.DataObject) -> None:
    """A file with a stretch replaced by anything is read or refused at a position."""
    text = PHOTOS.read_text(encoding="utf-8")
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 12)))
    junk = data.draw(st.text(alphabet=" \t\n:-{}[]&*!|>'\"%@`#,?a1.\x00é\ud83d", max_size=6))
    found = outcome(io.StringIO(text[:start] + junk + text[end:]))
    if isinstance(found, InvalidInput):
        assert found.problems
        assert all(problem.line and problem.column for problem in found.problems)


def test_complaints_travel_between_processes() -> None:
    """A complaint raised in a worker process arrives whole."""
    found = outcome({"schema": "epd-opt/instance/v1"})
    assert isinstance(found, InvalidInput)
    assert pickle.loads(pickle.dumps(found)).problems == found.problems
