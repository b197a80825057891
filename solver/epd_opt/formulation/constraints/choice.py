"""What operators want of a fleet's make-up: few SKUs, certain devices, orders of some size."""

from __future__ import annotations

from collections.abc import Iterator

import pulp

from epd_opt.formulation.sets import Sets
from epd_opt.formulation.variables import Variables

Rows = Iterator[tuple[str, pulp.LpConstraint]]

SERVING_SHARE = 0.01
"""Share of some class's requests at some stage that what is required must serve at least, to count as used."""


def minimum_order(sets: Sets, v: Variables) -> Rows:
    """``order_d``, ``ordered_d``: bought units of an entry are none, or no fewer than the smallest order."""
    for d, (name, offer) in enumerate(sets.offers.items()):
        if name in v.ordered:
            yield f"order_{d}", offer.minimum * v.ordered[name] <= offer.lot * v.lots[name]
            yield f"ordered_{d}", v.lots[name] <= sets.most_lots[name] * v.ordered[name]


def sku_limit(sets: Sets, v: Variables) -> Rows:
    """``sku_d``: units are used of SKUs that count; ``skus``: of which there are no more than allowed."""
    if sets.problem.limits.skus is not None:
        for d, (name, offer) in enumerate(sets.offers.items()):
            yield f"sku_{d}", v.used[name] <= sets.most_units[name] * v.sku[offer.sku]
        yield "skus", pulp.lpSum(v.sku.values()) <= sets.problem.limits.skus


def requirement(sets: Sets, v: Variables) -> Rows:
    """``require_r``: what is required serves a share of some class, if there are any; where some demand may go unserved, of
    what is served."""
    if not sets.demands:
        return
    for r, (_, entries) in enumerate(sets.problem.limits.required):
        terms = [(x, 1.0) for (k, _), x in v.share.items() if sets.candidates[k].device in entries]
        terms += [] if v.unserved is None else [(v.unserved, SERVING_SHARE)]
        yield f"require_{r}", pulp.LpAffineExpression(terms) >= SERVING_SHARE
