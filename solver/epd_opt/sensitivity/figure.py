"""Studies as pictures: costs along one dimension, or cost and regret over two. Colours from Okabe and Ito's palette."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from epd_opt.extras import pyplot
from epd_opt.sensitivity.document import Point, StudyDocument, Varied
from epd_opt.wording import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BEST, KEPT, SWITCH = "#0072B2", "#E69F00", "#999999"


def study_figure(document: StudyDocument) -> Figure:
    """The picture of a study.

    Raises
    ------
    UsageError
        matplotlib is not installed.
    """
    plt = pyplot()
    figure: Figure
    if len(document.vary) == 1:
        figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
        _along(axes, document)
    else:
        figure, pair = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
        _map(figure, pair[0], document, "best plan, $/h", [_cost(point) for point in document.points])
        regrets = [math.nan if point.regret_usd_per_hour is None else point.regret_usd_per_hour for point in document.points]
        _map(figure, pair[1], document, "regret of today's fleet, $/h (blank: it breaks)", regrets)
    plt.close(figure)
    return figure


def _cost(point: Point) -> float:
    return math.nan if point.cost is None else point.cost.usd_per_hour


def _kept(point: Point) -> float:
    fleet = point.kept_fleet
    return math.nan if fleet is None or fleet.usd_per_hour is None else fleet.usd_per_hour


def _label(varied: Varied) -> str:
    return printable(varied.path) + (", factor" if varied.scaled else "")


def _along(axes: Axes, document: StudyDocument) -> None:
    varied = document.vary[0]
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in varied.values)
    if numeric:
        points = sorted(document.points, key=lambda point: float(str(point.at[varied.path])))
        places = [float(str(point.at[varied.path])) for point in points]
    else:
        points, places = document.points, [float(i) for i in range(len(document.points))]
        axes.set_xticks(places, [printable(str(point.at[varied.path])) for point in points])
    axes.plot(places, [_cost(point) for point in points], "o-", color=BEST, ms=4, label="best plan")
    axes.plot(places, [_kept(point) for point in points], "s--", color=KEPT, ms=4, label="today's fleet")
    broken = [
        (place, point)
        for place, point in zip(places, points, strict=True)
        if point.cost is not None and point.kept_fleet is not None and point.kept_fleet.feasible is False
    ]
    if broken:
        axes.plot(
            [place for place, _ in broken],
            [_cost(point) for _, point in broken],
            "x",
            color=KEPT,
            ms=8,
            ls="none",
            label="today's fleet breaks",
        )
    for i, switch in enumerate(document.switch_points):
        axes.axvline(switch.at, color=SWITCH, lw=0.8, ls=":", label=None if i else "the plan changes")
    axes.set(xlabel=_label(varied), ylabel="$/h", ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)


def _map(figure: Figure, axes: Axes, document: StudyDocument, title: str, values: list[float]) -> None:
    down, across = document.vary
    width = len(across.values)
    rows = [values[start : start + width] for start in range(0, len(values), width)]
    image = axes.imshow(rows, origin="lower", aspect="auto", cmap="viridis")
    axes.set_xticks(range(width), [printable(f"{value}") for value in across.values])
    axes.set_yticks(range(len(rows)), [printable(f"{value}") for value in down.values])
    axes.set(xlabel=_label(across), ylabel=_label(down), title=title)
    figure.colorbar(image, ax=axes)
