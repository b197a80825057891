"""Break-evens, tornados and marginal values as pictures, in the colours of studies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from epd_opt.extras import pyplot
from epd_opt.sensitivity.document import BreakEvenDocument
from epd_opt.sensitivity.figure import BEST, KEPT, SWITCH
from epd_opt.sensitivity.moves_document import End, MarginalDocument, TornadoDocument
from epd_opt.wording import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def break_even_figure(document: BreakEvenDocument) -> Figure:
    """The picture of a break-even: what the plans on its two sides cost over the value.

    Raises
    ------
    UsageError
        matplotlib is not installed.
    """
    plt = pyplot()
    figure: Figure
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    sides = [side for side in (document.below, document.above) if side is not None]
    for side in sides:
        colour, marker = (BEST, "o-") if side.uses else (KEPT, "s--")
        name = f"{'with' if side.uses else 'without'} {document.of}"
        places, at, slope = [side.solved_at], document.at, side.usd_per_hour_per_unit
        if slope is not None and at is not None:
            places = [document.low, at, document.high]
        costs = [side.usd_per_hour + (0.0 if slope is None or at is None else slope * (place - at)) for place in places]
        axes.plot(places, costs, marker, color=colour, ms=4, label=printable(name))
    if document.at is not None:
        axes.axvline(document.at, color=SWITCH, lw=0.8, ls=":", label="break-even")
    path = printable(document.path) + (", factor" if document.scaled else "")
    axes.set(xlabel=path, ylabel="$/h", ylim=(0, None), title=printable(document.text))
    axes.title.set_fontsize(9)
    axes.spines[["top", "right"]].set_visible(False)
    if sides:
        axes.legend(frameon=False, fontsize=8)
    plt.close(figure)
    return figure


def tornado_figure(document: TornadoDocument) -> Figure:
    """The picture of a tornado: bars from what a request costs today to what it costs at either end, the widest on top.

    Raises
    ------
    UsageError
        matplotlib is not installed.
    """
    moved = list(reversed(document.inputs))
    figure, axes = _bars([one.path for one in moved])
    for name, colour, ends in (
        (f"-{document.by:.0%}", KEPT, [one.low for one in moved]),
        (f"+{document.by:.0%}", BEST, [one.high for one in moved]),
    ):
        widths = [0.0 if end.change_share is None else 100.0 * end.change_share for end in ends]
        axes.barh(range(len(moved)), widths, color=colour, height=0.7, alpha=0.85, label=name)
        for row, end in enumerate(ends):
            if end.change_share is None:
                axes.text(0.0, row, f" {_none(end)} at {name}", va="center", fontsize=7)
    axes.axvline(0.0, color="black", lw=0.8)
    axes.set(xlabel="change of $/request, %", title=printable(f"{document.instance}: inputs moved by {document.by:.0%}"))
    axes.legend(frameon=False, fontsize=8)
    return figure


def _none(end: End) -> str:
    return "no plan" if end.status == "infeasible" else end.status


def marginal_figure(document: MarginalDocument) -> Figure:
    """The picture of marginal values: what each change saves.

    Raises
    ------
    UsageError
        matplotlib is not installed.
    """
    moves = list(reversed(document.moves))
    figure, axes = _bars([one.change for one in moves])
    axes.barh(range(len(moves)), [one.saves_usd_per_hour or 0.0 for one in moves], color=BEST, height=0.7)
    axes.set(xlabel="saves $/h", title=printable(f"{document.instance}: one step of each limit"))
    return figure


def _bars(names: Sequence[str]) -> tuple[Figure, Axes]:
    """A picture with room for a bar for each name, the first at the bottom."""
    plt = pyplot()
    figure: Figure
    figure, axes = plt.subplots(figsize=(7, 1.2 + 0.3 * len(names)), layout="constrained")
    axes.set_yticks(range(len(names)), [printable(name) for name in names], fontsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    plt.close(figure)
    return figure, axes
