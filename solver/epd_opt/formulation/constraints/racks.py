"""Racks: each is filled with units of one device entry, up to the power that it may draw."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pulp

from epd_opt.formulation.sets import Sets
from epd_opt.formulation.variables import Variables

Rows = Iterator[tuple[str, pulp.LpConstraint]]


def rack_power(sets: Sets, v: Variables) -> Rows:
    """``rack_d``: all installed units of an entry stand in its racks; ``racks``: of which there are no more than the site
    has."""
    limits = sets.problem.limits
    for d, (name, offer) in enumerate(sets.offers.items()):
        each = limits.units_per_rack(offer)
        if name in v.racks and each is not None:
            yield f"rack_{d}", offer.lot * v.lots[name] + v.owned[name] <= each * v.racks[name]
    if v.racks and limits.racks is not None and limits.racks < math.inf:
        yield "racks", pulp.lpSum(v.racks.values()) <= limits.racks
