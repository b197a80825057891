"""Who goes where, as ribbons between classes and pools, and an order of the pools in which ribbons cross few boxes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from epd_opt.document import PlanDocument, Pool

STAGES = ("encode", "prefill", "decode")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ribbon:
    """Requests/s of a class from its source (None) or a pool to a pool."""

    request_class: str
    sender: str | None
    receiver: str
    rate: float


def ribbons_of(document: PlanDocument) -> list[Ribbon]:
    """The flows of all classes, ways of a class that share a leg put together."""
    merged: dict[tuple[str, str | None, str], float] = {}
    for name, result in document.classes.items():
        for way in result.routes:
            for sender, receiver in zip([None, *way.pools[:-1]], way.pools, strict=True):
                merged[name, sender, receiver] = merged.get((name, sender, receiver), 0.0) + way.rate_per_s
    return [
        Ribbon(request_class=name, sender=sender, receiver=receiver, rate=rate)
        for (name, sender, receiver), rate in merged.items()
    ]


def ordered(document: PlanDocument) -> list[Pool]:
    """Pools from top to bottom so that few ribbons pass behind a box and all travel little: the best order that moving
    one pool at a time leads to."""
    ribbons = ribbons_of(document)
    order = sorted(document.pools, key=lambda pool: (STAGES.index(pool.stages[0]), pool.name))
    cost = _disorder(document, order, ribbons)
    improving = True
    while improving:
        improving = False
        for pool, place in itertools.product(document.pools, range(len(order))):
            rest = [other for other in order if other is not pool]
            moved = [*rest[:place], pool, *rest[place:]]
            found = _disorder(document, moved, ribbons)
            if found < cost:
                order, cost, improving = moved, found, True
    return order


def _disorder(document: PlanDocument, order: Sequence[Pool], ribbons: Sequence[Ribbon]) -> tuple[int, float]:
    """Boxes in the way of ribbons, and the rows that all ribbons climb, thick ones counting more."""
    rows = {pool.name: i - (len(order) - 1) / 2 for i, pool in enumerate(order)}
    sources = {name: i - (len(document.classes) - 1) / 2 for i, name in enumerate(document.classes)}
    total = sum(ribbon.rate for ribbon in ribbons) or 1.0
    stages = {pool.name: [STAGES.index(stage) for stage in pool.stages] for pool in order}
    hidden, climbed = 0, 0.0
    for ribbon in ribbons:
        end = rows[ribbon.receiver]
        start = rows[ribbon.sender] if ribbon.sender else sources[ribbon.request_class]
        climbed += abs(end - start) * (0.2 + ribbon.rate / total)
        if ribbon.sender:
            bend = max(stages[ribbon.sender])
            low, high = sorted((start, end))
            hidden += sum(low < rows[name] < high and min(at) <= bend < max(at) for name, at in stages.items())
    return hidden, round(climbed, 9)
