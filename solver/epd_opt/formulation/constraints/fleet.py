"""The fleet: units in use, what is bought or owned, and limits over all of it."""

from __future__ import annotations

from collections.abc import Iterator

import pulp

from epd_opt.formulation.objective import cost_expression, scale
from epd_opt.formulation.sets import Sets
from epd_opt.formulation.variables import Variables, standing_by

Rows = Iterator[tuple[str, pulp.LpConstraint]]


def units_used(sets: Sets, v: Variables) -> Rows:
    """``used_d``: units in use cover every replica and every spare (spares once per physical pool)."""
    for d, name in enumerate(sets.offers):
        terms = [
            (v.replicas[k], float(candidate.units))
            for k, candidate in enumerate(sets.candidates)
            if candidate.device == name
        ]
        terms += [
            (variable, count * float(sets.candidates[members[0]].units))
            for pool, members in sets.pools.items()
            if pool[0] == name
            for variable, count in standing_by(sets, v, pool)
        ]
        yield f"used_{d}", pulp.LpAffineExpression([*terms, (v.used[name], -1.0)]) <= 0


def pool_opening(sets: Sets, v: Variables) -> Rows:
    """``pool_k``: a physical pool is open when one of its operating points is."""
    for pool, variable in v.pool_open.items():
        for k in sets.pools[pool]:
            yield f"pool_{k}", v.open[k] <= variable


def buying(sets: Sets, v: Variables) -> Rows:
    """``buy_d``: units in use are owned or come in bought lots, of which spot units in use are only a share."""
    for d, (name, offer) in enumerate(sets.offers.items()):
        kept = offer.lot / (1.0 + offer.interruption_allowance)
        yield f"buy_{d}", v.used[name] <= kept * v.lots[name] + v.owned[name]


def stock(sets: Sets, v: Variables) -> Rows:
    """``stock_d``: bought lots and owned units in use stay within the stock."""
    for d, (name, offer) in enumerate(sets.offers.items()):
        if offer.stock is not None:
            yield f"stock_{d}", offer.lot * v.lots[name] + v.owned[name] <= offer.stock


def device_limit(sets: Sets, v: Variables) -> Rows:
    """``devices``: units over all entries, whole lots counted."""
    if sets.problem.limits.devices is not None:
        installed = [offer.lot * v.lots[name] + v.owned[name] for name, offer in sets.offers.items()]
        yield "devices", pulp.lpSum(installed) <= sets.problem.limits.devices


def budget(sets: Sets, v: Variables) -> Rows:
    """``budget``: hourly cost within the limit."""
    limit = sets.problem.limits.usd_per_hour
    if limit is not None:
        factor = scale(sets).factor
        yield "budget", pulp.LpAffineExpression(cost_expression(sets, v, factor=factor)) <= limit * factor


def power(sets: Sets, v: Variables) -> Rows:
    """``power``: nameplate IT power of all installed units, hosts included, in kilowatts."""
    limit = sets.problem.limits.power_w
    if limit is not None:
        terms = []
        for name, offer in sets.offers.items():
            terms += [(v.lots[name], offer.lot * offer.power_w / 1e3), (v.owned[name], offer.power_w / 1e3)]
        yield "power", pulp.LpAffineExpression(terms) <= limit / 1e3
