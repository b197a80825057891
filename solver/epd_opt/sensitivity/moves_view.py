"""Break-evens, tornados and marginal values for people: the terminal page, and the same in a notebook."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from epd_opt.render import WIDTH, view_html, view_text
from epd_opt.sensitivity.document import BreakEvenDocument, Side
from epd_opt.sensitivity.moves_document import End, MarginalDocument, MarginalMove, TornadoDocument, TornadoInput
from epd_opt.tables import ruled
from epd_opt.wording import money, printable, significant

_HALF = 9
"""Characters of a bar on either side of the middle."""
_NAME = 40
"""Characters of a path in a table."""
_NAME_LINE = 26
"""Characters of a line of it, where the other columns leave no room for more."""


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


def tornado_text(document: TornadoDocument, *, color: bool = False, width: int = WIDTH) -> str:
    """The tornado as text, in ``width`` columns."""
    return view_text(Group(*_tornado(document)), color=color, width=width)


def tornado_html(document: TornadoDocument) -> str:
    """The tornado as an HTML fragment."""
    return view_html(Group(*_tornado(document)))


def marginal_text(document: MarginalDocument, *, color: bool = False, width: int = WIDTH) -> str:
    """Marginal values as text, in ``width`` columns."""
    return view_text(Group(*_marginal(document)), color=color, width=width)


def marginal_html(document: MarginalDocument) -> str:
    """Marginal values as an HTML fragment."""
    return view_html(Group(*_marginal(document)))


def _tornado(document: TornadoDocument) -> Iterator[RenderableType]:
    usd = f"{money(document.usd_per_request)} per request, {money(document.usd_per_hour)}/h"
    yield Text.assemble((printable(document.instance), "bold"), (f": {usd}; each input by itself", ""))
    low, high = f"-{document.by:.0%}", f"+{document.by:.0%}"
    table = ruled("input", ">now", f">{low}", f"$/request: {low} ░  {high} █", f">{high}", "today's fleet")
    shares = [abs(end.change_share) for one in document.inputs for end in (one.low, one.high) if end.change_share]
    widest = max(shares, default=1.0)
    for one in document.inputs:
        table.add_row(
            at_dots(printable(shortened(one.path)), _NAME_LINE),
            _now(one.value),
            _change(one.low),
            _bar(one, widest),
            _change(one.high),
            _today(one),
        )
    yield Padding(table, (1, 0, 0, 0), expand=False)
    notes = list(document.notes)
    if any(end.status == "feasible" for one in document.inputs for end in (one.low, one.high)):
        notes.append("?: the best plan that was found in time, not proved: there may be a cheaper one")
    yield from (Padding(Text(f"note: {printable(note)}", style="dim"), (0, 0, 0, 2)) for note in notes)


def shortened(path: str) -> str:
    """A path without what goes without saying, in :data:`_NAME` characters at most.

    >>> shortened("workload.classes.chat.slo.ttft_ms"), shortened("devices.L4.price.purchase_usd")
    ('chat.slo.ttft_ms', 'L4.price.purchase_usd')
    """
    text = path.removeprefix("workload.classes.").removeprefix("devices.")
    return text if len(text) <= _NAME else f"...{text[-(_NAME - 3) :]}"


def at_dots(text: str, width: int) -> str:
    """A path over several lines of at most ``width`` characters, as far as its keys allow, broken before dots.

    >>> at_dots("image-1400-in.images.source_megapixels", 24).splitlines()
    ['image-1400-in.images', '.source_megapixels']
    """
    lines = [""]
    for part in re.findall(r"\.?[^.]+", text):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _now(value: object) -> str:
    if value is None:
        return "as stated"
    if isinstance(value, dict):
        return f"{significant(value['mean'])} (mean)" if "mean" in value else "varies"
    return f"{value:,.6g}" if isinstance(value, int | float) else printable(str(value))


def _change(end: End) -> str:
    if end.change_share is None:
        return "no plan" if end.status == "infeasible" else end.status
    share = f"{end.change_share:+.1%}" if abs(end.change_share) >= 5e-4 else "0"
    return share if end.status == "optimal" else f"{share} ?"


def _bar(one: TornadoInput, widest: float) -> str:
    """Cheaper to the left of the middle, dearer to the right; where both ends lie on one side the nearer one is in front."""
    cells = [" "] * (2 * _HALF + 1)
    cells[_HALF] = "|"
    ends = [(end.change_share, mark) for end, mark in ((one.low, "░"), (one.high, "█")) if end.change_share]
    for share, mark in sorted(ends, key=lambda item: -abs(item[0])):
        length = round(abs(share) / widest * _HALF)
        for i in range(1, length + 1):
            cells[_HALF + (i if share > 0 else -i)] = mark
    return "".join(cells)


def _today(one: TornadoInput) -> str:
    """At which end today's fleet breaks."""
    broken = [name for name, end in (("below", one.low), ("above", one.high)) if end.kept_breaks]
    return f"breaks {' and '.join(broken)}" if broken else "serves"


def _marginal(document: MarginalDocument) -> Iterator[RenderableType]:
    cost = "no plan" if document.usd_per_hour is None else f"{money(document.usd_per_hour)}/h"
    yield Text.assemble((printable(document.instance), "bold"), (f": {cost}, {printable(document.plan)}", ""))
    table = ruled("one step", ">from", ">to", ">saves $/h", ">$/month", "then")
    for move in document.moves:
        saves = "-" if move.saves_usd_per_hour is None else f"{move.saves_usd_per_hour:,.2f}"
        month = "-" if move.saves_usd_per_month is None else f"{move.saves_usd_per_month:,.0f}"
        table.add_row(printable(move.change), f"{move.value:,.6g}", f"{move.to:,.6g}", saves, month, printable(_then(move)))
    yield Padding(table, (1, 0, 0, 0), expand=False)
    yield from (Padding(Text(f"note: {printable(note)}", style="dim"), (0, 0, 0, 2)) for note in document.notes)


def _then(move: MarginalMove) -> str:
    if move.usd_per_hour is None:
        return move.plan
    proved = "" if move.status == "optimal" else " (not proved)"
    if move.saves_usd_per_hour is None:
        return f"{money(move.usd_per_hour)}/h: {move.plan}{proved}"
    return (move.plan if move.changes_plan else "the same fleet") + proved
