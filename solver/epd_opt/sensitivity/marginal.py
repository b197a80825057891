"""Marginal values: what one step of each limit, target and price is worth, by solving again: the prices of a linear
relaxation know nothing of whole replicas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from epd_opt._version import __version__
from epd_opt.address import format_path
from epd_opt.document import HOURS_PER_MONTH, Pool
from epd_opt.errors import InvalidInput, Problem
from epd_opt.explain import plan_or_instance
from epd_opt.held import Held
from epd_opt.instance import Instance, instance_sha256
from epd_opt.paths import get, set_value
from epd_opt.reading import complaining_in_place
from epd_opt.resolve import resolve
from epd_opt.scaling import plain
from epd_opt.sensitivity.document import Point
from epd_opt.sensitivity.executors import Progress
from epd_opt.sensitivity.moves import Given, Source, all_solved, fleet_of
from epd_opt.sensitivity.moves_document import MarginalDocument, MarginalMove
from epd_opt.sensitivity.point import Job
from epd_opt.sensitivity.price_path import price_path

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_CHEAPER, _LATER_MS = 0.1, 10.0
"""By how much prices fall, as a share, and targets on the first token are loosened."""


class Marginal(Held[MarginalDocument]):
    """Marginal values; they show themselves in a terminal (``print``) and in a notebook.

    Attributes
    ----------
    document : MarginalDocument
        All of it, as in the JSON document.
    """

    def to_frame(self) -> pd.DataFrame:
        """Steps as a table, one row each; needs pandas (``pip install 'epd-opt[plot]'``)."""
        from epd_opt.extras import pandas

        return pandas().DataFrame([move.model_dump() for move in self.document.moves])

    def plot(self) -> Figure:
        """Bars of what each step saves; needs matplotlib (``pip install 'epd-opt[plot]'``)."""
        from epd_opt.sensitivity.moves_figure import marginal_figure

        return marginal_figure(self.document)

    def __str__(self) -> str:
        from epd_opt.sensitivity.moves_view import marginal_text

        return marginal_text(self.document)

    def __repr__(self) -> str:
        return f"<Marginal values of {self.document.instance!r}: {len(self.document.moves)} steps>"

    def _repr_html_(self) -> str:
        from epd_opt.sensitivity.moves_view import marginal_html

        return marginal_html(self.document)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of one input."""

    path: str
    change: str
    value: float
    to: float


@complaining_in_place(plan_or_instance)
def marginal(
    source: Source,
    *,
    gap: float = 0.0,
    workers: int = 1,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Marginal:
    """What one step of each limit, target and price is worth: the instance is solved again after every one of them.

    Steps are one more unit of every stated stock, 1 kW, one device and 1 $/h more where those are limited, 10 ms more to the
    first token of every class, and a price of every device that is a tenth lower.

    Parameters
    ----------
    source : Plan, Instance, mapping or path
        An instance, or a plan, whose instance and cards count.
    gap : float
        Relative gap of the solves, in place of the instance's: steps are small.
    workers, executor, progress
        As of :func:`epd_opt.sensitivity.study.sensitivity`; a step at a time.

    Raises
    ------
    InvalidInput
        The instance makes no sense, there is no step to take, or the objective leaves the rates open.
    """
    given = Given.of(source, "a marginal value", gap)
    resolve(given.instance, cards=given.cards)
    steps = list(_steps(given.instance, given.document))
    if not steps:
        raise InvalidInput([Problem(message="there is no stock, limit, target or price to take a step of")])
    jobs = [Job(at={}, document=given.document, fleet=None, cards=given.cards)]
    jobs += [
        Job(at={step.path: step.to}, document=set_value(given.document, step.path, step.to), fleet=None, cards=given.cards)
        for step in steps
    ]
    base, *points = all_solved(jobs, workers, executor, progress)
    moves = [_move(step, point, base) for step, point in zip(steps, points, strict=True)]
    return Marginal(
        MarginalDocument(
            instance=given.instance.name,
            usd_per_hour=None if base.cost is None else base.cost.usd_per_hour,
            gap=gap,
            plan=fleet_of(base),
            moves=sorted(moves, key=_order),
            notes=_notes(base),
            instance_sha256=instance_sha256(given.instance),
            epd_opt=__version__,
        )
    )


def _steps(instance: Instance, document: Mapping[str, Any]) -> Iterator[Step]:
    limits = instance.limits
    if limits.usd_per_hour is not None:
        yield _more("limits.usd_per_hour", limits.usd_per_hour, 1.0, "budget +$1/h")
    if limits.power_kw is not None:
        yield _more("limits.power_kw", limits.power_kw, 1.0, "power +1 kW")
    if limits.devices is not None:
        yield _more("limits.devices", limits.devices, 1, "devices +1")
    if limits.racks is not None:
        yield _more("limits.racks", limits.racks, 1, "racks +1")
    for request in instance.workload.classes if instance.candidates.modelled else ():
        if request.rate_per_s > 0 and request.slo.ttft_ms is not None:
            path = format_path(["workload", "classes", request.name, "slo", "ttft_ms"])
            yield _more(path, request.slo.ttft_ms, _LATER_MS, f"TTFT of {request.name} +{_LATER_MS:g} ms")
    for entry in instance.devices:
        if entry.stock is not None:
            yield _more(format_path(["devices", entry.name, "stock"]), entry.stock, 1, f"stock of {entry.name} +1")
    for stated in document["devices"]:
        priced = price_path(stated)
        value = None if priced is None else get(document, priced)[0][1]
        if priced is not None and value:
            to = plain(value * (1.0 - _CHEAPER))
            yield Step(path=priced, change=f"price of {stated['name']} -{_CHEAPER:.0%}", value=value, to=to)


def _more(path: str, value: float, by: float, change: str) -> Step:
    return Step(path=path, change=change, value=value, to=value + by)


def _move(step: Step, point: Point, base: Point) -> MarginalMove:
    saves = bounds = None
    if base.cost is not None and point.cost is not None:
        saves = base.cost.usd_per_hour - point.cost.usd_per_hour
        saves = 0.0 if abs(saves) <= 1e-9 * base.cost.usd_per_hour else saves
        bounds = [
            base.cost.bound_usd_per_hour - point.cost.usd_per_hour,
            base.cost.usd_per_hour - point.cost.bound_usd_per_hour,
        ]
        if "slo" not in step.path:
            # Operating points are made for their targets; no other step takes a plan away, so none can cost anything.
            bounds[0] = max(bounds[0], 0.0)
    return MarginalMove(
        path=step.path,
        change=step.change,
        value=step.value,
        to=step.to,
        status=point.status,
        usd_per_hour=None if point.cost is None else point.cost.usd_per_hour,
        saves_usd_per_hour=saves,
        saves_usd_per_month=None if saves is None else saves * HOURS_PER_MONTH,
        bounds=bounds,
        plan=fleet_of(point),
        changes_plan=_replicas(point.pools) != _replicas(base.pools),
    )


def _order(move: MarginalMove) -> tuple[bool, float, str]:
    saves = move.saves_usd_per_hour
    return saves is None, 0.0 if saves is None else -saves, move.path


def _replicas(pools: list[Pool]) -> list[tuple[str, int]]:
    return sorted((pool.name, pool.replicas + pool.spare_replicas) for pool in pools)


def _notes(base: Point) -> list[str]:
    if base.cost is None:
        return [f"as stated the instance has no plan ({fleet_of(base)}): steps after which it has one show its cost"]
    return ["each step is solved by itself: steps together may be worth more or less than their sum"]
