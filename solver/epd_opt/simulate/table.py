"""Simulations for people: the terminal page."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from epd_opt.render import WIDTH, view_text
from epd_opt.simulate.document import ClassOutcome, Percentiles, Phase, SimulationDocument
from epd_opt.tables import ruled
from epd_opt.wording import label, milliseconds, money, printable, share, significant

_NAME = "cyan"


def simulation_text(document: SimulationDocument, *, color: bool = False, width: int = WIDTH) -> str:
    """The report as text of ``width`` columns."""
    return view_text(simulation_view(document), color=color, width=width)


def simulation_view(document: SimulationDocument) -> RenderableType:
    """Everything a person wants to see of a simulation, in order of interest."""
    parts: list[RenderableType] = [
        *_headline(document),
        _spaced(_classes(document)),
        *(_spaced(table) for table in _phases(document)),
        _spaced(_pools(document)),
        Padding(_spending(document), (1, 0, 0, 0)),
        *(Text(f"note: {printable(note)}") for note in document.notes),
    ]
    return Group(*parts)


def _spaced(table: Table) -> Padding:
    return Padding(table, (1, 0, 0, 0), expand=False)


def verdict(document: SimulationDocument) -> str:
    """In a few words, what the simulation found, and of what it knows nothing."""
    if not document.target_met:
        return "targets missed"
    unseen = _unseen(document)
    if unseen:
        return f"targets met by what came; nothing came of {', '.join(unseen)}"
    if not document.untimed:
        return "all targets met"
    if len(document.untimed) == len(document.pools):
        return "requests come within the rates of the measured workers, of which nothing is timed"
    letters = [label(i) for i, name in enumerate(document.pools) if name in document.untimed]
    return f"all targets met by what is timed; nothing is of {', '.join(letters)}"


def _unseen(document: SimulationDocument) -> list[str]:
    return [name for name, outcome in document.classes.items() if not outcome.requests]


def _headline(document: SimulationDocument) -> Iterator[Text]:
    style = (
        "bold red" if not document.target_met else "bold yellow" if document.untimed or _unseen(document) else "bold green"
    )
    yield Text.assemble((printable(document.instance), "bold"), (": ", "bold"), (printable(verdict(document)), style))
    counted = sum(outcome.requests for outcome in document.classes.values())
    runs = f"{len(document.seeds)} runs, " if len(document.seeds) > 1 else ""
    yield Text(
        f"{counted:,} requests over {document.seconds:,.0f} s, {printable(document.arrivals)} "
        f"({runs}seed {document.seeds[0]}, {document.routing} routing)"
    )
    for failure in document.failures:
        yield Text(f"failure: {printable(failure)}", style="yellow")


def _classes(document: SimulationDocument) -> Table:
    table = ruled(
        "class",
        ">requests",
        ">TTFT ms\np50",
        ">p95",
        ">p99",
        ">ITL ms\np50",
        ">p95",
        ">p99",
        ">gap ms\np95",
        "kept (95 % interval)",
    )
    for name, outcome in document.classes.items():
        table.add_row(
            Text(printable(name), style=_NAME),
            f"{outcome.requests:,}",
            *_three(outcome.ttft_ms),
            *_three(outcome.itl_ms),
            milliseconds(outcome.longest_gap_ms.p95),
            _kept(outcome),
        )
    return table


def _three(found: Percentiles) -> tuple[str, str, str]:
    return milliseconds(found.p50), milliseconds(found.p95), milliseconds(found.p99)


def _kept(outcome: ClassOutcome | Phase) -> Text:
    """Shares of requests that keep each target."""
    shares, intervals = outcome.attainment, outcome.attainment_ci95
    if isinstance(outcome, ClassOutcome) and outcome.untimed and outcome.ttft_ms.mean is None and shares.both is not None:
        return Text(f"not timed; within rates {_percent(shares.both)}", style="" if outcome.target_met else "bold red")
    pieces = []
    for name, value, interval in (
        ("TTFT", shares.ttft, intervals.ttft),
        ("ITL", shares.itl, intervals.itl),
        ("E2E", shares.e2e, intervals.e2e),
    ):
        if value is not None and interval is not None:
            pieces.append(f"{name} {_percent(value)} ({_percent(interval[0])}-{_percent(interval[1])})")
    met = not isinstance(outcome, ClassOutcome) or outcome.target_met
    return Text("\n".join(pieces) or "-", style="" if met else "bold red")


def _percent(value: float) -> str:
    return f"{100 * value:.4g}%" if value < 0.9995 or value == 1.0 else f"{100 * value:.5g}%"


def _phases(document: SimulationDocument) -> Iterator[Table]:
    if not any(outcome.phases for outcome in document.classes.values()):
        return
    table = ruled("class", "phase", ">requests", ">TTFT ms\np50", ">p95", ">p99", ">ITL ms\np50", ">p95", ">p99", "kept")
    for name, outcome in document.classes.items():
        for phase, found in (outcome.phases or {}).items():
            table.add_row(
                Text(printable(name), style=_NAME),
                phase,
                f"{found.requests:,}",
                *_three(found.ttft_ms),
                *_three(found.itl_ms),
                _kept(found),
            )
    yield table


def _pools(document: SimulationDocument) -> Table:
    table = ruled(
        "", "pool", ">replicas", ">at work", ">queue\nmean", ">max", ">KV memory\nmean", ">max", ">preempted", ">kW"
    )
    for i, (name, pool) in enumerate(document.pools.items()):
        kv = pool.kv_memory
        table.add_row(
            Text(label(i), style="bold"),
            Text(printable(name), style=_NAME),
            f"{pool.replicas}",
            share(pool.utilisation),
            significant(round(pool.queue.mean, 2)),
            f"{pool.queue.max:.0f}",
            *(("-", "-") if kv is None else (share(kv.mean), share(kv.max))),
            f"{pool.preemptions:,}" if kv is not None else "-",
            "-" if pool.energy_kwh_per_hour is None else significant(pool.energy_kwh_per_hour),
        )
    return table


def _spending(document: SimulationDocument) -> Text:
    spent = document.spending
    parts = [f"{money(spent.usd_per_hour)}/h", f"{money(spent.usd_per_served_request)} per request served"]
    parts.append(f"{money(spent.usd_per_request_on_target)} per request on target")
    if spent.energy_wh_per_request is not None:
        parts.append(f"{significant(spent.energy_wh_per_request)} Wh per request")
    return Text("   ".join(parts))
