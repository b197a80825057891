"""Addressing values of an instance document: ``devices["H100.x"].stock``, ``workload.classes.*.rate_per_s``."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from epd_opt.address import address, format_path, name_of
from epd_opt.errors import InvalidInput, Problem
from epd_opt.fields import Location, shown
from epd_opt.instance import Instance
from epd_opt.model_tree import known_keys, parts_at

Path = tuple[str | int, ...]

_TOKEN = re.compile(
    r"""(?P<dot>\.)?(?P<plain>[^\s.\[\]"'=]+)|\[(?P<index>\d+)\]|\[(?P<double>"(?:[^"\\]|\\.)*")\]|\[(?P<single>'[^']*')\]"""
)


class Wildcard(str):
    """The bare ``*`` of a path: every entry of a list or mapping. A quoted ``["*"]`` is an ordinary key."""

    __slots__ = ()


def parse_path(text: str) -> Path:
    """Split a path into keys, names, list indices and wildcards.

    Examples
    --------
    >>> parse_path('devices["H100.x"].stock')
    ('devices', 'H100.x', 'stock')
    >>> parse_path("workload.classes[0]")
    ('workload', 'classes', 0)

    Raises
    ------
    InvalidInput
        The text is not a path.
    """
    parts, end = _tokens(text)
    if not parts or end < len(text):
        raise InvalidInput([_syntax_problem(text, end)])
    return parts


def split_assignment(text: str) -> tuple[str, str] | None:
    """Path and value of ``PATH=VALUE``; None where there is no ``=`` behind a path.

    >>> split_assignment('devices["a=b"].stock=4')
    ('devices["a=b"].stock', '4')
    """
    _, end = _tokens(text)
    if text[end : end + 1] == "=":
        return text[:end], text[end + 1 :]
    path, equals, value = text.partition("=")
    return (path, value) if equals else None


def get(document: Mapping[str, Any], path: str | Path) -> list[tuple[str, Any]]:
    """Values that a path addresses, each with its own path, free of wildcards.

    Below a wildcard, entries without the value are passed over.

    Raises
    ------
    InvalidInput
        The path names nothing; the nearest names are given.
    """
    return [
        (address(location, document), _value_at(document, location)) for location in locate(document, path, existing=True)
    ]


def set_value(document: Mapping[str, Any], path: str | Path, value: Any) -> dict[str, Any]:
    """A copy of the document with another value at every place that the path addresses.

    A key that the schema knows may be missing so far, and so may the mappings above it; below a wildcard only the last
    key may. Validation of the result decides whether the value is any good.

    Raises
    ------
    InvalidInput
        The path names nothing; the nearest names are given.
    """
    changed: dict[str, Any] = copy.deepcopy(dict(document))
    for location in locate(document, path, existing=False):
        holder: Any = changed
        for key in location[:-1]:
            if isinstance(holder, dict) and not isinstance(holder.get(key), dict | list):
                holder[key] = _opened(holder.get(key))
            holder = holder[key]
        holder[location[-1]] = copy.deepcopy(value)
    return changed


def _value_at(value: Any, location: Location) -> Any:
    for key in location:
        holder: Any = value if isinstance(value, list) else _opened(value)
        value = holder[key]
    return value


def walked(document: Mapping[str, Any], path: str) -> Location:
    """Keys and list indices along a path, with or without a value at its end; as far as it can be followed.

    >>> walked({"devices": [{"sku": "L4"}]}, "devices.L4.price.usd_per_hour")
    ('devices', 0, 'price', 'usd_per_hour')
    >>> walked({"devices": [{"sku": "L4"}]}, "devices.L40S.price")
    ('devices',)
    """
    location: Location = ()
    value: Any = document
    for part in _tokens(path)[0]:
        key: str | int = part
        if isinstance(value, list):
            names = [name_of(entry) for entry in value]
            key = names.index(part) if isinstance(part, str) and names.count(part) == 1 else part
            if not (isinstance(key, int) and key < len(value)):
                break
            value = value[key]
        else:
            value = value.get(part) if isinstance(value, Mapping) else None
        location = (*location, key)
    return location


def locate(document: Mapping[str, Any], path: str | Path, *, existing: bool) -> list[Location]:
    """Keys and list indices of every place that a path addresses; with ``existing``, of those that hold a value."""
    parts = parse_path(path) if isinstance(path, str) else path
    return list(_walk(document, parts, (), document, existing=existing, may_open=not existing))


def _walk(
    value: Any, parts: Path, location: Location, document: Any, *, existing: bool, may_open: bool
) -> Iterator[Location]:
    if not parts:
        yield location
        return
    part, rest = parts[0], parts[1:]
    if isinstance(part, Wildcard):
        yield from _every(value, rest, location, document, existing=existing)
        return
    if isinstance(value, list):
        index = _index_of(value, part, location, document)
        yield from _walk(value[index], rest, (*location, index), document, existing=existing, may_open=may_open)
        return
    key = _key_of(value, part, location, document)
    known = known_keys(parts_at(Instance, location))
    inner = _opened(value).get(key)
    if inner is None:
        if known and key not in known:
            raise _nothing(document, (*location, key), [*_opened(value), *known])
        if existing or (rest and not may_open):
            raise _nothing(document, (*location, key), list(_opened(value)), message="is not given in the instance")
    yield from _walk(inner, rest, (*location, key), document, existing=existing, may_open=may_open)


def _every(value: Any, rest: Path, location: Location, document: Any, *, existing: bool) -> Iterator[Location]:
    keys: Iterable[str | int] = range(len(value)) if isinstance(value, list) else _opened(value)
    found: list[Location] = []
    first: InvalidInput | None = None
    for key in keys:
        try:
            found += _walk(value[key], rest, (*location, key), document, existing=existing, may_open=False)
        except InvalidInput as error:
            first = first or error
    if not found:
        raise first or _nothing(document, (*location, Wildcard("*")), [], message="stands for nothing: there are no entries")
    yield from found


def _index_of(entries: list[Any], part: str | int, location: Location, document: Any) -> int:
    """Which entry of a list is meant, by name or by index."""
    if isinstance(part, int):
        if part < len(entries):
            return part
        raise _nothing(document, (*location, part), [], message=f"names nothing: the list has {len(entries)} entries")
    names = [name_of(entry) for entry in entries]
    if names.count(part) == 1:
        return names.index(part)
    known = [name for name in names if name is not None] or [f"[{index}]" for index in range(len(entries))][:3]
    message = "is the name of several entries" if part in names else "names nothing"
    raise _nothing(document, (*location, part), known, message=message)


def _key_of(value: Any, part: str | int, location: Location, document: Any) -> str:
    """The key that is meant below a mapping, or below what may become one."""
    is_open = value is None or isinstance(value, Mapping) or (isinstance(value, str) and location == ("engine",))
    if not is_open:
        message = f"names nothing: {address(location, document)} is {shown(value)}"
        raise _nothing(document, (*location, part), [], message=message)
    if isinstance(part, int):
        raise _nothing(document, (*location, part), list(_opened(value)))
    return part


def _opened(value: Any) -> dict[str, Any]:
    """A value as the mapping it stands for: an engine's name is short for its settings."""
    if isinstance(value, str):
        return {"name": value}
    return dict(value or {})


def _nothing(document: Any, location: Location, known: list[str], *, message: str = "names nothing") -> InvalidInput:
    known = list(dict.fromkeys(known))
    close = get_close_matches(str(location[-1]), known, n=3, cutoff=0.5)
    path = address(location, document)
    if isinstance(location[-1], Wildcard):
        path = f"{address(location[:-1], document)}.*"
    hint = f"did you mean {' or '.join(close)}?" if close else ""
    if not close and known:
        hint = f"known are {', '.join(known)}"
    return InvalidInput([Problem(path=path, message=message, hint=hint, location=location)])


def _tokens(text: str) -> tuple[Path, int]:
    """Parts of the path that the text opens with, and where it ends."""
    parts: list[str | int] = []
    end = 0
    while match := _TOKEN.match(text, end):
        if match["plain"] and bool(match["dot"]) != bool(parts):
            break
        if match["plain"]:
            parts.append(Wildcard("*") if match["plain"] == "*" else match["plain"])
        elif match["index"]:
            parts.append(int(match["index"]))
        elif match["double"]:
            parts.append(json.loads(match["double"], strict=False))
        else:
            parts.append(match["single"][1:-1])
        end = match.end()
    return tuple(parts), end


def _syntax_problem(text: str, end: int) -> Problem:
    example = format_path(["devices", "H100.x", "stock"])
    return Problem(
        path=text,
        message=f"not a path from character {end + 1} on" if text else "the path is empty",
        hint=f"as in workload.classes.chat.rate_per_s or {example}",
    )
