"""The cost of the best plan, and of the fleet kept, along one input. Lengths in pixels of the drawing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from epd_opt.report.frame import Frame, drawing, grid, round_step
from epd_opt.report.markup import Markup, element


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """A line: US dollars per hour over the place on the axis; None where there is no plan or the fleet breaks.

    ``absent`` says what that means, and marks such places on the axis; empty leaves them blank.
    """

    name: str
    style: str
    points: tuple[tuple[float, float | None], ...]
    absent: str = ""


_MARGINS = {"left": 58.0, "right": 16.0, "head": 24.0, "foot": 46.0}


def cost_curve(
    series: Sequence[Series],
    ticks: Sequence[tuple[float, str]],
    switches: Sequence[tuple[float, str]],
    axis: str,
    anchor: str,
) -> Markup:
    """Lines over an axis, and marks where the best plan changes; a drawing for wide pages and one for narrow ones."""
    places = [x for one in series for x, _ in one.points]
    highest = max((y for one in series for _, y in one.points if y is not None), default=0.0)
    step = round_step(highest)
    top = step * math.ceil(highest / step) if highest else 1.0
    drawn = []
    for name, width, height in (("wide", 1000.0, 340.0), ("narrow", 360.0, 280.0)):
        frame = Frame(name=name, width=width, height=height, low=min(places), high=max(places), top=top, **_MARGINS)
        drawn.append(_draw(frame, series, ticks, switches, axis, step, f"{anchor}-{name}"))
    return Markup("".join(drawn))


def _draw(
    frame: Frame,
    series: Sequence[Series],
    ticks: Sequence[tuple[float, str]],
    switches: Sequence[tuple[float, str]],
    axis: str,
    step: float,
    anchor: str,
) -> Markup:
    bottom = frame.height - frame.foot
    return drawing(
        frame,
        f"Cost per hour over {axis}; the table below has the figures",
        anchor,
        axis,
        list(_grid(frame, step)),
        [element("text", text, x=frame.x(at), y=bottom + 18, class_="tick middle") for at, text in _thinned(ticks, frame)],
        [mark for at, text in switches for mark in _switch(frame, at, text)],
        [mark for one in series for mark in _line(frame, one)],
    )


def _grid(frame: Frame, step: float) -> Iterator[Markup]:
    yield from grid(frame, step, "${}")
    yield element("text", "$/h", x=frame.left - 8, y=12, class_="axis end")


def _switch(frame: Frame, at: float, text: str) -> Iterator[Markup]:
    x = frame.x(at)
    yield element("line", x1=x, x2=x, y1=frame.head - 4, y2=frame.height - frame.foot, class_="switch")
    yield element("text", text, x=x, y=frame.head - 9, class_="tick middle")


def _line(frame: Frame, one: Series) -> Iterator[Markup]:
    path, pen = [], "M"
    for at, usd in one.points:
        if usd is None:
            pen = "M"
            continue
        path.append(f"{pen}{frame.x(at):.1f} {frame.y(usd):.1f}")
        pen = "L"
    yield element("path", d="".join(path), class_=f"curve {one.style}")
    for at, usd in one.points:
        if usd is None:
            if one.absent:
                said = element("title", f"{one.name}: {one.absent}")
                yield element("text", "×", said, x=frame.x(at), y=frame.y(0.0) - 3, class_="cross middle")
            continue
        said = element("title", f"{one.name}: ${usd:,.2f}/h")
        yield element("circle", said, cx=frame.x(at), cy=frame.y(usd), r=3.5, class_=f"dot {one.style}")


def _thinned(ticks: Sequence[tuple[float, str]], frame: Frame) -> list[tuple[float, str]]:
    """Ticks whose texts do not touch."""
    kept: list[tuple[float, str]] = []
    end = -math.inf
    for at, text in sorted(ticks):
        half = 3.6 * len(text) + 4
        if frame.x(at) - half > end:
            kept.append((at, text))
            end = frame.x(at) + half
    return kept
