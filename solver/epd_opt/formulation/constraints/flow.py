"""Flow of every class through the stage graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import pulp

from epd_models.candidate import Arc, Node
from epd_opt.formulation.sets import Sets
from epd_opt.formulation.variables import Variables, leaving_source

Rows = Iterator[tuple[str, pulp.LpConstraint]]


def demand(sets: Sets, v: Variables) -> Rows:
    """``demand_c``: every class is served in full, but for the share that may be left; the shares on the arcs that leave
    its source add up to the rest."""
    for c, name in enumerate(sets.demands):
        parts = leaving_source(v, name)
        parts += [] if v.unserved is None else [v.unserved]
        yield f"demand_{c}", pulp.lpSum(parts) == 1


def hand_over(sets: Sets, v: Variables) -> Rows:
    """``hand_over_c_h_level``: what receivers take that must have arrived by a level is there by that level.

    A request that arrives earlier may always be taken as arriving later, so cumulative rows over the levels are exact;
    at the last level they are equalities: all that is handed over is taken.
    """
    for name, _, level, last, arriving, leaving in hand_over_rows(sets):
        taken = pulp.lpSum(v.share[k, arc] for k, arc in leaving if arc.start.level <= level)
        there = pulp.lpSum(v.share[k, arc] for k, arc in arriving if arc.end.level <= level)
        if last:
            yield name, taken == there
        elif len(taken):
            yield name, taken <= there


Owned: TypeAlias = list[tuple[int, Arc]]


def hand_over_rows(sets: Sets) -> Iterator[tuple[str, tuple[str, Node], int, bool, Owned, Owned]]:
    """For each row of :func:`hand_over`: name, class and hand-over, level, whether it is the last, arcs in, arcs out."""
    classes = {name: c for c, name in enumerate(sets.demands)}
    for h, (place, (arriving, leaving)) in enumerate(sorted(sets.hand_overs.items(), key=lambda item: item[0])):
        levels = sorted({arc.start.level for _, arc in leaving} | {arc.end.level for _, arc in arriving})
        for level in levels:
            yield f"hand_over_{classes[place[0]]}_{h}_{level}", place, level, level == levels[-1], arriving, leaving
