"""Studies and tolerances for people: the terminal page, and the same in a notebook."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from epd_opt.document import Pool, Reason
from epd_opt.render import WIDTH, view_html, view_text
from epd_opt.sensitivity.document import Point, Shift, StudyDocument, Tolerance, ToleranceDocument, Varied
from epd_opt.tables import ruled
from epd_opt.wording import money, printable, significant

_HEADING = 16
"""Characters of a line of a heading."""


def study_text(document: StudyDocument, *, color: bool = False, width: int = WIDTH) -> str:
    """The study as text, in ``width`` columns."""
    return view_text(Group(*_study(document)), color=color, width=width)


def study_html(document: StudyDocument) -> str:
    """The study as an HTML fragment."""
    return view_html(Group(*_study(document)))


def tolerance_text(document: ToleranceDocument, *, color: bool = False, width: int = WIDTH) -> str:
    """The tolerances as text, in ``width`` columns."""
    return view_text(Group(*_tolerances(document)), color=color, width=width)


def tolerance_html(document: ToleranceDocument) -> str:
    """The tolerances as an HTML fragment."""
    return view_html(Group(*_tolerances(document)))


def _spaced(table: RenderableType) -> Padding:
    return Padding(table, (1, 0, 0, 0), expand=False)


def _item(text: str, style: str = "") -> Padding:
    return Padding(Text(printable(text), style=style), (0, 0, 0, 2))


def _fleet(named: dict[str, int]) -> str:
    return ", ".join(f"{count} x {name}" for name, count in named.items())


def _study(document: StudyDocument) -> Iterator[RenderableType]:
    yield Text.assemble((printable(document.instance), "bold"), (f": {len(document.points)} points", ""))
    if document.today:
        yield Text(printable(f"today's fleet: {_fleet(document.today)}"))
    columns = [(">" if all(_number(v) for v in varied.values) else "") + _broken(varied.path) for varied in document.vary]
    table = ruled(*columns, ">$/h", ">$/request", ">kept $/h", ">regret $/h", "plan, or why there is none")
    for point in document.points:
        table.add_row(
            *(_value(point.at[varied.path], varied) for varied in document.vary),
            "-" if point.cost is None else f"{point.cost.usd_per_hour:,.2f}",
            "-" if point.cost is None else money(point.cost.usd_per_request).removeprefix("$"),
            _kept(point),
            "-" if point.regret_usd_per_hour is None else f"{point.regret_usd_per_hour:,.2f}",
            printable(_what(point)),
        )
    yield _spaced(table)
    yield from _breaks(document)
    if document.switch_points:
        yield Text()
        yield Text("where the plan changes", style="bold")
        for switch in document.switch_points:
            varied = document.vary[0]
            below, above = _value(switch.below_at, varied), _value(switch.at, varied)
            yield _item(f"between {below} and {above}: {switch.below}, then {switch.above}")
    yield from (_item(f"note: {note}", "dim") for note in document.notes)


def _broken(path: str) -> str:
    """A path over several lines, each as long as a part of it or short."""
    lines: list[str] = []
    for part in re.split(r"(?<=.)(?=[.\[])", printable(path)):
        if lines and len(lines[-1]) + len(part) <= _HEADING:
            lines[-1] += part
        else:
            lines.append(part)
    return "\n".join(lines)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _value(value: object, varied: Varied) -> str:
    text = f"{value:.6g}" if isinstance(value, int | float) and not isinstance(value, bool) else printable(str(value))
    return f"x{text}" if varied.scaled else text


def _kept(point: Point) -> str:
    fleet = point.kept_fleet
    if fleet is None or fleet.feasible is None:
        return "-"
    return f"{fleet.usd_per_hour:,.2f}" if fleet.usd_per_hour is not None else "breaks"


def _what(point: Point) -> str:
    if point.error is not None:
        return f"failed: {point.error}"
    if point.cost is None:
        return f"{point.status}: {point.reasons[0].text}" if point.reasons else point.status
    plan = ", ".join(f"{count} x {name}" for name, count in _replicas(point.pools).items()) or "nothing to serve"
    return plan if point.status == "optimal" else f"{plan} (not proved)"


def _replicas(pools: Sequence[Pool]) -> dict[str, int]:
    return {pool.name: pool.replicas + pool.spare_replicas for pool in pools}


def _breaks(document: StudyDocument) -> Iterator[RenderableType]:
    broken = [point for point in document.points if point.kept_fleet is not None and point.kept_fleet.breaks]
    if not broken:
        return
    yield Text()
    yield Text("what breaks first when today's fleet is kept", style="bold")
    for point in broken:
        assert point.kept_fleet is not None
        at = ", ".join(_value(point.at[varied.path], varied) for varied in document.vary)
        yield _item(f"{at}: {_first(point.kept_fleet.breaks)}")


def _tolerances(document: ToleranceDocument) -> Iterator[RenderableType]:
    yield Text.assemble((printable(document.instance), "bold"), (f": {printable(_fleet(document.fleet))}", ""))
    table = ruled("input (workload.classes)", ">now", ">down to", ">up to", "what breaks first above")
    for tolerance in document.inputs:
        table.add_row(
            printable(tolerance.path.removeprefix("workload.classes.")),
            _stated(tolerance.value),
            _edge(tolerance, tolerance.down),
            _edge(tolerance, tolerance.up),
            printable(_first(tolerance.up.breaks)),
        )
    yield _spaced(table)
    below = [tolerance for tolerance in document.inputs if tolerance.down.breaks]
    if below:
        yield Text()
        yield Text("what breaks first below", style="bold")
        yield from (
            _item(f"{tolerance.path.removeprefix('workload.classes.')}: {_first(tolerance.down.breaks)}")
            for tolerance in below
        )
    yield from (_item(f"note: {note}", "dim") for note in document.notes)


def _first(reasons: Sequence[Reason]) -> str:
    """What is nearest to a cure: one target, or all replicas that are missing together."""
    if reasons and reasons[0].limit == "replicas":
        return " and ".join(reason.text for reason in reasons)
    return reasons[0].text if reasons else ""


def _stated(value: object) -> str:
    if value is None:
        return "as stated"
    if isinstance(value, dict) and "mean" in value:
        return f"{significant(value['mean'])} (mean)"
    if isinstance(value, dict):
        return "varies"
    return f"{value:.6g}" if isinstance(value, int | float) else printable(str(value))


def _edge(tolerance: Tolerance, shift: Shift) -> str:
    if shift.factor is None:
        return "none"
    if shift.unlimited:
        return "as far as tried" if shift.factor > 1.0 else ("0" if shift.value is None else _stated(shift.value))
    number = isinstance(shift.value, int | float)
    return f"{_stated(shift.value)} ({shift.factor - 1:+.1%})" if number else f"{shift.factor - 1:+.1%}"
