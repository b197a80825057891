"""What is found out about an instance after it was read has the place of its value: file, line and column."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

import epd_opt
from epd_opt import InvalidInput
from epd_opt.cli import main
from epd_opt.instance import Instance
from epd_opt.paths import walked
from epd_opt.resolve import resolve
from epd_opt.tariffs import tariff_document

BASE = """\
schema: epd-opt/instance/v1
name: desk
model: Qwen2.5-VL-7B
workload:
  classes:
    - {name: chat, rate_per_s: 3, text_tokens: 100, output_tokens: 10, slo: {ttft_ms: 1000, itl_ms: 50}}
devices:
  - {sku: L40S, price: {usd_per_hour: 1.5}, stock: 4}
  - sku: L4
    name: small
    price: {usd_per_hour: 0.5}
solver: {name: highs}
"""


def changed(old: str = "", new: str = "", more: str = "") -> str:
    assert old in BASE
    return BASE.replace(old, new) + more


@pytest.mark.parametrize(
    ("text", "place", "fragment"),
    [
        (changed("Qwen2.5-VL-7B", "Qwen9"), "3:8: model", "no model card is called 'Qwen9'"),
        (changed("sku: L4\n", "sku: L5\n"), "9:10: devices.small.sku", "no device card is called 'L5'"),
        (changed("name: highs", "name: hihgs"), "12:16: solver.name", "unknown solver"),
        (changed("0.5}", "0.5, per: rack}"), "11:37: devices.small.price.per", "not sold by the rack"),
        (changed(more="limits: {forbid: [L4, H1000]}\n"), "13:23: limits.forbid[1]", "'H1000' is no name"),
        (changed(more="limits:\n  require:\n    - H1000\n"), "15:7: limits.require[0]", "'H1000' is no name"),
        (
            changed("name: small\n", "name: small\n    card: {memory: {capacity_gb: much}}\n"),
            "11:34: devices.small.card.memory.capacity_gb",
            "expected a number, found 'much'",
        ),
        (
            changed("name: small\n", "name: small\n    card:\n      memory: {capacity_gib: 3}\n"),
            "12:30: devices.small.card.memory.capacity_gib",
            "did you mean 'capacity_gb'",
        ),
        (
            changed("name: small\n", "name: small\n    coefficients: {vllm: {bandwidht: 3}}\n"),
            "11:38: devices.small.coefficients.vllm.bandwidht",
            "is not a key",
        ),
        (
            changed(more="workers:\n- {name: w, sku: X9, devices: 1, stages: [prefill], max_rate_per_s: 3}\n"),
            "14:18: workers.w.sku",
            "X9",
        ),
        (
            changed(more="workers:\n- {name: w, sku: L4, devices: 1, stages: [prefill], max_rate_per_s: {chat: 1e-8}}\n"),
            "14:76: workers.w.max_rate_per_s.chat",
            "is it per second",
        ),
        (changed(more="objective: goodput\n"), "13:12: objective", "nothing limits the multiple"),
    ],
)
def test_complaints_after_reading_have_their_place(tmp_path: Path, text: str, place: str, fragment: str) -> None:
    """In a file and in a stream, from every way to solve."""
    file = tmp_path / "desk.yaml"
    file.write_text(text)
    for source, name in ((str(file), str(file)), (epd_opt.read(file), str(file)), (io.BytesIO(text.encode()), "<stream>")):
        with pytest.raises(InvalidInput) as caught:
            epd_opt.solve(source)
        (problem,) = caught.value.problems
        assert str(problem).startswith(f"{name}:{place}: ")
        assert fragment in str(problem)


ENTRIES: dict[str, Any] = {
    "solve": epd_opt.solve,
    "sensitivity": lambda source: epd_opt.sensitivity(source, {"workload.classes.chat.rate_per_s": [1, 2]}),
    "tornado": epd_opt.tornado,
    "marginal": epd_opt.marginal,
    "break_even": lambda source: epd_opt.break_even(source, "L40S"),
    "tariffs": lambda source: tariff_document(epd_opt.read(source)),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_way_in_has_places(tmp_path: Path, entry: str) -> None:
    """Studies, explanations and tables of tariffs complain with the same places as solving does."""
    file = tmp_path / "desk.yaml"
    file.write_text(changed("sku: L4\n", "sku: L5\n"))
    with pytest.raises(InvalidInput) as caught:
        ENTRIES[entry](str(file))
    assert str(caught.value).startswith(f"{file}:9:10: devices.small.sku: ")


def test_values_of_other_files_and_of_overrides_have_theirs(tmp_path: Path) -> None:
    """A card from a file is complained about in that file, YAML or JSON; an assigned value under its option."""
    file = tmp_path / "desk.yaml"
    (tmp_path / "card.yaml").write_text("# mine\nmemory:\n  capacity_gb: much\n")
    (tmp_path / "card.json").write_text('{"memory": {\n  "capacity_gb": "much"}}')
    for card, at in (("card.yaml", "3:16"), ("card.json", "2:18")):
        file.write_text(changed("name: small\n", f"name: small\n    card: {card}\n"))
        with pytest.raises(InvalidInput) as caught:
            epd_opt.solve(file)
        assert str(caught.value).startswith(f"{tmp_path / card}:{at}: devices.small.card.memory.capacity_gb: ")
    file.write_text(BASE)
    for override, start in (
        ("model=Qwen9", "--set model: no model card"),
        ("limits.require=[H1000]", "--set limits.require: limits.require[0]: 'H1000'"),
        (f"devices.small.card={tmp_path / 'card.yaml'}", f"{tmp_path / 'card.yaml'}:3:16: devices.small.card.memory"),
    ):
        with pytest.raises(InvalidInput) as caught:
            epd_opt.solve(epd_opt.read(file, overrides=[override]))
        assert str(caught.value).startswith(start)


def test_standard_input_has_its_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`epd-opt validate -` says <stdin>, line and column."""
    text = changed("Qwen2.5-VL-7B", "Qwen9")
    monkeypatch.setattr("sys.argv", ["epd-opt", "validate", "-"])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 3
    assert capsys.readouterr().err.startswith("<stdin>:3:8: model: ")


def test_scenarios_keep_the_places_of_their_file(tmp_path: Path) -> None:
    """A scenario that is taken alone complains in the file of the whole."""
    file = tmp_path / "desk.yaml"
    file.write_text(changed("Qwen2.5-VL-7B", "Qwen9", "scenarios: [{name: usual}]\n"))
    with pytest.raises(InvalidInput) as caught:
        epd_opt.solve(file)
    assert str(caught.value).startswith(f"{file}:3:8: model: ")


def test_instances_from_python_have_paths_alone() -> None:
    """Without a text there is nothing to point at; and where two instances were read does not tell them apart."""
    plain = epd_opt.read(io.BytesIO(changed("Qwen2.5-VL-7B", "Qwen9").encode()))
    with pytest.raises(InvalidInput) as caught:
        epd_opt.solve(plain.document())
    assert str(caught.value).startswith("model: no model card")
    again = Instance(**plain.document())
    assert again == plain
    assert plain == again
    with pytest.raises(InvalidInput) as caught:
        resolve(again)
    assert str(caught.value).startswith("model: ")


def test_paths_are_followed_as_far_as_they_go() -> None:
    """Names stand for list entries; what is not there ends the way, or goes on below a mapping."""
    document = {"devices": [{"sku": "L4"}, {"name": "a.b", "price": None}], "engine": "vllm"}
    assert walked(document, 'devices["a.b"].price.usd_per_hour') == ("devices", 1, "price", "usd_per_hour")
    assert walked(document, "devices[7].price") == ("devices",)
    assert walked(document, "engine.max_sequences") == ("engine", "max_sequences")
    assert walked(document, "") == ()
