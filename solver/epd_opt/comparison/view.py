"""Comparisons for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from epd_opt.comparison.document import ClassFacts, ComparisonDocument, Difference, PoolFacts
from epd_opt.document import Cost
from epd_opt.render import WIDTH, view_text
from epd_opt.tables import ruled, ways_text
from epd_opt.wording import PROVED_OPTIMAL, label, milliseconds, money, printable, significant

_NAME = "cyan"
_SHOWN_CARDS = 10
_LONGEST_VALUE = 40
_DEGREES = {"tensor": "tp", "pipeline": "pp", "attention_data": "dp", "expert": "ep"}


def comparison_text(document: ComparisonDocument, *, color: bool = False, width: int = WIDTH) -> str:
    """The comparison as text, in ``width`` columns."""
    return view_text(Group(*_parts(document)), color=color, width=width)


def change(value: float | None, first: float | None) -> str:
    """How a value moved against the first, in per cent; empty where that says nothing.

    >>> change(1.05, 1.0), change(1.0, 1.0), change(2.0, None)
    (' (+5.0%)', '', '')
    """
    if value is None or not first or value == first:
        return ""
    return f" ({value / first - 1:+.1%})"


def _parts(document: ComparisonDocument) -> Iterator[RenderableType]:
    yield _costs(document)
    yield from _why(document)
    if not document.inputs:
        yield from _titled("inputs that differ: none")
    else:
        yield from _titled("inputs that differ")
        yield _inputs(document)
    yield from _changed_cards(document)
    letters = _letters(document)
    if document.devices:
        yield _devices(document)
    if document.pools:
        yield _pools(document)
    if document.classes:
        yield _classes(document, letters)


def _titled(text: str) -> Iterator[RenderableType]:
    yield Text()
    yield Text(text, style="bold")


def _labels(document: ComparisonDocument) -> list[str]:
    return [f">{printable(plan.label)}" for plan in document.plans]


def _costs(document: ComparisonDocument) -> RenderableType:
    table = ruled("", *_labels(document))
    plans = document.plans
    first = plans[0].cost

    def row(name: str, show: Callable[[Cost], str], value: Callable[[Cost], float | None]) -> None:
        before = None if first is None else value(first)
        cells = ["-" if p.cost is None else show(p.cost) + change(value(p.cost), before) for p in plans]
        table.add_row(name, *cells)

    table.add_row("status", *(_status(plan.status, plan.cost) for plan in plans))
    row("$ per request", lambda c: money(c.usd_per_request), lambda c: c.usd_per_request)
    row("$/h", lambda c: money(c.usd_per_hour), lambda c: c.usd_per_hour)
    if any(plan.cost is not None and plan.cost.capex_usd for plan in plans):
        row("$ to buy", lambda c: money(c.capex_usd), lambda c: c.capex_usd)
    row("kW", lambda c: significant(c.power_kw), lambda c: c.power_kw)
    rates = [plan.requests_per_s for plan in plans]
    table.add_row("requests/s (mean)", *("-" if r is None else significant(r) + change(r, rates[0]) for r in rates))
    table.add_row("devices, pools", *(f"{plan.devices:g}, {plan.pools}" for plan in plans))
    return table


def _status(status: str, cost: Cost | None) -> str:
    if cost is None:
        return status
    if status != "optimal":
        return f"not proved, gap {cost.gap:.1%}"
    return "proved optimal" if cost.gap < PROVED_OPTIMAL else f"proved within {cost.gap:.2%}"


def _why(document: ComparisonDocument) -> Iterator[RenderableType]:
    for plan, found in zip(document.plans[1:], document.differences, strict=True):
        yield from _titled(f"{printable(plan.label)} against {printable(document.plans[0].label)}")
        for line in _sentences(found, document):
            yield Padding(Text(line), (0, 0, 0, 2))


def _sentences(found: Difference | None, document: ComparisonDocument) -> Iterator[str]:
    if found is None:
        for plan in document.plans:
            for reason in plan.infeasibility.reasons if plan.infeasibility else []:
                yield f"{printable(plan.label)} is infeasible: {printable(reason.text)}"
        yield "no costs to compare: not every plan has one"
        return
    if not found.usd_per_hour and not found.usd_per_request:
        yield "costs the same"
    elif found.usd_per_hour:
        known = "" if found.order_proved else "; the proofs leave open which optimum is lower"
        each = "" if found.per_request_share is None else f", {found.per_request_share:+.1%} per request"
        yield f"{_signed(found.usd_per_hour)}/h{each}{known}"
    elif found.per_request_share is not None:
        yield f"the same fleet cost, {found.per_request_share:+.1%} per request: requests differ"
    for effect in sorted(found.devices, key=lambda e: -abs(e.units_usd_per_hour + e.unit_cost_usd_per_hour)):
        parts = []
        if effect.units:
            more = "more" if effect.units > 0 else "fewer"
            parts.append(f"{abs(effect.units):g} {more} in use {_signed(effect.units_usd_per_hour)}/h")
        if abs(effect.unit_cost_usd_per_hour) > 1e-9:
            parts.append(f"another cost per unit {_signed(effect.unit_cost_usd_per_hour)}/h")
        if parts:
            yield f"{printable(effect.name)}: {', '.join(parts)}"


def _signed(usd: float) -> str:
    return f"{'-' if usd < 0 else '+'}{money(abs(usd))}"


def _inputs(document: ComparisonDocument) -> RenderableType:
    table = ruled("kind", "path", *_labels(document))
    for one in sorted(document.inputs, key=lambda i: (_ORDER.index(i.kind), i.path)):
        table.add_row(one.kind, Text(printable(one.path), style=_NAME), *_shown(one.values))
    return table


_ORDER = ("price", "workload", "target", "offer", "limit", "setting", "solver")


def _shown(values: Sequence[Any]) -> list[str]:
    texts = ["-" if v is None else v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values]
    return [printable(t if len(t) <= _LONGEST_VALUE else f"{t[: _LONGEST_VALUE - 3]}...") for t in texts]


def _changed_cards(document: ComparisonDocument) -> Iterator[RenderableType]:
    if not document.cards:
        return
    yield from _titled("figures of the cards that differ")
    table = ruled("path", *_labels(document))
    for one in document.cards[:_SHOWN_CARDS]:
        table.add_row(Text(printable(one.path), style=_NAME), *_shown(one.values))
    yield table
    if len(document.cards) > _SHOWN_CARDS:
        yield Text(f"and {len(document.cards) - _SHOWN_CARDS} more: --json lists them all")


def _devices(document: ComparisonDocument) -> RenderableType:
    table = ruled("device in use", *_labels(document))
    for row in document.devices:
        cells = [
            "-" if used is None else f"{used:g} at {money(usd)}/h"
            for used, usd in zip(row.used, row.usd_per_hour, strict=True)
        ]
        table.add_row(Text(printable(row.name), style=_NAME), *cells)
    return Padding(table, (1, 0, 0, 0), expand=False)


def _letters(document: ComparisonDocument) -> list[dict[str, str]]:
    """Letters of the pools of each plan: matched pools have the same."""
    found: list[dict[str, str]] = [{} for _ in document.plans]
    for index, row in enumerate(document.pools):
        for letters, pool in zip(found, row.pools, strict=True):
            if pool is not None:
                letters[pool.name] = label(index)
    return found


def _pools(document: ComparisonDocument) -> RenderableType:
    table = ruled("", "pool", *_labels(document))
    for index, row in enumerate(document.pools):
        name = Text(printable(f"{row.placement} on {row.sku}"), style=_NAME)
        table.add_row(Text(label(index), style="bold"), name, *("-" if p is None else _pool(p) for p in row.pools))
        for key, values in row.settings.items():
            table.add_row("", f"  {key.replace('_', ' ')}", *(_number(value) for value in values))
    return Padding(table, (1, 0, 0, 0), expand=False)


def _number(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{printable(str(key))} {_number(item)}" for key, item in value.items())
    return significant(value) if isinstance(value, float) else "-" if value is None else str(value)


def _pool(pool: PoolFacts) -> str:
    cut = "".join(f"{_DEGREES[name]}{n}" for name, n in pool.parallelism.items() if n > 1 or name == "tensor")
    spare = f"+{pool.spare_replicas}" if pool.spare_replicas else ""
    return f"{pool.replicas}{spare} of {cut} at {money(pool.usd_per_hour)}/h"


def _classes(document: ComparisonDocument, letters: list[dict[str, str]]) -> RenderableType:
    table = ruled("class", "", *_labels(document))
    for row in document.classes:
        facts = row.plans
        name = Text(printable(row.name), style=_NAME)
        lines: list[tuple[str, list[str]]] = [
            ("requests/s", _cells(facts, lambda f: f.rate_per_s, significant)),
            ("TTFT ms", _cells(facts, lambda f: f.ttft_ms, milliseconds)),
            ("ITL ms", _cells(facts, lambda f: f.itl_ms, milliseconds)),
            ("E2E ms", _cells(facts, lambda f: f.e2e_ms, milliseconds)),
            ("$ per request", _cells(facts, lambda f: f.usd_per_request, money)),
            (
                "way",
                [
                    "-" if f is None else ways_text(f.routes, f.rate_per_s, known, between=", ")
                    for f, known in zip(facts, letters, strict=True)
                ],
            ),
        ]
        for i, (what, cells) in enumerate(line for line in lines if any(cell != "-" for cell in line[1])):
            table.add_row(name if i == 0 else "", what, *cells)
    return Padding(table, (1, 0, 0, 0), expand=False)


def _cells(
    facts: Sequence[ClassFacts | None], value: Callable[[ClassFacts], float | None], show: Callable[[float], str]
) -> list[str]:
    values = [None if one is None else value(one) for one in facts]
    return ["-" if v is None else show(v) + change(v, values[0]) for v in values]
