"""Units by the hour of the day: committed ones that run, those that stand idle, and hired ones. Lengths in pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from epd_opt.instance import HOURS
from epd_opt.report.frame import Frame, drawing, grid, round_step
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


_MARGINS = {"left": 44.0, "right": 8.0, "head": 12.0, "foot": 44.0}


def day_chart(bars: Sequence[Bar], committed: float) -> Markup:
    """A stacked bar for each hour and a line at the commitment; a drawing for wide pages and one for narrow ones."""
    highest = max([committed, *(bar.total for bar in bars)])
    step = max(1.0, round_step(highest))
    top = step * max(1, math.ceil(highest / step))
    drawn = []
    for name, width, height, every in (("wide", 1000.0, 280.0, 2), ("narrow", 360.0, 240.0, 6)):
        frame = Frame(name=name, width=width, height=height, low=0.0, high=HOURS, top=top, **_MARGINS)
        drawn.append(_draw(frame, every, bars, committed, step))
    return Markup("".join(drawn))


def _draw(frame: Frame, every: int, bars: Sequence[Bar], committed: float, step: float) -> Markup:
    bottom, level = frame.height - frame.foot, frame.y(committed)
    return drawing(
        frame,
        "Units by the hour of the day; the table below has the figures",
        f"day-{frame.name}",
        "hour of the day",
        list(grid(frame, step)),
        [_bar(frame, hour, bar) for hour, bar in enumerate(bars)],
        element("line", x1=frame.left, x2=frame.width - frame.right, y1=level, y2=level, class_="switch"),
        [
            element("text", f"{hour:02d}", x=frame.x(hour), y=bottom + 18, class_="tick middle")
            for hour in range(0, HOURS + 1, every)
        ],
    )


def _bar(frame: Frame, hour: int, bar: Bar) -> Markup:
    pitch = frame.x(1) - frame.x(0)
    left, width, below, parts = frame.x(hour) + 0.15 * pitch, 0.7 * pitch, 0.0, []
    for units, kind in ((bar.running, "run"), (bar.idle, "idle"), (bar.hired, "hired")):
        if units:
            upper, lower = frame.y(below + units), frame.y(below)
            parts.append(element("rect", class_=f"units {kind}", x=left, y=upper, width=width, height=lower - upper))
            below += units
    return element("g", element("title", f"{hour:02d}-{hour + 1:02d}: {bar.words}"), parts)
