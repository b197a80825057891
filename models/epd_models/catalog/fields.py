"""Typed, complaining access to the mappings that cards are made of."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping
from typing import Any

from epd_models.catalog.errors import CardError
from epd_models.provenance import Confidence, Provenance

_MISSING: Any = object()


class Fields:
    """One mapping of a card. Every value is asked for by name and type; :meth:`close` refuses what nobody asked for.

    Examples
    --------
    >>> fields = Fields({"layers": 32, "hiden": 4096}, "my-model")
    >>> fields.integer("layers", minimum=1)
    32
    >>> fields.integer("hidden", minimum=1)
    Traceback (most recent call last):
    epd_models.catalog.errors.CardError: my-model: 'hidden' is missing; is 'hiden' meant for it?
    """

    def __init__(self, mapping: object, path: str, *, parent: str = "") -> None:
        self._card = path
        self._parent = parent
        if not isinstance(mapping, Mapping):
            raise CardError(self.path(), f"expected a mapping, found {_describe(mapping)}")
        self._mapping = mapping
        self._asked: set[str] = set()

    def path(self, key: str = "") -> str:
        """Where a key of this mapping stands, for messages."""
        dotted = ".".join(part for part in (self._parent, key) if part)
        return f"{self._card}: {dotted}" if dotted else self._card

    def __contains__(self, key: str) -> bool:
        return self._mapping.get(key) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._mapping)

    def error(self, key: str, message: str) -> CardError:
        """A complaint about one key, to be raised by the caller."""
        return CardError(self.path(key), message)

    def raw(self, key: str, default: Any = _MISSING) -> Any:
        """The value as it stands; a null counts as absent."""
        self._asked.add(key)
        value = self._mapping.get(key)
        if value is not None:
            return value
        if default is not _MISSING:
            return default
        near = [k for k in _nearest(key, self._mapping) if k not in self._asked]
        hint = f"; is {near[0]!r} meant for it?" if near else f"; found {_list(self._mapping)}"
        raise CardError(self.path(), f"{key!r} is missing{hint}")

    def text(self, key: str, default: Any = _MISSING, *, among: tuple[str, ...] | None = None) -> Any:
        """A string, one of ``among`` where given."""
        value = self.raw(key, default)
        if key not in self:
            return value
        if not isinstance(value, str):
            raise self.error(key, f"expected text, found {_describe(value)}")
        if among is not None and value not in among:
            raise self.error(key, f"expected one of {_list(among)}, found {value!r}{_did_you_mean(value, among)}")
        return value

    def number(self, key: str, default: Any = _MISSING, *, minimum: float = 0.0, above: float | None = None) -> Any:
        """A finite number of at least ``minimum``, or above ``above`` where given."""
        value = self.raw(key, default)
        if key not in self:
            return value
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self.error(key, f"expected a number, found {_describe(value)}")
        if above is not None and value <= above:
            raise self.error(key, f"expected a number above {above:g}, found {value:g}")
        if value < minimum:
            raise self.error(key, f"expected at least {minimum:g}, found {value:g}")
        return float(value)

    def integer(self, key: str, default: Any = _MISSING, *, minimum: int = 0) -> Any:
        """A whole number of at least ``minimum``."""
        value = self.number(key, default, minimum=minimum)
        if key not in self:
            return value
        if value != int(value):
            raise self.error(key, f"expected a whole number, found {value:g}")
        return int(value)

    def flag(self, key: str, default: Any = _MISSING) -> Any:
        """True or false."""
        value = self.raw(key, default)
        if key in self and not isinstance(value, bool):
            raise self.error(key, f"expected true or false, found {_describe(value)}")
        return value

    def texts(self, key: str, default: Any = _MISSING, *, among: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """A list of strings."""
        values = self._sequence(key, default)
        for value in values:
            if not isinstance(value, str):
                raise self.error(key, f"expected a list of texts, found {_describe(value)} in it")
            if among is not None and value not in among:
                raise self.error(key, f"{value!r} is not one of {_list(among)}{_did_you_mean(value, among)}")
        return tuple(values)

    def integers(self, key: str, default: Any = _MISSING) -> tuple[int, ...]:
        """A strictly ascending list of positive whole numbers."""
        values = self._sequence(key, default)
        for value in values:
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise self.error(key, f"expected positive whole numbers, found {_describe(value)}")
        if list(values) != sorted(set(values)):
            raise self.error(key, f"expected strictly ascending numbers, found {list(values)}")
        return tuple(values)

    def numbers(self, key: str) -> dict[str, float]:
        """A mapping of names to numbers; empty where absent."""
        child = self.child(key, {})
        return {name: child.number(name) for name in child}

    def child(self, key: str, default: Any = _MISSING) -> Fields:
        """A nested mapping."""
        return Fields(self.raw(key, default), self._card, parent=self.path(key).removeprefix(f"{self._card}: "))

    def children(self, key: str, default: Any = _MISSING) -> list[Fields]:
        """A list of mappings."""
        prefix = self.path(key).removeprefix(f"{self._card}: ")
        values = self._sequence(key, default)
        return [Fields(value, self._card, parent=f"{prefix}[{i}]") for i, value in enumerate(values)]

    def provenance(self, source: str, confidence: Confidence) -> Provenance:
        """The ``source``, ``confidence``, ``date`` and ``note`` that stand beside a group's figures."""
        label = self.text("confidence", None, among=tuple(level.label for level in Confidence))
        return Provenance(
            source=self.text("source", source),
            confidence=confidence if label is None else Confidence.parse(label),
            date=self.text("date", None),
            note=self.text("note", None),
        )

    def close(self) -> None:
        """Refuse keys that no reader asked for."""
        unknown = [key for key in self._mapping if key not in self._asked]
        if unknown:
            key = str(unknown[0])
            hint = _did_you_mean(key, self._asked) or f"; known here: {_list(sorted(self._asked))}"
            raise CardError(self.path(), f"{key!r} is not a key of this mapping{hint}", key)

    def _sequence(self, key: str, default: Any) -> Any:
        value = self.raw(key, default)
        if isinstance(value, str | Mapping) or not hasattr(value, "__iter__"):
            raise self.error(key, f"expected a list, found {_describe(value)}")
        return list(value)


def _describe(value: object) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return repr(value)


def _nearest(name: str, names: object) -> list[str]:
    return difflib.get_close_matches(name, [str(n) for n in names], n=1, cutoff=0.7)  # type: ignore[attr-defined]


def _did_you_mean(name: str, names: object) -> str:
    near = _nearest(name, names)
    return f"; did you mean {near[0]!r}?" if near else ""


def _list(names: object) -> str:
    return ", ".join(str(name) for name in names) or "nothing"  # type: ignore[attr-defined]
