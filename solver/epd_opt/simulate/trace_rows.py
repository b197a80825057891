"""Rows of a trace as requests."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from epd_opt.fields import shown
from epd_opt.simulate.arrivals import Arrival
from epd_opt.simulate.trace_formats import SECONDS, TimeUnit, TraceFormat

BLOCK_TOKENS = 512
"""Tokens of a prompt block of the Mooncake traces (Qin et al., FAST 2025)."""

_YEAR_2500_S = 1.67e10
_MOST = 1_000_000_000


@dataclass(slots=True)
class Counts:
    """What was seen while reading; complete once a trace has been read to its end.

    Attributes
    ----------
    first_s, last_s : float
        Time of the first request as the trace counts it (dates: since 1970), and of the last one since the first.
    utc_offset_s : float or None
        Of the first row's time zone, 0 where dates have none; None where times are no dates.
    other_zones : bool
        Whether other rows have other time zones.
    """

    rows: int = 0
    without_output: int = 0
    without_prompt: int = 0
    late: int = 0
    latest_s: float = 0.0
    cut_images: int = 0
    whole_seconds: bool = True
    first_s: float = 0.0
    last_s: float = 0.0
    utc_offset_s: float | None = None
    other_zones: bool = False


class BadCell(Exception):
    """A cell that makes no sense."""

    def __init__(self, column: str, message: str, hint: str = "") -> None:
        self.column, self.message, self.hint = column, message, hint


class RowParser:
    """Cells of one row to a :class:`Arrival`.

    Parameters
    ----------
    counts : Counts
        Where left-out rows and the like are counted.
    time_unit, tokens_per_image, prefix_hits
        As of :class:`epd_opt.simulate.traces.Trace`.
    """

    def __init__(
        self,
        form: TraceFormat,
        columns: Sequence[str],
        counts: Counts,
        *,
        time_unit: TimeUnit | None,
        tokens_per_image: float | None,
        prefix_hits: bool,
    ) -> None:
        self.form, self.counts = form, counts
        self.tokens_per_image, self.prefix_hits = tokens_per_image, prefix_hits
        unit = time_unit or form.unit
        self.time: Callable[[Any], float] = self._moment if unit == "iso" else self._seconds
        self.scale = SECONDS.get(unit, 1.0)
        self.has_images = form.images is not None and form.images in columns
        self.has_tokens = form.image_tokens is not None and form.image_tokens in columns
        self.has_sizes = bool(form.image_size) and set(form.image_size) <= set(columns)
        self.cached = next((column for column in form.cached if column in columns and prefix_hits), None)
        self.seen: set[Any] = set()
        self.aware: bool | None = None

    def row(self, cells: Mapping[str, Any]) -> Arrival | None:
        """The request; None where it has no prompt or no output.

        Raises
        ------
        BadCell
            With the column.
        """
        form, counts = self.form, self.counts
        time_s = self.time(cells[form.time])
        text, output = _whole(cells, form.text), _whole(cells, form.output)
        images = _whole(cells, form.images) if self.has_images and form.images else 0
        tokens = self._image_tokens(cells, images)
        if form.text_holds_images and images:
            assert tokens is not None
            counts.cut_images += tokens > text
            tokens = min(tokens, float(text))
            text -= math.floor(tokens)
        cached = self._hits(cells, text + (tokens or 0.0))
        if not output:
            counts.without_output += 1
            return None
        if not text and not images:
            counts.without_prompt += 1
            return None
        return Arrival(
            time_s=time_s,
            class_name=None,
            text_tokens=float(text),
            output_tokens=float(output),
            image_count=images,
            image_tokens=tokens,
            image_sizes=self._sizes(cells, images),
            cached_tokens=cached,
        )

    def _image_tokens(self, cells: Mapping[str, Any], images: int) -> float | None:
        column = self.form.image_tokens
        tokens = _whole(cells, column) if self.has_tokens and column else 0
        if tokens and not images:
            raise BadCell(str(column), f"found {tokens} image tokens in a request without images")
        if not images:
            return 0.0
        if tokens:
            return float(tokens)
        if self.tokens_per_image is not None:
            return images * self.tokens_per_image
        if self.has_tokens and not self.has_sizes:
            raise BadCell(
                str(column), f"found {images} images of 0 tokens", "--image-tokens N states the tokens of an image"
            )
        if self.form.text_holds_images:
            hint = "--image-tokens N states the tokens of an image, which are taken out of the prompt"
            raise BadCell(self.form.text, "counts the tokens of text and images together", hint)
        return None

    def _sizes(self, cells: Mapping[str, Any], images: int) -> tuple[tuple[int, int], ...]:
        if not images or not self.has_sizes:
            return ()
        width, height = self.form.image_size
        size = _whole(cells, width), _whole(cells, height)
        for column, pixels in zip((width, height), size, strict=True):
            if not pixels:
                raise BadCell(column, f"found 0 pixels in a request with {images} images")
        return (size,) * images

    def _hits(self, cells: Mapping[str, Any], prompt: float) -> int | None:
        if self.cached is not None:
            hits = _whole(cells, self.cached)
            if hits > prompt:
                raise BadCell(self.cached, f"found {hits}, expected at most the prompt's {prompt:g} tokens")
            return hits
        if not self.prefix_hits or self.form.blocks is None or self.form.blocks not in cells:
            return None
        blocks = cells[self.form.blocks]
        if not isinstance(blocks, list):
            raise BadCell(self.form.blocks, f"found {shown(blocks)}, expected a list")
        known = next((index for index, block in enumerate(blocks) if block not in self.seen), len(blocks))
        self.seen.update(blocks)
        return int(min(known * BLOCK_TOKENS, prompt))

    def _seconds(self, cell: Any) -> float:
        column = self.form.time
        try:
            seconds = float(cell) * self.scale
        except (TypeError, ValueError):
            hint = ""
            if isinstance(cell, str) and _date(cell) is not None:
                hint = "this is a date: pass --time-unit iso"
            raise BadCell(column, f"found {shown(cell)}, expected a number", hint) from None
        if not math.isfinite(seconds) or seconds < 0:
            raise BadCell(column, f"found {shown(cell)}, expected a finite number, at least 0")
        if seconds > _YEAR_2500_S:
            finer = "ms" if seconds < 1e3 * _YEAR_2500_S else "us"
            raise BadCell(column, f"found {shown(cell)}, beyond the year 2500 in this unit", f"pass --time-unit {finer}")
        counts = self.counts
        counts.whole_seconds = counts.whole_seconds and seconds == int(seconds)
        return seconds

    def _moment(self, cell: Any) -> float:
        moment = _date(cell) if isinstance(cell, str) else None
        if moment is None:
            hint = "for numbers pass --time-unit s, ms or us"
            raise BadCell(self.form.time, f"found {shown(cell)}, expected a date and time as 2023-11-16 18:17:03.97", hint)
        aware = moment.tzinfo is not None
        if self.aware is None:
            self.aware = aware
        if aware != self.aware:
            message = f"found {shown(cell)} {'with' if aware else 'without'} a time zone, unlike the rows above"
            raise BadCell(self.form.time, message)
        moment = moment if aware else moment.replace(tzinfo=UTC)
        self._note_zone(moment)
        self.counts.whole_seconds = False
        return moment.timestamp()

    def _note_zone(self, moment: datetime) -> None:
        offset = moment.utcoffset() or timedelta()
        if self.counts.utc_offset_s is None:
            self.counts.utc_offset_s = offset.total_seconds()
        self.counts.other_zones = self.counts.other_zones or offset.total_seconds() != self.counts.utc_offset_s


def _date(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _whole(cells: Mapping[str, Any], column: str) -> int:
    cell = cells.get(column)
    try:
        if isinstance(cell, bool) or cell is None:
            raise ValueError
        number = int(cell) if isinstance(cell, str) and cell.isdecimal() else float(cell)
        if number > _MOST:
            raise BadCell(column, f"found {shown(cell)}, expected at most {_MOST:,}")
        if number >= 0 and number == int(number):
            return int(number)
    except (TypeError, ValueError):
        pass
    raise BadCell(column, f"found {shown(cell)}, expected a whole number, at least 0")
