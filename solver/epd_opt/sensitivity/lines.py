"""Points of a study that differ in rates alone: a line.

Operating points hold at any flow; which of them are worth offering depends on how large pools may become. Those that are
made for one demand do for less of it too, so all points of a line share the ones that are made for its largest demand, and
for others a third of it apart. With the same candidates everywhere on a line a fleet that serves some demand serves less as
well, for no more: what is proved of the least cost at a point holds wherever there is more of every class.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from epd_opt.errors import EpdError
from epd_opt.sensitivity.between import bisected
from epd_opt.sensitivity.point import Answer, Job, answered
from epd_opt.sensitivity.rates import Rates, rates_of, unrated
from epd_opt.sensitivity.shift import Dimension, shifted

SPAN = 3.0
"""Operating points made for some rates do for others down to such a part of them."""
_MANY = 8
"""Lines from which each is worked on as a whole by one process, which makes its operating points once."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A point that is known: its rates with their means, and what was found."""

    flows: Rates
    point: Mapping[str, Any]


class Lines:
    """The lines of a study, and what is known along them.

    Parameters
    ----------
    document : mapping
        The instance as stated.
    moved : sequence of Dimension
        The study's.
    """

    def __init__(self, document: Mapping[str, Any], moved: Sequence[Dimension]) -> None:
        self._document, self._moved = document, moved
        self._rated = [m for m in moved if m.numeric and _rates_alone(document, m)]
        self._made_for = _shared(document, self._rated)
        self._known: dict[tuple[Any, ...], list[_Place]] = {}

    def on(self, job: Job) -> Job:
        """A job with what it shares with others of its line, and the nearest of those that are known."""
        if not self._rated:
            return job
        job = replace(job, made_for=self._anchors(job))
        known = self._known.get(self.of(job), []) if job.made_for else []
        return _beside(job, known)

    def learn(self, job: Job, answer: Answer) -> None:
        """Take note of a point."""
        if job.made_for and answer.point["cost"] is not None:
            self._known.setdefault(self.of(job), []).append(_Place(_flows(job.document), answer.point))

    def of(self, job: Job) -> tuple[Any, ...]:
        """What tells a job's line from others: all but its rates."""
        others = (repr(job.at[m.path]) for m in self._moved if m not in self._rated)
        return (*others, job.made_for)

    def ranks(self, jobs: Sequence[Job]) -> list[int]:
        """In which order points of a few lines are worth knowing: along each dimension of rates the ends first, then the
        middle, and so on. Many lines are worked on side by side, each in that order."""
        if len({self.of(job) for job in jobs}) >= _MANY:
            return [0] * len(jobs)
        return _ranks(jobs, [m.path for m in self._rated])

    def groups(self, jobs: Mapping[int, Job]) -> list[list[int]]:
        """Which of some jobs are for one process: those of a line, where there are many lines."""
        lines: dict[tuple[Any, ...], list[int]] = {}
        for i, job in jobs.items():
            lines.setdefault(self.of(job), []).append(i)
        if not self._rated or len(lines) < _MANY:
            return [[i] for i in jobs]
        order = dict(zip(jobs, _ranks(list(jobs.values()), [m.path for m in self._rated]), strict=True))
        return [sorted(line, key=lambda i: (order[i], i)) for line in lines.values()]

    def _anchors(self, job: Job) -> tuple[Rates, ...]:
        """What the operating points of a job's line are made for; the stated rates among them where nothing but rates is
        other than stated, so that today's fleet finds its own points."""
        rates, stated = rates_of(job.document), rates_of(self._document)
        shared = self._made_for.get(_flowing(rates), ())
        if not shared:
            return ()
        most = [max(each) for each in zip(*shared, strict=True)]
        within = all(low / SPAN <= value <= high for value, low, high in zip(stated, shared[-1], most, strict=True))
        if within and _flowing(stated) == _flowing(rates) and unrated(job.document) == unrated(self._document):
            shared = (*dict.fromkeys((*shared, stated)),)
        return shared if any(_covers(one, rates) for one in shared) else (*shared, rates)


Work = tuple[Job, Answer | None]
"""A point of a line, and its answer where that is known already."""


def along(works: Sequence[Work]) -> Iterator[Answer]:
    """Points of one line that are not known, each with what those before it say, known ones among them."""
    known: list[_Place] = []
    for job, answer in works:
        found = answered(_beside(job, known)) if answer is None else answer
        if job.made_for and found.point["cost"] is not None:
            known.append(_Place(_flows(job.document), found.point))
        if answer is None:
            yield found


def answered_line(works: Sequence[Work]) -> list[Answer]:
    """The same at once, for other processes."""
    return list(along(works))


def _beside(job: Job, known: Sequence[_Place]) -> Job:
    """A job with the known points of its line that say most: one with less demand, and one with more."""
    flows = _flows(job.document)
    below = [one.point for one in known if all(a <= b for a, b in zip(one.flows, flows, strict=True))]
    above = [one.point for one in known if all(a >= b for a, b in zip(one.flows, flows, strict=True))]
    if job.below is not None:
        below.append(job.below)
    if job.above is not None:
        above.append(job.above)
    return replace(
        job,
        below=max(below, key=lambda point: point["cost"]["bound_usd_per_hour"], default=None),
        above=min(above, key=lambda point: point["cost"]["usd_per_hour"], default=None),
    )


def _ranks(jobs: Sequence[Job], paths: Sequence[str]) -> list[int]:
    result = [0] * len(jobs)
    for path in paths:
        values = sorted({float(job.at[path]) for job in jobs})
        rank = dict(zip(values, bisected(len(values)), strict=True))
        result = [before + rank[float(job.at[path])] for before, job in zip(result, jobs, strict=True)]
    return result


def _flows(document: Mapping[str, Any]) -> Rates:
    """Rates and mean rates, by which points with more of every class are told."""
    rates = rates_of(document)
    stated = [request.get("mean_rate_per_s") for request in document["workload"]["classes"]]
    return (*rates, *(rate if mean is None else float(mean) for rate, mean in zip(rates, stated, strict=True)))


def _flowing(rates: Rates) -> tuple[bool, ...]:
    return tuple(rate > 0.0 for rate in rates)


def _covers(one: Rates, other: Rates) -> bool:
    """Whether operating points made for some rates do for others."""
    return all(b / SPAN <= a * (1 + 1e-9) and a <= b * (1 + 1e-9) for a, b in zip(other, one, strict=True))


def _rates_alone(document: Mapping[str, Any], m: Dimension) -> bool:
    """Whether a dimension moves rates alone."""
    try:
        return all(unrated(shifted(document, [(m, value)])) == unrated(document) for value in m.values)
    except (EpdError, TypeError, ValueError):
        return False


def _shared(document: Mapping[str, Any], rated: Sequence[Dimension]) -> dict[tuple[bool, ...], tuple[Rates, ...]]:
    """For the classes that flow at some points, the rates that operating points are made for, the largest first; nothing
    where there would be as many as there are points."""
    if not rated:
        return {}
    found: dict[tuple[bool, ...], set[Rates]] = {}
    for values in itertools.product(*(m.values for m in rated)):
        rates = rates_of(shifted(document, list(zip(rated, values, strict=True))))
        found.setdefault(_flowing(rates), set()).add(rates)
    result = {}
    for flowing, points in found.items():
        chosen: list[Rates] = []
        for rates in sorted(points, key=lambda rates: (-sum(rates), rates)):
            if not any(_covers(one, rates) for one in chosen):
                chosen.append(rates)
        if len(chosen) < len(points):
            result[flowing] = tuple(chosen)
    return result
