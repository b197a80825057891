"""YAML 1.2 and JSON text as plain values, with the position of every key and value."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from epd_opt.address import address
from epd_opt.errors import InvalidInput, Problem
from epd_opt.fields import Location, shown

ALIASED_VALUES = 10_000
"""Most values that aliases may add to a document: far above any instance, far below what fills the memory."""

_TAG = "tag:yaml.org,2002:"

Position = tuple[int, int]


@dataclass(slots=True, kw_only=True)
class Source:
    """A parsed text: its value, where everything stands (line and column from one), and what broke its syntax."""

    file: str
    value: Any = None
    keys: dict[Location, Position] = field(default_factory=dict)
    values: dict[Location, Position] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    @classmethod
    def of_mapping(cls, value: Mapping[str, Any]) -> Self:
        """A source without text."""
        source = cls(file="", value=_plain(value))
        source.problems += [
            Problem(path=address(location, value), message=f"found the key {shown(location[-1])}, expected a text")
            for location in _odd_keys(value, ())
        ]
        return source

    def place(self, problem: Problem) -> Problem:
        """The problem with its position: that of the value or key, or of the nearest thing around it."""
        location = problem.location
        position = (self.keys if problem.about_key else self.values).get(location)
        while position is None and location:
            location = location[:-1]
            position = self.keys.get(location) or self.values.get(location)
        if position is None:
            return replace(problem, file=self.file)
        return replace(problem, file=self.file, line=position[0], column=position[1])


def parse(text: str | bytes, file: str, *, empty_is_null: bool = False) -> Source:
    """Parse a text.

    Raises
    ------
    InvalidInput
        The text is no YAML at all. What leaves the rest readable (repeated keys and the like) is listed in the
        ``problems`` of the result.
    """
    characters = _without_tabs_in_json(_decode(text, file) if isinstance(text, bytes) else text).removeprefix("\ufeff")
    _demand_yaml_1_2(characters, file)
    source = Source(file=file)
    try:
        node = YAML(typ="safe", pure=True).compose(io.StringIO(characters))
        if node is not None:
            source.value = _Builder(source).build(node, ())
    except ReaderError as error:
        raise InvalidInput([_unprintable(characters, error, file)]) from None
    except MarkedYAMLError as error:
        raise InvalidInput([_syntax(error, file)]) from None
    except RecursionError:
        raise InvalidInput([Problem(file=file, line=1, column=1, message="nested too deeply")]) from None
    except (YAMLError, ValueError) as error:
        raise InvalidInput([Problem(file=file, line=1, column=1, message=f"not YAML: {error}")]) from None
    if node is None and not empty_is_null:
        raise InvalidInput([Problem(file=file, line=1, column=1, message="the file is empty, expected a mapping")])
    source.problems = [replace(problem, path=address(problem.location, source.value)) for problem in source.problems]
    return source


class _Builder:
    """Turns composed nodes into values, noting positions."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._open: list[Node] = []
        self._built: set[int] = set()
        self._aliased = 0

    def build(self, node: Node, location: Location) -> Any:
        """The value of a node."""
        if any(node is outer for outer in self._open):
            self._stop(node, location, "the anchor contains itself")
        is_alias = id(node) in self._built
        self._aliased += is_alias
        if self._aliased > ALIASED_VALUES:
            self._stop(node, location, f"aliases add more than {ALIASED_VALUES} values")
        self._built.add(id(node))
        self._open.append(node)
        try:
            self.source.values.setdefault(location, _position(node))
            if isinstance(node, MappingNode):
                return self._mapping(node, location)
            if isinstance(node, SequenceNode):
                return [self.build(item, (*location, index)) for index, item in enumerate(node.value)]
            return self._scalar(node, location)
        finally:
            self._open.pop()

    def _mapping(self, node: MappingNode, location: Location) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _TAG + "merge":
                for key, value in self._merge(value_node, location).items():
                    merged.setdefault(key, value)
                continue
            key = self._key(key_node, location)
            here = (*location, key)
            if key in own:
                line, column = self.source.keys[here]
                self._note(key_node, here, f"the key is repeated, first at line {line}, column {column}", "keep one")
                continue
            self.source.keys[here] = _position(key_node)
            self.source.values[here] = _value_position(key_node, value_node)
            own[key] = self.build(value_node, here)
        return {**{key: value for key, value in merged.items() if key not in own}, **own}

    def _merge(self, node: Node, location: Location) -> dict[str, Any]:
        if isinstance(node, SequenceNode):
            merged: dict[str, Any] = {}
            for item in node.value:
                for key, value in self._merge(item, location).items():
                    merged.setdefault(key, value)
            return merged
        if not isinstance(node, MappingNode):
            self._note(node, location, "<< merges mappings only")
            return {}
        value = self.build(node, location)
        return value if isinstance(value, dict) else {}

    def _key(self, node: Node, location: Location) -> str:
        if isinstance(node, ScalarNode) and node.tag in (_TAG + "str", _TAG + "timestamp"):
            return _joined_surrogates(node.value)
        text = node.value if isinstance(node, ScalarNode) else "..."
        found = text or "an empty key" if isinstance(node, ScalarNode) else "a list or mapping"
        self._note(node, (*location, text), f"found {found} as a key, expected a text", f'put it in quotes: "{text}"')
        return text

    def _scalar(self, node: Node, location: Location) -> Any:
        kind, text = str(node.tag).removeprefix(_TAG), node.value
        try:
            if kind in ("str", "timestamp"):
                return _joined_surrogates(text)
            if kind == "null":
                return None
            if kind == "bool":
                return text.lower() == "true"
            if kind == "int":
                return _integer(text)
            if kind == "float":
                return _float(text)
        except ValueError:
            self._note(node, location, f"{shown(text)} cannot be read as a number")
            return None
        self._note(node, location, f"found the tag {shown(str(node.tag))}, expected a plain value", "leave the tag out")
        return text

    def _note(self, node: Node, location: Location, message: str, hint: str = "") -> None:
        line, column = _position(node)
        self.source.problems.append(
            Problem(file=self.source.file, line=line, column=column, message=message, hint=hint, location=location)
        )

    def _stop(self, node: Node, location: Location, message: str) -> None:
        self._note(node, location, message)
        raise InvalidInput(self.source.problems)


def _position(node: Node) -> Position:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _value_position(key: Node, value: Node) -> Position:
    """Of a value, or of its key where it starts on a later line or is empty."""
    is_empty = isinstance(value, ScalarNode) and value.value == "" and not value.style
    starts_later = value.start_mark.line != key.start_mark.line
    return _position(key if is_empty or starts_later else value)


def _integer(text: str) -> int:
    plain = text.replace("_", "")
    sign, digits = (plain[0], plain[1:]) if plain[:1] in "+-" else ("", plain)
    base = {"0x": 16, "0o": 8, "0b": 2}.get(digits[:2].lower(), 10)
    return int(sign + digits, base)


def _float(text: str) -> float:
    plain = text.replace("_", "").lower()
    if plain.lstrip("+-") in (".inf", ".nan"):
        return float(plain.replace(".", ""))
    return float(plain)


def _joined_surrogates(text: str) -> str:
    """JSON escapes characters beyond the basic plane as two surrogates."""
    if not any("\ud800" <= character <= "\udfff" for character in text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _decode(raw: bytes, file: str) -> str:
    try:
        return raw.decode("utf-16") if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8", "replace")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        message = f"byte 0x{raw[error.start]:02x} is not UTF-8: expected a text file"
        raise InvalidInput([Problem(file=file, line=line, column=column, message=message)]) from None


def _demand_yaml_1_2(text: str, file: str) -> None:
    """YAML 1.1 reads ``no``, ``010`` and ``1:30`` in ways that nobody means here."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("%YAML") and "1.2" not in line:
            message = f"found {shown(line.strip())}, expected YAML 1.2"
            raise InvalidInput([Problem(file=file, line=number, column=1, message=message, hint="remove the line")])
        if line.strip() and not line.startswith(("%", "#")):
            return


def _without_tabs_in_json(text: str) -> str:
    """JSON may be indented with tabs, YAML may not; JSON has none inside its strings."""
    if "\t" not in text or not text.lstrip().startswith("{"):
        return text
    try:
        json.loads(text)
    except ValueError:
        return text
    return text.replace("\t", " ")


def _unprintable(text: str, error: ReaderError, file: str) -> Problem:
    before = text[: error.position]
    message = f"found the control character U+{ord(text[error.position]):04X}: expected a text file"
    return Problem(file=file, line=before.count("\n") + 1, column=len(before) - before.rfind("\n"), message=message)


def _syntax(error: MarkedYAMLError, file: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    message = str(error.problem or error.context or "not YAML")
    hint = str(error.context or "")
    if "'\\t'" in message:
        hint = "indent with spaces, not with tabs"
    elif "another document" in message:
        hint = "one instance per file: remove what follows the line ---"
    elif "mapping values are not allowed" in message:
        hint = "put a text that contains ': ' in quotes"
    line, column = (1, 1) if mark is None else (mark.line + 1, mark.column + 1)
    return Problem(file=file, line=line, column=column, message=f"not YAML: {message}", hint=hint)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _odd_keys(value: Any, location: Location) -> list[Location]:
    """Locations of keys that are no texts."""
    if isinstance(value, Mapping):
        own = [(*location, key) for key in value if not isinstance(key, str)]
        return own + [odd for key, item in value.items() for odd in _odd_keys(item, (*location, key))]
    if isinstance(value, list | tuple):
        return [odd for index, item in enumerate(value) for odd in _odd_keys(item, (*location, index))]
    return []
