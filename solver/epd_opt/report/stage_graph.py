"""Who goes where: classes on the left, pools under the stages they run, ribbons as thick as their rates. Lengths in
pixels of the drawing; one drawing for wide pages, one with fewer words for narrow ones."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

from epd_opt.document import ClassResult, PlanDocument, Pool
from epd_opt.flows import STAGES, Ribbon, ordered, ribbons_of
from epd_opt.report.markup import Child, Markup, element, pointer
from epd_opt.report.targets import stated_targets
from epd_opt.wording import fullest, labels, milliseconds, money, printable, requirement, share, significant

COLOURS = 7
"""Colours that classes take in turn, as the style sheet names them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Layout:
    """Sizes of a drawing; ``letter`` is the usual width of one."""

    name: str
    width: float
    class_width: float
    bend: float
    gap: float
    box: float
    row: float
    head: float
    line: float
    letter: float
    thickest: float
    thinnest: float
    full: bool


_WIDE = _Layout(
    name="wide",
    width=1000,
    class_width=228,
    bend=64,
    gap=56,
    box=80,
    row=98,
    head=34,
    line=17,
    letter=6.9,
    thickest=46,
    thinnest=1.5,
    full=True,
)
_NARROW = _Layout(
    name="narrow",
    width=360,
    class_width=80,
    bend=20,
    gap=14,
    box=46,
    row=58,
    head=26,
    line=15,
    letter=6.7,
    thickest=26,
    thinnest=1.2,
    full=False,
)


@dataclass(kw_only=True, slots=True)
class _Box:
    """A class or a pool in the drawing; ``entered`` and ``left`` are the heights already taken by ribbons."""

    left_x: float
    right_x: float
    middle: float
    entered: float = 0.0
    left: float = 0.0


@dataclass(kw_only=True)
class _Drawing:
    """Where everything stands."""

    layout: _Layout
    stages: list[str]
    height: float
    classes: dict[str, _Box] = field(default_factory=dict)
    pools: dict[str, _Box] = field(default_factory=dict)

    def column(self, stage: str) -> tuple[float, float]:
        """Left and right end of the column of a stage."""
        start = self.layout.class_width + self.layout.bend
        room = self.layout.width - self.spread - start - (len(self.stages) - 1) * self.layout.gap
        each = room / len(self.stages)
        left = start + self.stages.index(stage) * (each + self.layout.gap)
        return left, left + each

    @property
    def spread(self) -> float:
        """How far the band of a stage reaches beyond its column."""
        return self.layout.gap / 4

    def source(self, ribbon: Ribbon) -> _Box:
        """Where a ribbon begins."""
        return self.pools[ribbon.sender] if ribbon.sender is not None else self.classes[ribbon.request_class]

    def after(self, box: _Box) -> float:
        """Room for a bend behind a box."""
        return self.layout.bend if box.left_x == 0.0 else self.layout.gap


def stage_graph(document: PlanDocument) -> Markup:
    """Both drawings of a plan's flows; the style sheet shows the one that fits."""
    return Markup("".join(_draw(_arrange(document, layout), document) for layout in (_WIDE, _NARROW)))


def _arrange(document: PlanDocument, layout: _Layout) -> _Drawing:
    """Every pool has a row of its own, so that ribbons, which change rows only between columns, cross no box."""
    rows = ordered(document)
    count = max(len(rows), len(document.classes))
    stages = [stage for stage in STAGES if any(stage in pool.stages for pool in rows)]
    drawing = _Drawing(layout=layout, stages=stages, height=layout.head + count * layout.row)
    middle = layout.head + count * layout.row / 2

    def at(index: int, of: int) -> float:
        return middle + (index - (of - 1) / 2) * layout.row

    for i, name in enumerate(document.classes):
        drawing.classes[name] = _Box(left_x=0.0, right_x=layout.class_width, middle=at(i, len(document.classes)))
    for i, pool in enumerate(rows):
        held = [stage for stage in stages if stage in pool.stages]
        left, right = drawing.column(held[0])[0], drawing.column(held[-1])[1]
        drawing.pools[pool.name] = _Box(left_x=left, right_x=right, middle=at(i, len(rows)))
    return drawing


def _draw(drawing: _Drawing, document: PlanDocument) -> Markup:
    layout = drawing.layout
    colours = {name: f"colour{i % COLOURS}" for i, name in enumerate(document.classes)}
    letters = labels(document.pools)
    title, described = f"flow-{layout.name}-title", f"flow-{layout.name}-text"
    return element(
        "svg",
        element("title", "Who goes where", id=title),
        element("desc", " ".join(flow_sentences(document)), id=described),
        [_band(drawing, stage) for stage in drawing.stages],
        _ribbons(drawing, document, colours, letters),
        [_class(drawing, document, name, result, colours[name]) for name, result in document.classes.items()],
        [_pool(drawing, document, index, pool, letters[pool.name]) for index, pool in enumerate(document.pools)],
        role="img",
        aria_labelledby=title,
        aria_describedby=described,
        viewBox=f"0 0 {layout.width:g} {drawing.height:g}",
        class_=f"graph {layout.name}",
    )


def flow_sentences(document: PlanDocument) -> list[str]:
    """The ways of every class in words."""
    letters = labels(document.pools)
    found = []
    for name, result in document.classes.items():
        ways = sorted(result.routes, key=lambda way: -way.rate_per_s)
        said = ", ".join(
            f"{significant(way.rate_per_s)}/s through {' then '.join(letters[p] for p in way.pools)}" for way in ways
        )
        found.append(f"{name}: {said or 'no requests'}.")
    return found


def _band(drawing: _Drawing, stage: str) -> Markup:
    left, right = drawing.column(stage)
    width = right - left + 2 * drawing.spread
    return _group(
        element("rect", class_="band", x=left - drawing.spread, y=0, width=width, height=drawing.height, rx=8),
        element("text", stage, class_="stage", x=(left + right) / 2, y=drawing.layout.head / 2 + 4),
    )


def _group(*children: Child) -> Markup:
    """An SVG group."""
    return element("g", *children)


def _ribbons(drawing: _Drawing, document: PlanDocument, colours: dict[str, str], letters: dict[str, str]) -> list[Markup]:
    layout, ribbons = drawing.layout, ribbons_of(document)
    entering: dict[str, float] = {}
    leaving: dict[tuple[str | None, str], float] = {}
    for ribbon in ribbons:
        entering[ribbon.receiver] = entering.get(ribbon.receiver, 0.0) + ribbon.rate
        leaving[_origin(ribbon)] = leaving.get(_origin(ribbon), 0.0) + ribbon.rate
    most = max([*entering.values(), *leaving.values()], default=0.0) or 1.0

    def thickness(rate: float) -> float:
        return max(layout.thickest * rate / most, layout.thinnest)

    starts: dict[Ribbon, float] = {}
    ends: dict[Ribbon, float] = {}
    for ribbon in sorted(ribbons, key=lambda r: drawing.pools[r.receiver].middle):
        box = drawing.source(ribbon)
        starts[ribbon] = box.middle - thickness(leaving[_origin(ribbon)]) / 2 + box.left + thickness(ribbon.rate) / 2
        box.left += thickness(ribbon.rate)

    def arrival(ribbon: Ribbon) -> float:
        """Height from which a ribbon comes to its receiver: its own row where it runs straight past a column."""
        receiver, source = drawing.pools[ribbon.receiver], drawing.source(ribbon)
        straight = receiver.left_x - source.right_x > 1.5 * drawing.after(source)
        return receiver.middle if straight else starts[ribbon]

    for ribbon in sorted(ribbons, key=arrival):
        box = drawing.pools[ribbon.receiver]
        ends[ribbon] = box.middle - thickness(entering[ribbon.receiver]) / 2 + box.entered + thickness(ribbon.rate) / 2
        box.entered += thickness(ribbon.rate)
    drawn = []
    for ribbon in ribbons:
        source = drawing.source(ribbon)
        x, bend, end = source.right_x, drawing.after(source), drawing.pools[ribbon.receiver].left_x
        middle, y, to = x + bend / 2, starts[ribbon], ends[ribbon]
        line = f"M{x:.1f} {y:.1f}C{middle:.1f} {y:.1f} {middle:.1f} {to:.1f} {x + bend:.1f} {to:.1f}L{end:.1f} {to:.1f}"
        said = f"{ribbon.request_class}: {significant(ribbon.rate)} requests/s to {letters[ribbon.receiver]}"
        drawn.append(
            element(
                "path",
                element("title", said),
                d=line,
                class_=f"ribbon {colours[ribbon.request_class]}",
                stroke_width=f"{thickness(ribbon.rate):.1f}",
            )
        )
    return drawn


def _origin(ribbon: Ribbon) -> tuple[str | None, str]:
    return ribbon.sender, "" if ribbon.sender is not None else ribbon.request_class


def _class(drawing: _Drawing, document: PlanDocument, name: str, result: ClassResult, colour: str) -> Markup:
    layout, box = drawing.layout, drawing.classes[name]
    rate = _value(f"{significant(result.rate_per_s)}", result.rate_per_s, "classes", name, "rate_per_s")
    lines: list[Child] = [[rate, "/s"]]
    if layout.full:
        if result.usd_per_request is not None:
            lines[0] = [*lines[0], ", ", money(result.usd_per_request), " each"]  # type: ignore[misc]
        targets = stated_targets(document, name)
        for which, value in (("ttft", result.ttft_ms), ("itl", result.itl_ms)):
            target = targets.get(which)
            against = " ms" if target is None else f" of {significant(target.milliseconds)} ms, p{target.percentile:g}"
            if value is not None:
                shown = _value(milliseconds(value), value, "classes", name, f"{which}_ms")
                lines.append([f"{which.upper()} ", shown, against])
    left = box.left_x + (14 if layout.full else 9)
    room = box.right_x - left - 4
    strip = element(
        "rect",
        class_=f"strip {colour}",
        x=box.left_x,
        y=box.middle - layout.box / 2,
        width=6.0 if layout.full else 4.0,
        height=layout.box,
    )
    return _group(
        element("title", name), _frame(drawing, box), strip, _lines(layout, box, left, _short(name, layout, room), lines)
    )


def _pool(drawing: _Drawing, document: PlanDocument, index: int, pool: Pool, letter: str) -> Markup:
    layout, box = drawing.layout, drawing.pools[pool.name]
    left, room = box.left_x + (12 if layout.full else 6), box.right_x - box.left_x - (20 if layout.full else 9)
    replicas = _value(f"{pool.replicas}", pool.replicas, "pools", index, "replicas")
    cut = degrees(pool)
    used = fullest(pool)
    if layout.full:
        spare = f" + {pool.spare_replicas} spare" if pool.spare_replicas else ""
        prefix = len(f"{pool.replicas} × ")
        rest = _short(f"{pool.device} {cut}{spare}", layout, room - prefix * layout.letter)
        lines: list[Child] = [[replicas, f" × {rest}"]]
        cost = _value(f"${pool.usd_per_hour:,.2f}", pool.usd_per_hour, "pools", index, "usd_per_hour")
        lines.append([cost, "/h"])
        lines += [_fitting(kind, share(value), layout, room) for kind, value in used[:1]]
        title = f"{letter}  {_short(pool.placement.replace('_', '-'), layout, room - 24)}"
    else:
        lines = [_short(f"{pool.device}", layout, room)]
        title = f"{letter}"
    words = _lines(layout, box, left, title, lines, beside=None if layout.full else ["  ", replicas, " ×"])
    return _group(element("title", f"{letter}: {pool.name}"), _frame(drawing, box), _load(layout, box, used), words)


def _load(layout: _Layout, box: _Box, used: Sequence[tuple[str, float]]) -> Markup | None:
    """A line along the foot of a box, as long as its fullest requirement."""
    if not used:
        return None
    width = (box.right_x - box.left_x) * min(used[0][1], 1.0)
    thick = 4.0 if layout.full else 3.0
    return element("rect", class_="load", x=box.left_x, y=box.middle + layout.box / 2 - thick, width=width, height=thick)


def degrees(pool: Pool) -> str:
    """How a replica is cut, in short."""
    if pool.provenance == "measured":
        return "measured"
    cut = pool.parallelism
    named = (("tp", cut.tensor), ("pp", cut.pipeline), ("dp", cut.attention_data), ("ep", cut.expert))
    return "".join(f"{name}{degree}" for name, degree in named if degree > 1 or name == "tp")


def _frame(drawing: _Drawing, box: _Box) -> Markup:
    height = drawing.layout.box
    return element(
        "rect", class_="box", x=box.left_x, y=box.middle - height / 2, width=box.right_x - box.left_x, height=height
    )


def _lines(layout: _Layout, box: _Box, x: float, title: str, lines: Sequence[Child], beside: Child = None) -> list[Markup]:
    top = box.middle - layout.line * len(lines) / 2 + 4
    words = [element("text", element("tspan", title, class_="name"), beside, x=x, y=top)]
    return words + [element("text", line, x=x, y=top + i * layout.line) for i, line in enumerate(lines, 1)]


def _value(text: str, value: float, *path: str | int) -> Markup:
    """A figure inside a drawing, with its value and place."""
    return element("tspan", text, data_value=repr(value), data_path=pointer("plan", *path))


def _fitting(kind: str, taken: str, layout: _Layout, room: float) -> str:
    """What is fullest, in words where they fit, else by its name."""
    words = f"{requirement(kind)} {taken}"
    return words if _long(words, layout) <= room else _short(f"{kind.replace('_', ' ')} {taken}", layout, room)


def _short(text: str, layout: _Layout, room: float) -> str:
    """Text cut in its middle where it would not fit."""
    text = printable(text)
    if _long(text, layout) <= room:
        return text
    head, tail = text, ""
    while head and _long(f"{head}…{tail}", layout) > room:
        kept = len(head) + len(tail) - 1
        head, tail = text[: (kept + 1) // 2], text[len(text) - kept // 2 :] if kept // 2 else ""
    return f"{head}…{tail}"


def _long(text: str, layout: _Layout) -> float:
    """Width of a text, Chinese, Korean and emoji taking two letters, capitals a little more than one."""
    wide = sum(1.0 if unicodedata.east_asian_width(c) in "WF" else 0.25 if c.isupper() else 0.0 for c in text)
    return layout.letter * (len(text) + wide)
