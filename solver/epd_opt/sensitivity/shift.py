"""Moving values of an instance: the dimensions of a study and the documents at its points."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from epd_opt.errors import InvalidInput, Problem, UsageError
from epd_opt.fields import shown
from epd_opt.instance import Instance
from epd_opt.paths import get, locate, parse_path, set_value, split_assignment
from epd_opt.scaling import is_number, plain, scalable, scaled
from epd_opt.source import parse

STEPS = 7
"""Points of a range that names no number of its own."""
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE = re.compile(rf"(x?)({_NUMBER}):(x?)({_NUMBER})(?::([^:]*))?")
_FACTOR = re.compile(rf"x({_NUMBER})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """Values at a path that move together.

    Attributes
    ----------
    values : tuple
        What they are set to, in order; factors on what the instance states where ``scaled``.
    whole : bool
        Whether whole numbers alone are meant: the instance takes no others at the path, or it counts images.
    ranged : bool
        Whether the values span a range.
    """

    path: str
    values: tuple[Any, ...]
    scaled: bool = False
    whole: bool = False
    ranged: bool = False

    @property
    def numeric(self) -> bool:
        """Whether all values are numbers."""
        return all(is_number(value) for value in self.values)


def parse_vary(text: str, document: Mapping[str, Any]) -> Dimension:
    """``PATH=LOW:HIGH[:STEPS]`` or ``PATH=a,b,c``; numbers with a leading ``x`` are factors.

    A range has its ends and points at equal distances between them; where the instance takes whole numbers only, and for
    counts of images, the whole numbers nearest to those. Values of a list are read as ``--set`` reads them.

    Raises
    ------
    InvalidInput, UsageError
        The path names nothing, or the text is neither of these.
    """
    assignment = split_assignment(text)
    if assignment is None:
        raise UsageError(
            f"--vary {text}: expected PATH=LOW:HIGH[:STEPS] or PATH=VALUE,VALUE,..., as in devices.L4.stock=0:8:5"
        )
    path, values = assignment
    found = _RANGE.fullmatch(values.strip())
    if found is None:
        return _listed(path, values, document)
    steps_text = found[5]
    if bool(found[1]) != bool(found[3]):
        raise UsageError(f"--vary {text}: both ends are factors (x0.5:x2), or none is")
    try:
        steps = STEPS if steps_text is None else int(steps_text)
    except ValueError:
        steps = 0
    if steps < 2:
        raise UsageError(f"--vary {text}: found {steps_text!r} steps, expected a whole number of at least 2")
    low, high = float(found[2]), float(found[4])
    if not low < high:
        raise UsageError(f"--vary {text}: expected the lower end first")
    spaced = _between(low, high, steps)
    if not found[1] and _counts(path):
        spaced = [round(value) for value in spaced]
    return replace(dimension(path, spaced, document, scaled=bool(found[1])), ranged=True)


def _counts(path: str) -> bool:
    """Whether a path addresses counts, of images, of which the instance takes means as well."""
    return parse_path(path)[-1] == "count"


def _between(low: float, high: float, steps: int) -> list[int | float]:
    return [plain(low + (high - low) * i / (steps - 1)) for i in range(steps)]


def _listed(path: str, text: str, document: Mapping[str, Any]) -> Dimension:
    parts = [part.strip() for part in text.split(",")]
    factors = [_FACTOR.fullmatch(part) for part in parts]
    if all(factors):
        return dimension(path, [plain(float(found[1])) for found in factors if found], document, scaled=True)
    parsed = parse(f"[{text}]", f"--vary {path}")
    if parsed.problems:
        raise InvalidInput(parsed.problems)
    return dimension(path, parsed.value, document)


def dimension(path: str, values: Iterable[Any], document: Mapping[str, Any], *, scaled: bool = False) -> Dimension:
    """A dimension of a study of an instance.

    Raises
    ------
    InvalidInput, UsageError
        The path names nothing in the document, or there is nothing to scale, or there are no values.
    """
    stated = get(document, path) if scaled else []
    for address, value in stated:
        if not scalable(value):
            message = f"found {shown(value)}, which no factor applies to"
            raise InvalidInput([Problem(file=f"--vary {path}", path=address, message=message)])
    locate(document, path, existing=False)
    unique: list[Any] = []
    for given in values:
        value = given.item() if hasattr(given, "item") else given
        value = plain(value) if isinstance(value, float) else value
        if value not in unique:
            unique.append(value)
    if not unique:
        raise UsageError(f"--vary {path}: expected at least one value")
    moved = Dimension(path=path, values=tuple(unique), scaled=scaled)
    if not moved.numeric:
        _check_texts(path, unique, document)
        return moved
    whole = _whole_only(moved, document)
    whole |= not scaled and _counts(path) and all(isinstance(value, int) for value in unique)
    if whole and not scaled:
        unique = list(dict.fromkeys(round(value) for value in unique))
    return Dimension(path=path, values=tuple(unique), scaled=scaled, whole=whole)


def _check_texts(path: str, values: Iterable[Any], document: Mapping[str, Any]) -> None:
    """Refuse texts where a number is stated, such as a range that is none."""
    for address, stated in get(document, path):
        text = next((value for value in values if isinstance(value, str)), None)
        if text is not None and isinstance(stated, (int, float)) and not isinstance(stated, bool):
            message = f"found {shown(text)}; expected numbers, low:high or low:high:points, all finite"
            raise InvalidInput([Problem(file=f"--vary {path}", path=address, message=message)])


def _whole_only(moved: Dimension, document: Mapping[str, Any]) -> bool:
    """Whether the instance refuses fractions at a path whose nearest whole numbers it takes."""
    values = [value for _, value in get(document, moved.path)] if moved.scaled else moved.values
    if not all(is_number(value) for value in values):
        return False
    top = max(int(value) for value in values) + 1

    def takes(value: float) -> bool:
        try:
            Instance(**set_value(document, moved.path, value))
        except InvalidInput:
            return False
        return True

    return takes(top) and not takes(top - 0.5)


def shifted(document: Mapping[str, Any], at: Sequence[tuple[Dimension, Any]]) -> dict[str, Any]:
    """The document at a point.

    A shift of ``rate_per_s`` moves a stated ``mean_rate_per_s`` of the same class in proportion.

    Raises
    ------
    InvalidInput
        The path names nothing.
    """
    result = dict(document)
    for moved, value in at:
        for address, to in list(_targets(result, moved, value)):
            if address.endswith(".rate_per_s"):
                result = _with_mean(result, address, to)
            result = set_value(result, address, to)
    return result


def _targets(document: Mapping[str, Any], moved: Dimension, value: Any) -> Iterator[tuple[str, Any]]:
    if not moved.scaled:
        rates = get(document, moved.path) if parse_path(moved.path)[-1] == "rate_per_s" else [(moved.path, None)]
        yield from ((address, value) for address, _ in rates)
        return
    for address, stated in get(document, moved.path):
        to = scaled(stated, value)
        yield address, round(to) if moved.whole else to


def _with_mean(document: dict[str, Any], address: str, to: Any) -> dict[str, Any]:
    owner = address.removesuffix(".rate_per_s")
    (_, request), *_ = get(document, owner)
    mean, rate = request.get("mean_rate_per_s"), request["rate_per_s"]
    if mean is None or not is_number(to) or not rate:
        return document
    return set_value(document, f"{owner}.mean_rate_per_s", plain(mean * to / rate))
