"""The scenarios of an instance, or the hours of its day, each as an instance of its own."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from epd_opt.address import address
from epd_opt.errors import InvalidInput, Problem, UsageError
from epd_opt.fields import Location, shown
from epd_opt.hours import hours_of, instance_at
from epd_opt.instance import Instance
from epd_opt.paths import Path, get, locate, parse_path, set_value
from epd_opt.scaling import is_number, plain, scalable, scaled

_FACTOR = re.compile(r"x([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
_WORLD = (("cost", "electricity_usd_per_kwh"), ("cost", "pue"))
"""What a scenario may set beside the workload and rents: what the day brings, not what was bought."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A scenario.

    Attributes
    ----------
    weight : float
        Its share of the weights of all scenarios.
    instance : Instance
        The instance with what the scenario sets, without scenarios.
    """

    name: str
    weight: float
    instance: Instance


def cases(instance: Instance) -> tuple[Case, ...]:
    """The scenarios of an instance, sorted by name, or its groups of hours, by the first of them; none where it has none.

    Raises
    ------
    InvalidInput
        A path that a scenario may not set or that names nothing, two that set the same value, or values that make no sense.
    """
    if instance.workload.by_the_hour:
        groups = hours_of(instance)
        return tuple(Case(name=g.name, weight=g.weight, instance=instance_at(instance, g)) for g in groups)
    scenarios = instance.scenarios or ()
    document = instance.document()
    stated = {key: value for key, value in document.items() if key not in ("scenarios", "robust")}
    whole = math.fsum(scenario.weight for scenario in scenarios)
    found: list[Case] = []
    problems: list[Problem] = []
    for index, scenario in enumerate(scenarios):
        own = _Changes(stated=stated, document=document, here=("scenarios", index), name=scenario.name)
        try:
            changed = own.instance(scenario.changes)
            found.append(Case(name=scenario.name, weight=scenario.weight / whole, instance=changed))
        except InvalidInput as error:
            problems += error.problems
    if problems:
        raise InvalidInput(problems)
    return tuple(sorted(found, key=lambda case: case.name))


def hired_entries(instance: Instance) -> frozenset[str]:
    """Device entries whose units are paid by the hour where demand goes by the hour: each hour hires its own."""
    if not instance.workload.by_the_hour:
        return frozenset()
    return frozenset(entry.name for entry in instance.devices if entry.price is not None and entry.price.is_hourly)


def one_case(instance: Instance, scenario: str | None) -> Instance:
    """An instance in one of its scenarios, where one is named; as it is where none is.

    Raises
    ------
    UsageError
        It has no such scenario.
    """
    if scenario is None:
        return instance
    found = {case.name: case.instance for case in cases(instance)}
    if scenario not in found:
        has = f"it has {'; '.join(found)}" if found else "it has none"
        raise UsageError(f"--scenario {scenario}: the instance has no such scenario; {has}")
    return found[scenario].from_origin(instance.origin)


def demand_one_case(instance: Instance, what: str) -> None:
    """Refuse an instance with scenarios for work on one workload.

    Raises
    ------
    UsageError
        It has some; they are named.
    """
    if instance.workload.by_the_hour:
        names = "; ".join(group.name for group in hours_of(instance))
        raise UsageError(
            f"{what} takes one workload, and demand goes by the hour: take some hours with --scenario ({names})"
        )
    if instance.scenarios:
        names = ", ".join(scenario.name for scenario in instance.scenarios)
        raise UsageError(f"{what} takes one workload, and the instance has scenarios: take one with --scenario ({names})")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """What a scenario sets at one place: the key it stands under, and the value."""

    key: str
    location: Location
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class _Changes:
    """One scenario at work: ``stated`` without scenarios, ``document`` with them, ``here`` its own place there."""

    stated: dict[str, Any]
    document: Mapping[str, Any]
    here: Location
    name: str

    def instance(self, given: Mapping[str, Any]) -> Instance:
        changes = [change for key, value in sorted(given.items()) for change in self._changes(key, value)]
        self._demand_apart(changes)
        result, means = self.stated, list(self._means(changes))
        for change in [*means, *changes]:
            result = set_value(result, change.location, change.value)
        try:
            return Instance(**{**result, "name": f"{result['name']}, {self.name}"})
        except InvalidInput as error:
            derived = {change.location for change in means}
            own = [problem for problem in error.problems if problem.location not in derived] or error.problems
            raise InvalidInput(self._blamed(problem, [*changes, *means]) for problem in own) from None

    def _changes(self, key: str, value: Any) -> Iterator[_Change]:
        try:
            path = parse_path(key)
            if not _allowed(path):
                raise self._problem(key, "no scenario may set this", _HINT)
            factor = _FACTOR.fullmatch(value) if isinstance(value, str) else None
            if factor is None:
                yield from (_Change(key=key, location=at, value=value) for at in locate(self.stated, key, existing=False))
                return
            stated = get(self.stated, key)
        except InvalidInput as error:
            raise InvalidInput(self._within(problem, key) for problem in error.problems) from None
        for (_, before), at in zip(stated, locate(self.stated, key, existing=True), strict=True):
            if not scalable(before):
                raise self._problem(key, f"found {value!r} for {shown(before)}, which no factor applies to", "")
            yield _Change(key=key, location=at, value=scaled(before, float(factor[1])))

    def _demand_apart(self, changes: list[_Change]) -> None:
        """Refuse two changes of one place: which came last would depend on the order of keys."""
        for i, one in enumerate(changes):
            for other in changes[:i]:
                shared = min(len(one.location), len(other.location))
                if one.location[:shared] == other.location[:shared]:
                    place = address(max(one.location, other.location, key=len), self.stated)
                    raise self._problem(one.key, f"{place} is set twice, also by {other.key}", "set every value once")

    def _means(self, changes: list[_Change]) -> Iterator[_Change]:
        """Stated mean rates move with the rates of their classes in proportion, unless they are set themselves."""
        taken = {change.location for change in changes}
        for change in changes:
            *owner, last = change.location
            mean_at: Location = (*owner, "mean_rate_per_s")
            if last != "rate_per_s" or mean_at in taken or not is_number(change.value) or change.value < 0:
                continue
            request: Any = self.stated
            for part in owner:
                request = request[part]
            mean, rate = request.get("mean_rate_per_s"), request["rate_per_s"]
            if mean is not None and rate:
                yield replace(change, location=mean_at, value=plain(mean * change.value / rate))

    def _problem(self, key: str, message: str, hint: str) -> InvalidInput:
        location = (*self.here, "set", key)
        return InvalidInput([Problem(path=address(location, self.document), message=message, hint=hint, location=location)])

    def _within(self, problem: Problem, key: str) -> Problem:
        """A complaint about a path of this scenario, placed at its key."""
        if problem.location[: len(self.here)] == self.here:
            return problem
        message = problem.message if problem.path in ("", key) else f"{problem.path} {problem.message}"
        (placed,) = self._problem(key, message, problem.hint).problems
        return placed

    def _blamed(self, problem: Problem, changes: list[_Change]) -> Problem:
        """A complaint about the changed instance, placed at the change that it comes from, or at the scenario."""
        for change in changes:
            if problem.location[: len(change.location)] == change.location:
                deeper = f"{problem.path}: " if len(problem.location) > len(change.location) else ""
                (placed,) = self._problem(change.key, deeper + problem.message, problem.hint).problems
                return placed
        message = f"with what it sets, {problem.path}: {problem.message}"
        return replace(problem, path=address(self.here, self.document), message=message, location=self.here, about_key=False)


_HINT = (
    "what may be set: workload.*, devices.NAME.price.usd_per_hour, cost.electricity_usd_per_kwh, cost.pue; "
    "the fleet is bought once for all"
)


def _allowed(path: Path) -> bool:
    if path[0] == "workload":
        return len(path) > 1
    rent = len(path) == 4 and path[0] == "devices" and path[2:] == ("price", "usd_per_hour")
    return rent or path in _WORLD
