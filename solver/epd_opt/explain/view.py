"""Explanations for people: the terminal page, and the same in a notebook."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from epd_opt.explain.document import Alternative, ClassFacts, ExplanationDocument, Path, PoolFacts
from epd_opt.render import WIDTH, infeasible_view, view_html, view_text
from epd_opt.tables import ruled
from epd_opt.wording import label, milliseconds, money, printable, share, significant

_NAME = "cyan"
_SHOWN_STEPS = 0.03
"""Steps below this share of a path's TTFT are shown together."""
_SHOWN_REQUIREMENTS = 3
"""Requirements of a pool that are shown, the fullest first."""


def explanation_text(document: ExplanationDocument, *, color: bool = False, width: int = WIDTH) -> str:
    """The explanation as text, in ``width`` columns."""
    return view_text(_view(document), color=color, width=width)


def explanation_html(document: ExplanationDocument) -> str:
    """The explanation as an HTML fragment."""
    return view_html(_view(document))


def _view(document: ExplanationDocument) -> RenderableType:
    if document.infeasibility is not None:
        parts: list[RenderableType] = list(infeasible_view(document.instance, document.infeasibility))
    else:
        parts = list(_parts(document))
    parts += [Text(f"note: {printable(note)}", style="dim") for note in document.notes]
    return Group(*parts)


def _parts(document: ExplanationDocument) -> Iterator[RenderableType]:
    cost = "" if document.usd_per_hour is None else f": {money(document.usd_per_hour)}/h"
    proof = {"optimal": "proved", "feasible": "not proved"}.get(document.status, document.status)
    yield Text.assemble((printable(document.instance), "bold"), (f"{cost}, {proof}", ""))
    if document.pools:
        yield _spaced(_pools(document.pools))
        yield from _one_less(document.pools)
    for name, facts in document.classes.items():
        yield from _class(name, facts, {pool.name: label(i) for i, pool in enumerate(document.pools)})
    if document.limits:
        yield Text()
        yield Text("limits", style="bold")
        yield from (_item(limit.text) for limit in document.limits)
    if document.runners_up:
        yield Text()
        yield Text.assemble(("other structures, cheapest first", "bold"), " (these pools with others beside them are none)")
        yield from (_item(_summary(other), number=i + 1) for i, other in enumerate(document.runners_up))
    for answer in document.why_not:
        yield Text()
        least = "" if answer.share is None else f" for at least {share(answer.share)} of "
        least += "" if answer.share is None else (answer.request_class or "all traffic")
        yield Text.assemble((f"{answer.kind} {printable(answer.asked)}{printable(least)}", "bold"))
        yield _item(_summary(answer.alternative))


def _spaced(table: RenderableType) -> Padding:
    return Padding(table, (1, 0, 0, 0), expand=False)


def _item(text: str, *, number: int | None = None) -> Padding:
    mark = "" if number is None else f"{number}. "
    return Padding(Text(mark + printable(text)), (0, 0, 0, 2))


def _pools(pools: list[PoolFacts]) -> Table:
    table = ruled("", "pool", "what holds it to its size", ">needs", ">room", ">with one\nmore", ">with one\nless")
    for i, pool in enumerate(pools):
        tight = [r for r in pool.requirements if r.binding] or pool.requirements[:1]
        for n, requirement in enumerate(tight[:_SHOWN_REQUIREMENTS]):
            first = n == 0
            table.add_row(
                Text(label(i) if first else "", style="bold"),
                Text(printable(pool.name) if first else "", style=_NAME),
                requirement.text,
                f"{significant(requirement.needs_replicas)} of {pool.replicas}",
                *((_room(pool.room), _room(pool.room_with_one_more), _room(pool.room_with_one_less)) if first else ()),
            )
    return table


def _one_less(pools: list[PoolFacts]) -> Iterator[RenderableType]:
    if any(pool.one_less is not None for pool in pools):
        yield Text()
        yield Text("with one replica less of", style="bold")
    for i, pool in enumerate(pools):
        if pool.one_less is not None:
            yield _item(f"{label(i)}: {pool.one_less.text}")


def _room(times: float) -> str:
    """How much more or less traffic a pool carries."""
    return "none" if times == 0.0 else f"{round(times - 1, 4) + 0.0:+.1%}"


def _class(name: str, facts: ClassFacts, letters: dict[str, str]) -> Iterator[RenderableType]:
    yield Text()
    yield Text.assemble((printable(name), "bold"), (f"  {printable(facts.text)}", ""))
    for path in sorted(facts.paths, key=lambda path: -(path.ttft_ms or 0.0)):
        if path.ttft_ms:
            yield _item(_way(path, letters, whole=facts.rate_per_s))
    for interval in facts.intervals:
        promised = "" if interval.promised_ms is None else f", {milliseconds(interval.promised_ms)} ms promised"
        yield _item(
            f"between tokens in {letters[interval.pool]}: {milliseconds(interval.mean_ms)} ms on average, "
            f"{milliseconds(interval.predicted_ms)} ms at the percentile{promised}"
        )


def _way(path: Path, letters: dict[str, str], *, whole: float) -> str:
    assert path.ttft_ms is not None
    ways = " → ".join(letters[pool] for pool in path.pools)
    part = "" if path.rate_per_s >= whole * (1 - 1e-6) else f" ({share(path.rate_per_s / whole)})"
    steps = sorted(path.steps, key=lambda step: -step.ms)
    shown = [step for step in steps if step.ms >= _SHOWN_STEPS * path.ttft_ms]
    rest = path.ttft_ms - sum(step.ms for step in shown)
    several = len(path.pools) > 1
    texts = [f"{step.text}{f' ({letters[step.pool]})' if several else ''} {milliseconds(step.ms)}" for step in shown]
    texts += [f"the rest {milliseconds(rest)}"] if rest > 1e-6 * path.ttft_ms else []
    return f"{ways}{part}: {milliseconds(path.ttft_ms)} ms = {' + '.join(texts)}"


def _summary(other: Alternative) -> str:
    if other.usd_per_hour is None:
        return other.text
    pools = ", ".join(f"{pool.replicas} x {pool.name}" for pool in other.pools)
    return f"{money(other.usd_per_hour)}/h, {other.text} [{pools}]"
