"""Request traces as streams of rows, in a few kilobytes of memory however long the file is."""

from __future__ import annotations

import csv
import gzip
import heapq
import io
import json
import math
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, cast

from epd_opt.errors import InvalidInput, Problem
from epd_opt.fields import shown
from epd_opt.simulate.arrivals import Arrival
from epd_opt.simulate.trace_formats import FORMATS, SECONDS, TimeUnit, TraceFormat, detect, what_is_missing

REORDERED_ROWS = 10_000
"""Rows that may stand later in a file than their time; they are sorted on the way."""

BLOCK_TOKENS = 512
"""Tokens of a prompt block of the Mooncake traces (Qin et al., FAST 2025)."""

_MOST_PROBLEMS = 10
_GZIP = b"\x1f\x8b"
_YEAR_2500_S = 1.67e10
_MOST = 1_000_000_000


@dataclass(slots=True)
class Counts:
    """What was seen while reading; complete once a trace has been read to its end."""

    rows: int = 0
    without_output: int = 0
    without_prompt: int = 0
    late: int = 0
    latest_s: float = 0.0
    cut_images: int = 0
    whole_seconds: bool = True
    last_s: float = 0.0


@dataclass(slots=True, kw_only=True)
class Trace:
    """A file of requests; iterating reads it anew, row by row in order of time.

    Parameters
    ----------
    source : str or Path
        CSV with a header, or JSON lines; plain or gzip. ``-`` is standard input, which can be read once.
    form : str, optional
        Name of the format, in place of what the columns say.
    time_unit : str, optional
        Unit of the times, in place of the format's.
    tokens_per_image : float, optional
        Tokens of one image, for traces that give images without their tokens.
    prefix_hits : bool
        Whether to take the hits of a prefix cache, as a column states them or as they follow from block identifiers in an
        unlimited cache (which keeps every identifier in memory). Otherwise ``cached_tokens`` is None in every arrival.

    Raises
    ------
    InvalidInput
        While iterating: the file is empty or broken, a column is missing, or rows make no sense; up to ten problems
        with their lines.
    """

    source: str | Path
    form: str | None = None
    time_unit: TimeUnit | None = None
    tokens_per_image: float | None = None
    prefix_hits: bool = False
    counts: Counts = field(default_factory=Counts, init=False)
    format: TraceFormat | None = field(default=None, init=False)

    @property
    def file(self) -> str:
        """The name as messages give it."""
        return "<stdin>" if str(self.source) == "-" else str(self.source)

    def __iter__(self) -> Iterator[Arrival]:
        if str(self.source) == "-" and self.format is not None:
            hint = "write it to a file, which can be read from its beginning again"
            raise InvalidInput([Problem(file=self.file, message="standard input can be read once", hint=hint)])
        self.counts = Counts()
        first: float | None = None
        for row in _in_order(self._parsed(), self.file, self.counts):
            if first is None:
                first = row.time_s
            self.counts.last_s = row.time_s - first
            yield row._replace(time_s=row.time_s - first)
        if first is None:
            left = self.counts.without_output + self.counts.without_prompt
            message = f"none of the {left} rows has a prompt and an output" if left else "a header and no rows"
            raise InvalidInput([Problem(file=self.file, line=1, column=1, message=message)])

    def notes(self) -> list[str]:
        """What a reader should know of the rows read so far, one sentence each."""
        counts = self.counts
        notes = []
        if counts.without_output:
            notes.append(f"{self.file}: left out {_rows(counts.without_output)} without output tokens (failed requests)")
        if counts.without_prompt:
            notes.append(f"{self.file}: left out {_rows(counts.without_prompt)} without prompt tokens")
        if counts.late:
            notes.append(f"{self.file}: sorted {_rows(counts.late)} that stood up to {counts.latest_s:g} s late in the file")
        if counts.cut_images:
            notes.append(
                f"{self.file}: in {_rows(counts.cut_images)} the whole prompt is shorter than "
                f"{self.tokens_per_image:g} tokens per image; their images take all of it"
            )
        if counts.rows >= 100 and counts.whole_seconds and counts.last_s > 30.0 * counts.rows:
            notes.append(
                f"{self.file}: one request every {counts.last_s / counts.rows:.0f} s, all at whole seconds; "
                "if these are milliseconds, pass --time-unit ms"
            )
        return notes

    def _parsed(self) -> Iterator[Arrival | Problem]:
        records = _records(self.source, self.file)
        line, columns, wrong = next(records)
        if isinstance(wrong, str):
            raise InvalidInput([Problem(file=self.file, line=line, column=1, message=wrong, hint="one request per line")])
        wanted = None if self.form is None else next(one for one in FORMATS if one.name == self.form)
        self.format = wanted or detect(columns)
        if self.format is None or not set(self.format.required) <= set(columns):
            message, hint = what_is_missing(columns, wanted)
            raise InvalidInput([Problem(file=self.file, line=1, column=1, message=message, hint=hint)])
        parser = _Parser(self, self.format, columns)
        for line, _, cells in records:
            if isinstance(cells, str):
                yield Problem(file=self.file, line=line, column=1, message=cells)
                continue
            try:
                row = parser.row(cells)
            except _BadCell as bad:
                yield Problem(file=self.file, line=line, column=1, path=bad.column, message=bad.message, hint=bad.hint)
                continue
            if row is not None:
                yield row


def merged(traces: Sequence[Trace]) -> Iterator[Arrival]:
    """Traces laid over one another from their first arrivals, up to the end of the one that ends first."""
    streams = [iter(trace) for trace in traces]
    heads = [(next(stream), index) for index, stream in enumerate(streams)]
    heapq.heapify(heads)
    while True:
        row, index = heads[0]
        yield row
        following = next(streams[index], None)
        if following is None:
            return
        heapq.heapreplace(heads, (following, index))


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _in_order(items: Iterable[Arrival | Problem], file: str, counts: Counts) -> Iterator[Arrival]:
    """Rows sorted within a moving window; problems are gathered, and end the stream once there are many or no more."""
    waiting: list[tuple[float, int, Arrival]] = []
    problems: list[Problem] = []
    newest = released = -math.inf
    for item in items:
        if isinstance(item, Problem):
            problems.append(item)
            if len(problems) == _MOST_PROBLEMS:
                break
            continue
        if problems:
            continue
        counts.rows += 1
        if item.time_s < newest:
            counts.late += 1
            counts.latest_s = max(counts.latest_s, newest - item.time_s)
        newest = max(newest, item.time_s)
        if item.time_s < released:
            message = f"not sorted by time: a request arrives {newest - item.time_s:g} s before rows far above it"
            raise InvalidInput([Problem(file=file, message=message, hint="sort the file by its time column")])
        heapq.heappush(waiting, (item.time_s, counts.rows, item))
        if len(waiting) > REORDERED_ROWS:
            released, _, row = heapq.heappop(waiting)
            yield row
    if problems:
        if len(problems) == _MOST_PROBLEMS:
            last = problems[-1]
            problems[-1] = Problem(
                file=last.file,
                line=last.line,
                column=1,
                path=last.path,
                message=f"{last.message}; rows below are not looked at",
                hint=last.hint,
            )
        raise InvalidInput(problems)
    yield from (row for _, _, row in sorted(waiting))


class _BadCell(Exception):
    def __init__(self, column: str, message: str, hint: str = "") -> None:
        self.column, self.message, self.hint = column, message, hint


class _Parser:
    """Cells of one row to a :class:`Arrival`."""

    def __init__(self, trace: Trace, form: TraceFormat, columns: Sequence[str]) -> None:
        self.trace, self.form = trace, form
        unit = trace.time_unit or form.unit
        self.time: Callable[[Any], float] = self._moment if unit == "iso" else self._seconds
        self.scale = SECONDS.get(unit, 1.0)
        self.has_images = form.images is not None and form.images in columns
        self.has_tokens = form.image_tokens is not None and form.image_tokens in columns
        self.has_sizes = bool(form.image_size) and set(form.image_size) <= set(columns)
        self.cached = next((column for column in form.cached if column in columns and trace.prefix_hits), None)
        self.seen: set[Any] = set()
        self.aware: bool | None = None

    def row(self, cells: Mapping[str, Any]) -> Arrival | None:
        form, counts = self.form, self.trace.counts
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
            raise _BadCell(str(column), f"found {tokens} image tokens in a request without images")
        if not images:
            return 0.0
        if tokens:
            return float(tokens)
        if self.trace.tokens_per_image is not None:
            return images * self.trace.tokens_per_image
        if self.has_tokens and not self.has_sizes:
            raise _BadCell(
                str(column), f"found {images} images of 0 tokens", "--image-tokens N states the tokens of an image"
            )
        if self.form.text_holds_images:
            hint = "--image-tokens N states the tokens of an image, which are taken out of the prompt"
            raise _BadCell(self.form.text, "counts the tokens of text and images together", hint)
        return None

    def _sizes(self, cells: Mapping[str, Any], images: int) -> tuple[tuple[int, int], ...]:
        if not images or not self.has_sizes:
            return ()
        width, height = self.form.image_size
        size = _whole(cells, width), _whole(cells, height)
        for column, pixels in zip((width, height), size, strict=True):
            if not pixels:
                raise _BadCell(column, f"found 0 pixels in a request with {images} images")
        return (size,) * images

    def _hits(self, cells: Mapping[str, Any], prompt: float) -> int | None:
        if self.cached is not None:
            hits = _whole(cells, self.cached)
            if hits > prompt:
                raise _BadCell(self.cached, f"found {hits}, expected at most the prompt's {prompt:g} tokens")
            return hits
        if not self.trace.prefix_hits or self.form.blocks is None or self.form.blocks not in cells:
            return None
        blocks = cells[self.form.blocks]
        if not isinstance(blocks, list):
            raise _BadCell(self.form.blocks, f"found {shown(blocks)}, expected a list")
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
            raise _BadCell(column, f"found {shown(cell)}, expected a number", hint) from None
        if not math.isfinite(seconds) or seconds < 0:
            raise _BadCell(column, f"found {shown(cell)}, expected a finite number, at least 0")
        if seconds > _YEAR_2500_S:
            finer = "ms" if seconds < 1e3 * _YEAR_2500_S else "us"
            raise _BadCell(column, f"found {shown(cell)}, beyond the year 2500 in this unit", f"pass --time-unit {finer}")
        counts = self.trace.counts
        counts.whole_seconds = counts.whole_seconds and seconds == int(seconds)
        return seconds

    def _moment(self, cell: Any) -> float:
        moment = _date(cell) if isinstance(cell, str) else None
        if moment is None:
            hint = "for numbers pass --time-unit s, ms or us"
            raise _BadCell(self.form.time, f"found {shown(cell)}, expected a date and time as 2023-11-16 18:17:03.97", hint)
        aware = moment.tzinfo is not None
        if self.aware is None:
            self.aware = aware
        if aware != self.aware:
            message = f"found {shown(cell)} {'with' if aware else 'without'} a time zone, unlike the rows above"
            raise _BadCell(self.form.time, message)
        self.trace.counts.whole_seconds = False
        return (moment if aware else moment.replace(tzinfo=UTC)).timestamp()


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
            raise _BadCell(column, f"found {shown(cell)}, expected at most {_MOST:,}")
        if number >= 0 and number == int(number):
            return int(number)
    except (TypeError, ValueError):
        pass
    raise _BadCell(column, f"found {shown(cell)}, expected a whole number, at least 0")


_Record = tuple[int, Sequence[str], Mapping[str, Any] | str]
"""Line, columns of the file, and the row: cells by column, or what is wrong with it."""


def _records(source: str | Path, file: str) -> Iterator[_Record]:
    """The header first (with no cells), then the rows."""
    line = 0
    try:
        with _opened(source) as binary:
            compressed = binary.peek(2)[:2] == _GZIP
            stream = cast(IO[bytes], gzip.GzipFile(fileobj=binary) if compressed else binary)
            with io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
                opening = text.readline()
                while opening.strip() == "" and opening:
                    line += 1
                    opening = text.readline()
                if not opening:
                    message = f"empty, expected {', '.join(FORMATS[0].required)} or the columns of another format"
                    raise InvalidInput([Problem(file=file, line=1, column=1, message=message)])
                read = _json_lines if opening.lstrip().startswith("{") else _csv_rows
                for record in read(opening, text, line):
                    line = record[0]
                    yield record
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        message = f"the compressed data break off or are damaged ({str(error).rstrip('.').lower()})"
        raise InvalidInput([Problem(file=file, line=line + 1, column=1, message=message, hint="fetch it again")]) from None
    except UnicodeDecodeError as error:
        message = f"byte 0x{error.object[error.start]:02x} is not UTF-8: expected CSV or JSON lines, plain or gzip"
        raise InvalidInput([Problem(file=file, line=line + 1, column=1, message=message)]) from None
    except OSError as error:
        message = error.strerror or str(error)
        raise InvalidInput([Problem(file=file, message=f"cannot be read: {message}")]) from None


def _opened(source: str | Path) -> io.BufferedReader:
    if str(source) == "-":
        return io.BufferedReader(sys.stdin.buffer)  # type: ignore[arg-type]
    return open(source, "rb")


def _csv_rows(opening: str, rest: Iterable[str], skipped: int) -> Iterator[_Record]:
    def lines() -> Iterator[str]:
        yield opening
        yield from rest

    reader = csv.reader(lines(), strict=True)
    try:
        columns = [name.strip() for name in next(reader)]
        yield skipped + reader.line_num, columns, {}
        repeated = [name for name in columns if columns.count(name) > 1]
        if repeated:
            yield skipped + 1, columns, f"the column {repeated[0]} stands {columns.count(repeated[0])} times"
            return
        for cells in reader:
            if not cells:
                continue
            line = skipped + reader.line_num
            if len(cells) != len(columns):
                yield line, columns, f"expected {len(columns)} cells as in the header, found {len(cells)}"
            else:
                yield line, columns, dict(zip(columns, cells, strict=True))
    except csv.Error as error:
        yield skipped + reader.line_num, [], f"not valid CSV: {error}"


def _json_lines(opening: str, rest: Iterable[str], skipped: int) -> Iterator[_Record]:
    columns: list[str] | None = None
    for line, text in enumerate(_with(opening, rest), start=skipped + 1):
        if not text.strip():
            continue
        try:
            value = json.loads(text)
        except ValueError as error:
            value = str(error)
        if not isinstance(value, dict):
            yield line, columns or [], f"not a JSON object: {value if isinstance(value, str) else shown(value)}"
            continue
        if columns is None:
            columns = list(value)
            yield line, columns, {}
        yield line, columns, {**dict.fromkeys(columns), **value}


def _with(opening: str, rest: Iterable[str]) -> Iterator[str]:
    yield opening
    yield from rest
