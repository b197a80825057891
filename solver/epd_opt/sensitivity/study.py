"""Studies: how the best plan, its cost and the worth of today's fleet move with the inputs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epd_opt._version import __version__
from epd_opt.backends import backend
from epd_opt.document import PlanDocument
from epd_opt.errors import InvalidInput, Problem, UsageError
from epd_opt.held import Held
from epd_opt.instance import Instance, instance_sha256
from epd_opt.keeping.fleet import Fleet
from epd_opt.pipeline import solve
from epd_opt.plan import Plan
from epd_opt.reading import complaining_in_place, read
from epd_opt.scenario_plan import demand_one_workload
from epd_opt.sensitivity.between import Between
from epd_opt.sensitivity.document import Point, StudyDocument, SwitchPoint, Varied
from epd_opt.sensitivity.executors import Progress, as_they_come, executor_of
from epd_opt.sensitivity.given_rates import at_given_rates
from epd_opt.sensitivity.journal import Journal, study_hash
from epd_opt.sensitivity.lines import Lines, Work, along, answered_line
from epd_opt.sensitivity.point import Answer, Job, failed
from epd_opt.sensitivity.shift import Dimension, dimension, parse_vary, shifted
from epd_opt.sensitivity.switch import TOLERANCE, structure, switch_points

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Study(Held[StudyDocument]):
    """A sensitivity study; shows itself in a terminal (``print``) and in a notebook.

    Attributes
    ----------
    document : StudyDocument
        All of it, as in the JSON document.
    """

    def to_frame(self) -> pd.DataFrame:
        """Points as a table, one row each; needs pandas (``pip install 'epd-opt[plot]'``)."""
        from epd_opt.extras import pandas

        return pandas().DataFrame([_row(point) for point in self.document.points])

    def plot(self) -> Figure:
        """Costs of the best plan and of today's fleet along one dimension, or cost and regret over two; needs matplotlib
        (``pip install 'epd-opt[plot]'``)."""
        from epd_opt.sensitivity.figure import study_figure

        return study_figure(self.document)

    def __str__(self) -> str:
        from epd_opt.sensitivity.view import study_text

        return study_text(self.document)

    def __repr__(self) -> str:
        paths = ", ".join(varied.path for varied in self.document.vary)
        return f"<Study of {self.document.instance!r} along {paths}: {len(self.document.points)} points>"

    def _repr_html_(self) -> str:
        from epd_opt.sensitivity.view import study_html

        return study_html(self.document)


def _row(point: Point) -> dict[str, Any]:
    cost, fleet = point.cost, point.kept_fleet
    return {
        **point.at,
        "status": point.status,
        "found": point.found,
        "usd_per_hour": None if cost is None else cost.usd_per_hour,
        "usd_per_request": None if cost is None else cost.usd_per_request,
        "structure": structure(point.model_dump()),
        "devices": sum(pool.devices for pool in point.pools) if cost is not None else None,
        "kept_feasible": None if fleet is None else fleet.feasible,
        "kept_usd_per_hour": None if fleet is None else fleet.usd_per_hour,
        "regret_usd_per_hour": point.regret_usd_per_hour,
        "breaks": "" if fleet is None else "; ".join(reason.text for reason in fleet.breaks),
    }


@complaining_in_place()
def sensitivity(
    instance: Instance | Mapping[str, Any] | str | Path,
    vary: Mapping[str, Iterable[Any] | str] | Sequence[Dimension],
    *,
    plan: Plan | None = None,
    switches: bool = True,
    tolerance: float = TOLERANCE,
    workers: int = 1,
    executor: Executor | None = None,
    folder: str | Path | None = None,
    progress: Progress | None = None,
) -> Study:
    """Plan an instance again at every point of a grid, and see what today's fleet is worth there.

    Parameters
    ----------
    instance : Instance, mapping or path
        What is planned today.
    vary : mapping or sequence of Dimension
        By path, for one or two paths: values, or what stands behind the path on the command line (``"x0.5:x2:7"``).
    plan : Plan, optional
        Whose fleet is today's; by default the best plan of the instance.
    switches : bool
        Whether to look, along a single dimension of numbers, for the values at which the plan's placements and SKUs change.
    tolerance : float
        Share of the range within which such a value is found.
    workers : int
        Processes that solve points side by side; 1 solves them here.
    executor : concurrent.futures.Executor, optional
        What solves points in place of processes of this machine, such as ``dask.distributed.Client(...).get_executor()``.
    folder : path, optional
        Where points are written as they come (``points.jsonl``); those found there are not solved again.
    progress : callable, optional
        Called with the points done and those there are.

    Raises
    ------
    InvalidInput
        The instance makes no sense, a path names nothing, the objective leaves the rates open, or every point fails.
    UsageError
        Not one or two dimensions, or the folder cannot be written to.
    """
    given = instance if isinstance(instance, Instance) else read(instance)
    backend(given.solver.name)
    at_given_rates(given, "a study")
    if plan is not None:
        demand_one_workload(plan.document)
    document = given.document()
    moved = _dimensions(vary, document)
    today = (solve(given, mends=False) if plan is None else plan).document
    if plan is not None and today.cost is None:
        raise InvalidInput([Problem(path="status", message=f"the plan is {today.status}: it has no fleet")])
    fleet = None if today.cost is None else Fleet.of(today)
    journal = None
    if folder is not None:
        journal = Journal(Path(folder), study_hash(document, {} if fleet is None else fleet.named()))
    try:
        with executor_of(workers, executor) as pool:
            solver = _Points(document, moved, fleet, pool, journal, progress or (lambda done, whole: None))
            grid = [
                dict(zip((m.path for m in moved), at, strict=True)) for at in itertools.product(*(m.values for m in moved))
            ]
            points = solver.solve(grid)
            if all(point["status"] == "failed" for point in points):
                raise InvalidInput([Problem(message=text) for text in dict.fromkeys(point["error"] for point in points)])
            found: list[SwitchPoint] = []
            if switches and len(moved) == 1 and moved[0].numeric:
                path = moved[0].path
                found = switch_points(
                    moved[0],
                    points,
                    lambda values: solver.solve([{path: value} for value in values], keeping=False),
                    tolerance=tolerance,
                )
    finally:
        if journal is not None:
            journal.close()
    return Study(
        StudyDocument(
            instance=given.name,
            vary=[Varied(path=m.path, values=list(m.values), scaled=m.scaled) for m in moved],
            today={} if fleet is None else fleet.named(),
            points=[Point.model_validate(point) for point in points],
            switch_points=found,
            notes=[*_notes(today, plan), *_wide(found)],
            instance_sha256=instance_sha256(given),
            epd_opt=__version__,
        )
    )


def _dimensions(
    vary: Mapping[str, Iterable[Any] | str] | Sequence[Dimension], document: Mapping[str, Any]
) -> list[Dimension]:
    moved = [_moved(path, values, document) for path, values in vary.items()] if isinstance(vary, Mapping) else list(vary)
    if not 1 <= len(moved) <= 2 or len({m.path for m in moved}) < len(moved):
        raise UsageError("a study moves one or two different paths")
    for m in moved:
        for end in {m.values[0], m.values[-1]} if m.ranged else ():
            _takes(document, m, end, [other for other in moved if other is not m])
    return moved


def _takes(document: Mapping[str, Any], moved: Dimension, end: Any, others: Sequence[Dimension]) -> None:
    """Complain about an end of a range that the instance takes at no value of the other dimension: no point can have it."""
    refused: InvalidInput | None = None
    for other in [[(m, value)] for m in others for value in m.values] or [[]]:
        try:
            Instance(**shifted(document, [(moved, end), *other]))
        except InvalidInput as error:
            refused = refused or error
        else:
            return
    assert refused is not None
    raise InvalidInput(replace(problem, file=f"--vary {moved.path}") for problem in refused.problems)


def _wide(found: Sequence[SwitchPoint]) -> list[str]:
    wide = sum(switch.at - switch.below_at > switch.tolerance * (1 + 1e-9) for switch in found)
    if not wide:
        return []
    return [
        f"the ends of {wide} changes of the plan are further apart than asked: points between them failed or are too many"
    ]


def _moved(path: str, values: Iterable[Any] | str, document: Mapping[str, Any]) -> Dimension:
    return parse_vary(f"{path}={values}", document) if isinstance(values, str) else dimension(path, values, document)


def _notes(today: PlanDocument, plan: Plan | None) -> list[str]:
    if today.cost is None:
        return [f"there is no fleet of today to keep: the instance as stated is {today.status}"]
    if plan is None and today.status != "optimal":
        return [f"today's fleet is not proved to be the cheapest (gap {today.cost.gap:.2%})"]
    return []


_SIDE_BY_SIDE = 4
"""Points that are solved at a time at least, so that processes are kept busy; the same for any number of them, so that the
same points are solved."""


class _Points:
    """Solves points of one study, side by side, and keeps them as they come."""

    def __init__(
        self,
        document: Mapping[str, Any],
        moved: Sequence[Dimension],
        fleet: Fleet | None,
        executor: Executor | None,
        journal: Journal | None,
        progress: Progress,
    ) -> None:
        self._document, self._moved, self._fleet = document, moved, fleet
        self._executor, self._journal, self._progress = executor, journal, progress
        self._between = Between(document, moved)
        self._lines = Lines(document, moved)
        self._done = self._whole = 0

    def solve(self, places: Sequence[Mapping[str, Any]], *, keeping: bool = True) -> list[dict[str, Any]]:
        """Points at some places, in their order; ``keeping`` says whether today's fleet is tried there too."""
        self._whole += len(places)
        points: dict[int, dict[str, Any]] = {}
        jobs: dict[int, Job] = {}
        for i, at in enumerate(places):
            try:
                document = shifted(self._document, [(m, at[m.path]) for m in self._moved])
            except InvalidInput as error:
                points[i] = self._came(Answer(point=failed(at, " ".join(str(error).split()))))
                continue
            jobs[i] = self._lines.on(Job(at=dict(at), document=document, fleet=self._fleet if keeping else None))
        both = zip(
            self._between.ranks([job.at for job in jobs.values()]), self._lines.ranks(list(jobs.values())), strict=True
        )
        ranks = dict(zip(jobs, map(sum, both), strict=True))
        while jobs:
            for i, job in list(jobs.items()):
                found = self._between.of(job)
                if found is not None:
                    self._learn(job, found)
                    points[i] = self._came(found, job)
                    del jobs[i]
            ordered = sorted(jobs, key=lambda i: (ranks[i], i))
            wave = [i for n, i in enumerate(ordered) if n < _SIDE_BY_SIDE or ranks[i] == ranks[ordered[0]]]
            for i, answer, done in self._answers({i: jobs.pop(i) for i in wave}):
                points[i] = self._came(answer, done)
        return [points[i] for i in range(len(places))]

    def _answers(self, jobs: Mapping[int, Job]) -> Iterator[tuple[int, Answer, Job | None]]:
        """Points as they come from the folder, or are solved, with what was to be done for them."""
        jobs = {i: self._lines.on(job) for i, job in jobs.items()}
        known = {} if self._journal is None else {i: self._journal.known(job) for i, job in jobs.items()}
        for i, job in jobs.items():
            if (answer := known.get(i)) is not None:
                self._learn(job, answer)
                yield i, answer, None
        lines = [line for line in self._lines.groups(jobs) if any(known.get(i) is None for i in line)]
        for i, answer in self._worked(lines, [[(jobs[i], known.get(i)) for i in line] for line in lines]):
            self._learn(jobs[i], answer)
            yield i, answer, jobs[i]

    def _worked(self, lines: Sequence[Sequence[int]], works: Sequence[Sequence[Work]]) -> Iterator[tuple[int, Answer]]:
        """Answers of the jobs that have none yet."""
        pairs = [list(zip(line, work, strict=True)) for line, work in zip(lines, works, strict=True)]
        left = [[i for i, (_, answer) in pair if answer is None] for pair in pairs]
        if self._executor is None:
            for line, work in zip(left, works, strict=True):
                yield from zip(line, along(work), strict=True)
        else:
            for n, answers in as_they_come(self._executor, answered_line, works, _process_ended):
                yield from zip(left[n], answers, strict=True)

    def _learn(self, job: Job, answer: Answer) -> None:
        self._between.learn(job, answer)
        self._lines.learn(job, answer)

    def _came(self, answer: Answer, job: Job | None = None) -> dict[str, Any]:
        if job is not None and self._journal is not None:
            self._journal.keep(answer, job.made_for)
        self._done += 1
        self._progress(self._done, self._whole)
        return answer.point


def _process_ended(works: Sequence[Work], error: Exception) -> list[Answer]:
    text = f"the process that solved this point ended: {type(error).__name__}: {error}"
    return [Answer(point=failed(job.at, text)) for job, answer in works if answer is None]
