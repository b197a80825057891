"""Flow of every class through the stage graph."""

from __future__ import annotations

from collections.abc import Iterator

import pulp

from epd_opt.formulation.sets import HandOver, Sets
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
    at the last level they are equalities: all that is handed over is taken. What a sender hands over may be taken as
    handed over by the next slower one of its kind, so receivers need an arc from the slowest that suits them alone.
    """
    for name, at, level in hand_over_rows(sets):
        taken = [v.share[k, arc] for k, arc in at.leaving if arc.start.level <= level]
        taken += [v.slowed[arc] for arc in at.to_slower if arc.start.level <= level]
        there = [v.share[k, arc] for k, arc in at.arriving if arc.end.level <= level]
        there += [v.slowed[arc] for arc in at.from_faster if arc.end.level <= level]
        if level == at.levels[-1]:
            yield name, pulp.lpSum(taken) == pulp.lpSum(there)
        elif taken:
            yield name, pulp.lpSum(taken) <= pulp.lpSum(there)


def hand_over_rows(sets: Sets) -> Iterator[tuple[str, HandOver, int]]:
    """For each row of :func:`hand_over`: name, hand-over and level."""
    classes = {name: c for c, name in enumerate(sets.demands)}
    for h, there in enumerate(sets.hand_overs):
        for level in there.levels:
            yield f"hand_over_{classes[there.place[0]]}_{h}_{level}", there, level
