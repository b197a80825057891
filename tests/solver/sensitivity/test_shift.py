"""What `--vary` means: ranges, lists, factors, and the documents at their points."""

from __future__ import annotations

from typing import Any

import pytest

import epd_opt
from epd_opt.errors import UsageError
from epd_opt.paths import get
from epd_opt.scaling import scaled
from epd_opt.sensitivity.shift import parse_vary, shifted
from support.documents import measured, modelled

CHAT = "workload.classes.chat.rate_per_s"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return epd_opt.Instance(**measured()).document()


@pytest.mark.parametrize(
    ("text", "values", "is_scaled"),
    [
        (f"{CHAT}=2:8", (2, 3, 4, 5, 6, 7, 8), False),
        (f"{CHAT}=0:1:3", (0, 0.5, 1), False),
        (f"{CHAT}=x0.5:x2:7", (0.5, 0.75, 1, 1.25, 1.5, 1.75, 2), True),
        (f"{CHAT}=x.5,x2", (0.5, 2), True),
        (f"{CHAT}=3,1,3", (3, 1), False),
        (f"{CHAT}=1e-3:1e-2:2", (0.001, 0.01), False),
        ("devices.big.stock=1:4:5", (1, 2, 3, 4), False),
        ("engine.name=vllm,sglang", ("vllm", "sglang"), False),
        ("workload.classes.album.images.count=0:5:5", (0, 1, 2, 4, 5), False),
        ("limits.usd_per_hour=20,30", (20, 30), False),
    ],
)
def test_what_a_dimension_holds(document: dict[str, Any], text: str, values: tuple[Any, ...], is_scaled: bool) -> None:
    """Ranges have evenly spaced points, whole ones where fractions are refused; lists keep their order; x scales."""
    moved = parse_vary(text, document)
    assert moved.values == values
    assert moved.scaled is is_scaled


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CHAT, "PATH=LOW:HIGH"),
        (f"{CHAT}=4:2", "lower end first"),
        (f"{CHAT}=x1:2", "both ends"),
        (f"{CHAT}=1:2:1", "at least 2"),
        (f"{CHAT}=1:2:x", "'x' steps"),
    ],
)
def test_what_no_dimension_is(document: dict[str, Any], text: str, message: str) -> None:
    """Complaints say what was expected."""
    with pytest.raises(UsageError, match=message):
        parse_vary(text, document)


@pytest.mark.parametrize("text", ["workload.classes.chatt.rate_per_s=1:2", "devices.big.sku=x1:x2"])
def test_paths_that_name_nothing_or_nothing_to_scale(document: dict[str, Any], text: str) -> None:
    """An unknown name, and a factor on a text, are invalid input."""
    with pytest.raises(epd_opt.InvalidInput):
        parse_vary(text, document)


def test_rates_take_their_means_along(document: dict[str, Any]) -> None:
    """A wildcard scales every rate, and a stated mean rate moves in proportion to its rate, to a number as to a factor."""
    moved = parse_vary("workload.classes.*.rate_per_s=x0.5,x2", document)
    half = shifted(document, [(moved, 0.5)])
    assert [value for _, value in get(half, "workload.classes.*.rate_per_s")] == [1.5, 6]
    assert get(half, "workload.classes.chat.mean_rate_per_s")[0][1] == 3.5
    at_six = shifted(document, [(parse_vary(f"{CHAT}=6,7", document), 6)])
    assert get(at_six, "workload.classes.chat.mean_rate_per_s")[0][1] == 3.5


def test_sizes_that_vary_are_scaled_whole() -> None:
    """Means, percentiles and values scale; weights stay."""
    assert scaled({"mean": 800, "p95": 2000}, 1.5) == {"mean": 1200, "p95": 3000}
    assert scaled({"values": [[2, 0.3], [5, 0.7]]}, 2) == {"values": [[4, 0.3], [10, 0.7]]}
    document = modelled()
    document["workload"]["classes"][0]["text_tokens"] = {"mean": 800, "p95": 2000}
    document = epd_opt.Instance(**document).document()
    path = "workload.classes.chat.text_tokens"
    assert get(shifted(document, [(parse_vary(f"{path}=x1,x2", document), 2)]), path)[0][1] == {"mean": 1600, "p95": 4000}
