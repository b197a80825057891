"""Units by the hour of the day: committed ones that run, those that stand idle, and hired ones. Lengths in pixels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from epd_opt.instance import HOURS
from epd_opt.report.curve import round_step
from epd_opt.report.markup import Markup, element
from epd_opt.wording import significant


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """Units of one hour."""

    running: float
    idle: float
    hired: float

    @property
    def total(self) -> float:
        """All of them."""
        return self.running + self.idle + self.hired

    @property
    def words(self) -> str:
        """What the bar says to those who do not see it."""
        parts = ((self.running, "committed"), (self.idle, "committed and idle"), (self.hired, "hired"))
        return ", ".join(f"{significant(units)} {what}" for units, what in parts if units) or "nothing"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Frame:
    name: str
    width: float
    height: float
    every: int
    top: float
    left: float = 44.0
    right: float = 8.0
    head: float = 12.0
    foot: float = 44.0

    def x(self, hour: float) -> float:
        """Where an hour begins."""
        return self.left + hour / HOURS * (self.width - self.left - self.right)

    def y(self, units: float) -> float:
        """Where an amount stands."""
        return self.height - self.foot - units / self.top * (self.height - self.head - self.foot)


def day_chart(bars: Sequence[Bar], committed: float) -> Markup:
    """A stacked bar for each hour and a line at the commitment; a drawing for wide pages and one for narrow ones."""
    highest = max([committed, *(bar.total for bar in bars)])
    step = max(1.0, round_step(highest))
    top = step * max(1, math.ceil(highest / step))
    frames = (
        _Frame(name="wide", width=1000.0, height=280.0, every=2, top=top),
        _Frame(name="narrow", width=360.0, height=240.0, every=6, top=top),
    )
    return Markup("".join(_draw(frame, bars, committed, step) for frame in frames))


def _draw(frame: _Frame, bars: Sequence[Bar], committed: float, step: float) -> Markup:
    anchor = f"day-{frame.name}-title"
    middle, bottom = (frame.left + frame.width - frame.right) / 2, frame.height - frame.foot
    level = frame.y(committed)
    return element(
        "svg",
        element("title", "Units by the hour of the day; the table below has the figures", id=anchor),
        list(_grid(frame, step)),
        [_bar(frame, hour, bar) for hour, bar in enumerate(bars)],
        element("line", x1=frame.left, x2=frame.width - frame.right, y1=level, y2=level, class_="switch"),
        [
            element("text", f"{hour:02d}", x=frame.x(hour), y=bottom + 18, class_="tick middle")
            for hour in range(0, HOURS + 1, frame.every)
        ],
        element("text", "hour of the day", x=middle, y=frame.height - 6, class_="axis middle"),
        role="img",
        aria_labelledby=anchor,
        viewBox=f"0 0 {frame.width:g} {frame.height:g}",
        class_=f"graph {frame.name}",
    )


def _grid(frame: _Frame, step: float) -> Iterator[Markup]:
    for i in range(round(frame.top / step) + 1):
        y = frame.y(i * step)
        yield element("line", x1=frame.left, x2=frame.width - frame.right, y1=y, y2=y, class_="grid")
        yield element("text", significant(i * step), x=frame.left - 8, y=y + 4, class_="tick end")


def _bar(frame: _Frame, hour: int, bar: Bar) -> Markup:
    pitch = frame.x(1) - frame.x(0)
    left, width, below, parts = frame.x(hour) + 0.15 * pitch, 0.7 * pitch, 0.0, []
    for units, kind in ((bar.running, "run"), (bar.idle, "idle"), (bar.hired, "hired")):
        if units:
            upper, lower = frame.y(below + units), frame.y(below)
            parts.append(element("rect", class_=f"units {kind}", x=left, y=upper, width=width, height=lower - upper))
            below += units
    return element("g", element("title", f"{hour:02d}-{hour + 1:02d}: {bar.words}"), parts)
