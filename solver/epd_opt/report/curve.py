"""The cost of the best plan, and of the fleet kept, along one input. Lengths in pixels of the drawing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from epd_opt.report.markup import Markup, element
from epd_opt.wording import significant


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """A line: US dollars per hour over the place on the axis; None where there is no plan or the fleet breaks.

    ``absent`` says what that means, and marks such places on the axis; empty leaves them blank.
    """

    name: str
    style: str
    points: tuple[tuple[float, float | None], ...]
    absent: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Frame:
    """A drawing and the figures at its edges."""

    name: str
    width: float
    height: float
    low: float
    high: float
    top: float
    left: float = 58.0
    right: float = 16.0
    head: float = 24.0
    foot: float = 46.0

    def x(self, value: float) -> float:
        """Where a place on the axis stands."""
        span = (self.high - self.low) or 1.0
        return self.left + (value - self.low) / span * (self.width - self.left - self.right)

    def y(self, value: float) -> float:
        """Where an amount stands."""
        return self.height - self.foot - value / self.top * (self.height - self.head - self.foot)


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
        frame = _Frame(name=name, width=width, height=height, low=min(places), high=max(places), top=top)
        drawn.append(_draw(frame, series, ticks, switches, axis, step, f"{anchor}-{name}"))
    return Markup("".join(drawn))


def _draw(
    frame: _Frame,
    series: Sequence[Series],
    ticks: Sequence[tuple[float, str]],
    switches: Sequence[tuple[float, str]],
    axis: str,
    step: float,
    anchor: str,
) -> Markup:
    bottom = frame.height - frame.foot
    middle = (frame.left + frame.width - frame.right) / 2
    return element(
        "svg",
        element("title", f"Cost per hour over {axis}; the table below has the figures", id=f"{anchor}-title"),
        list(_grid(frame, step)),
        [element("text", text, x=frame.x(at), y=bottom + 18, class_="tick middle") for at, text in _thinned(ticks, frame)],
        element("text", axis, x=middle, y=frame.height - 6, class_="axis middle"),
        [mark for at, text in switches for mark in _switch(frame, at, text)],
        [mark for one in series for mark in _line(frame, one)],
        role="img",
        aria_labelledby=f"{anchor}-title",
        viewBox=f"0 0 {frame.width:g} {frame.height:g}",
        class_=f"graph {frame.name}",
    )


def _grid(frame: _Frame, step: float) -> Iterator[Markup]:
    for i in range(round(frame.top / step) + 1):
        y = frame.y(i * step)
        yield element("line", x1=frame.left, x2=frame.width - frame.right, y1=y, y2=y, class_="grid")
        yield element("text", f"${significant(i * step)}", x=frame.left - 8, y=y + 4, class_="tick end")
    yield element("text", "$/h", x=frame.left - 8, y=12, class_="axis end")


def _switch(frame: _Frame, at: float, text: str) -> Iterator[Markup]:
    x = frame.x(at)
    yield element("line", x1=x, x2=x, y1=frame.head - 4, y2=frame.height - frame.foot, class_="switch")
    yield element("text", text, x=x, y=frame.head - 9, class_="tick middle")


def _line(frame: _Frame, one: Series) -> Iterator[Markup]:
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


def _thinned(ticks: Sequence[tuple[float, str]], frame: _Frame) -> list[tuple[float, str]]:
    """Ticks whose texts do not touch."""
    kept: list[tuple[float, str]] = []
    end = -math.inf
    for at, text in sorted(ticks):
        half = 3.6 * len(text) + 4
        if frame.x(at) - half > end:
            kept.append((at, text))
            end = frame.x(at) + half
    return kept


def round_step(highest: float) -> float:
    """The smallest round step that reaches the highest value within five.

    >>> round_step(41.0), round_step(0.9), round_step(19.2)
    (10.0, 0.2, 5.0)
    """
    if highest <= 0:
        return 1.0
    scale = 10.0 ** math.floor(math.log10(highest / 5))
    return float(f"{next(m for m in (1, 2, 2.5, 5, 10) if m * scale >= highest / 5 * (1 - 1e-9)) * scale:.6g}")
