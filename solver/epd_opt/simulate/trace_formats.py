"""Formats of request traces, told apart by their columns."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from epd_opt.fields import shown

TimeUnit = Literal["s", "ms", "us", "iso"]
TIME_UNITS: tuple[TimeUnit, ...] = ("s", "ms", "us", "iso")
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFormat:
    """Where a trace keeps what; columns of CSV or keys of JSON lines.

    Attributes
    ----------
    time, text, output : str
        Columns of the arrival time, of the prompt's tokens and of the generated tokens.
    unit : str
        Unit of ``time``: ``s``, ``ms``, ``us`` or ``iso`` (date and time).
    images, image_tokens : str or None
        Columns of the number of images and of the tokens of all images of a request.
    image_size : tuple of str
        Columns of width and height in pixels of a request's images; optional.
    text_holds_images : bool
        Whether ``text`` counts the tokens of images too.
    cached : tuple of str
        Columns of prompt tokens found in a prefix cache; optional, the first that stands in a file is used.
    blocks : str or None
        Column of the identifiers of prompt blocks (512 tokens each), from which prefix hits follow; optional.
    """

    name: str
    time: str
    unit: TimeUnit
    text: str
    output: str
    images: str | None = None
    image_tokens: str | None = None
    image_size: tuple[str, ...] = ()
    text_holds_images: bool = False
    cached: tuple[str, ...] = ()
    blocks: str | None = None

    @property
    def required(self) -> tuple[str, ...]:
        """Columns without which a file is not of this format."""
        images = () if self.images is None or self.name == "common" else (self.images,)
        return (self.time, self.text, *images, self.output)

    @property
    def known(self) -> tuple[str, ...]:
        """Columns that are read where they stand."""
        optional = [column for column in (self.images, self.image_tokens, self.blocks) if column is not None]
        return tuple(dict.fromkeys([*self.required, *optional, *self.image_size, *self.cached]))


FORMATS: tuple[TraceFormat, ...] = (
    TraceFormat(
        name="common",
        time="arrival_s",
        unit="s",
        text="input_text_tokens",
        output="output_tokens",
        images="num_images",
        image_tokens="image_tokens",
        image_size=("image_width_px", "image_height_px"),
        cached=("cached_tokens", "prefix_hit_tokens_inf_cache"),
    ),
    TraceFormat(
        name="azure-lmm",
        time="TIMESTAMP",
        unit="iso",
        text="ContextTokens",
        output="GeneratedTokens",
        images="NumImages",
        text_holds_images=True,
    ),
    TraceFormat(name="azure-llm", time="TIMESTAMP", unit="iso", text="ContextTokens", output="GeneratedTokens"),
    TraceFormat(name="burstgpt", time="Timestamp", unit="s", text="Request tokens", output="Response tokens"),
    TraceFormat(
        name="mooncake", time="timestamp", unit="ms", text="input_length", output="output_length", blocks="hash_ids"
    ),
)
"""Richer formats first: the first whose required columns all stand in a file is taken."""


def detect(columns: Collection[str]) -> TraceFormat | None:
    """The format of a file with these columns; None where none fits."""
    return next((one for one in FORMATS if set(one.required) <= set(columns)), None)


def what_is_missing(columns: Collection[str], wanted: TraceFormat | None) -> tuple[str, str]:
    """A complaint and a hint about columns that make no trace, or none of the ``wanted`` format."""
    nearest = wanted or max(FORMATS, key=lambda one: (_likeness(one, columns), -FORMATS.index(one)))
    missing = [column for column in nearest.required if column not in columns]
    free = [column for column in columns if column not in nearest.known]
    hints = []
    for column in missing:
        near = get_close_matches(column, free, n=1, cutoff=0.6)
        if near:
            hints.append(f"is {shown(near[0])} meant for {column}?")
    found = ", ".join(columns) or "none"
    if any(separator in found for separator in (";", "\t")) and len(columns) == 1:
        hints = ["separate the columns by commas"]
    what = f"column {missing[0]} is" if len(missing) == 1 else f"columns {', '.join(missing)} are"
    others = ", ".join(one.name for one in FORMATS)
    hints.append(f"found {found}; formats are {others}")
    return f"{what} missing, as format {nearest.name} has it", " ".join(hints)


def _likeness(one: TraceFormat, columns: Collection[str]) -> int:
    lower = [column.lower() for column in columns]
    return sum(
        2 if column in columns else bool(get_close_matches(column.lower(), lower, n=1, cutoff=0.6))
        for column in one.required
    )
