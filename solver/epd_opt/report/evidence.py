"""What simulation says: of the fleets that a search tried, and of this plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from epd_opt.document import PlanDocument, Simulated, SimulatedRound
from epd_opt.report.figures import interval
from epd_opt.report.markup import Child, Markup, badge, element, joined, letter, listed, number, paragraph, table
from epd_opt.report.targets import Target, stated_targets
from epd_opt.simulate.document import ClassOutcome, SimulationDocument
from epd_opt.simulate.table import verdict
from epd_opt.wording import counted, labels, milliseconds, money, share, significant

_WHICH = {"ttft": "TTFT", "itl": "ITL", "e2e": "End to end"}


def searched(found: Simulated) -> Markup:
    """The fleets that were simulated on the way to this plan."""
    rows = [_round(i, one, chosen=i == found.chosen) for i, one in enumerate(found.rounds)]
    columns = ["Round", ">$/h", ">Replicas", "Targets", "Requests that keep them"]
    return joined(
        paragraph(found.certificate),
        table("Fleets that were simulated", columns, rows),
        paragraph(f"{found.requests:,} requests counted in each round.", class_="small"),
    )


def _round(index: int, one: SimulatedRound, *, chosen: bool) -> Sequence[Child]:
    kept: list[Child] = [
        [name, ": ", ", ".join(f"{_WHICH.get(k, k)} {_percent(v)}" for k, v in shares.items() if v is not None)]
        for name, shares in one.attainment.items()
    ]
    return [
        [f"{index + 1} ", badge("this plan", "good") if chosen else None],
        number(f"{one.usd_per_hour:,.2f}", one.usd_per_hour, "simulated", "rounds", index, "usd_per_hour"),
        f"{sum(one.replicas.values())}",
        badge("met", "good") if one.target_met else badge("missed", "bad"),
        listed(kept, class_="plain"),
    ]


def simulated(document: PlanDocument, found: SimulationDocument) -> Markup:
    """Attainment of each class, times, and what the pools went through."""
    requests = sum(outcome.requests for outcome in found.classes.values())
    runs = counted(len(found.seeds), "run")
    text = (
        f" {requests:,} requests counted over {significant(found.seconds)} s in {runs}, {found.arrivals}, "
        f"{found.routing} routing. A target is met where the upper end of the 95% interval reaches its percentile."
    )
    words = verdict(found)
    kind = "bad" if not found.target_met else "warn" if found.untimed else "good"
    parts: list[Child] = [paragraph(badge(words[0].upper() + words[1:], kind), text)]
    if found.failures:
        parts += [paragraph("Failures in mid-run:"), listed(found.failures)]
    rows = [row for name, outcome in found.classes.items() for row in _attained(document, name, outcome)]
    columns = ["Class", "Target", ">Kept", "95% interval", "Verdict"]
    parts.append(table("Attainment of targets", columns, rows))
    columns = ["Class", ">Requests", ">Missed", ">TTFT p50", ">p95", ">p99", ">ITL p50", ">p95", ">p99"]
    parts += [
        element("h3", "Times, ms"),
        table("Simulated times", columns, [_times(n, o) for n, o in found.classes.items()]),
    ]
    columns = ["Pool", ">Replicas", ">At work", ">Queue, mean", ">Queue, most", ">KV memory, mean", ">Preempted"]
    parts += [element("h3", "Pools"), table("Simulated pools", columns, list(_pools(document, found)))]
    parts.append(_spending(found))
    return joined(*parts, listed(found.notes, class_="small") if found.notes else None)


def _attained(document: PlanDocument, name: str, outcome: ClassOutcome) -> Iterator[Sequence[Child]]:
    targets = stated_targets(document, name)
    for which, words in _WHICH.items():
        value, bounds = getattr(outcome.attainment, which), getattr(outcome.attainment_ci95, which)
        target = targets.get(which)
        if value is not None and target is not None:
            yield _attainment(name, which, words, value, bounds, target)
    if not targets:
        yield [element("span", name, class_="name"), "none stated", "–", "–", "–"]


def _attainment(
    name: str, which: str, words: str, value: float, bounds: tuple[float, float] | None, target: Target
) -> Sequence[Child]:
    wanted = target.percentile / 100
    low, high = bounds or (value, value)
    met = high >= wanted
    path = ("classes", name)
    shown: Child = "–"
    if bounds is not None:
        ends = [
            number(_percent(end), end, *path, "attainment_ci95", which, i, of="simulation") for i, end in enumerate(bounds)
        ]
        shown = [ends[0], " to ", ends[1]]
    start = max(0.0, min(low, wanted) - 0.5 * (1 - min(low, wanted)) - 0.01)
    return [
        element("span", name, class_="name"),
        f"{words} {significant(target.milliseconds)} ms for {target.percentile:g}%",
        number(_percent(value), value, *path, "attainment", which, of="simulation"),
        element("div", shown, interval(low, high, wanted, start=start, kind="kept" if met else "missed"), class_="use"),
        badge("met", "good") if met else badge("missed", "bad"),
    ]


def _percent(value: float) -> str:
    return f"{100 * value:.4g}%" if value < 0.9995 or value == 1.0 else f"{100 * value:.5g}%"


def _times(name: str, outcome: ClassOutcome) -> Sequence[Child]:
    cells: list[Child] = [
        number(f"{outcome.requests:,}", outcome.requests, "classes", name, "requests", of="simulation"),
        number(f"{outcome.missed:,}", outcome.missed, "classes", name, "missed", of="simulation"),
    ]
    for key, found in (("ttft_ms", outcome.ttft_ms), ("itl_ms", outcome.itl_ms)):
        for quantile in ("p50", "p95", "p99"):
            value = getattr(found, quantile)
            cells.append(number(milliseconds(value), value, "classes", name, key, quantile, of="simulation"))
    return [element("span", name, class_="name"), *cells]


def _pools(document: PlanDocument, found: SimulationDocument) -> Iterator[Sequence[Child]]:
    letters = labels(document.pools)
    for name, pool in found.pools.items():

        def shown(text: str, value: float, *path: str, of: str = name) -> Markup:
            return number(text, value, "pools", of, *path, of="simulation")

        kv = pool.kv_memory
        yield [
            [letter(letters[name]), " ", element("span", name, class_="name")],
            shown(f"{pool.replicas}", pool.replicas, "replicas"),
            shown(share(pool.utilisation), pool.utilisation, "utilisation"),
            shown(significant(pool.queue.mean), pool.queue.mean, "queue", "mean"),
            shown(f"{pool.queue.max:,.0f}", pool.queue.max, "queue", "max"),
            "–" if kv is None else shown(share(kv.mean), kv.mean, "kv_memory", "mean"),
            "–" if kv is None else shown(f"{pool.preemptions:,}", pool.preemptions, "preemptions"),
        ]


def _spending(found: SimulationDocument) -> Markup:
    spent = found.spending
    served, kept = spent.usd_per_served_request, spent.usd_per_request_on_target
    words: list[Child] = [
        number(money(served), served, "spending", "usd_per_served_request", of="simulation"),
        " per request served, ",
        number(money(kept), kept, "spending", "usd_per_request_on_target", of="simulation"),
        " per request that keeps all its targets",
    ]
    if spent.energy_wh_per_request is not None:
        energy = spent.energy_wh_per_request
        shown = number(significant(energy), energy, "spending", "energy_wh_per_request", of="simulation")
        words += [", ", shown, " Wh per request"]
    return paragraph(*words, ".")
