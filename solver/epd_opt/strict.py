"""JSON documents as strict JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

from epd_opt.errors import InvalidInput, Problem


def document_in(data: bytes, file: str, what: str) -> Any:
    """The value of a JSON text.

    Parameters
    ----------
    data : bytes
        The text, in UTF-8.
    file, what : str
        Names of the file and of the kind of document, for complaints.

    Raises
    ------
    InvalidInput
        It is not strict JSON.
    """
    try:
        return json.loads(data, parse_constant=_no_number)
    except RecursionError:
        raise InvalidInput([Problem(file=file, message=f"not a {what}: nested too deeply")]) from None
    except ValueError as error:
        raise InvalidInput([Problem(file=file, message=f"not a {what}: {error}")]) from None


def document_of(path: str | Path, what: str) -> Any:
    """The value of a JSON file; see :func:`document_in`."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InvalidInput([Problem(file=str(path), message=f"not a {what}: {error.strerror}")]) from None
    return document_in(data, str(path), what)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"found {name}, which is no JSON number")
