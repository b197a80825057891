"""Plans for people: the terminal page, and the same in a notebook."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from epd_opt.document import Cost, DeviceUse, Infeasibility, Mend, PlanDocument, Pool, RobustResult
from epd_opt.hours_view import hours_tables
from epd_opt.scenario_view import robust_headline, robust_tables
from epd_opt.tables import against, name_text, ruled, spaced, ways_text
from epd_opt.wording import (
    PROVED_OPTIMAL,
    counted,
    fullest,
    labels,
    milliseconds,
    money,
    printable,
    requirement,
    share,
    significant,
    sources,
    weakest,
)

WIDTH = 100
_SLACK = 0.8
"""Below this utilisation a single replica is there because less than one cannot be."""


def plan_text(document: PlanDocument, *, color: bool = False, width: int = WIDTH, warnings: bool = True) -> str:
    """The plan as text.

    Parameters
    ----------
    width : int
        Columns; names fold from 80 on.
    warnings : bool
        Whether warnings are part of it.
    """
    return view_text(plan_view(document, width=width, warnings=warnings), color=color, width=width)


def view_text(view: RenderableType, *, color: bool, width: int) -> str:
    """A view as text."""
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        highlight=False,
        legacy_windows=False,
    )
    console.print(view)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def plan_html(document: PlanDocument) -> str:
    """The plan as an HTML fragment."""
    return view_html(plan_view(document))


def view_html(view: RenderableType) -> str:
    """A view as an HTML fragment."""
    console = Console(file=io.StringIO(), width=WIDTH, record=True, force_jupyter=False, highlight=False)
    console.print(view)
    style = "line-height:1.25;font-family:Menlo,'DejaVu Sans Mono',Consolas,monospace"
    return console.export_html(inline_styles=True, code_format=f'<pre style="{style}">{{code}}</pre>')


def plan_view(document: PlanDocument, *, width: int = WIDTH, warnings: bool = True) -> RenderableType:
    """Everything a person wants to see of a plan, in order of interest, for a page of ``width`` columns."""
    wide = width >= WIDTH
    parts: list[RenderableType]
    if document.infeasibility is not None:
        parts = list(infeasible_view(document.instance, document.infeasibility))
    elif document.cost is None:
        parts = [
            _line((printable(document.instance), "bold"), (": stopped without a plan", "bold yellow")),
            Text("  allow more time with --time-limit (or solver.time_limit_s), or offer fewer devices and degrees"),
        ]
    elif document.robust is not None:
        parts = [
            *robust_headline(document, document.robust, _robust_proof(document, document.robust)),
            *robust_tables(document, document.robust),
            _devices(document, document.cost),
            *_racks(document),
            *hours_tables(document),
            *_origin(document),
        ]
    else:
        parts = [
            *_headline(document, document.cost),
            _pools(document, wide=wide),
            _classes(document),
            *_binding(document, wide=wide),
            *_settings(document),
            _devices(document, document.cost),
            *_servers(document),
            *_racks(document),
            *_retired(document),
            *_zones(document),
            *_origin(document),
        ]
    if warnings:
        parts += [Text(f"warning: {printable(warning)}", style="yellow") for warning in document.warnings]
    return Group(*parts)


def _line(*pieces: tuple[str, str]) -> Text:
    return Text.assemble(*pieces)


def _headline(document: PlanDocument, cost: Cost) -> Iterator[Text]:
    each = "nothing is requested" if cost.usd_per_request is None else f"{money(cost.usd_per_request)} per request"
    lowest = _not_proved(cost.bound_usd_per_hour)
    name, goodput, chosen = (printable(document.instance), "bold"), document.goodput, document.rate_multiple
    proved = document.status == "optimal"
    if goodput is None:
        proof = _proof(proved, cost.gap, lowest)
        yield _line(name, (": ", "bold"), (each, "bold green"), (", ", ""), proof)
    else:
        served = f"{significant(goodput.multiple)} times the demand, {significant(goodput.requests_per_s)} requests/s"
        highest = f"not proved: the optimum may be as high as {significant(goodput.bound_multiple)} times"
        proof = _proof(proved, goodput.gap, highest)
        yield _line(name, (": ", "bold"), (served, "bold green"), (", ", ""), proof)
        yield _line((f"{each} on the cheapest fleet for it, ", ""), _proof(cost.gap <= _gap(document), cost.gap, lowest))
    if chosen is not None:
        yield Text(f"at {significant(chosen.multiple)} times the demand; allowed are {chosen.low:g} to {chosen.high:g}")
    totals = [f"{money(cost.usd_per_hour)}/h", f"{money(cost.usd_per_month)}/month"]
    totals += [f"{money(cost.capex_usd)} to buy"] if cost.capex_usd else []
    if cost.upfront_usd:
        totals += [f"{money(cost.upfront_usd)} upfront", f"{money(cost.billed_usd_per_hour)}/h billed"]
    totals += [f"{significant(cost.power_kw)} kW"] if cost.power_kw else []
    units = sum(pool.devices for pool in document.pools)
    totals.append(f"{counted(units, 'device')} in {counted(len(document.pools), 'pool')}")
    yield Text("   ".join(totals))


def _proof(proved: bool, gap: float, otherwise: str) -> tuple[str, str]:
    """What is proved, and its colour."""
    if not proved:
        return otherwise, "bold yellow"
    return ("proved optimal" if gap < PROVED_OPTIMAL else f"proved within {gap:.2%} of the optimum"), "green"


def _robust_proof(document: PlanDocument, robust: RobustResult) -> tuple[str, str]:
    lowest = _not_proved(robust.bound_usd_per_hour)
    return _proof(document.status == "optimal", robust.gap, lowest)


def _gap(document: PlanDocument) -> float:
    """The gap that was asked for."""
    gap: float = document.instance_document["solver"]["gap"]
    return gap + 1e-6


def _not_proved(bound: float) -> str:
    """What is known of the optimum in US dollars per hour; a bound of nothing tells nothing."""
    return f"not proved: the optimum may be as low as {money(bound)}/h" if bound else "not proved: no bound was found"


def _retired(document: PlanDocument) -> Iterator[Text]:
    """Owned units that the plan leaves unused."""
    if document.retired:
        left = ", ".join(f"{count} {printable(name)}" for name, count in document.retired.items())
        yield Text(f"owned and not used by this plan: {left}")


def _racks(document: PlanDocument) -> Iterator[Text]:
    """Racks that the fleet takes, where their power is limited."""
    limits = document.instance_document.get("limits", {})
    taken = {name: use.racks for name, use in document.devices.items() if use.racks is not None}
    if limits.get("rack_kw") is not None and taken:
        parts = ", ".join(f"{count} for {printable(name)}" for name, count in taken.items())
        most = "" if limits.get("racks") is None else f" of {limits['racks']}"
        yield Text(f"racks of {limits['rack_kw']:g} kW: {sum(taken.values())}{most} ({parts})")


def _zones(document: PlanDocument) -> Iterator[Text]:
    redundancy = document.instance_document.get("redundancy", {})
    lost = redundancy.get("survive_zones", 0)
    if lost:
        kept = f"spread evenly over {redundancy['zones']} zones, every pool serves all demand after the loss of any {lost}"
        yield Text(f"{kept}: spare replicas included")


def _pools(document: PlanDocument, *, wide: bool) -> Padding:
    table = ruled("", "pool", ">replicas", ">devices", "requests/s", ">$/h")
    for letter, pool in zip(labels(document.pools).values(), document.pools, strict=True):
        spare = f" + {pool.spare_replicas} spare" if pool.spare_replicas else ""
        serves = [f"{printable(name)} {significant(rate)}" for name, rate in pool.serves.items()]
        table.add_row(
            Text(letter, style="bold"),
            name_text(pool.name),
            f"{pool.replicas}{spare}",
            f"{pool.devices:g}",
            Text((", " if wide else "\n").join(serves)),
            f"{pool.usd_per_hour:,.2f}",
        )
    return spaced(table)


def _classes(document: PlanDocument) -> Padding:
    whole = any(result.e2e_ms is not None for result in document.classes.values())
    table = ruled(
        "class",
        ">req/s",
        ">TTFT ms",
        ">ITL ms",
        *([">E2E ms"] if whole else []),
        ">$/request",
    )
    letters = labels(document.pools)
    ways = {name: ways_text(result.routes, result.rate_per_s, letters) for name, result in document.classes.items()}
    table.add_column("way", min_width=max((len(line) for way in ways.values() for line in way.split("\n")), default=1))
    targets = {c["name"]: c.get("slo") or {} for c in document.instance_document["workload"]["classes"]}
    for name, result in document.classes.items():
        slo = targets.get(name, {})
        table.add_row(
            name_text(name),
            significant(result.rate_per_s),
            against(result.ttft_ms, slo, "ttft"),
            against(result.itl_ms, slo, "itl"),
            *([against(result.e2e_ms, slo, "e2e")] if whole else []),
            money(result.usd_per_request).removeprefix("$"),
            ways[name],
        )
    return spaced(table)


def _binding(document: PlanDocument, *, wide: bool) -> Iterator[Padding]:
    table = ruled("", "what binds", "", *(["also"] if wide else []))
    for letter, pool in zip(labels(document.pools).values(), document.pools, strict=True):
        used = fullest(pool)
        if used:
            (kind, full), *others = used
            alone = " (one replica is the least)" if pool.replicas == 1 and full < _SLACK else ""
            also = [", ".join(f"{other} {share(value)}" for other, value in others[:2])]
            table.add_row(
                Text(letter, style="bold"),
                f"{kind} {share(full)}",
                requirement(kind) + alone,
                *(also if wide else []),
            )
    if table.row_count:
        yield spaced(table)


def _settings(document: PlanDocument) -> Iterator[Padding]:
    """What to start the replicas with; measured workers bring their own settings."""
    table = ruled(
        "",
        "run with",
        ">sequences",
        ">batched\ntokens",
        ">memory",
        ">encoder\nprocesses",
        ">design\nITL ms",
        ">longest\nwait ms",
    )
    for letter, pool in zip(labels(document.pools).values(), document.pools, strict=True):
        point = pool.operating_point
        if pool.provenance == "measured":
            continue
        table.add_row(
            Text(letter, style="bold"),
            _degrees(pool),
            *(f"{n}" if n else "-" for n in (point.max_sequences, point.max_batched_tokens)),
            share(point.memory_fraction),
            f"{point.encoder_processes}" if point.encoder_processes else "-",
            milliseconds(point.design_itl_ms) if point.design_itl_ms else "-",
            milliseconds(point.wait_ms) if point.wait_ms else "-",
        )
    if table.row_count:
        yield spaced(table)


def _degrees(pool: Pool) -> str:
    cut = pool.parallelism
    named = (("tp", cut.tensor), ("pp", cut.pipeline), ("dp", cut.attention_data), ("ep", cut.expert))
    parts = ["".join(f"{name}{degree}" for name, degree in named if degree > 1 or name == "tp")]
    parts += [f"batch {pool.operating_point.batch}"] if pool.operating_point.batch else []
    parts += [f"fan-out {pool.operating_point.fan_out}"] if pool.operating_point.fan_out > 1 else []
    return " ".join(parts)


def _devices(document: PlanDocument, cost: Cost) -> Padding:
    unused = any(use.bought + use.owned > use.used for use in document.devices.values())
    table = ruled(
        "device",
        ">in use",
        ">owned",
        ">to buy or rent",
        *([">unused"] if unused else []),
        ">stock",
        ">$/h",
        ">of cost",
    )
    for name, use in document.devices.items():
        table.add_row(
            name_text(name),
            f"{use.used}",
            f"{use.owned}",
            f"{use.bought}",
            *([f"{use.bought + use.owned - use.used}"] if unused else []),
            _stock(use),
            f"{use.usd_per_hour:,.2f}",
            share(use.usd_per_hour / cost.usd_per_hour) if cost.usd_per_hour else "-",
        )
    return spaced(table)


def _servers(document: PlanDocument) -> Iterator[Padding]:
    """What stands together in servers that hold more than they use, or groups of several devices."""
    table = ruled("", ">servers", ">of devices", "hold", ">unused each")
    letters = labels(document.pools)
    for name, use in document.devices.items():
        several = any(pool.devices > pool.replicas + pool.spare_replicas for pool in document.pools if pool.device == name)
        if not (several or use.bought + use.owned > use.used):
            continue
        for node in use.nodes:
            holds = ", ".join(f"{count} x {letters[pool]}" for pool, count in node.groups.items())
            owned = " (owned)" if node.owned else ""
            table.add_row(name_text(name), f"{node.count}{owned}", f"{node.units}", holds, f"{node.free:g}")
    if table.row_count:
        yield spaced(table)


def _stock(use: DeviceUse) -> str:
    return "unlimited" if use.stock is None else f"{use.stock}"


def _origin(document: PlanDocument) -> Iterator[RenderableType]:
    """Where the times come from and how far to trust the weakest figure."""
    modelled = [pool for pool in document.pools if pool.provenance != "measured"]
    if modelled:
        whose = "" if len(modelled) == len(document.pools) else f" of {counted(len(modelled), 'pool')}"
        text = f"Times{whose} come from {sources(modelled)}; weakest confidence among their figures: "
        text += f"{weakest(document.pools)}."
    else:
        text = "All pools are measured workers: they meet every target up to their rates, as the instance says."
    if document.assumptions:
        estimates = sum(assumption.confidence == "estimate" for assumption in document.assumptions)
        count = len(document.assumptions)
        how_sure = f", {estimates} of them estimates, are" if count > 1 else ", an estimate, is" if estimates else " is"
        text += f" {counted(count, 'assumption')}{how_sure} in the plan document."
    yield Padding(Text(text, style="dim"), (1, 0, 0, 0))


def infeasible_view(instance: str, why: Infeasibility) -> Iterator[RenderableType]:
    """Why nothing serves an instance, and what would change that."""
    yield _line((printable(instance), "bold"), (": infeasible", "bold red"))
    for reason in why.reasons:
        yield Padding(_line((f"{reason.limit}: ", "bold"), (printable(reason.text), "")), (0, 0, 0, 2))
    for mend in why.mends:
        yield from _mend("feasible with ", mend)
    several = "feasible with all of these: " if why.mends else "feasible only with all of these: "
    for i, mend in enumerate(why.together):
        yield from _mend("and " if i else several, mend)
    if why.note:
        yield Text(why.note, style="dim")


def _mend(opening: str, mend: Mend) -> Iterator[RenderableType]:
    cost = "" if mend.usd_per_hour is None else f", at {money(mend.usd_per_hour)}/h"
    yield Padding(_line((opening, ""), (printable(mend.text), "green"), (cost, "")), (0, 0, 0, 2))
    value = json.dumps(mend.to, ensure_ascii=False)
    yield Padding(_line((f"--set '{printable(mend.change)}={printable(value)}'", "dim")), (0, 0, 0, 4))
