"""What each class of requests gets, against its targets."""

from __future__ import annotations

from collections.abc import Iterator

from epd_opt.document import ClassResult, PlanDocument
from epd_opt.report.figures import meter
from epd_opt.report.markup import Child, Markup, badge, element, letter, listed, number, table
from epd_opt.report.targets import Target, stated_targets
from epd_opt.wording import labels, milliseconds, money, share, significant

_ROUNDING = 1e-6


def classes(document: PlanDocument) -> Markup:
    """One row for each class."""
    whole = any(result.e2e_ms is not None for result in document.classes.values())
    columns = ["Class", ">Requests/s", ">$/request", "TTFT", "ITL", *(["End to end"] if whole else []), "Targets", "Way"]
    return table("Classes of requests", columns, [list(_row(document, name, whole=whole)) for name in document.classes])


def _row(document: PlanDocument, name: str, *, whole: bool) -> Iterator[Child]:
    result, targets = document.classes[name], stated_targets(document, name)
    yield element("span", name, class_="name")
    yield number(significant(result.rate_per_s), result.rate_per_s, "classes", name, "rate_per_s")
    yield number(money(result.usd_per_request).removeprefix("$"), result.usd_per_request, "classes", name, "usd_per_request")
    times = {"ttft": result.ttft_ms, "itl": result.itl_ms, **({"e2e": result.e2e_ms} if whole else {})}
    for which, value in times.items():
        yield _against(value, targets.get(which), "classes", name, f"{which}_ms")
    yield _verdict(result, targets)
    yield _ways(result, labels(document.pools), name)


def _verdict(result: ClassResult, targets: dict[str, Target]) -> Markup:
    if not targets:
        return badge("none stated")
    return badge("met", "good") if result.slo_met else badge("missed", "bad")


def _against(value: float | None, target: Target | None, *path: str) -> Child:
    """A predicted time and its target; a bar of how much of the target it takes."""
    shown = number(milliseconds(value), value, *path) if value is not None else "–"
    if target is None:
        return [shown, " ms"] if value is not None else shown
    words = f" of {significant(target.milliseconds)} ms, p{target.percentile:g}"
    if value is None:
        return element("span", f"measured only; target{words.removeprefix(' of')}")
    part = value / target.milliseconds if target.milliseconds > 0 else 1.0
    kind = "missed" if part > 1 + _ROUNDING else "kept"
    return element("div", element("span", shown, words), meter(part, kind), class_="use")


def _ways(result: ClassResult, letters: dict[str, str], name: str) -> Child:
    ways = sorted(enumerate(result.routes), key=lambda item: -item[1].rate_per_s)
    said: list[Child] = []
    for index, way in ways:
        steps: list[Child] = []
        for pool in way.pools:
            steps += [" → " if steps else None, letter(letters[pool])]
        part = share(way.rate_per_s / result.rate_per_s) if result.rate_per_s else "–"
        share_of = number(part, way.rate_per_s, "classes", name, "routes", index, "rate_per_s")
        said.append([*steps, " ", share_of] if len(ways) > 1 else steps)
    return listed(said, class_="plain") if said else "–"
