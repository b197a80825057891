"""Files of requests as rows of named cells: CSV or JSON lines, plain or gzip."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

from epd_opt.errors import InvalidInput, Problem
from epd_opt.fields import shown
from epd_opt.simulate.trace_formats import FORMATS

_GZIP = b"\x1f\x8b"

Record = tuple[int, Sequence[str], Mapping[str, Any] | str]
"""Line, columns of the file, and the row: cells by column, or what is wrong with it."""


def records(source: str | Path, file: str) -> Iterator[Record]:
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


def _csv_rows(opening: str, rest: Iterable[str], skipped: int) -> Iterator[Record]:
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


def _json_lines(opening: str, rest: Iterable[str], skipped: int) -> Iterator[Record]:
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
