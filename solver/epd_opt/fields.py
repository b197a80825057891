"""Building blocks of the instance's schema: strict numbers, and complaints that say what to do."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from epd_models.dates import latest_day

Location = tuple[str | int, ...]

TAG = "\0"
"""First character of the tags that tell the forms of a value apart: no file can hold it, so locations drop them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """What is wrong at a place below the part that complains."""

    where: Location = ()
    message: str
    hint: str = ""
    about_key: bool = False


def complaint(message: str, hint: str = "") -> PydanticCustomError:
    """An error for use inside validators."""
    return PydanticCustomError("epd_opt", "{message}", {"message": message, "hint": hint})


def shown(value: object) -> str:
    """A value as complaints quote it.

    >>> shown("a"), shown(None), shown({"a": 1}), shown(True), shown(2.0)
    ("'a'", 'nothing', 'a mapping', 'true', '2')
    """
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping | BaseModel):
        return "a mapping"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "a list"
    if isinstance(value, float):
        return f"{value:.12g}"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class Part(BaseModel):
    """A mapping of the instance: frozen, without unknown keys, and with its own sense checks."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    def complaints(self) -> Iterator[Complaint]:
        """Whatever makes no sense in this part although every field by itself is valid."""
        yield from ()

    @model_validator(mode="after")
    def _make_sense(self) -> Self:
        details = [
            InitErrorDetails(type=complaint(found.message, found.hint), loc=found.where, input=None)
            for found in self.complaints()
        ]
        if details:
            raise ValidationError.from_exception_data(type(self).__name__, details)
        return self


_SMALLEST, _LARGEST = 1e-15, 1e15
"""Sizes of numbers that plans can be computed with."""
_FASTEST = 1e8
"""Most requests/s of a class: pools beyond some 1e9 replicas have no exact solution in floating point."""


def _number(value: object) -> float:
    if isinstance(value, str):
        raise complaint(f"found the text {shown(value)}, expected a number", _unquoted(value))
    if isinstance(value, bool) or not isinstance(value, Real):
        raise complaint(f"found {shown(value)}, expected a number")
    if not math.isfinite(value):
        raise complaint(f"found {value}, expected a finite number", "where there is no limit, leave the key out")
    number = float(value)
    if number and not _SMALLEST <= abs(number) <= _LARGEST:
        raise complaint(
            f"found {number:g}, expected 0 or a number from {_SMALLEST:g} to {_LARGEST:g} in size",
            "solvers count with fifteen digits; is the unit the one in the key's name?",
        )
    return number


def _unquoted(text: str) -> str:
    """What to write in place of a text that should have been a number."""
    bare = text.strip().replace("_", "").replace(",", "")
    try:
        number = float(bare)
    except ValueError:
        return "a bare number; the unit is part of the key"
    if not math.isfinite(number):
        return "a finite number; where there is no limit, leave the key out"
    return f"write {bare}, without quotes or separators"


def _whole(value: object) -> int:
    number = _number(value)
    if not number.is_integer():
        raise complaint(f"found {number:g}, expected a whole number")
    return int(number)


def in_key_order(value: Any) -> Any:
    """Free mappings without the order that a file gave their keys."""
    if isinstance(value, Mapping):
        return {key: in_key_order(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [in_key_order(item) for item in value]
    return value


def no_repeats(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Lists in which nothing is said twice."""
    repeated = [value for index, value in enumerate(values) if value in values[:index]]
    if repeated:
        raise complaint(f"{repeated[0]!r} is listed twice", "list every one once")
    return values


def _percentile(value: object) -> float:
    number = _number(value)
    if 0 < number < 1:
        raise complaint(
            f"found {number:g}, expected a percentile from 50 to 99.999",
            f"percentile is in per cent: {number * 100:g}, not {number:g}",
        )
    return number


def _currency(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(r"[A-Z]{3}", value) is None:
        raise complaint(f"found {shown(value)}, expected the three capital letters of a currency, as in EUR")
    return value


def _stated_date(value: object) -> object:
    """A day, a month or a year."""
    text = value.isoformat() if isinstance(value, datetime.date) else str(value) if isinstance(value, int) else value
    if isinstance(text, str) and (not re.fullmatch(r"\d{4}(-\d{2}(-\d{2})?)?", text) or latest_day(text) is None):
        raise complaint(f"found {shown(text)}, expected a date: YYYY-MM-DD, YYYY-MM or YYYY")
    return text


def _day(value: object) -> object:
    text = value.isoformat() if isinstance(value, datetime.date) else value
    if isinstance(text, str):
        try:
            datetime.date.fromisoformat(text)
        except ValueError:
            raise complaint(f"found {shown(text)}, expected a day: YYYY-MM-DD") from None
    return text


Number = Annotated[float, BeforeValidator(_number)]
NonNegative = Annotated[float, Field(ge=0), BeforeValidator(_number)]
RequestRate = Annotated[float, Field(ge=0, le=_FASTEST), BeforeValidator(_number)]
Positive = Annotated[float, Field(gt=0), BeforeValidator(_number)]
Share = Annotated[float, Field(ge=0, le=1), BeforeValidator(_number)]
HalfOpenShare = Annotated[float, Field(ge=0, lt=1), BeforeValidator(_number)]
PositiveShare = Annotated[float, Field(gt=0, le=1), BeforeValidator(_number)]
AtLeastOne = Annotated[float, Field(ge=1), BeforeValidator(_number)]
HoursPerYear = Annotated[float, Field(gt=0, le=8784), BeforeValidator(_number)]
Percentile = Annotated[float, Field(ge=50, le=99.999), BeforeValidator(_percentile)]
Count = Annotated[int, Field(ge=0), BeforeValidator(_whole)]
PositiveCount = Annotated[int, Field(ge=1), BeforeValidator(_whole)]
Currency = Annotated[str, BeforeValidator(_currency), Field(pattern=r"^[A-Z]{3}$")]
StatedDate = Annotated[str, BeforeValidator(_stated_date), Field(pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$")]
Day = Annotated[str, BeforeValidator(_day), Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
Name = Annotated[str, Field(min_length=1)]
Mapped = Annotated[dict[str, Any], AfterValidator(in_key_order)]
