"""Hourly cost, and the tie-breaks below it."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

import pulp

from epd_opt.formulation.sets import Sets
from epd_opt.formulation.variables import Variables, leaving_source
from epd_opt.problem import Offer

UNIT_WEIGHT = 1000.0
"""What the dearest unit-hour weighs in the objective, so that tolerances and ties mean the same at every price."""
UNIT_TIE = 1e-6
"""Weight of a unit in use, as a share of the dearest unit: among plans of equal cost, the one with fewer units."""
OPEN_TIE = 5e-7
"""Weight of an open candidate: among those, the one with fewer pools."""
RANK_TIE = 2e-7
"""Most that a replica weighs by the key of its candidate: among those, always the same one."""


def rank_tie(key: str) -> float:
    """Weight of a replica of the candidate of this key, as a share of the dearest unit: scattered between half of
    :data:`RANK_TIE` and all of it, whatever other candidates there are."""
    scattered = zlib.crc32(key.encode()) / 2**32
    return RANK_TIE * (1.0 + scattered) / 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How the solver's objective relates to US dollars per hour.

    ``objective = factor * cost + ties`` with ties that weigh devices first, then pools, then fixed weights of candidates;
    they are so small that plans whose costs differ by more than one part in a million keep their order.
    """

    factor: float


def cost_expression(sets: Sets, v: Variables, *, factor: float = 1.0) -> list[tuple[pulp.LpVariable, float]]:
    """Terms of the hourly cost in US dollars times ``factor``: bought lots, idle energy of used units, running cost of
    owned units, energy of the work done."""
    terms: list[tuple[pulp.LpVariable, float]] = []
    for name, offer in sets.offers.items():
        terms.append((v.lots[name], factor * offer.lot * offer.usd_per_hour))
        terms.append((v.used[name], factor * offer.used_usd_per_hour))
        terms.append((v.owned[name], factor * offer.owned_usd_per_hour))
    for (k, arc), variable in v.share.items():
        candidate = sets.candidates[k]
        offer = sets.offers[candidate.device]
        if offer.busy_usd_per_unit_second:
            busy_units = candidate.busy_s[arc.request_class] * float(candidate.units)
            rate = sets.demands[arc.request_class].mean_rate
            terms.append((variable, factor * 3600.0 * rate * busy_units * offer.busy_usd_per_unit_second))
    return [(variable, coefficient) for variable, coefficient in terms if coefficient]


def scale(sets: Sets) -> Scale:
    """Scale in which the dearest unit-hour, at full work, weighs :data:`UNIT_WEIGHT`."""
    return scale_of(sets.offers.values())


def scale_of(offers: Iterable[Offer]) -> Scale:
    """The same for any offers."""
    dearest = max(
        (o.usd_per_hour + o.used_usd_per_hour + o.owned_usd_per_hour + 3600.0 * o.busy_usd_per_unit_second for o in offers),
        default=0.0,
    )
    return Scale(factor=UNIT_WEIGHT / dearest if dearest > 0 else 1.0)


def objective(sets: Sets, v: Variables, scaling: Scale) -> pulp.LpAffineExpression:
    """Scaled cost plus ties: fewer units in use, then fewer pools, then fixed weights."""
    return total(_cost_and_ties(sets, v, scaling))


def served_objective(sets: Sets, v: Variables) -> pulp.LpAffineExpression:
    """The share of the demand that is served, negative and with a weight of :data:`UNIT_WEIGHT`: what leaves the source of
    the first class, which is the same share of every class."""
    return total([(variable, -UNIT_WEIGHT) for variable in leaving_source(v, next(iter(sets.demands)))])


def ratio_objective(sets: Sets, v: Variables, scaling: Scale, usd_per_request: float) -> pulp.LpAffineExpression:
    """Scaled cost plus ties where every request that is not served costs ``usd_per_request``.

    But for a constant, this is cost less ``usd_per_request`` times the requests served, the function whose root is the
    least cost per request; in this form it stays as large as the cost, so that a relative gap has a meaning.
    """
    terms = _cost_and_ties(sets, v, scaling)
    if v.unserved is not None:
        terms.append((v.unserved, scaling.factor * usd_per_request * requests_per_hour(sets)))
    return total(terms)


def requests_per_hour(sets: Sets) -> float:
    """Mean requests per hour of all classes when all of the demand is served."""
    return 3600.0 * math.fsum(demand.mean_rate for demand in sets.demands.values())


def _cost_and_ties(sets: Sets, v: Variables, scaling: Scale) -> list[tuple[pulp.LpVariable, float]]:
    return [*cost_expression(sets, v, factor=scaling.factor), *unit_ties(v), *pool_ties(sets, v)]


def unit_ties(v: Variables, *, factor: float = 1.0) -> list[tuple[pulp.LpVariable, float]]:
    """Terms times ``factor`` that prefer fewer units in use."""
    return [(variable, factor * UNIT_WEIGHT * UNIT_TIE) for variable in v.used.values()]


def pool_ties(sets: Sets, v: Variables, *, factor: float = 1.0) -> list[tuple[pulp.LpVariable, float]]:
    """Terms times ``factor`` that prefer fewer pools, then fixed candidates."""
    terms = [(variable, factor * UNIT_WEIGHT * OPEN_TIE) for variable in v.open]
    ranks = [factor * UNIT_WEIGHT * rank_tie(candidate.key) for candidate in sets.candidates]
    return terms + list(zip(v.replicas, ranks, strict=True))


def total(terms: Iterable[tuple[pulp.LpVariable, float]]) -> pulp.LpAffineExpression:
    """Terms as one expression, those of a variable put together."""
    merged: dict[pulp.LpVariable, float] = {}
    for variable, coefficient in terms:
        merged[variable] = merged.get(variable, 0.0) + coefficient
    return pulp.LpAffineExpression(list(merged.items()))
