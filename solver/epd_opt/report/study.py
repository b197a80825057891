"""A sensitivity study on the page: the cost curve, where the plan changes, and what keeping the fleet would cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from epd_opt.report.curve import Series, cost_curve
from epd_opt.report.markup import Child, Markup, badge, element, joined, listed, number, paragraph, table
from epd_opt.sensitivity.document import Point, StudyDocument
from epd_opt.wording import money, significant

_MOST_LINES = 6
"""Lines that a drawing holds; the table has all points."""


def study_section(study: StudyDocument) -> Markup:
    """Curve, switch points and table."""
    if not study.points:
        return paragraph("The study has no points.")
    paths = [one.path for one in study.vary]
    return joined(
        paragraph("What the best plan costs as the inputs move, each point solved anew; ", _kept_words(study)),
        _curve(study, paths),
        _switches(study),
        _table(study, paths),
        listed(study.notes, class_="small") if study.notes else None,
    )


def _kept_words(study: StudyDocument) -> str:
    kept = any(point.kept_fleet is not None for point in study.points)
    return (
        "beside it, what today’s fleet would cost where it still serves." if kept else "no fleet was kept to compare with."
    )


def _curve(study: StudyDocument, paths: Sequence[str]) -> Markup | None:
    """The path with most values goes along the axis; every combination of the others is a line."""
    axis = max(paths, key=lambda path: len({_key(point.at.get(path)) for point in study.points}))
    others = [path for path in paths if path != axis]
    sign = {one.path: "×" if one.scaled else "=" for one in study.vary}
    lines: dict[str, list[Point]] = {}
    for point in study.points:
        lines.setdefault(", ".join(f"{path} {sign[path]} {_said(point.at.get(path))}" for path in others), []).append(point)
    if len(lines) > _MOST_LINES:
        return paragraph(f"{len(lines)} lines would not be told apart in a drawing; the table has all points.")
    places = _places(study, axis)
    series = []
    for i, (name, points) in enumerate(lines.items()):
        points = sorted(points, key=lambda point: places[_key(point.at.get(axis))])
        at = [places[_key(point.at.get(axis))] for point in points]
        best = [None if point.cost is None else point.cost.usd_per_hour for point in points]
        kept = [
            point.kept_fleet.usd_per_hour if point.kept_fleet and point.kept_fleet.feasible else None for point in points
        ]
        line = tuple(zip(at, best, strict=True))
        series.append(Series(name=name or "best plan", style=f"colour{i}", points=line, absent="no plan"))
        if any(usd is not None for usd in kept):
            said = f"today’s fleet, {name}" if name else "today’s fleet"
            series.append(Series(name=said, style=f"colour{i} kept", points=tuple(zip(at, kept, strict=True))))
    ticks = sorted({(places[_key(point.at.get(axis))], _said(point.at.get(axis))) for point in study.points})
    found = [(i, one) for i, one in enumerate(study.switch_points, 1) if one.path == axis]
    marks = [(place, f"{i}") for i, one in found if (place := _place(one.at, places)) is not None]
    legend: list[Child] = [[_sample(one.style), " ", one.name] for one in series]
    if any(point.cost is None for point in study.points):
        legend.append([element("span", "×", class_="cross"), " no plan"])
    return element("figure", listed(legend, class_="legend"), cost_curve(series, ticks, marks, _title(study, axis), "study"))


def _title(study: StudyDocument, path: str) -> str:
    scaled = any(one.scaled for one in study.vary if one.path == path)
    return f"{path}, as a factor" if scaled else path


def _sample(style: str) -> Markup:
    line = element("line", x1="0", x2="28", y1="5", y2="5", class_=f"curve {style}")
    return element("svg", line, class_="sample", viewBox="0 0 28 10", aria_hidden="true", focusable="false")


def _places(study: StudyDocument, path: str) -> dict[str, float]:
    """Where the values of a path stand on the axis: numbers at their size, anything else one after the other."""
    values = {_key(point.at.get(path)): _amount(point.at.get(path)) for point in study.points}
    amounts = {key: value for key, value in values.items() if value is not None}
    return amounts if len(amounts) == len(values) else {key: float(i) for i, key in enumerate(values)}


def _amount(value: Any) -> float | None:
    """The value as a number; None for anything else."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _place(value: Any, places: dict[str, float]) -> float | None:
    """Where a switch stands; None for what lies beyond the points, or between texts."""
    if _key(value) in places:
        return places[_key(value)]
    amount, numeric = _amount(value), all(_amount(json.loads(key)) is not None for key in places)
    inside = numeric and amount is not None and min(places.values()) <= amount <= max(places.values())
    return amount if inside else None


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _said(value: Any) -> str:
    if isinstance(value, float):
        return significant(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _switches(study: StudyDocument) -> Markup:
    if not study.switch_points:
        return paragraph("The best plan uses the same placements and devices at all points.")
    items = []
    for i, one in enumerate(study.switch_points):
        at: Child = _said(one.at)
        if _amount(one.at) is not None:
            at = number(significant(one.at), one.at, "switch_points", i, "at", of="study")
        items.append(
            element(
                "li", element("code", one.path), " from ", element("strong", at), " on: ", one.above, "; below: ", one.below
            )
        )
    return joined(element("h3", "Where the plan changes"), element("ol", items))


def _table(study: StudyDocument, paths: Sequence[str]) -> Markup:
    columns = [
        *(_title(study, path) for path in paths),
        ">Best plan $/h",
        ">$/request",
        ">Regret $/h",
        "Status",
        "Today’s fleet",
    ]
    rows: list[Sequence[Child]] = []
    for i, point in enumerate(study.points):
        cost, path = point.cost, ("points", i)
        usd = None if cost is None else cost.usd_per_hour
        each = None if cost is None else cost.usd_per_request
        rows.append(
            [
                *(_said(point.at.get(one)) for one in paths),
                "–" if usd is None else number(f"{usd:,.2f}", usd, *path, "cost", "usd_per_hour", of="study"),
                "–" if each is None else number(money(each)[1:], each, *path, "cost", "usd_per_request", of="study"),
                _regret(point.regret_usd_per_hour, i),
                [badge(point.status, "good" if point.status == "optimal" else "warn"), " ", _why(point)],
                _kept(point, i),
            ]
        )
    return element("div", table("Points of the study", columns, rows), class_="labelled")


def _why(point: Point) -> str:
    """Why a point has no plan."""
    return "; ".join([one.text for one in point.reasons] + ([point.error] if point.error else []))


def _kept(point: Point, index: int) -> Child:
    kept = point.kept_fleet
    if kept is None:
        return "–"
    if kept.feasible is None:
        return "not found out"
    if not kept.feasible:
        return ["breaks: ", "; ".join(one.text for one in kept.breaks) or "a target"]
    if kept.usd_per_hour is None:
        return "serves"
    usd = number(f"${kept.usd_per_hour:,.2f}", kept.usd_per_hour, "points", index, "kept_fleet", "usd_per_hour", of="study")
    return [usd, "/h"]


def _regret(value: float | None, index: int) -> Child:
    return "–" if value is None else number(f"{value:,.2f}", value, "points", index, "regret_usd_per_hour", of="study")
