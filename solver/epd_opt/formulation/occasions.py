"""One fleet for several occasions: bought once, run and routed at each occasion by itself.

Each occasion has the model of a single one over its own candidates; what they share is a fleet of physical pools, of which
an occasion may run as many replicas as stand, at whatever operating points suit it. Units by the hour may be left to the
occasions: then each hires its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import pulp

from epd_models.candidate import Candidate
from epd_opt.formulation.build import Formulation
from epd_opt.formulation.constraints import (
    FLEET_FAMILIES,
    HIRED_FAMILIES,
    INSTALLED_FAMILIES,
    OCCASION_FAMILIES,
    Rows,
)
from epd_opt.formulation.objective import Scale, cost_expression, pool_ties, scale_of, total, unit_ties
from epd_opt.formulation.sets import Sets
from epd_opt.formulation.variables import (
    Variables,
    add_fleet_variables,
    add_hired_variables,
    add_occasion_variables,
    standing_by,
)
from epd_opt.problem import Aim, Occasion, PlanningProblem

Physical = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class FleetSets(Sets):
    """Index sets of a fleet. Its candidates are physical pools, without rows and arcs.

    Attributes
    ----------
    most : Mapping
        Replicas of each physical pool, spares among them, of which more are never useful.
    """

    most: Mapping[Physical, int]

    @cached_property
    def most_replicas(self) -> tuple[int, ...]:
        """Per physical pool, as given."""
        return tuple(self.most[candidate.physical] for candidate in self.candidates)


@dataclass(frozen=True, kw_only=True)
class Risk:
    """Variables of what an aim makes of the costs of the occasions, on the scale of the objective.

    Attributes
    ----------
    level : pulp.LpVariable or None
        The largest cost, or with cvar the cost from which on occasions count.
    excess : dict
        With cvar: what each occasion, by its index, costs above that level.
    """

    level: pulp.LpVariable | None = None
    excess: Mapping[int, pulp.LpVariable] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class OccasionsFormulation:
    """A built model of several occasions with what is needed to read its solution.

    Attributes
    ----------
    fleet : Formulation
        The fleet's part; its replicas are those that stand.
    parts : tuple of Formulation
        Each occasion's part, in the order of the occasions.
    hired : tuple of Formulation
        For each occasion, its part over the entries whose units it hires for itself.
    risk : Risk
        Of the aim.
    """

    model: pulp.LpProblem
    occasions: tuple[Occasion, ...]
    aim: Aim
    fleet: Formulation
    parts: tuple[Formulation, ...]
    hired: tuple[Formulation, ...]
    risk: Risk
    scale: Scale

    @property
    def variables(self) -> Variables:
        """Those of the fleet."""
        return self.fleet.variables


def build_occasions(occasions: Sequence[Occasion], aim: Aim, by_the_hour: Collection[str] = ()) -> OccasionsFormulation:
    """Build the model of one fleet for several occasions that is best by an aim.

    Among fleets that are equally good, the ties of a single occasion decide, those of pools averaged over the occasions.

    Parameters
    ----------
    by_the_hour : collection of str
        Device entries whose units are no part of the fleet: each occasion hires as many as it uses.
    """
    model = pulp.LpProblem("occasions", pulp.LpMinimize)
    fleet_sets = _fleet_sets(occasions, by_the_hour)
    offered = {name for occasion in occasions for name in Sets(problem=occasion.problem).offers}
    scaling = scale_of(occasion.problem.offer(name) for occasion in occasions for name in sorted(offered))
    fleet = Formulation(model=model, sets=fleet_sets, variables=add_fleet_variables(model, fleet_sets), scale=scaling)
    fleet = replace(fleet, variables=_all_skus(model, fleet, offered, occasions[0].problem))
    parts, hired = [], []
    for index, occasion in enumerate(occasions):
        sets = Sets(problem=occasion.problem, held=frozenset(fleet_sets.offers))
        v = add_occasion_variables(model, sets, fleet.variables, f"s{index}_", may_fail=aim.held_share < 1.0)
        own = _hired(model, sets, v, by_the_hour, index, scaling)
        hired.append(own)
        v = replace(
            v,
            used={**v.used, **own.variables.used},
            lots={**v.lots, **own.variables.lots},
            owned={**v.owned, **own.variables.owned},
        )
        parts.append(Formulation(model=model, sets=sets, variables=v, scale=scaling))
    risk = _risk(model, aim, len(occasions))
    built = OccasionsFormulation(
        model=model,
        occasions=tuple(occasions),
        aim=aim,
        fleet=fleet,
        parts=tuple(parts),
        hired=tuple(hired),
        risk=risk,
        scale=scaling,
    )
    model.setObjective(occasions_objective(built))
    for family in FLEET_FAMILIES:
        for name, row in family(fleet.sets, fleet.variables):
            model.addConstraint(row, name)
    for index, part in enumerate(parts):
        for family in OCCASION_FAMILIES:
            for name, row in family(part.sets, part.variables):
                model.addConstraint(row, f"s{index}_{name}")
        for own, families in ((hired[index], HIRED_FAMILIES), (part, INSTALLED_FAMILIES if by_the_hour else ())):
            for family in families:
                for name, row in family(own.sets, own.variables):
                    model.addConstraint(row, f"s{index}_{name}")
    for coupling in COUPLINGS:
        for name, row in coupling(built):
            model.addConstraint(row, name)
    return built


def _hired(
    model: pulp.LpProblem, sets: Sets, v: Variables, by_the_hour: Collection[str], index: int, scaling: Scale
) -> Formulation:
    """An occasion's part over the entries whose units it hires for itself."""
    kept = [k for k, candidate in enumerate(sets.candidates) if candidate.device in by_the_hour]
    limits = replace(sets.problem.limits, skus=None, racks=None)
    own = Sets(problem=replace(sets.problem, candidates=tuple(sets.candidates[k] for k in kept), limits=limits))
    serving = replace(
        v,
        share={},
        replicas=[v.replicas[k] for k in kept],
        open=[v.open[k] for k in kept],
        pool_open={pool: variable for pool, variable in v.pool_open.items() if pool in own.pools},
    )
    hired = add_hired_variables(model, own, serving, f"s{index}_")
    return Formulation(model=model, sets=own, variables=hired, scale=scaling)


def _all_skus(model: pulp.LpProblem, fleet: Formulation, offered: Collection[str], terms: PlanningProblem) -> Variables:
    """The fleet's variables with one for each SKU that is hired alone, where the number of SKUs is limited."""
    v = fleet.variables
    if terms.limits.skus is None:
        return v
    others = sorted({terms.offer(name).sku for name in offered} - set(v.sku))
    added = {name: model.add_variable(f"c_{len(v.sku) + i}", 0, 1, cat=pulp.LpInteger) for i, name in enumerate(others)}
    return replace(v, sku={**v.sku, **added})


def _fleet_sets(occasions: Sequence[Occasion], by_the_hour: Collection[str] = ()) -> FleetSets:
    """The physical pools of all occasions, on the terms of the first."""
    first = occasions[0].problem
    stocks = {offer.name: offer.stock for offer in first.offers}
    pools: dict[Physical, Candidate] = {}
    most: dict[Physical, int] = {}
    for occasion in occasions:
        sets = Sets(problem=occasion.problem)
        for physical, members in sets.pools.items():
            one = sets.candidates[members[0]]
            if one.device in by_the_hour:
                continue
            pools.setdefault(physical, replace(one, key="|".join(physical), arcs=(), rows=(), busy_s={}))
            needed = sum(sets.most_replicas[k] for k in members)
            needed += occasion.problem.standing_by(needed)
            stocked = stocks[one.device]
            if stocked is not None:
                needed = min(needed, math.floor(stocked / one.units))
            most[physical] = max(most.get(physical, 0), needed)
    problem = PlanningProblem(
        demands=(),
        candidates=tuple(pools[physical] for physical in sorted(pools)),
        offers=first.offers,
        limits=first.limits,
        spare_replicas=0,
    )
    return FleetSets(problem=problem, most=most)


def _risk(model: pulp.LpProblem, aim: Aim, count: int) -> Risk:
    if aim.minimise == "expected_cost":
        return Risk()
    level = model.add_variable("risk", 0)
    tails = range(count) if aim.minimise == "cvar" else ()
    return Risk(level=level, excess={index: model.add_variable(f"excess_{index}", 0) for index in tails})


def occasion_cost(built: OccasionsFormulation, index: int, factor: float) -> list[tuple[pulp.LpVariable, float]]:
    """Terms of the hourly cost at an occasion: all of the fleet at its prices there, and the energy of the work done."""
    part = built.parts[index]
    return cost_expression(part.sets, part.variables, factor=factor)


def expected_terms(built: OccasionsFormulation) -> list[tuple[pulp.LpVariable, float]]:
    """Terms of the mean hourly cost by weight, on the scale of the objective."""
    return [
        term
        for index, occasion in enumerate(built.occasions)
        for term in occasion_cost(built, index, built.scale.factor * occasion.weight)
    ]


def tie_terms(built: OccasionsFormulation) -> list[tuple[pulp.LpVariable, float]]:
    """Terms of all ties: units of the fleet, and on average over the occasions, open pools and fixed candidates."""
    terms = unit_ties(built.fleet.variables)
    for part, own in zip(built.parts, built.hired, strict=True):
        terms += unit_ties(own.variables, factor=1.0 / len(built.parts))
        terms += pool_ties(part.sets, part.variables, factor=1.0 / len(built.parts))
    return terms


def occasions_objective(built: OccasionsFormulation) -> pulp.LpAffineExpression:
    """What the aim makes of the costs of the occasions, scaled, plus ties.

    The conditional value at risk is that of Rockafellar and Uryasev: the level plus the mean excess over it, divided by
    the share of weight that counts; the least over all levels is the mean over the dearest occasions.

    References
    ----------
    Rockafellar and Uryasev, "Optimization of conditional value-at-risk", Journal of Risk 2 (2000).
    """
    risk, aim = built.risk, built.aim
    terms = tie_terms(built)
    if risk.level is None:
        return total([*expected_terms(built), *terms])
    tail = 1.0 - aim.level
    weights = [occasion.weight for occasion in built.occasions]
    terms += [(risk.level, 1.0), *((excess, weights[index] / tail) for index, excess in risk.excess.items())]
    return total(terms)


def standing(built: OccasionsFormulation) -> Rows:
    """``s0_stand_g``: an occasion runs no more replicas of a physical pool, spares added, than stand."""
    fleet = built.fleet
    stands = {candidate.physical: g for g, candidate in enumerate(fleet.sets.candidates)}
    for index, part in enumerate(built.parts):
        for physical, members in part.sets.pools.items():
            if physical not in stands:
                continue
            g, v = stands[physical], part.variables
            terms = [(v.replicas[k], 1.0) for k in members]
            terms += standing_by(part.sets, v, physical)
            yield f"s{index}_stand_{g}", pulp.LpAffineExpression([*terms, (fleet.variables.replicas[g], -1.0)]) <= 0


def risk_level(built: OccasionsFormulation) -> Rows:
    """``s0_cost``: an occasion costs no more than the level, but for its excess where there is one."""
    if built.risk.level is None:
        return
    for index in range(len(built.parts)):
        terms = [*occasion_cost(built, index, built.scale.factor), (built.risk.level, -1.0)]
        terms += [(built.risk.excess[index], -1.0)] if index in built.risk.excess else []
        yield f"s{index}_cost", total(terms) <= 0


def holding(built: OccasionsFormulation) -> Rows:
    """``held``: the weight of the occasions that go unserved is no more than may be."""
    if built.aim.held_share < 1.0:
        pairs = zip(built.parts, built.occasions, strict=True)
        left = [(part.variables.unserved, occasion.weight) for part, occasion in pairs]
        yield "held", pulp.LpAffineExpression(left) <= 1.0 - built.aim.held_share + _ROUNDING


def hired_skus(built: OccasionsFormulation) -> Rows:
    """``s0_sku_d``: units are hired of SKUs that count among those of the fleet, at whatever occasion."""
    skus = built.fleet.variables.sku
    for index, own in enumerate(built.hired if skus else ()):
        for d, (name, offer) in enumerate(own.sets.offers.items()):
            most = own.sets.most_units[name]
            yield f"s{index}_sku_{d}", own.variables.used[name] <= most * skus[offer.sku]


_ROUNDING = 1e-9
"""Weights are shares of their sum: what rounding may add to them."""

Coupling = Callable[[OccasionsFormulation], Iterator[tuple[str, pulp.LpConstraint]]]

COUPLINGS: tuple[Coupling, ...] = (standing, risk_level, holding, hired_skus)
"""Families that tie the occasions to the fleet and to each other."""
