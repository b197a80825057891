"""Capacity of pools: the rows that candidates bring, and the fixed charge of opening one."""

from __future__ import annotations

from collections.abc import Iterator

import pulp

from epd_opt.formulation.sets import Sets
from epd_opt.formulation.variables import Variables

Rows = Iterator[tuple[str, pulp.LpConstraint]]


def capacity(sets: Sets, v: Variables) -> Rows:
    """``KIND_k_r``: each row of each candidate, ``sum(load * x) + setup * y <= n``."""
    for k, candidate in enumerate(sets.candidates):
        for r, row in enumerate(candidate.rows):
            load = dict(row.load)
            terms = [
                (v.share[k, arc], load[arc.request_class] * sets.demands[arc.request_class].rate)
                for arc in candidate.arcs
                if load.get(arc.request_class)
            ]
            terms += [(v.open[k], row.setup)] if row.setup else []
            if terms:
                yield f"{row.kind}_{k}_{r}", pulp.LpAffineExpression([*terms, (v.replicas[k], -1.0)]) <= 0


def linking(sets: Sets, v: Variables) -> Rows:
    """``through_k_c``: a class passes only through open candidates."""
    for k, candidate in enumerate(sets.candidates):
        for c, name in enumerate(sets.demands):
            passing = [v.share[k, arc] for arc in candidate.arcs if arc.request_class == name]
            if passing:
                yield f"through_{k}_{c}", pulp.lpSum(passing) <= v.open[k]


def replica_bounds(sets: Sets, v: Variables) -> Rows:
    """``least_k``, ``most_k``: an open candidate has between one replica and what the whole demand would need."""
    for k, most in enumerate(sets.most_replicas):
        yield f"least_{k}", v.replicas[k] >= v.open[k]
        yield f"most_{k}", v.replicas[k] <= most * v.open[k]
