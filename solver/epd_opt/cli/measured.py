"""Files of measurements on the command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from epd_models.measurements import Measurement, MeasurementsError, contradictions, read_measurements
from epd_opt.errors import InvalidInput, Problem

MOST_BYTES = 64 * 2**20
"""Size of a file beyond which it is not one of measurements."""

MOST_WARNINGS = 10
"""Rows that are warned of by name."""


def read_rows(path: str) -> tuple[tuple[Measurement, ...], str]:
    """The rows of a file, or of standard input for ``-``, and the name that messages call it by.

    Raises
    ------
    InvalidInput
        It cannot be read, is no table of measurements, or holds values that cannot be meant.
    """
    name = "<stdin>" if path == "-" else path
    try:
        if path == "-":
            data = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            message = f"is larger than {MOST_BYTES // 2**20} MiB"
            raise InvalidInput([Problem(file=name, message=message, hint="keep the rows of one comparison in one file")])
        return read_measurements(data.decode("utf-8-sig"), file=name), name
    except OSError as error:
        raise InvalidInput([Problem(file=name, message=f"cannot be read: {error.strerror}")]) from None
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 text (byte {error.start})"
        raise InvalidInput([Problem(file=name, message=message, hint="save it as CSV in UTF-8")]) from None
    except MeasurementsError as error:
        raise InvalidInput(
            problem(error.file, one.line, one.message, path=one.column, hint=one.hint) for one in error.complaints
        ) from None


def warn_of_contradictions(name: str, rows: Sequence[Measurement]) -> None:
    """Say on standard error which rows have the setting of an earlier one and quite other times."""
    found = contradictions(rows)
    for line, earlier, column, ratio in found[:MOST_WARNINGS]:
        text = f"{column} is {ratio:.2g} times that of line {earlier}, the same setting; both count"
        click.echo(f"warning: {name}:{line}: {text}", err=True)
    if len(found) > MOST_WARNINGS:
        click.echo(f"warning: {name}: {len(found) - MOST_WARNINGS} more rows like these", err=True)


def problem(file: str, line: int, message: str, *, path: str = "", hint: str = "") -> Problem:
    """A problem at a line of a file."""
    return Problem(file=file, line=line, column=1, path=path, message=message, hint=hint)
