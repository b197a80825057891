"""Tornados: which inputs move the cost of a request most, each moved by itself and solved anew."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

from epd_opt._version import __version__
from epd_opt.errors import InvalidInput, Problem
from epd_opt.explain import plan_or_instance
from epd_opt.held import Held
from epd_opt.instance import instance_sha256
from epd_opt.keeping.fleet import Fleet
from epd_opt.pipeline import planned
from epd_opt.plan import Plan
from epd_opt.reading import complaining_in_place
from epd_opt.resolve import resolve
from epd_opt.sensitivity.document import Point
from epd_opt.sensitivity.executors import Progress
from epd_opt.sensitivity.inputs import Input, inputs, named
from epd_opt.sensitivity.moves import Given, Source, all_solved, fleet_of
from epd_opt.sensitivity.moves_document import End, TornadoDocument, TornadoInput
from epd_opt.sensitivity.point import Job, clocked

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

BY = 0.2
"""Share by which inputs are moved, unless another is asked for."""


class Tornado(Held[TornadoDocument]):
    """A tornado; shows itself in a terminal (``print``) and in a notebook.

    Attributes
    ----------
    document : TornadoDocument
        All of it, as in the JSON document.
    """

    def to_frame(self) -> pd.DataFrame:
        """Inputs as a table, one row each, the largest effect first; needs pandas (``pip install 'epd-opt[plot]'``)."""
        from epd_opt.extras import pandas

        return pandas().DataFrame([_row(one) for one in self.document.inputs])

    def plot(self) -> Figure:
        """Bars from what a request costs today to what it costs at either end; needs matplotlib
        (``pip install 'epd-opt[plot]'``)."""
        from epd_opt.sensitivity.moves_figure import tornado_figure

        return tornado_figure(self.document)

    def __str__(self) -> str:
        from epd_opt.sensitivity.moves_view import tornado_text

        return tornado_text(self.document)

    def __repr__(self) -> str:
        return f"<Tornado of {self.document.instance!r}: {len(self.document.inputs)} inputs by {self.document.by:.0%}>"

    def _repr_html_(self) -> str:
        from epd_opt.sensitivity.moves_view import tornado_html

        return tornado_html(self.document)


def _row(one: TornadoInput) -> dict[str, Any]:
    row: dict[str, Any] = {"path": one.path, "value": one.value, "spread_usd_per_request": one.spread_usd_per_request}
    for name, end in (("low", one.low), ("high", one.high)):
        row |= {
            f"{name}_value": end.value,
            f"{name}_usd_per_request": end.usd_per_request,
            f"{name}_change_share": end.change_share,
            f"{name}_kept_change_share": end.kept_change_share,
            f"{name}_plan": end.plan,
        }
    return row


@complaining_in_place(plan_or_instance)
def tornado(
    source: Source,
    paths: Sequence[str] | None = None,
    *,
    by: float = BY,
    plan: Plan | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Tornado:
    """Move each input of an instance down and up by itself, and rank them by what that does to the cost of a request.

    Parameters
    ----------
    source : Plan, Instance, mapping or path
        An instance, or a plan, whose instance is moved and whose fleet is today's.
    paths : sequence of str, optional
        Inputs to move; by default those that :func:`epd_opt.sensitivity.inputs.inputs` finds.
    by : float
        Share by which they move, in (0, 1).
    plan : Plan, optional
        Whose fleet is today's; by default that of ``source``, else the best plan of the instance.
    workers, executor, progress
        As of :func:`epd_opt.sensitivity.study.sensitivity`; an end of an input at a time.

    Raises
    ------
    InvalidInput
        The instance makes no sense, has no plan or nothing to serve, a path names nothing that a factor applies to, or the
        objective leaves the rates open.
    """
    given = Given.of(source, "a tornado")
    resolved = resolve(given.instance, cards=given.cards)
    moved = inputs(given.instance, resolved) if paths is None else [named(given.document, path) for path in paths]
    today = (plan or given.plan or planned(resolved, clocked(resolved).clock, start=time.perf_counter())).document
    if today.cost is None or today.cost.usd_per_request is None:
        message = f"the plan is {today.status}" if today.cost is None else "nothing is requested"
        raise InvalidInput([Problem(path="status", message=f"{message}: there is no cost per request to move")])
    fleet = Fleet.of(today)
    jobs = [Job(at={}, document=given.document, fleet=fleet, cards=given.cards)]
    values: list[Any] = []
    for one in moved:
        for factor in (1.0 - by, 1.0 + by):
            value, document = one.at(given.document, factor)
            values.append(value)
            jobs.append(Job(at={one.path: value}, document=document, fleet=fleet, cards=given.cards))
    base, *points = all_solved(jobs, workers, executor, progress)
    if base.cost is None or base.cost.usd_per_request is None:
        raise InvalidInput([Problem(message=f"the instance as stated has no plan: {fleet_of(base)}")])
    usd = base.cost.usd_per_request
    ends = [_end(value, point, usd) for value, point in zip(values, points, strict=True)]
    found = [_input(one, low, high, usd) for one, low, high in zip(moved, ends[::2], ends[1::2], strict=True)]
    return Tornado(
        TornadoDocument(
            instance=given.instance.name,
            by=by,
            usd_per_hour=base.cost.usd_per_hour,
            usd_per_request=usd,
            gap=given.instance.solver.gap,
            today=fleet.named(),
            inputs=sorted(found, key=_order),
            notes=_notes(given, by),
            instance_sha256=instance_sha256(given.instance),
            epd_opt=__version__,
        )
    )


def _notes(given: Given, by: float) -> list[str]:
    notes = []
    if given.instance.solver.gap > 0.0:
        notes.append(f"effects below the gap of the solves, {given.instance.solver.gap:.3g} of the cost, mean nothing")
    if not given.instance.candidates.modelled:
        notes.append("measured workers were measured at the sizes and targets of the instance, which stay")
    return notes


def _end(value: Any, point: Point, usd: float) -> End:
    cost, kept = point.cost, point.kept_fleet
    each = None if cost is None else cost.usd_per_request
    kept_each = None
    if kept is not None and kept.usd_per_hour is not None and cost is not None and each:
        kept_each = kept.usd_per_hour * each / cost.usd_per_hour
    return End(
        value=value,
        status=point.status,
        usd_per_hour=None if cost is None else cost.usd_per_hour,
        usd_per_request=each,
        change_share=_share(each, usd),
        kept_usd_per_request=kept_each,
        kept_change_share=_share(kept_each, usd),
        kept_breaks=[] if kept is None else [reason.text for reason in kept.breaks],
        plan=fleet_of(point),
    )


def _share(each: float | None, usd: float) -> float | None:
    return None if each is None or usd == 0.0 else each / usd - 1.0


def _input(one: Input, low: End, high: End, usd: float) -> TornadoInput:
    costs = [end.usd_per_request for end in (low, high)]
    known = [cost for cost in costs if cost is not None]
    spread = max(usd, *known) - min(usd, *known) if len(known) == 2 else None
    return TornadoInput(path=one.path, value=one.value, low=low, high=high, spread_usd_per_request=spread)


def _order(one: TornadoInput) -> tuple[float, str]:
    """Inputs without a plan at an end come first: nothing weighs more."""
    infeasible = "infeasible" in (one.low.status, one.high.status)
    spread = one.spread_usd_per_request
    return (-math.inf if infeasible else 0.0 if spread is None else -spread), one.path
