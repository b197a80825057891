"""What drawings over an axis share: where things stand, the grid behind them, and what they say of themselves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from epd_opt.report.markup import Child, Markup, element
from epd_opt.wording import significant


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """A drawing, the figures at its edges and its margins."""

    name: str
    width: float
    height: float
    low: float
    high: float
    top: float
    left: float
    right: float
    head: float
    foot: float

    def x(self, value: float) -> float:
        """Where a place on the axis stands."""
        span = (self.high - self.low) or 1.0
        return self.left + (value - self.low) / span * (self.width - self.left - self.right)

    def y(self, value: float) -> float:
        """Where an amount stands."""
        return self.height - self.foot - value / self.top * (self.height - self.head - self.foot)


def drawing(frame: Frame, title: str, anchor: str, axis: str, *content: Child) -> Markup:
    """A drawing with its title for those who do not see it, and the name of its axis."""
    middle = (frame.left + frame.width - frame.right) / 2
    return element(
        "svg",
        element("title", title, id=f"{anchor}-title"),
        *content,
        element("text", axis, x=middle, y=frame.height - 6, class_="axis middle"),
        role="img",
        aria_labelledby=f"{anchor}-title",
        viewBox=f"0 0 {frame.width:g} {frame.height:g}",
        class_=f"graph {frame.name}",
    )


def grid(frame: Frame, step: float, form: str = "{}") -> Iterator[Markup]:
    """A line and its figure for every step up to the top."""
    for i in range(round(frame.top / step) + 1):
        y = frame.y(i * step)
        yield element("line", x1=frame.left, x2=frame.width - frame.right, y1=y, y2=y, class_="grid")
        yield element("text", form.format(significant(i * step)), x=frame.left - 8, y=y + 4, class_="tick end")


def round_step(highest: float) -> float:
    """The smallest round step that reaches the highest value within five.

    >>> round_step(41.0), round_step(0.9), round_step(19.2)
    (10.0, 0.2, 5.0)
    """
    if highest <= 0:
        return 1.0
    scale = 10.0 ** math.floor(math.log10(highest / 5))
    return float(f"{next(m for m in (1, 2, 2.5, 5, 10) if m * scale >= highest / 5 * (1 - 1e-9)) * scale:.6g}")
