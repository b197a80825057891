"""Card files on disk: which there are, by what names they go, and their content as plain data."""

from __future__ import annotations

import copy
import datetime
import difflib
from functools import cache
from pathlib import Path
from typing import Any

from epd_models.catalog.errors import CardError, UnknownCard

_ROOT = Path(__file__).parent
_FOLDERS = {
    "device": "devices",
    "model": "models",
    "engine": "engines",
    "coefficients": "coefficients",
    "tariff": "tariffs",
}
_HEAD_KEYS = ("sku", "name", "aliases")


def names(kind: str) -> list[str]:
    """Names of all cards of a kind, in the order of their files."""
    return list(_index(kind)[0])


def card(kind: str, name: str) -> dict[str, Any]:
    """The content of a card found by its name or an alias, whatever the case, as a copy the caller may change.

    Raises
    ------
    UnknownCard
        No card is called so.
    """
    return copy.deepcopy(_content(_path(kind, name)))


def canonical_name(kind: str, name: str) -> str:
    """The name proper of a card that may be asked for by an alias."""
    found = _index(kind)[1].get(name.strip().casefold())
    if found is None:
        raise UnknownCard(name, kind, _nearest(kind, name))
    return found


def load(path: Path) -> dict[str, Any]:
    """A YAML file as plain data that JSON can hold; dates become text.

    Raises
    ------
    CardError
        The file is not YAML, or not a mapping.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        content = YAML(typ="safe", pure=False).load(path.read_text(encoding="utf-8"))
    except YAMLError as error:
        raise CardError(str(path), f"not valid YAML: {error}") from error
    if not isinstance(content, dict):
        raise CardError(str(path), f"expected a mapping at the top, found {type(content).__name__}")
    plain: dict[str, Any] = _plain(content)
    return plain


def _path(kind: str, name: str) -> Path:
    return _index(kind)[0][canonical_name(kind, name)]


@cache
def _content(path: Path) -> dict[str, Any]:
    return load(path)


@cache
def _index(kind: str) -> tuple[dict[str, Path], dict[str, str]]:
    """Card names to files, and case-folded names and aliases to card names, from the head of each file alone."""
    paths: dict[str, Path] = {}
    by_name: dict[str, str] = {}
    for path in sorted((_ROOT / _FOLDERS[kind]).glob("*.yaml")):
        head = _head(path)
        name = str(head.get("sku") or head.get("name"))
        paths[name] = path
        for alias in (name, *head.get("aliases", ())):
            other = by_name.setdefault(alias.casefold(), name)
            if other != name:
                raise CardError(str(path), f"{alias!r} already names the {kind} card {other}")
    return paths, by_name


def _head(path: Path) -> dict[str, Any]:
    """The first keys of a card (name and aliases), read without parsing the rest."""
    lines: list[str] = []
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line[:1].isalpha() and line.split(":", 1)[0] not in _HEAD_KEYS:
                break
            lines.append(line)
    from ruamel.yaml import YAML

    head: dict[str, Any] = YAML(typ="safe", pure=False).load("".join(lines))
    return head


def _nearest(kind: str, name: str) -> list[str]:
    known = _index(kind)[1]
    close = difflib.get_close_matches(name.strip().casefold(), list(known), n=6, cutoff=0.5)
    return list(dict.fromkeys(known[key] for key in close))[:3]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value
