"""What the plan rests on: times, assumptions, warnings and provenance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from epd_opt.document import Assumption, FittedError, PlanDocument
from epd_opt.report.markup import Child, Markup, element, facts, joined, letter, listed, number, paragraph, table, trust
from epd_opt.report.summary import percent
from epd_opt.wording import counted, labels, sources, weakest

_QUANTITIES = {"ttft": "TTFT", "itl": "ITL", "image": "the encode of an image"}


def times(document: PlanDocument) -> Markup:
    """Where the times of each stage of each pool come from, and how far they were off."""
    modelled = [pool for pool in document.pools if pool.provenance != "measured"]
    if not modelled:
        return paragraph("All pools are measured workers: they meet every target up to their rates, as the instance says.")
    text = f"Times come from {sources(modelled)}; weakest confidence among their figures: {weakest(document.pools)}."
    letters = labels(document.pools)
    rows: list[Sequence[Child]] = []
    for i, pool in enumerate(document.pools):
        if pool.provenance == "measured":
            rows.append([letter(letters[pool.name]), "all", "a measured worker", trust(pool.confidence), "–", "–"])
        for j, time in enumerate(pool.times):
            error = _error(time.fitted_error, i, j)
            rows.append(
                [
                    letter(letters[pool.name]),
                    _whole(time.stage),
                    _whole(time.source),
                    trust(time.confidence),
                    error,
                    _small(time.note),
                ]
            )
    return joined(paragraph(text), table("Times", ["Pool", "Stage", "Source", "Confidence", "Error", "Behind it"], rows))


def _error(error: FittedError | None, pool: int, time: int) -> Child:
    if error is None:
        return "never compared"
    path = ("pools", pool, "times", time, "fitted_error")
    tail: Child = None
    if error.p90 is not None:
        tail = [", p90 ", number(percent(error.p90), error.p90, *path, "p90")]
    what = _QUANTITIES.get(error.quantity, error.quantity)
    seen = "not seen by the fit" if error.held_out else "seen by the fit"
    points = number(f"{error.points:,}", error.points, *path, "points")
    median = number(percent(error.median), error.median, *path, "median")
    return [f"{what} off by ", median, " in the median", tail, "; ", points, f" measurements, {seen}"]


def _small(text: str) -> Markup:
    return element("span", text, class_="small")


def _whole(word: str) -> Markup:
    return element("span", word, class_="whole")


def assumptions(document: PlanDocument) -> Markup:
    """Figures that the instance did not state: those with values, and those that stand on cards."""
    every = list(enumerate(document.assumptions))
    if not every:
        return paragraph("None: the instance states every figure that the plan rests on.")
    weak = sum(one.confidence == "estimate" for _, one in every)
    text = f"{counted(len(every), 'figure')} that the instance did not state; {weak} of them are estimates."
    stated = [(i, one) for i, one in every if not _on_card(one)]
    rows = [
        [element("span", one.text, class_="name"), _value(i, one), trust(one.confidence), _small(one.source)]
        for i, one in stated
    ]
    parts: list[Child] = [paragraph(text)]
    if rows:
        parts.append(table("Assumptions", ["Figure", "Value", "Confidence", "Source"], rows))
    cards = list(_cards([one for _, one in every if _on_card(one)]))
    if cards:
        columns = ["Card", "Figures and their confidence", "Source"]
        parts += [element("h3", "Figures of cards"), table("Figures of cards", columns, cards)]
    return joined(*parts)


def _on_card(one: Assumption) -> bool:
    return one.value == "card"


def _value(index: int, one: Assumption) -> Child:
    if isinstance(one.value, str):
        return f"{one.value} {one.unit}".rstrip()
    return [number(f"{one.value:.6g}", one.value, "assumptions", index, "value"), f" {one.unit}".rstrip()]


def _cards(found: Sequence[Assumption]) -> Iterator[Sequence[Child]]:
    """Figures of the same card and source in one row."""
    grouped: dict[tuple[str, str], list[Assumption]] = {}
    for one in found:
        grouped.setdefault((one.text.partition(": ")[0], one.source), []).append(one)
    for (card, source), members in grouped.items():
        parts: list[Child] = [[one.text.partition(": ")[2], " ", trust(one.confidence)] for one in members]
        yield [element("span", card, class_="name"), listed(parts, class_="plain"), _small(source)]


def warnings(document: PlanDocument) -> Markup:
    """All warnings."""
    return listed(document.warnings, class_="warnings")


def provenance(document: PlanDocument) -> Markup:
    """What made the plan, and what is proved of it."""
    made, cost = document.provenance, document.cost
    pairs: list[tuple[str, Child]] = [
        ("Instance", document.instance),
        ("SHA-256 of the instance", element("code", made.instance_sha256)),
        ("Planned by", f"epd-opt {made.epd_opt}"),
        ("Solver", [made.solver, ", ", number(counted(made.threads, "thread"), made.threads, "provenance", "threads")]),
        ("Time", number(f"{made.seconds:.3g} s", made.seconds, "provenance", "seconds")),
        ("Status", document.status),
    ]
    if cost is not None:
        bound = number(f"${cost.bound_usd_per_hour:,.4f}/h", cost.bound_usd_per_hour, "cost", "bound_usd_per_hour")
        pairs += [("Lower bound", bound), ("Gap", number(percent(cost.gap), cost.gap, "cost", "gap"))]
    if document.goodput is not None:
        most = document.goodput.bound_multiple
        pairs.append(
            ("No fleet serves more than", [number(f"{most:.6g}", most, "goodput", "bound_multiple"), " times the demand"])
        )
    pairs += [("Prices", made.prices_dated or "as the instance states them"), ("Document", document.schema_)]
    return facts(pairs)
