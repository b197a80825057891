"""Losing zones: what is left of every pool still serves."""

from __future__ import annotations

from collections.abc import Iterator

import pulp

from epd_opt.formulation.sets import Sets
from epd_opt.formulation.variables import Variables

Rows = Iterator[tuple[str, pulp.LpConstraint]]


def zone_loss(sets: Sets, v: Variables) -> Rows:
    """``zone_g``: the zones that are left hold what a physical pool needs; ``lost_g``: as much stands in each of those that
    may be lost; ``spare_g``: and no fewer spares than wanted for single failures."""
    left = sets.problem.zones - sets.problem.lost_zones
    for g, (pool, members) in enumerate(sets.pools.items()):
        if pool in v.standby:
            terms = [(v.replicas[k], 1.0) for k in members]
            yield f"zone_{g}", pulp.LpAffineExpression([*terms, (v.zone[pool], -float(left))]) <= 0
            yield f"lost_{g}", sets.problem.lost_zones * v.zone[pool] <= v.standby[pool]
            if pool in v.pool_open:
                yield f"spare_{g}", sets.problem.spare_replicas * v.pool_open[pool] <= v.standby[pool]
