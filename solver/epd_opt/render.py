"""Plans for people: the terminal table, and the same in a notebook."""

from __future__ import annotations

import io
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from epd_opt.document import ClassResult, Cost, PlanDocument, Pool

_WIDTH = 118
_RULED = box.Box("    \n    \n ── \n    \n    \n    \n    \n    \n")


def money(usd: float | None) -> str:
    """US dollars with as many digits as say something.

    >>> money(41.2), money(0.00075), money(None)
    ('$41.20', '$0.00075', '-')
    """
    if usd is None:
        return "-"
    if usd == 0 or abs(usd) >= 0.1:
        return f"${usd:,.2f}"
    return f"${usd:.3g}"


def milliseconds(value: float | None) -> str:
    """Milliseconds, three digits."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def plan_text(document: PlanDocument, *, color: bool = False, width: int = _WIDTH) -> str:
    """The plan as text."""
    buffer = io.StringIO()
    console = Console(file=buffer, width=width, force_terminal=color, no_color=not color, highlight=False)
    console.print(plan_view(document))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def plan_html(document: PlanDocument) -> str:
    """The plan as an HTML fragment."""
    console = Console(file=io.StringIO(), width=_WIDTH, record=True, force_jupyter=False, highlight=False)
    console.print(plan_view(document))
    return console.export_html(
        inline_styles=True, code_format="<pre style='line-height:1.25;font-family:monospace'>{code}</pre>"
    )


def plan_view(document: PlanDocument) -> RenderableType:
    """Everything a person wants to see of a plan, in order of interest."""
    if document.infeasibility is not None:
        return Group(*_infeasible(document))
    if document.cost is None:
        return Text(f"{document.instance}: stopped without a plan; allow more time with --time-limit", style="bold")
    parts: list[RenderableType] = [_headline(document, document.cost), "", _pools(document), "", _classes(document)]
    parts += ["", _devices(document)]
    parts += _notes(document)
    return Group(*parts)


def _headline(document: PlanDocument, cost: Cost) -> Text:
    proved = (
        f"proved optimal (gap {cost.gap:.2%})"
        if document.status == "optimal"
        else f"not proved: at most {cost.gap:.2%} above the optimum"
    )
    line = Text()
    line.append(f"{document.instance}: ", style="bold")
    line.append(f"{money(cost.usd_per_request)} per request", style="bold green")
    line.append(f"   {money(cost.usd_per_hour)}/h   {money(cost.usd_per_month)}/month")
    if cost.capex_usd:
        line.append(f"   {money(cost.capex_usd)} to buy")
    line.append(f"   {cost.power_kw:.3g} kW   ")
    line.append(proved, style="green" if document.status == "optimal" else "yellow")
    return line


def _table(*columns: tuple[str, str]) -> Table:
    table = Table(box=_RULED, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title, justify in columns:
        table.add_column(title, justify=justify, overflow="fold")  # type: ignore[arg-type]
    return table


def _share(value: float) -> str:
    return f"{value:.0%}"


def _pools(document: PlanDocument) -> Table:
    table = _table(
        ("pool", "left"),
        ("replicas", "right"),
        ("devices", "right"),
        ("serves (requests/s)", "left"),
        ("utilisation", "left"),
        ("$/h", "right"),
    )
    for pool in document.pools:
        spare = f" + {pool.spare_replicas}" if pool.spare_replicas else ""
        table.add_row(
            Text(pool.name, style="cyan"),
            f"{pool.replicas}{spare}",
            f"{pool.devices:g} {pool.sku}",
            ", ".join(f"{name} {rate:.4g}" for name, rate in pool.serves.items()),
            _utilisation(pool),
            f"{pool.usd_per_hour:,.2f}",
        )
    return table


def _utilisation(pool: Pool) -> Text:
    text = Text()
    for index, (kind, value) in enumerate(sorted(pool.utilisation.items(), key=lambda item: -item[1])[:3]):
        text.append(", " if index else "")
        text.append(f"{kind} {_share(value)}", style="bold" if kind in pool.binding else "")
    return text


def _classes(document: PlanDocument) -> Table:
    table = _table(
        ("class", "left"),
        ("requests/s", "right"),
        ("TTFT ms", "right"),
        ("ITL ms", "right"),
        ("$/request", "right"),
        ("route", "left"),
    )
    slos = {c["name"]: c.get("slo", {}) for c in document.instance_document["workload"]["classes"]}
    for name, result in document.classes.items():
        slo = slos[name]
        table.add_row(
            Text(name, style="cyan"),
            f"{result.rate_per_s:.4g}",
            _against(result.ttft_ms, slo.get("ttft_ms"), _percentile(slo, "ttft")),
            _against(result.itl_ms, slo.get("itl_ms"), _percentile(slo, "itl")),
            money(result.usd_per_request),
            _routes(result),
        )
    return table


def _percentile(slo: dict[str, Any], target: str) -> float:
    return float(slo.get(f"{target}_percentile") or slo.get("percentile", 95))


def _against(value: float | None, target: float | None, percentile: float) -> str:
    if target is None:
        return milliseconds(value)
    return f"{milliseconds(value)} of {milliseconds(target)} p{percentile:g}"


def _routes(result: ClassResult) -> str:
    if not result.routes:
        return "-"
    lines = []
    for route in result.routes:
        share = f"{route.rate_per_s / result.rate_per_s:.0%} " if len(result.routes) > 1 else ""
        lines.append(share + " -> ".join(route.pools))
    return "\n".join(lines)


def _devices(document: PlanDocument) -> Table:
    table = _table(
        ("device", "left"),
        ("in use", "right"),
        ("owned", "right"),
        ("to buy or rent", "right"),
        ("stock", "right"),
        ("$/h", "right"),
    )
    for name, use in document.devices.items():
        stock = "unlimited" if use.stock is None else f"{use.stock}"
        table.add_row(
            Text(name, style="cyan"), f"{use.used}", f"{use.owned}", f"{use.bought}", stock, f"{use.usd_per_hour:,.2f}"
        )
    return table


def _notes(document: PlanDocument) -> list[RenderableType]:
    parts: list[RenderableType] = []
    weak = sorted({pool.confidence for pool in document.pools if pool.provenance != "measured"})
    if weak:
        count = sum(1 for a in document.assumptions if a.confidence == "estimate")
        parts.append(
            Text(
                f"Times come from the analytic models (weakest figures: {', '.join(weak)}); "
                f"{len(document.assumptions)} assumptions, {count} of them estimates, are listed in the plan document.",
                style="dim",
            )
        )
    parts += [Padding(Text(f"warning: {warning}", style="yellow"), (0, 0)) for warning in document.warnings]
    return parts


def _infeasible(document: PlanDocument) -> list[RenderableType]:
    assert document.infeasibility is not None
    parts: list[RenderableType] = [Text(f"{document.instance}: infeasible", style="bold red")]
    parts += [Text(f"  {reason.limit}: {reason.text}") for reason in document.infeasibility.reasons]
    parts += [Text(f"  try {mend.change}: {mend.to:g}", style="green") for mend in document.infeasibility.mends]
    parts += [Text(f"warning: {warning}", style="yellow") for warning in document.warnings]
    return parts
