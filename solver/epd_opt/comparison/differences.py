"""Where documents differ, path by path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from epd_opt.address import format_path, name_of

Parts = tuple[str | int, ...]


class Absent:
    """Stands for a value that a document does not have; ``null`` is a value."""


ABSENT = Absent()


def differences(documents: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Any]]]:
    """Paths whose values are not the same in all documents, with the value in each (:data:`ABSENT` where it has none).

    Entries of lists are told by their names, so their order does not count; what only some documents have is reported
    whole, at its top.

    Examples
    --------
    >>> differences([{"devices": [{"sku": "A", "stock": 4}]}, {"devices": [{"sku": "A", "stock": 8}]}])
    [('devices.A.stock', [4, 8])]
    """
    return [(format_path(parts), values) for parts, values in _walk((), list(documents))]


def _walk(parts: Parts, values: list[Any]) -> Iterator[tuple[Parts, list[Any]]]:
    if all(type(value) is not Absent and value == values[0] for value in values[1:]) and values[0] is not ABSENT:
        return
    opened = [_opened(value) for value in values]
    if any(one is None for one in opened):
        yield parts, values
        return
    mappings = [one for one in opened if one is not None]
    for key in sorted({key for one in mappings for key in one}):
        yield from _walk((*parts, key), [one.get(key, ABSENT) for one in mappings])


def _opened(value: Any) -> Mapping[str, Any] | None:
    """A mapping, or a list of named entries as one; None for anything else."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, list) and value:
        names = [name_of(entry) for entry in value]
        if None not in names and len(set(names)) == len(names):
            return {str(name): entry for name, entry in zip(names, value, strict=True)}
    return None
