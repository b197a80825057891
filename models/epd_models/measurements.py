"""MEASUREMENTS.csv: serving runs that somebody measured, read with complaints that say where and what instead."""

from __future__ import annotations

import csv
import difflib
import io
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

REQUIRED = ("model", "dtype", "gpu", "engine", "n_gpu", "tp", "isl", "osl", "concurrency", "ttft_ms", "itl_ms")
"""Columns that a file must have; ``ttft_ms`` and ``itl_ms`` may be empty."""

OPTIONAL = ("engine_version", "pp", "attention_dp", "moe_tp", "moe_ep", "max_sequences", "mode", "quality", "notes")
"""Columns that are understood where they stand; any other column is carried along."""

_DEGREES = ("n_gpu", "tp", "pp", "attention_dp", "moe_tp", "moe_ep", "max_sequences")
_NUMBERS = (*_DEGREES, "isl", "osl", "concurrency", "ttft_ms", "itl_ms")
_SETTING = ("model", "dtype", "gpu", "engine", "engine_version", *_DEGREES, "isl", "osl", "concurrency", "mode")
_SECONDS = {"ttft_ms": 1.0, "itl_ms": 0.2}
"""Milliseconds below which a time is taken to be in seconds: no engine answers that fast."""

_MICROSECONDS = {"ttft_ms": 1e7, "itl_ms": 3e4}
"""Milliseconds above which a time is taken to be in microseconds: nobody waits three hours, or half a minute for a token."""

_SHOWN = 20
"""Complaints about one file before the others are only counted."""

_APART = {"itl_ms": 1.5, "ttft_ms": 2.5}
"""Ratio of two times of the same setting beyond which days do not explain it: a tenth of repeated public runs differ by more
than 1.2 and 1.4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One row of a file.

    Attributes
    ----------
    line : int
        Line in the file, counted from one; the header is line 1.
    cells : Mapping[str, str]
        The row as it stands, by column.
    numbers : Mapping[str, float]
        Numeric cells that hold a number; layout names and ranges such as ``DEP4`` or ``512-1536`` are left out.
    """

    line: int
    cells: Mapping[str, str]
    numbers: Mapping[str, float]

    def text(self, column: str) -> str:
        """A cell; empty where the column is missing."""
        return self.cells.get(column, "")

    def degree(self, column: str) -> int:
        """A parallel degree; 1 where it is empty or 0."""
        return max(1, int(self.numbers.get(column, 1.0)))

    @property
    def ttft_s(self) -> float | None:
        """Measured time to first token, seconds."""
        return _seconds(self.numbers.get("ttft_ms"))

    @property
    def itl_s(self) -> float | None:
        """Measured interval between tokens, seconds."""
        return _seconds(self.numbers.get("itl_ms"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """What is wrong at one place of a file; ``column`` is empty where the row or the header as a whole is meant."""

    line: int
    column: str = ""
    message: str
    hint: str = ""


class MeasurementsError(ValueError):
    """A file of measurements that cannot be meant; all complaints together, as ``file:line: column: message``."""

    def __init__(self, file: str, complaints: Iterable[Complaint]) -> None:
        self.file = file
        self.complaints = tuple(complaints)
        super().__init__("\n".join(_sentence(file, complaint) for complaint in self.complaints))

    def __reduce__(self) -> tuple[type[MeasurementsError], tuple[str, tuple[Complaint, ...]]]:
        return type(self), (self.file, self.complaints)


@dataclass(slots=True)
class _Reading:
    complaints: list[Complaint] = field(default_factory=list)

    def complain(self, line: int, column: str, message: str, hint: str = "") -> None:
        self.complaints.append(Complaint(line=line, column=column, message=message, hint=hint))


def read_measurements(text: str, *, file: str = "MEASUREMENTS.csv") -> tuple[Measurement, ...]:
    """The rows of a file.

    Parameters
    ----------
    text : str
        The file's content.
    file : str
        Its name, for messages.

    Raises
    ------
    MeasurementsError
        A column is missing or given twice, a row has more or fewer cells than the header, a number is negative, zero
        where that has no meaning or not finite, or times that should be milliseconds are seconds or microseconds.

    Examples
    --------
    >>> header = ",".join(REQUIRED)
    >>> [row.line for row in read_measurements(header + "\\nLlama-3.1-8B,fp8,H100-SXM,vllm,1,1,1000,500,8,,\\n")]
    [2]
    """
    reading = _Reading()
    rows: list[Measurement] = []
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(header, reading)
        if not reading.complaints:
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    rows.append(_row(header, cells, reader.line_num, reading))
    except csv.Error as error:
        reading.complain(reader.line_num, "", f"not valid CSV: {error}")
    if not reading.complaints and not rows:
        reading.complain(1, "", "the file has a header and no rows")
    if reading.complaints:
        raise MeasurementsError(file, _first(reading.complaints))
    return tuple(rows)


def _first(complaints: list[Complaint]) -> list[Complaint]:
    if len(complaints) <= _SHOWN:
        return complaints
    more = Complaint(line=complaints[_SHOWN].line, message=f"and {len(complaints) - _SHOWN} more from here on")
    return [*complaints[:_SHOWN], more]


def duplicates(rows: Iterable[Measurement]) -> list[tuple[int, int]]:
    """Lines that say the same as an earlier one in setting and times, with that earlier line."""
    first: dict[tuple[str, ...], int] = {}
    found = []
    for row in rows:
        key = tuple(row.text(column) for column in (*_SETTING, "ttft_ms", "itl_ms"))
        earlier = first.setdefault(key, row.line)
        if earlier != row.line:
            found.append((row.line, earlier))
    return found


def contradictions(rows: Iterable[Measurement]) -> list[tuple[int, int, str, float]]:
    """Lines whose setting an earlier line has with quite other times: both lines, the column and the ratio of its times."""
    first: dict[tuple[str, ...], Measurement] = {}
    found = []
    for row in rows:
        workers = row.text("notes") if row.text("mode") == "disagg" else ""
        earlier = first.setdefault((*(row.text(column) for column in _SETTING), workers), row)
        for column, most in _APART.items():
            if earlier is not row and column in row.numbers and column in earlier.numbers:
                ratio = row.numbers[column] / earlier.numbers[column]
                if not 1.0 / most <= ratio <= most:
                    found.append((row.line, earlier.line, column, ratio))
    return found


def _check_header(header: list[str], reading: _Reading) -> None:
    if not header:
        reading.complain(1, "", "the file is empty; expected a header with " + ", ".join(REQUIRED))
        return
    for separator, word in ((";", "semicolons"), ("\t", "tabs")):
        if len(header) == 1 and separator in header[0]:
            hint = "save it as CSV with commas, and with points in decimal numbers"
            reading.complain(1, "", f"the columns are separated by {word}, expected commas", hint)
            return
    for name in sorted({name for name in header if name and header.count(name) > 1}):
        reading.complain(1, name, f"the column stands {header.count(name)} times")
    missing = [name for name in REQUIRED if name not in header]
    if not missing:
        return
    free = [name for name in header if name not in REQUIRED and name not in OPTIONAL]
    hints = []
    for name in missing:
        near = difflib.get_close_matches(name, free, n=1, cutoff=0.6) or [
            other for other in free if other.removesuffix("_s") == name.removesuffix("_ms")
        ]
        if near:
            unit = ", in milliseconds" if name.endswith("_ms") else ""
            hints.append(f"is {near[0]!r} meant for {name}{unit}?")
    verb = "columns {} are missing" if len(missing) > 1 else "column {} is missing"
    reading.complain(1, "", verb.format(", ".join(missing)), " ".join(hints))


def _row(header: list[str], cells: list[str], line: int, reading: _Reading) -> Measurement:
    if len(cells) != len(header):
        reading.complain(line, "", f"expected {len(header)} cells as in the header, found {len(cells)}")
    named = {name: cell.strip() for name, cell in zip(header, cells, strict=False)}
    numbers = {}
    for column in _NUMBERS:
        cell = named.get(column, "")
        try:
            value = float(cell)
        except ValueError:
            if column in ("ttft_ms", "itl_ms") and cell:
                reading.complain(line, column, f"expected milliseconds, found {cell!r}")
            continue
        allows_zero = column in ("attention_dp", "moe_tp", "moe_ep")
        if not math.isfinite(value) or value < 0.0 or (value == 0.0 and not allows_zero):
            reading.complain(line, column, f"expected a number above 0, found {cell}")
        elif column not in ("ttft_ms", "itl_ms", "concurrency", "isl", "osl") and value != int(value):
            reading.complain(line, column, f"expected a whole number, found {cell}")
        else:
            numbers[column] = value
            _complain_of_units(line, column, value, reading)
    return Measurement(line=line, cells=named, numbers=numbers)


def _complain_of_units(line: int, column: str, value: float, reading: _Reading) -> None:
    if column in _SECONDS and value < _SECONDS[column]:
        hint = "this looks like seconds: multiply by 1000"
    elif column in _MICROSECONDS and value > _MICROSECONDS[column]:
        hint = "this looks like microseconds: divide by 1000"
    else:
        return
    reading.complain(line, column, f"expected milliseconds, found {value:g}", hint)


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1e3


def _sentence(file: str, complaint: Complaint) -> str:
    place = f"{file}:{complaint.line}"
    text = ": ".join(part for part in (place, complaint.column, complaint.message) if part)
    return f"{text} ({complaint.hint})" if complaint.hint else text
