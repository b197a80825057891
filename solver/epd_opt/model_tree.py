"""Which part of the schema a location leads to, and the keys it knows."""

from __future__ import annotations

import types
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, RootModel

PartType = type[BaseModel]


def parts_at(root: PartType, location: Sequence[str | int]) -> tuple[PartType, ...]:
    """Parts that may stand at a location; none where a plain value or a free mapping stands there."""
    annotations: tuple[Any, ...] = (root,)
    for key in location:
        if not isinstance(key, int):
            annotations = tuple(below for annotation in annotations for below in _below(annotation, key))
    return tuple(part for annotation in annotations for part in _parts_in(annotation))


def known_keys(parts: Iterable[PartType]) -> list[str]:
    """Keys of the parts, as written in files."""
    keys = [field.alias or name for part in parts for name, field in part.model_fields.items()]
    return list(dict.fromkeys(keys))


def places_of(root: PartType, key: str) -> list[tuple[str, ...]]:
    """Every location of a key in the whole schema, list indices left out."""
    found: list[tuple[str, ...]] = []
    waiting: list[tuple[tuple[str, ...], PartType]] = [((), root)]
    while waiting:
        location, part = waiting.pop(0)
        for name, field in part.model_fields.items():
            here = (*location, field.alias or name)
            if here[-1] == key:
                found.append(here)
            waiting += [(here, inner) for inner in _parts_in(field.annotation)]
    return found


def _below(annotation: Any, key: str) -> tuple[Any, ...]:
    """What may stand under a key: a field of a part, or a value of a mapping with names of the user's."""
    fields = tuple(
        field.annotation
        for part in _parts_in(annotation)
        for name, field in part.model_fields.items()
        if (field.alias or name) == key
    )
    return fields + _named_values(annotation)


def _named_values(annotation: Any) -> tuple[Any, ...]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is dict:
        return (arguments[1],)
    if origin is Annotated:
        return _named_values(arguments[0])
    if origin in (Union, types.UnionType):
        return tuple(value for argument in arguments for value in _named_values(argument))
    return ()


def _parts_in(annotation: Any) -> tuple[PartType, ...]:
    if isinstance(annotation, type) and issubclass(annotation, RootModel):
        return _parts_in(annotation.model_fields["root"].annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return (annotation,)
    origin = get_origin(annotation)
    if origin is Annotated:
        return _parts_in(get_args(annotation)[0])
    if origin in (Union, types.UnionType, tuple, list):
        return tuple(part for argument in get_args(annotation) for part in _parts_in(argument))
    return ()
