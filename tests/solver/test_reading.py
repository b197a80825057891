"""Instances are read alike from files, streams and mappings, and overrides are part of the reading."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from epd_opt.errors import InvalidInput, UsageError
from epd_opt.instance import Instance
from epd_opt.reading import read
from epd_opt.source import parse

PHOTOS = Path(__file__).parent / "data" / "photos.yaml"
CONTRACT = Path(__file__).parents[3] / "shared" / "contract.md"


def photos() -> str:
    """The text of the valid file."""
    return PHOTOS.read_text(encoding="utf-8")


def test_every_way_in_gives_the_same_instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path, a text, open files, standard input and a parsed mapping read alike."""
    expected = read(PHOTOS)
    assert read(str(PHOTOS)) == expected
    assert read(io.StringIO(photos())) == expected
    assert read(io.BytesIO(photos().encode())) == expected
    assert read(expected.document()) == expected

    class StandardInput:
        buffer = io.BytesIO(photos().encode())

    monkeypatch.setattr("sys.stdin", StandardInput())
    assert read("-") == expected


@pytest.mark.parametrize("indent", [None, 2, "\t"], ids=["one line", "spaces", "tabs"])
def test_json_is_read(indent: int | str | None, tmp_path: Path) -> None:
    """JSON reads as YAML does, tabs included, and keeps its positions."""
    file = tmp_path / "photos.json"
    file.write_text(json.dumps(read(PHOTOS).document(), indent=indent), encoding="utf-8")
    assert read(file) == read(PHOTOS)
    file.write_text(file.read_text(encoding="utf-8").replace('"rate_per_s": 12', '"rate_per_s": -12'), encoding="utf-8")
    with pytest.raises(InvalidInput) as caught:
        read(file)
    lines = file.read_text(encoding="utf-8").splitlines()
    (problem,) = caught.value.problems
    assert problem.line is not None
    assert problem.column is not None
    assert lines[problem.line - 1][problem.column - 1 :].startswith("-12")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e3", 1000.0),
        ("1E+3", 1000.0),
        ("-.5", -0.5),
        ("012", 12),
        ("0x10", 16),
        ("0o17", 15),
        ("yes", "yes"),
        ("1:30", "1:30"),
        ("2026-01-01", "2026-01-01"),
        ("~", None),
        ("True", True),
        ("'12'", "12"),
        ("!!str 12", "12"),
        ('"\\ud83d\\ude00"', "😀"),
        ("[1, {a: 2.50}]", [1, {"a": 2.5}]),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text: str, value: Any) -> None:
    """Numbers, texts and empties mean what YAML 1.2 and JSON mean by them."""
    found = parse(text, "test")
    assert found.value == value
    assert type(found.value) is type(value)
    assert found.problems == []


def test_exponents_and_decimals_may_be_whole_numbers() -> None:
    """1e3 is 1000, and 16.0 units are 16 units."""
    instance = read(PHOTOS, ["workload.classes.chat.rate_per_s=1e3", "devices.GB200.stock=16.0"])
    assert instance.workload.classes[0].rate_per_s == 1000
    assert repr(instance.devices[0].stock) == "16"


@pytest.mark.parametrize(
    "name", ["a b", "a.b", 'say "hi"', "it's", "# no comment", "été 📷", "null", "12", "- x: [", "default"]
)
def test_names_come_back_unchanged(name: str) -> None:
    """Any text is a name, and may be addressed."""
    document = read(PHOTOS).document()
    document["workload"]["classes"][0]["name"] = name
    instance = read(io.StringIO(json.dumps(document)))
    assert instance.workload.classes[0].name == name
    changed = read(document, [f"workload.classes[{json.dumps(name)}].rate_per_s=5"])
    assert changed.workload.classes[0].rate_per_s == 5


def test_anchors_and_merges_are_followed() -> None:
    """Aliases repeat a value; merged keys yield to a mapping's own."""
    text = photos().replace("slo: {ttft_ms: 800", "slo: &slo {ttft_ms: 800")
    text = text.replace("slo:\n        ttft_ms: 3000\n", "slo:\n        <<: *slo\n        ttft_ms: 3000\n")
    slo = read(io.StringIO(text)).workload.classes[1].slo
    assert (slo.ttft_ms, slo.itl_ms, slo.percentile) == (3000, 100, 95)


def test_overrides_are_made_in_turn_and_reach_every_match() -> None:
    """Wildcards, new keys, flow values and later overrides of earlier ones."""
    instance = read(
        PHOTOS,
        [
            "workload.classes.*.rate_per_s=4",
            "workload.classes.album.rate_per_s=5",
            "limits.power_kw=60",
            "placements=[prefill, decode]",
        ],
    )
    assert [c.rate_per_s for c in instance.workload.classes] == [4, 5]
    assert instance.limits.power_kw == 60
    assert instance.placements == ("prefill", "decode")


@pytest.mark.parametrize(
    ("override", "complaint"),
    [
        ("devices.GB200.stock=-3", "--set devices.GB200.stock: found -3, expected at least 0"),
        ("devices.GB200.stok=3", "--set devices.GB200.stok: names nothing (did you mean stock or sku?)"),
        ("solver.gap=[1", "--set solver.gap:1:3: not YAML"),
        ("solver={gap: 0, gap: 1}", "--set solver:1:10: gap: the key is repeated"),
        ("solver={gap: -1}", "--set solver: solver.gap: found -1"),
        ("a..b=3", "--set a..b: not a path"),
    ],
)
def test_faults_of_an_override_are_its_own(override: str, complaint: str) -> None:
    """What an override breaks is reported under its name, not at a line of the file."""
    with pytest.raises(InvalidInput) as caught:
        read(PHOTOS, [override])
    assert str(caught.value).startswith(complaint)


def test_an_override_without_a_value_is_wrong_usage() -> None:
    """PATH alone assigns nothing."""
    with pytest.raises(UsageError, match="expected PATH=VALUE"):
        read(PHOTOS, ["solver.gap"])


def test_an_override_may_mend_the_file(tmp_path: Path) -> None:
    """Overrides are made before validation."""
    file = tmp_path / "photos.yaml"
    file.write_text(photos().replace("gap: 0.001", "gap: -1"), encoding="utf-8")
    assert read(file, ["solver.gap=0"]).solver.gap == 0


def test_a_hugging_face_configuration_is_embedded(tmp_path: Path) -> None:
    """The instance then needs the file no longer, and the model is called as its folder or as it calls itself."""
    folder = tmp_path / "My-Model"
    folder.mkdir()
    config = {"model_type": "qwen2", "hidden_size": 1024, "rope_scaling": None}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    file = tmp_path / "photos.yaml"
    for spelling in ("My-Model/config.json", "./My-Model"):
        file.write_text(photos().replace("model: Qwen3.5-122B-A10B", f"model: {spelling}"), encoding="utf-8")
        instance = read(file)
        assert instance.model == {"name": "My-Model", "huggingface_config": config}
        assert read(instance.document()) == instance
    (folder / "config.json").write_text(json.dumps({**config, "_name_or_path": "org/one"}), encoding="utf-8")
    assert isinstance(read(file).model, dict)
    assert read(file).model["name"] == "org/one"  # type: ignore[index, call-overload]


def test_a_card_is_embedded(tmp_path: Path) -> None:
    """A device's card may be another file, beside the instance."""
    (tmp_path / "mine.yaml").write_text("sku: L4\nmemory: {gib: 48}\n", encoding="utf-8")
    file = tmp_path / "photos.yaml"
    file.write_text(photos().replace("- sku: L4", "- sku: L4\n    card: mine.yaml"), encoding="utf-8")
    assert read(file).devices[1].card == {"sku": "L4", "memory": {"gib": 48}}


@pytest.mark.parametrize(
    ("name", "content", "fragment"),
    [
        ("mine.yaml", "a: 1\na: 2\n", "mine.yaml:2:1: a: the key is repeated"),
        ("mine.yaml", "- a", "mine.yaml:1:1: found a list, expected a mapping"),
        ("mine.json", '{"a": 1,\n}', "mine.json:2:1: not JSON"),
    ],
)
def test_faults_of_an_embedded_file_are_reported_there(name: str, content: str, fragment: str, tmp_path: Path) -> None:
    """A broken card is one problem, in the card."""
    (tmp_path / name).write_text(content, encoding="utf-8")
    file = tmp_path / "photos.yaml"
    file.write_text(photos().replace("- sku: L4", f"- sku: L4\n    card: {name}"), encoding="utf-8")
    with pytest.raises(InvalidInput) as caught:
        read(file)
    assert len(caught.value.problems) == 1
    assert fragment in str(caught.value)


def test_a_mapping_with_keys_that_are_no_texts_is_refused() -> None:
    """Parsed mappings obey the rules of files."""
    document = read(PHOTOS).document()
    document["workers"][0]["max_rate_per_s"] = {7: 1.0, "default": 2.0}
    with pytest.raises(InvalidInput, match="found the key 7, expected a text"):
        read(document)


def test_the_contract_is_read() -> None:
    """The instance of the agreed format reads without a complaint, and as it stands there."""
    if not CONTRACT.exists():
        pytest.skip("the agreed format is not part of the project")
    blocks = CONTRACT.read_text(encoding="utf-8").split("```yaml\n")
    main, workers = (block.split("```")[0] for block in blocks[1:3])
    instance = read(io.StringIO(main))
    assert isinstance(instance, Instance)
    assert [device.name for device in instance.devices] == ["GB200", "RTX-6000D", "rebel-owned"]
    cuts = instance.devices[2].parallelisms()
    assert cuts is not None
    assert [cut.label for cut in cuts] == ["tp4", "tp8-dp2-ep8"]
    assert instance.devices[2].price is not None
    assert instance.devices[2].price.pack == 8
    measured = read(io.StringIO(main + workers))
    assert measured.workers[0].rate_per_s("album") == 0.5
    assert measured.workers[0].rate_per_s("chat") == 2.0
