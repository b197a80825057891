"""The hours of a day, put together where demand is alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from epd_opt.instance import HOURS, Instance, RequestClass, Workload
from epd_opt.instance.workload import mean_of_day

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """Hours that are planned for together.

    Attributes
    ----------
    hours : tuple of int
        Each begins at so many hours after midnight.
    most, mean : Mapping[str, float]
        The largest, and the mean, factor on the rate of each class over them.
    """

    hours: tuple[int, ...]
    most: Mapping[str, float]
    mean: Mapping[str, float]

    @property
    def weight(self) -> float:
        """Share of the day."""
        return len(self.hours) / HOURS

    @property
    def name(self) -> str:
        """As people write them.

        >>> Hours(hours=(0, 1, 2, 7, 22, 23), most={}, mean={}).name
        '00-03, 07-08, 22-24'
        """
        return named(self.hours)


def named(hours: Sequence[int]) -> str:
    """Hours of the day, in ascending order, as people write them.

    >>> named([0, 1, 2, 23])
    '00-03, 23-24'
    """
    runs: list[list[int]] = []
    for hour in hours:
        if runs and runs[-1][1] == hour:
            runs[-1][1] = hour + 1
        else:
            runs.append([hour, hour + 1])
    return ", ".join(f"{start:02d}-{end:02d}" for start, end in runs)


def hours_of(instance: Instance) -> tuple[Hours, ...]:
    """The hours of a day in groups, by their first hour.

    Hours are together where the factors of all classes are equal after they were rounded up to multiples of
    ``workload.hourly_step``. A group is planned for at the largest of its factors, class by class, so at no less than any
    of its hours asks for and at no more than the step above it; energy and cost per request count the mean.
    """
    workload = instance.workload
    profiles = {request.name: workload.profile(request) for request in workload.classes}
    groups: dict[tuple[float, ...], list[int]] = {}
    for hour in range(HOURS):
        key = tuple(_up(profile[hour], workload.hourly_step) for profile in profiles.values())
        groups.setdefault(key, []).append(hour)
    return tuple(
        Hours(
            hours=tuple(hours),
            most={name: max(_at(profile, hours)) for name, profile in profiles.items()},
            mean={name: _mean(_at(profile, hours)) for name, profile in profiles.items()},
        )
        for hours in groups.values()
    )


def _at(profile: Sequence[float], hours: Sequence[int]) -> list[float]:
    return [profile[hour] for hour in hours]


def _mean(factors: Sequence[float]) -> float:
    """Never above the largest, not even by rounding."""
    return min(max(factors), math.fsum(factors) / len(factors))


def _up(factor: float, step: float | None) -> float:
    return math.ceil(factor / step - _ROUNDING) * step if step else factor


def _counted(workload: Workload, request: RequestClass) -> float:
    """Share of what a class is planned for that cost and energy count: its stated mean over the mean of its hours."""
    if request.mean_rate_per_s is None or not request.rate_per_s:
        return 1.0
    return min(1.0, request.mean_rate_per_s / (request.rate_per_s * mean_of_day(workload.profile(request))))


def instance_at(instance: Instance, group: Hours) -> Instance:
    """The instance of some hours alone: the same at all of them."""
    workload = instance.workload
    classes = tuple(
        request.model_copy(
            update={
                "rate_per_s": request.rate_per_s * group.most[request.name],
                "mean_rate_per_s": request.rate_per_s * group.mean[request.name] * _counted(workload, request),
                "hourly": None,
            }
        )
        for request in workload.classes
    )
    alone = workload.model_copy(update={"classes": classes, "profiles": None, "hourly_step": None})
    return instance.model_copy(update={"name": f"{instance.name}, {group.name}", "workload": alone})
