"""Plans for several scenarios, for people: what stands, what each scenario gets, and what robustness costs and saves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.padding import Padding
from rich.text import Text

from epd_opt.document import PlanDocument, RobustResult, ScenarioResult, SinglePlan
from epd_opt.scenario_plan import physical_of, view
from epd_opt.tables import against, name_text, ruled, spaced, ways_text
from epd_opt.wording import counted, labels, money, printable, share, significant

_MEASURES = {
    "expected_cost": "expected cost",
    "worst_cost": "worst cost",
    "cvar": "mean cost of the dearest scenarios",
}


def robust_headline(document: PlanDocument, robust: RobustResult, proof: tuple[str, str]) -> Iterator[Text]:
    """What is minimised and what it comes to; ``proof`` is what is proved of it, and its colour."""
    cost = document.cost
    assert cost is not None
    yield Text.assemble(
        (f"{printable(document.instance)}: ", "bold"),
        (f"{measure(robust)} {money(robust.objective_usd_per_hour)}/h", "bold green"),
        (", ", ""),
        proof,
    )
    scenarios = document.scenarios or []
    held = "all of them" if robust.held_share > 1.0 - 1e-9 else f"{share(robust.held_share)} of their weight"
    devices = f"{counted(sum(pool.devices for pool in document.pools), 'device')} in {counted(len(document.pools), 'pool')}"
    what = "one fleet for {} scenarios" if document.hours is None else "one day in {} groups of hours"
    yield Text(f"{what.format(len(scenarios))}, {devices}; targets hold in {held}")
    each = "nothing is requested" if cost.usd_per_request is None else f"{money(cost.usd_per_request)} per request"
    totals = [f"on average {money(cost.usd_per_hour)}/h", each, f"{money(cost.usd_per_month)}/month"]
    totals += [f"{money(cost.capex_usd)} to buy"] if cost.capex_usd else []
    if cost.upfront_usd:
        totals += [f"{money(cost.upfront_usd)} upfront", f"{money(cost.billed_usd_per_hour)}/h billed"]
    yield Text("   ".join(totals))


def measure(robust: RobustResult) -> str:
    """What is minimised, in words."""
    words = _MEASURES[robust.minimise]
    return words if robust.cvar_level is None else f"{words} ({share(1.0 - robust.cvar_level)} of weight)"


def robust_tables(document: PlanDocument, robust: RobustResult) -> Iterator[Padding | Text]:
    """What stands, what runs in each scenario, what classes get there, and plans for one workload alone."""
    letters = labels(document.pools)
    yield _standing(document, robust, letters)
    yield _scenarios(document, letters)
    yield _classes(document, letters)
    if robust.single_plans:
        yield _singles(robust)
    if robust.note:
        yield Text(robust.note, style="yellow")


def _standing(document: PlanDocument, robust: RobustResult, letters: Mapping[str, str]) -> Padding:
    table = ruled("", "pool that stands", ">replicas", ">devices", "most asked for by", ">$/h")
    for pool in document.pools:
        spare = f" + {pool.spare_replicas} spare" if pool.spare_replicas else ""
        table.add_row(
            Text(letters[pool.name], style="bold"),
            name_text(pool.name),
            f"{pool.replicas}{spare}",
            f"{pool.devices:g}",
            printable(robust.sized_by[pool.name]),
            f"{pool.usd_per_hour:,.2f}",
        )
    return spaced(table)


def _own_letters(document: PlanDocument, result: ScenarioResult, letters: Mapping[str, str]) -> dict[str, str]:
    """Letters of the pools that run in a scenario: those of the physical pools that they are replicas of."""
    stands = {physical_of(pool): letters[pool.name] for pool in document.pools}
    return {pool.name: stands[physical_of(pool)] for pool in result.pools}


def _scenarios(document: PlanDocument, letters: Mapping[str, str]) -> Padding:
    table = ruled("scenario", ">weight", "targets", ">$/h", ">$/request", "replicas that run")
    for result in document.scenarios or ():
        own = _own_letters(document, result, letters)
        running: dict[str, int] = {}
        for pool in result.pools:
            running[own[pool.name]] = running.get(own[pool.name], 0) + pool.replicas
        met = "met" if result.targets_met else f"met for {share(result.served_share)} of demand"
        table.add_row(
            name_text(result.name),
            share(result.weight),
            Text(met, style="" if result.targets_met else "yellow"),
            f"{result.usd_per_hour:,.2f}",
            money(result.usd_per_request).removeprefix("$"),
            ", ".join(f"{letter} {count}" for letter, count in sorted(running.items())) or "-",
        )
    return spaced(table)


def _classes(document: PlanDocument, letters: Mapping[str, str]) -> Padding:
    table = ruled("scenario", "class", ">req/s", ">TTFT ms", ">ITL ms", ">$/request")
    lines: list[str] = []
    rows = []
    for result in document.scenarios or ():
        own = _own_letters(document, result, letters)
        stated = view(document, result.name).instance_document["workload"]["classes"]
        targets = {request["name"]: request.get("slo") or {} for request in stated}
        for index, (name, given) in enumerate(result.classes.items()):
            way = ways_text(given.routes, given.rate_per_s, own)
            lines += way.split("\n")
            rows.append(
                (
                    name_text(result.name) if index == 0 else Text(""),
                    name_text(name),
                    significant(given.rate_per_s),
                    against(given.ttft_ms, targets[name], "ttft"),
                    against(given.itl_ms, targets[name], "itl"),
                    money(given.usd_per_request).removeprefix("$"),
                    way,
                )
            )
    table.add_column("way", min_width=max(map(len, lines), default=1))
    for row in rows:
        table.add_row(*row)
    return spaced(table)


def _singles(robust: RobustResult) -> Padding:
    """What each plan for one workload costs there, where it holds, and what the plan saves against its fleet or it lacks."""
    over_all = f">{measure(robust)}\nover all, $/h"
    table = ruled("planned for", ">$/h there", ">targets\nhold in", over_all, ">this plan\nsaves", "it lacks")
    for single in robust.single_plans:
        lacks = "no fleet" if single.usd_per_hour is None else "\n".join(_lacks(single)) or "-"
        table.add_row(
            Text("the workload as stated") if single.planned_for is None else name_text(single.planned_for),
            money(single.usd_per_hour).removeprefix("$"),
            share(single.held_share),
            money(single.objective_usd_per_hour).removeprefix("$"),
            money(single.regret_usd_per_hour).removeprefix("$"),
            Text(lacks),
        )
    return spaced(table)


def _lacks(single: SinglePlan) -> Iterator[str]:
    for name, kept in single.scenarios.items():
        if kept.targets_met is False:
            what = "; ".join(printable(reason.text) for reason in kept.breaks[:2]) or "targets are not met"
            yield f"{printable(name)}: {what}"
        elif kept.targets_met is None:
            yield f"{printable(name)}: not decided in time"
