"""Break-evens for people: the terminal page, and the same in a notebook."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from epd_opt.render import WIDTH, view_html, view_text
from epd_opt.sensitivity.document import BreakEvenDocument, Side
from epd_opt.tables import ruled
from epd_opt.wording import printable, significant


def break_even_text(document: BreakEvenDocument, *, color: bool = False, width: int = WIDTH) -> str:
    """The break-even as text, in ``width`` columns."""
    return view_text(Group(*_break_even(document)), color=color, width=width)


def break_even_html(document: BreakEvenDocument) -> str:
    """The break-even as an HTML fragment."""
    return view_html(Group(*_break_even(document)))


def _break_even(document: BreakEvenDocument) -> Iterator[RenderableType]:
    yield Text.assemble((printable(document.instance), "bold"), (f": {printable(document.text)}", ""))
    yield Text(printable(_exactness(document)), style="dim")
    sides = [(name, side) for name, side in (("below", document.below), ("above", document.above)) if side is not None]
    if sides:
        table = ruled("", ">solved at", ">$/h", ">$/h per unit", "plan")
        names = {"below": "below", "above": "above"} if document.at is not None else {"below": "low", "above": "high"}
        for name, side in sides:
            slope = "-" if side.usd_per_hour_per_unit is None else significant(side.usd_per_hour_per_unit)
            table.add_row(names[name], f"{side.solved_at:,.6g}", f"{side.usd_per_hour:,.2f}", slope, printable(_plan(side)))
        yield Padding(table, (1, 0, 0, 0), expand=False)
    yield from (Padding(Text(f"note: {printable(note)}", style="dim"), (0, 0, 0, 2)) for note in document.notes)


def _plan(side: Side) -> str:
    return ", ".join(f"{pool.replicas} x {pool.name}" for pool in side.pools) or "nothing to serve"


def _exactness(document: BreakEvenDocument) -> str:
    """How the value was found and how far it may be off, in a line."""
    text = f"{document.path}{' (factor)' if document.scaled else ''}, {document.low:g} to {document.high:g}"
    if document.bounds is not None:
        text += f"; for certain from {document.bounds[0]:.6g} to {document.bounds[1]:.6g}"
    how = "where the costs of two plans cross" if document.method == "lines" else "by bisection"
    return f"{text}; {how}, {document.solves} solves" if document.at is not None else f"{text}; {document.solves} solves"
