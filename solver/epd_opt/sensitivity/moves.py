"""Lists of single moves of an instance, each solved anew, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epd_opt.backends import backend
from epd_opt.explain import plan_or_instance
from epd_opt.instance import Instance
from epd_opt.paths import set_value
from epd_opt.plan import Plan
from epd_opt.sensitivity.document import Point
from epd_opt.sensitivity.executors import Progress, as_they_come, executor_of
from epd_opt.sensitivity.given_rates import at_given_rates
from epd_opt.sensitivity.point import Job, failed, solved
from epd_opt.sensitivity.switch import structure

Source = Plan | Instance | Mapping[str, Any] | str | Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What is moved.

    Attributes
    ----------
    document : dict
        The instance, with the gap that is asked for.
    cards : Mapping or None
        Of the plan that it was taken from, in place of the catalogue's.
    plan : Plan or None
        That plan.
    """

    instance: Instance
    document: dict[str, Any]
    cards: Mapping[str, Any] | None
    plan: Plan | None

    @classmethod
    def of(cls, source: Source, what: str, gap: float | None = None) -> Given:
        """From an instance, or from a plan, which holds one.

        Raises
        ------
        InvalidInput
            It is neither, or its objective leaves the rates open.
        """
        given = plan_or_instance(source)
        plan = given if isinstance(given, Plan) else None
        instance = Instance(**given.document.instance_document) if isinstance(given, Plan) else given
        at_given_rates(instance, what)
        backend(instance.solver.name)
        document = instance.document()
        return cls(
            instance=instance,
            document=document if gap is None else set_value(document, "solver.gap", gap),
            cards=None if plan is None else plan.document.cards,
            plan=plan,
        )


def all_solved(jobs: Sequence[Job], workers: int, executor: Executor | None, progress: Progress | None) -> list[Point]:
    """The points of some jobs, in their order; one that fails fails alone."""
    points: dict[int, Point] = {}
    with executor_of(workers, executor) as pool:
        for i, point in as_they_come(pool, solved, jobs, _ended):
            points[i] = Point.model_validate(point)
            if progress is not None:
                progress(len(points), len(jobs))
    return [points[i] for i in range(len(jobs))]


def _ended(job: Job, error: Exception) -> dict[str, Any]:
    return failed(job.at, f"the process that solved this ended: {type(error).__name__}: {error}")


def fleet_of(point: Point) -> str:
    """Placements on SKUs of a point's plan, or why it has none, in words."""
    if point.error is not None:
        return f"failed: {point.error}"
    if point.cost is None and point.reasons:
        return f"{point.status}: {point.reasons[0].text}"
    return structure(point.model_dump()) or point.status
