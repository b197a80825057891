"""Paths address values by the names people gave them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epd_opt.address import format_path
from epd_opt.errors import InvalidInput
from epd_opt.paths import Wildcard, get, parse_path, set_value, split_assignment

DOCUMENT: dict[str, Any] = {
    "engine": "vllm",
    "workload": {
        "classes": [
            {"name": "chat", "rate_per_s": 12, "text_tokens": 800},
            {"name": "album", "rate_per_s": 3, "images": {"count": 10, "tokens": 256}},
        ]
    },
    "devices": [
        {"sku": "GB200", "price": {"usd_per_hour": 4.54}, "stock": 16},
        {"sku": "H100", "name": "H100.x", "price": None},
        {"sku": "L4", "name": 'a "b" [c]=d', "card": {"memory": {"gib": 24}}},
    ],
    "placements": ["prefill", "decode"],
}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("workload.classes.album.images.count", ("workload", "classes", "album", "images", "count")),
        ("devices.GB200.price.usd_per_hour", ("devices", "GB200", "price", "usd_per_hour")),
        ('devices["H100.x"].stock', ("devices", "H100.x", "stock")),
        ("devices['H100.x'].stock", ("devices", "H100.x", "stock")),
        ("workload.classes.*.rate_per_s", ("workload", "classes", "*", "rate_per_s")),
        ("placements[0]", ("placements", 0)),
        ('workload.classes["say \\"hi\\""]', ("workload", "classes", 'say "hi"')),
        ("workload.classes.Fotos-für-später", ("workload", "classes", "Fotos-für-später")),
    ],
)
def test_paths_split_into_parts(text: str, parts: tuple[str | int, ...]) -> None:
    """Dots separate, brackets quote or count."""
    assert parse_path(text) == parts


@pytest.mark.parametrize("text", ["", ".", "a..b", "a.", ".a", "a b", "a[", 'a["b]', "a[b]", "a[-1]", "a=b", '["a"]b'])
def test_what_is_no_path_is_refused(text: str) -> None:
    """A malformed path is an error with an example."""
    with pytest.raises(InvalidInput, match=r"as in workload\.classes"):
        parse_path(text)


@given(st.lists(st.text(min_size=1) | st.integers(min_value=0, max_value=99), min_size=1))
def test_any_names_survive_a_path(parts: list[str | int]) -> None:
    """Whatever a name holds, writing the path and reading it gives the name back."""
    assert parse_path(format_path(parts)) == tuple(parts)
    assert not any(isinstance(part, Wildcard) for part in parse_path(format_path(parts)))


def test_assignments_split_behind_the_path() -> None:
    """An equals sign inside a quoted name belongs to the name, and those in the value to the value."""
    assert split_assignment('devices["a=b"].stock=4') == ('devices["a=b"].stock', "4")
    assert split_assignment("name=a=b") == ("name", "a=b")
    assert split_assignment("devices.L4.stock") is None


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("workload.classes.album.images.count", [("workload.classes.album.images.count", 10)]),
        ('devices["H100.x"].sku', [('devices["H100.x"].sku', "H100")]),
        ("devices[1].sku", [('devices["H100.x"].sku', "H100")]),
        (
            "workload.classes.*.rate_per_s",
            [("workload.classes.chat.rate_per_s", 12), ("workload.classes.album.rate_per_s", 3)],
        ),
        ("workload.classes.*.images.count", [("workload.classes.album.images.count", 10)]),
        ("placements[1]", [("placements[1]", "decode")]),
        ("engine.name", [("engine.name", "vllm")]),
        ('devices["a \\"b\\" [c]=d"].card.memory.gib', [('devices["a \\"b\\" [c]=d"].card.memory.gib', 24)]),
    ],
)
def test_values_are_found_with_their_own_paths(path: str, found: list[tuple[str, Any]]) -> None:
    """A path gives each value it addresses, wildcards resolved to names; entries without the value are passed over."""
    assert get(DOCUMENT, path) == found


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("workload.classes.albun.images.count", r"workload\.classes\.albun: names nothing \(did you mean album\?\)"),
        ("devices.H100.stock", r"did you mean H100\.x\?"),
        ("workload.classes.chat.rate", r"did you mean .*rate_per_s"),
        ("wrkload", r"did you mean workload\?"),
        ("workload.classes.chat.text_tokens.mean", "text_tokens is 800"),
        ("workload.classes.chat.images.count", "is not given in the instance"),
        ("placements.prefill", r"known are \[0\], \[1\]"),
        ("placements[7]", "the list has 2 entries"),
        ("workers.*.devices", "is not given in the instance"),
        ("workload.classes.*.video.fps", "is not given in the instance"),
    ],
)
def test_a_path_to_nothing_names_what_is_near(path: str, message: str) -> None:
    """Reading a value that is not there is an error with the nearest names."""
    with pytest.raises(InvalidInput, match=message):
        get(DOCUMENT, path)


@pytest.mark.parametrize(
    "path",
    [
        "workload.classes.album.images.count",
        "devices.GB200.price.usd_per_hour",
        "devices.GB200.owned",
        'devices["H100.x"].price.usd_per_hour',
        "limits.usd_per_hour",
        "engine.max_sequences",
        "devices.*.stock",
        "devices.GB200.card.memory.gib",
        "placements[0]",
    ],
)
def test_what_is_set_is_found(path: str) -> None:
    """A value set, whether present before or only known to the schema, is found; the original is untouched."""
    before = copy.deepcopy(DOCUMENT)
    changed = set_value(DOCUMENT, path, 5)
    assert {value for _, value in get(changed, path)} == {5}
    assert before == DOCUMENT


def test_setting_one_value_leaves_the_others() -> None:
    """Only the addressed values change; an engine's name opens into its settings."""
    changed = set_value(DOCUMENT, "workload.classes.*.images.count", 4)
    assert changed["workload"]["classes"][1]["images"] == {"count": 4, "tokens": 256}
    assert changed["workload"]["classes"][0] == DOCUMENT["workload"]["classes"][0]
    assert set_value(DOCUMENT, "engine.max_sequences", 9)["engine"] == {"name": "vllm", "max_sequences": 9}


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("devices.GB200.stok", r"did you mean stock"),
        ("devices.L40.stock", "names nothing"),
        ("limits.usd_hour", "usd_per_hour"),
        ("workload.classes.*.video.fps", "is not given in the instance"),
        ("name.first.second", "names nothing|known"),
    ],
)
def test_nothing_is_set_where_the_schema_knows_no_place(path: str, message: str) -> None:
    """A mistyped path is an error instead of a new key."""
    with pytest.raises(InvalidInput, match=message):
        set_value({**DOCUMENT, "name": "x"}, path, 1)


def test_a_name_that_two_entries_share_is_ambiguous() -> None:
    """Entries of one name can be told apart by index only."""
    twice = {"devices": [{"sku": "L4"}, {"sku": "L4"}]}
    with pytest.raises(InvalidInput, match="several entries"):
        get(twice, "devices.L4.sku")
    assert get(twice, "devices[1].sku") == [("devices[1].sku", "L4")]
