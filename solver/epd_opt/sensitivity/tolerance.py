"""How far each input of a plan may move by itself before the bought fleet no longer serves everything within its targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epd_opt.address import format_path
from epd_opt.backends import OutOfTime
from epd_opt.document import PlanDocument, Reason
from epd_opt.errors import InvalidInput, Problem
from epd_opt.held import Held
from epd_opt.instance import Instance, RequestClass
from epd_opt.keeping.breaks import breaks
from epd_opt.keeping.fleet import Fleet, Kept, kept
from epd_opt.paths import get
from epd_opt.plan import Plan
from epd_opt.resolve import Resolved, resolve
from epd_opt.scaling import plain, scaled
from epd_opt.scenario_plan import demand_one_workload, in_scenario
from epd_opt.sensitivity.document import Shift, Tolerance, ToleranceDocument
from epd_opt.sensitivity.executors import executor_of, in_order
from epd_opt.sensitivity.point import clocked
from epd_opt.sensitivity.shift import Dimension, shifted

PRECISION = 0.005
"""Relative width to which an edge is found."""
FARTHEST = 64.0
"""Factor up to which an input is moved; beyond, it counts as free to move."""


class ToleranceReport(Held[ToleranceDocument]):
    """Tolerances of a plan; shows itself in a terminal (``print``) and in a notebook.

    Attributes
    ----------
    document : ToleranceDocument
        All of it, as in the JSON document.
    """

    def __str__(self) -> str:
        from epd_opt.sensitivity.view import tolerance_text

        return tolerance_text(self.document)

    def __repr__(self) -> str:
        return f"<Tolerances of {self.document.instance!r}: {len(self.document.inputs)} inputs>"

    def _repr_html_(self) -> str:
        from epd_opt.sensitivity.view import tolerance_html

        return tolerance_html(self.document)


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """An input of the workload that moves.

    Attributes
    ----------
    value : Any
        What the instance states; None for several inputs together.
    floor : float
        Lowest factor that makes sense.
    count : int or None
        The value, where it moves in whole steps.
    """

    path: str
    value: Any
    floor: float
    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One input of one plan; it can be sent to another process."""

    document: dict[str, Any]
    cards: Mapping[str, Any]
    multiple: float
    fleet: Fleet
    moved: Input


def tolerance(
    plan: Plan | Mapping[str, Any] | str | Path,
    *,
    scenario: str | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ToleranceReport:
    """Move each main input of a plan up and down until its fleet breaks a target or a limit.

    Inputs are every class's rate, text, output and images, and all rates together. The fleet keeps its replicas per
    placement, device and cut; operating points and routing are free at every step. An edge is found by bisection to
    :data:`PRECISION`, images by whole ones: the fleet serves everything at the factor given, and does not at the factor
    at which it breaks. That it serves everything between the plan and the edge is taken for granted.

    Parameters
    ----------
    scenario : str, optional
        Of a plan for several scenarios, the one that inputs move away from; all of the fleet serves it.
    workers, executor, progress
        As of :func:`epd_opt.sensitivity.study.sensitivity`; an input at a time.

    Raises
    ------
    InvalidInput
        Not a plan, or a plan without a fleet.
    UsageError
        A plan for several scenarios, and none of them is named, or one that it has not.
    """
    whole = (plan if isinstance(plan, Plan) else Plan.load(plan)).document
    if scenario is None:
        demand_one_workload(whole)
    document = whole if scenario is None else in_scenario(whole, scenario)
    if document.cost is None:
        raise InvalidInput([Problem(path="status", message=f"the plan is {document.status}: it has no fleet")])
    fleet = Fleet.of(whole)
    stated = Instance(**document.instance_document)
    works = [
        Work(document=stated.document(), cards=document.cards, multiple=document.multiple, fleet=fleet, moved=moved)
        for moved in _inputs(stated, sized=any(pool.provenance != "measured" for pool in document.pools))
    ]
    with executor_of(workers, executor) as pool:
        found = in_order(pool, tolerance_of, works, progress)
    return ToleranceReport(
        ToleranceDocument(
            instance=document.instance,
            fleet=fleet.named(),
            precision=PRECISION,
            inputs=found,
            notes=_notes(document),
        )
    )


def _notes(document: PlanDocument) -> list[str]:
    notes = []
    if document.multiple != 1.0:
        notes.append(f"factors on rates are on what the plan serves, {document.multiple:g} times the stated rates")
    if any(pool.provenance == "measured" for pool in document.pools):
        notes.append("what measured workers serve does not depend on sizes: they were measured at those of the instance")
    return notes


def _inputs(instance: Instance, *, sized: bool) -> Iterator[Input]:
    """Rates, and where the times of some pool depend on them, sizes."""
    document = instance.document()
    classes = [request for request in instance.workload.classes if request.rate_per_s > 0]
    if len(classes) > 1:
        yield Input(path="workload.classes.*.rate_per_s", value=None, floor=0.0)
    for request in classes:
        for key, floor in _floors(request):
            if key != ("rate_per_s",) and not sized:
                continue
            path = format_path(["workload", "classes", request.name, *key])
            ((_, value),) = get(document, path)
            whole = key == ("images", "count") and isinstance(value, int)
            yield Input(path=path, value=value, floor=floor, count=value if whole else None)


def _floors(request: RequestClass) -> Iterator[tuple[tuple[str, ...], float]]:
    """Inputs of a class, each with the lowest factor that makes sense: rates and images may vanish, a prompt has a token
    beyond its cached ones, and an answer a token."""
    yield ("rate_per_s",), 0.0
    text = request.text_tokens.distribution()
    if text.mean > request.cached_tokens + 1.0:
        yield ("text_tokens",), (request.cached_tokens + 1.0) / text.mean
    if request.output_tokens is not None:
        output = request.output_tokens.distribution()
        if output.values[0] > 1.0:
            yield ("output_tokens",), 1.0 / output.values[0]
    if request.has_images:
        yield ("images", "count"), 0.0


def tolerance_of(work: Work) -> Tolerance:
    """How far one input moves, up and down."""
    trial = _Trial(work)
    return Tolerance(path=work.moved.path, value=work.moved.value, up=_up(trial), down=_down(trial))


class _Trial:
    """The kept fleet at factors on one input."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self._found: dict[float, Kept] = {}

    def serves(self, factor: float) -> bool:
        """Whether the fleet serves everything at a factor; not where it was not found out in time."""
        if factor not in self._found:
            resolved = self._resolved(factor)
            try:
                self._found[factor] = kept(self.work.fleet, resolved, clocked(resolved))
            except OutOfTime:
                self._found[factor] = Kept(feasible=None)
        return self._found[factor].feasible is True

    def breaks(self, factor: float) -> list[Reason]:
        """What breaks at a factor."""
        found = self._found[factor]
        resolved = self._resolved(factor)
        if found.feasible is None:
            return [
                Reason(limit="time_limit", text="the time limit passed before it was clear whether the fleet serves this")
            ]
        return breaks(self.work.fleet, resolved, found, clocked(resolved))

    def _resolved(self, factor: float) -> Resolved:
        moved = Dimension(path=self.work.moved.path, values=(factor,), scaled=True, whole=self.work.moved.count is not None)
        changed = Instance(**shifted(self.work.document, [(moved, factor)]))
        return resolve(changed, cards=self.work.cards).at(self.work.multiple)

    def middle(self, low: float, high: float) -> float | None:
        """A factor between two; None where they are close enough."""
        count = self.work.moved.count
        if count is not None:
            between = round((low + high) * count) // 2
            return between / count if low < between / count < high else None
        return None if high - low <= PRECISION * max(1.0, low) else plain((low + high) / 2.0)

    def shift(self, factor: float, beyond: float | None) -> Shift:
        """The edge between a factor at which the fleet serves and one at which it does not (None: there is none)."""
        value = self.work.moved.value
        return Shift(
            factor=factor,
            value=None if value is None else scaled(value, factor),
            unlimited=beyond is None,
            breaks_at=beyond,
            breaks=[] if beyond is None else self.breaks(beyond),
        )

    def nowhere(self) -> Shift:
        """The fleet does not serve even what the plan was made for."""
        return Shift(factor=None, value=None, unlimited=False, breaks_at=1.0, breaks=self.breaks(1.0))


def _up(trial: _Trial) -> Shift:
    if not trial.serves(1.0):
        return trial.nowhere()
    good, bad = 1.0, 2.0
    while trial.serves(bad):
        good, bad = bad, 2.0 * bad
        if bad > FARTHEST:
            return trial.shift(good, None)
    while (middle := trial.middle(good, bad)) is not None:
        good, bad = (middle, bad) if trial.serves(middle) else (good, middle)
    return trial.shift(good, bad)


def _down(trial: _Trial) -> Shift:
    if not trial.serves(1.0):
        return trial.nowhere()
    bad, good = trial.work.moved.floor, 1.0
    if trial.serves(bad):
        return trial.shift(bad, None)
    while (middle := trial.middle(bad, good)) is not None:
        bad, good = (bad, middle) if trial.serves(middle) else (middle, good)
    return trial.shift(good, bad)
