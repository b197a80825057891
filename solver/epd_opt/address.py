"""Addresses of values as people read them: ``workload.classes.album.images.count``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

_PLAIN = re.compile(r"[^\s.\[\]\"'*=]+")


def format_path(parts: Iterable[str | int]) -> str:
    """Join keys; those that a dotted path cannot hold are quoted in brackets, list indices are bracketed.

    >>> format_path(["devices", "H100.x", "stock"])
    'devices["H100.x"].stock'
    >>> format_path(["workload", "classes", 0])
    'workload.classes[0]'
    """
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part, ensure_ascii=False)}]"
    return text


def name_of(entry: object) -> str | None:
    """The name by which an entry of a list is addressed: its ``name``, or the SKU of a nameless device."""
    if not isinstance(entry, Mapping):
        return None
    name = entry.get("name", entry.get("sku"))
    return name if isinstance(name, str) and name else None


def address(location: Sequence[str | int], document: object) -> str:
    """The path of a location, with the names of list entries in place of indices wherever they are unique.

    >>> address(("devices", 0, "stock"), {"devices": [{"sku": "L4"}]})
    'devices.L4.stock'
    """
    parts: list[str | int] = []
    value = document
    for key in location:
        part: str | int = key
        if isinstance(value, Sequence) and not isinstance(value, str) and isinstance(key, int):
            entries = list(value)
            value = entries[key] if key < len(entries) else None
            name = name_of(value)
            if name is not None and sum(name_of(entry) == name for entry in entries) == 1:
                part = name
        elif isinstance(value, Mapping):
            value = value.get(key)
        else:
            value = None
        parts.append(part)
    return format_path(parts)
