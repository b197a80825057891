"""Plans as pictures: who goes where, and what it costs. Lengths in inches; colours from Okabe and Ito's palette."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from epd_opt.document import ClassResult, Cost, PlanDocument, Pool
from epd_opt.errors import UsageError
from epd_opt.extras import pyplot
from epd_opt.flows import STAGES, Ribbon, ordered, ribbons_of
from epd_opt.wording import fullest, label, milliseconds, money, printable, share, significant

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
_INK, _FILL, _BAND = "#222222", "#f4f4f4", "#fafafa"
_MARGIN, _CLASS_WIDTH, _COLUMN, _GAP = 0.15, 2.05, 2.15, 0.6
_BOX, _ROW = 0.7, 0.9
_THICKEST, _THINNEST = 0.44, 0.015
_HEAD, _FOOT = 0.75, 0.75
_LETTERS_PER_INCH = 14.5


@dataclass(kw_only=True)
class _Box:
    """A class or a pool on the page; ``entered`` and ``left`` are the heights already taken by ribbons."""

    left_x: float
    right_x: float
    middle: float
    entered: float = 0.0
    left: float = 0.0


@dataclass(kw_only=True)
class _Page:
    """Where everything stands."""

    width: float
    height: float
    classes: dict[str, _Box] = field(default_factory=dict)
    pools: dict[str, _Box] = field(default_factory=dict)


def plan_figure(document: PlanDocument) -> Figure:
    """Classes on the left, pools under the stages they run, ribbons as thick as their rates, cost per pool below.

    Raises
    ------
    UsageError
        There is no fleet to show, or matplotlib is not installed.
    """
    if document.cost is None:
        raise UsageError(f"{printable(document.instance)} is {document.status}: there is no fleet to plot")
    page = _layout(document)
    figure: Figure = pyplot().figure(figsize=(page.width, page.height))
    pyplot().close(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, page.width), ylim=(0, page.height))
    axes.axis("off")
    colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(document.classes)}
    _head(axes, page, document, document.cost)
    _draw_ribbons(axes, page, document, colours)
    for name, result in document.classes.items():
        _draw_class(axes, page.classes[name], name, result, _targets(document, name), colours[name])
    for index, pool in enumerate(document.pools):
        _draw_pool(axes, page.pools[pool.name], label(index), pool)
    _draw_cost(axes, page, document, document.cost)
    return figure


def _layout(document: PlanDocument) -> _Page:
    """Every pool has a row of its own, so that ribbons, which change rows only between columns, cross no box."""
    rows = ordered(document)
    body = max(len(rows) * _ROW, len(document.classes) * _ROW)
    start = _MARGIN + _CLASS_WIDTH + _GAP
    page = _Page(width=start + 3 * _COLUMN + 2 * _GAP + 0.2, height=_HEAD + body + _FOOT)
    middle = _FOOT + body / 2
    for i, name in enumerate(document.classes):
        y = middle + ((len(document.classes) - 1) / 2 - i) * _ROW
        page.classes[name] = _Box(left_x=_MARGIN, right_x=_MARGIN + _CLASS_WIDTH, middle=y)
    for i, pool in enumerate(rows):
        columns = [STAGES.index(stage) for stage in pool.stages]
        page.pools[pool.name] = _Box(
            left_x=_column_x(min(columns)),
            right_x=_column_x(max(columns)) + _COLUMN,
            middle=middle + ((len(rows) - 1) / 2 - i) * _ROW,
        )
    return page


def _column_x(column: int) -> float:
    return _MARGIN + _CLASS_WIDTH + _GAP + column * (_COLUMN + _GAP)


def _draw_ribbons(axes: Axes, page: _Page, document: PlanDocument, colours: dict[str, str]) -> None:
    ribbons = ribbons_of(document)
    entering: dict[str, float] = {}
    leaving: dict[tuple[str | None, str], float] = {}
    for ribbon in ribbons:
        entering[ribbon.receiver] = entering.get(ribbon.receiver, 0.0) + ribbon.rate
        place = (ribbon.sender, "" if ribbon.sender else ribbon.request_class)
        leaving[place] = leaving.get(place, 0.0) + ribbon.rate
    most = max([*entering.values(), *leaving.values()], default=1.0)

    def source(ribbon: Ribbon) -> _Box:
        return page.pools[ribbon.sender] if ribbon.sender else page.classes[ribbon.request_class]

    def thickness(rate: float) -> float:
        return max(_THICKEST * rate / most, _THINNEST)

    def arrival(ribbon: Ribbon) -> float:
        """Height from which a ribbon comes to its receiver."""
        receiver = page.pools[ribbon.receiver]
        straight = receiver.left_x - source(ribbon).right_x > 1.5 * _GAP
        return receiver.middle if straight else starts[ribbon]

    starts: dict[Ribbon, float] = {}
    ends: dict[Ribbon, float] = {}
    for ribbon in sorted(ribbons, key=lambda r: -page.pools[r.receiver].middle):
        box = source(ribbon)
        total = thickness(leaving[ribbon.sender, "" if ribbon.sender else ribbon.request_class])
        starts[ribbon] = box.middle + total / 2 - box.left - thickness(ribbon.rate) / 2
        box.left += thickness(ribbon.rate)
    for ribbon in sorted(ribbons, key=lambda r: -arrival(r)):
        box = page.pools[ribbon.receiver]
        ends[ribbon] = box.middle + thickness(entering[ribbon.receiver]) / 2 - box.entered - thickness(ribbon.rate) / 2
        box.entered += thickness(ribbon.rate)
    for ribbon in ribbons:
        _draw_ribbon(
            axes,
            (source(ribbon).right_x, starts[ribbon]),
            (page.pools[ribbon.receiver].left_x, ends[ribbon]),
            thickness(ribbon.rate),
            colours[ribbon.request_class],
        )


def _draw_ribbon(axes: Axes, start: tuple[float, float], end: tuple[float, float], thick: float, colour: str) -> None:
    """Bend in the gap behind the sender, then run straight along the receiver's row."""
    import numpy as np

    t = np.linspace(0.0, 1.0, 40)
    ease = t * t * (3 - 2 * t)
    x = np.append(start[0] + t * _GAP, end[0])
    y = np.append(start[1] + ease * (end[1] - start[1]), end[1])
    axes.fill_between(x, y - thick / 2, y + thick / 2, color=colour, alpha=0.6, linewidth=0, zorder=1)


def _head(axes: Axes, page: _Page, document: PlanDocument, cost: Cost) -> None:
    each = f"{money(cost.usd_per_request)} per request, " if cost.usd_per_request is not None else ""
    proof = "proved optimal" if document.status == "optimal" else f"not proved, gap {cost.gap:.1%}"
    title = f"{_short(document.instance, 4)}: {each}{money(cost.usd_per_hour)}/h ({proof})"
    _text(axes, _MARGIN, page.height - 0.22, title, size=11, weight="bold")
    bottom, top = _FOOT - 0.05, page.height - _HEAD + 0.1
    for column, stage in enumerate(STAGES):
        x = _column_x(column)
        axes.fill_between((x - 0.08, x + _COLUMN + 0.08), bottom, top, color=_BAND, linewidth=0, zorder=0)
        _text(axes, x + _COLUMN / 2, page.height - 0.53, stage, size=9, colour="#555555", centred=True)


def _draw_class(axes: Axes, box: _Box, name: str, result: ClassResult, targets: dict[str, Any], colour: str) -> None:
    _frame(axes, box, "white")
    axes.fill_between((box.left_x, box.left_x + 0.07), box.middle - _BOX / 2, box.middle + _BOX / 2, color=colour, zorder=4)
    each = f", {money(result.usd_per_request)} each" if result.usd_per_request is not None else ""
    lines = [f"{significant(result.rate_per_s)} requests/s{each}"]
    for which, value in (("ttft", result.ttft_ms), ("itl", result.itl_ms)):
        target = targets.get(f"{which}_ms")
        percentile = targets.get(f"{which}_percentile") or targets.get("percentile", 95)
        against = f" of {significant(target)} ms p{percentile:g}" if target is not None else " ms"
        if value is not None:
            lines.append(f"{which.upper()} {milliseconds(value)}{against}")
    _lines(axes, box, box.left_x + 0.14, _short(name, _CLASS_WIDTH - 0.2), lines)


def _draw_pool(axes: Axes, box: _Box, letter: str, pool: Pool) -> None:
    _frame(axes, box, _FILL)
    width = box.right_x - box.left_x - 0.15
    used = fullest(pool)
    spare = f" + {pool.spare_replicas} spare" if pool.spare_replicas else ""
    lines = [_short(f"{pool.replicas} × {pool.device} {_cut(pool)}{spare}", width)]
    lines += [_short(f"{used[0][0]} {share(used[0][1])}, ${pool.usd_per_hour:,.2f}/h", width)] if used else []
    _lines(axes, box, box.left_x + 0.1, f"{letter}   {pool.placement.replace('_', '-')}", lines)


def _cut(pool: Pool) -> str:
    if pool.provenance == "measured":
        return "measured"
    cut = pool.parallelism
    named = (("tp", cut.tensor), ("pp", cut.pipeline), ("dp", cut.attention_data), ("ep", cut.expert))
    return "".join(f"{name}{degree}" for name, degree in named if degree > 1 or name == "tp")


def _draw_cost(axes: Axes, page: _Page, document: PlanDocument, cost: Cost) -> None:
    """One bar, a piece per pool; pieces too short for their letter stay blank, the boxes state every amount."""
    start = _MARGIN + 1.0
    scale = (page.width - 0.2 - start) / cost.usd_per_hour if cost.usd_per_hour > 0 else 0.0
    _text(axes, _MARGIN, 0.38, "$/h by pool", size=8)
    for index, pool in enumerate(document.pools):
        length = pool.usd_per_hour * scale
        grey = ("#b0b0b0", "#d6d6d6")[index % 2]
        axes.fill_between((start, start + length), 0.27, 0.49, color=grey, linewidth=0)
        for words in (f"{label(index)}  ${pool.usd_per_hour:,.2f}", label(index)):
            if len(words) / 12 < length:
                _text(axes, start + length / 2, 0.38, words, size=8, centred=True)
                break
        start += length


def _targets(document: PlanDocument, name: str) -> dict[str, Any]:
    for stated in document.instance_document["workload"]["classes"]:
        if stated["name"] == name:
            return dict(stated.get("slo") or {})
    return {}


def _frame(axes: Axes, box: _Box, colour: str) -> None:
    low, high = box.middle - _BOX / 2, box.middle + _BOX / 2
    corners = [(box.left_x, low), (box.right_x, low), (box.right_x, high), (box.left_x, high), (box.left_x, low)]
    axes.fill(*zip(*corners, strict=True), facecolor=colour, edgecolor="#777777", linewidth=0.8, zorder=3)


def _lines(axes: Axes, box: _Box, x: float, title: str, lines: list[str]) -> None:
    step = 0.15
    top = box.middle + step * len(lines) / 2
    _text(axes, x, top, title, size=8.5, weight="bold")
    for i, line in enumerate(lines, 1):
        _text(axes, x, top - i * step, line, size=7.5)


def _text(
    axes: Axes,
    x: float,
    y: float,
    text: str,
    *,
    size: float,
    weight: str = "normal",
    colour: str = _INK,
    centred: bool = False,
) -> None:
    axes.text(
        x,
        y,
        printable(text),
        size=size,
        weight=weight,
        color=colour,
        ha="center" if centred else "left",
        va="center",
        zorder=5,
        parse_math=False,
    )


def _short(text: str, inches: float) -> str:
    """Text cut in its middle where it would not fit."""
    text, most = printable(text), int(inches * _LETTERS_PER_INCH)
    if len(text) <= most:
        return text
    head = (most - 1) // 2
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"
