"""Tornados, marginal values and break-evens on the page."""

from __future__ import annotations

from collections.abc import Sequence

from epd_opt.report.markup import Child, Markup, badge, element, joined, listed, number, paragraph, table
from epd_opt.sensitivity.document import BreakEvenDocument, Side
from epd_opt.sensitivity.moves_document import End, MarginalDocument, TornadoDocument, TornadoInput
from epd_opt.wording import money, significant

_HALF, _HEIGHT = 50.0, 14.0
"""Half the width of a bar's drawing, and its height."""


def tornado_section(document: TornadoDocument) -> Markup:
    """Inputs with a bar each, the largest effect first."""
    by = f"{document.by:.0%}"
    shares = [abs(end.change_share) for one in document.inputs for end in (one.low, one.high) if end.change_share]
    widest = max(shares, default=1.0)
    rows: list[Sequence[Child]] = []
    for i, one in enumerate(document.inputs):
        rows.append(
            [
                element("code", one.path),
                _stated(one.value),
                _change(one.low, i, "low"),
                _bar(one, widest, by),
                _change(one.high, i, "high"),
                _kept(one),
            ]
        )
    columns = ["Input", ">Now", f">-{by}", "Change of $/request", f">+{by}", "Today’s fleet"]
    legend: list[Child] = [
        [element("span", class_="swatch tint1"), f" {by} less"],
        [element("span", class_="swatch tint0"), f" {by} more"],
    ]
    return joined(
        paragraph(
            f"What a request costs when one input moves by {by} and everything else stays, planned anew, against ",
            number(money(document.usd_per_request), document.usd_per_request, "usd_per_request", of="tornado"),
            " as stated. The bars that reach farthest matter most.",
        ),
        listed(legend, class_="legend"),
        element("div", table("Effect of each input", columns, rows), class_="labelled"),
        listed(document.notes, class_="small") if document.notes else None,
    )


def _stated(value: object) -> str:
    if value is None:
        return "as stated"
    if isinstance(value, dict):
        return f"{significant(value['mean'])} (mean)" if "mean" in value else "varies"
    return f"{value:,.6g}" if isinstance(value, int | float) else str(value)


def _change(end: End, index: int, which: str) -> Child:
    if end.change_share is None:
        return badge("no plan" if end.status == "infeasible" else end.status, "warn")
    text = f"{end.change_share:+.1%}" if abs(end.change_share) >= 5e-4 else "0%"
    shown = number(text, end.change_share, "inputs", index, which, "change_share", of="tornado")
    return shown if end.status == "optimal" else [shown, " ", badge("not proved", "warn")]


def _bar(one: TornadoInput, widest: float, by: str) -> Markup:
    """Both ends on one line: cheaper to the left of the middle, dearer to the right; the nearer end in front."""
    ends = [(end.change_share, style) for end, style in ((one.low, "tint1"), (one.high, "tint0")) if end.change_share]
    bars = []
    for share, style in sorted(ends, key=lambda item: -abs(item[0])):
        length = abs(share) / widest * _HALF
        start = _HALF if share > 0 else _HALF - length
        bars.append(element("rect", x=start, y=1.0, width=length, height=_HEIGHT - 2.0, class_=style))
    said = ", ".join(
        f"{sign}{by}: {'no plan' if end.change_share is None else f'{end.change_share:+.1%}'}"
        for sign, end in (("-", one.low), ("+", one.high))
    )
    middle = element("rect", x=_HALF - 0.5, y=0.0, width=1.0, height=_HEIGHT, class_="mark")
    return element(
        "svg", *bars, middle, viewBox=f"0 0 {2 * _HALF:g} {_HEIGHT:g}", width="140", height="20", role="img", aria_label=said
    )


def _kept(one: TornadoInput) -> str:
    broken = [(name, end) for name, end in (("below", one.low), ("above", one.high)) if end.kept_breaks]
    return "; ".join(f"breaks {name}: {end.kept_breaks[0]}" for name, end in broken) or "serves both"


def marginal_section(document: MarginalDocument) -> Markup:
    """Steps and what each saves."""
    rows: list[Sequence[Child]] = []
    for i, one in enumerate(document.moves):
        usd, month = one.saves_usd_per_hour, one.saves_usd_per_month
        then = one.plan if one.usd_per_hour is None or one.changes_plan else "the same fleet"
        rows.append(
            [
                one.change,
                f"{one.value:,.6g} → {one.to:,.6g}",
                "–" if usd is None else number(f"{usd:,.2f}", usd, "moves", i, "saves_usd_per_hour", of="marginal"),
                "–" if month is None else number(f"{month:,.0f}", month, "moves", i, "saves_usd_per_month", of="marginal"),
                [badge(one.status, "good" if one.status == "optimal" else "warn"), " ", then],
            ]
        )
    columns = ["One step", "From → to", ">Saves $/h", ">$/month", "Then"]
    return joined(
        paragraph("What one step of each limit, target and price is worth: the instance is planned again after it."),
        element("div", table("Marginal values", columns, rows), class_="labelled"),
        listed(document.notes, class_="small") if document.notes else None,
    )


def break_even_section(documents: Sequence[BreakEvenDocument]) -> Markup:
    """One paragraph, a table and notes for each break-even."""
    return joined(_break_even(one, i) for i, one in enumerate(documents))


def _break_even(document: BreakEvenDocument, index: int) -> Markup:
    of = "break-even" if index == 0 else f"break-even-{index + 1}"
    sides = [(name, side) for name, side in (("below", document.below), ("above", document.above)) if side is not None]
    rows: list[Sequence[Child]] = [
        [
            "with it" if side.uses else "without it",
            f"{side.solved_at:,.6g}",
            number(f"{side.usd_per_hour:,.2f}", side.usd_per_hour, name, "usd_per_hour", of=of),
            _fleet(side),
        ]
        for name, side in sides
    ]
    where: list[Child] = [element("code", document.path)]
    if document.at is not None:
        where += [" = ", number(significant(document.at), document.at, "at", of=of)]
    if document.bounds is not None:
        where.append(f"; for certain from {document.bounds[0]:.6g} to {document.bounds[1]:.6g}")
    return joined(
        element("h3", document.text),
        paragraph(where, class_="small"),
        element("div", table("Plans on both sides", ["Plan", ">Solved at", ">$/h there", "Pools"], rows), class_="labelled")
        if rows
        else None,
        listed(document.notes, class_="small") if document.notes else None,
    )


def _fleet(side: Side) -> str:
    return ", ".join(f"{pool.replicas} × {pool.name}" for pool in side.pools) or "nothing to serve"
