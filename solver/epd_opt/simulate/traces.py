"""Request traces as streams of rows, in a few kilobytes of memory however long the file is."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from epd_opt.errors import InvalidInput, Problem
from epd_opt.simulate.arrivals import Arrival
from epd_opt.simulate.trace_files import records
from epd_opt.simulate.trace_formats import FORMATS, TimeUnit, TraceFormat, detect, what_is_missing
from epd_opt.simulate.trace_rows import BadCell, Counts, RowParser

REORDERED_ROWS = 10_000
"""Rows that may stand later in a file than their time; they are sorted on the way."""

_MOST_PROBLEMS = 10
_DAY_S = 86_400.0


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
                first = self.counts.first_s = row.time_s
            self.counts.last_s = row.time_s - first
            yield row._replace(time_s=row.time_s - first)
        if first is None:
            left = self.counts.without_output + self.counts.without_prompt
            message = f"none of the {left} rows has a prompt and an output" if left else "a header and no rows"
            raise InvalidInput([Problem(file=self.file, line=1, column=1, message=message)])

    @property
    def time_of_day_s(self) -> float | None:
        """Seconds from midnight to the first request, in the time zone of the first row; None where times are no dates."""
        offset = self.counts.utc_offset_s
        return None if offset is None else (self.counts.first_s + offset) % _DAY_S

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
        read = records(self.source, self.file)
        line, columns, wrong = next(read)
        if isinstance(wrong, str):
            raise InvalidInput([Problem(file=self.file, line=line, column=1, message=wrong, hint="one request per line")])
        wanted = None if self.form is None else next(one for one in FORMATS if one.name == self.form)
        self.format = wanted or detect(columns)
        if self.format is None or not set(self.format.required) <= set(columns):
            message, hint = what_is_missing(columns, wanted)
            raise InvalidInput([Problem(file=self.file, line=1, column=1, message=message, hint=hint)])
        parser = RowParser(
            self.format,
            columns,
            self.counts,
            time_unit=self.time_unit,
            tokens_per_image=self.tokens_per_image,
            prefix_hits=self.prefix_hits,
        )
        for line, _, cells in read:
            if isinstance(cells, str):
                yield Problem(file=self.file, line=line, column=1, message=cells)
                continue
            try:
                row = parser.row(cells)
            except BadCell as bad:
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
