"""Which shares of the fleet's cost each scenario pays, so that the bound that follows is as high as can be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pulp

from epd_opt.backends import HIGHS, Settings
from epd_opt.formulation.objective import total
from epd_opt.problem import Aim, Offer
from epd_opt.robust.paying import Group, Payer

Shares = tuple[Mapping[Group, float], ...]
"""For every scenario its share of each group; those of a group add up to no more than one."""


@dataclass(frozen=True, kw_only=True)
class Split:
    """Shares, and what an hour of each scenario weighs with them."""

    shares: Shares
    weights: tuple[float, ...]

    def over(self, groups: Sequence[Group]) -> Split:
        """The same with pools as groups of their own, which pay what their entry does."""
        shares = tuple({group: own[group] if group in own else own[group[0]] for group in groups} for own in self.shares)
        return Split(shares=shares, weights=self.weights)


@dataclass(kw_only=True)
class Splits:
    """All ways to share the cost of a fleet.

    Attributes
    ----------
    weights : sequence of float
        Of the scenarios.
    free : bool
        Whether what an hour of each weighs is up to the split, as far as the aim leaves it; else they are ``weights``.
    """

    payers: Sequence[Payer]
    groups: Sequence[Group]
    weights: Sequence[float]
    aim: Aim
    free: bool

    def highest(self, settings: Settings) -> float | None:
        """What the ways known cost at the most under any split: no split's bound exceeds it. None where time ran out."""
        model = _Model(self)
        model.problem.setObjective(total([(variable, -1.0) for variable in model.cost]))
        found = HIGHS.relaxation(model.problem, settings)
        return None if found is None else -found.objective

    def nearest(self, centre: Split, level: float, settings: Settings) -> Split | None:
        """The split nearest to another one under which the ways known cost so much; None where time ran out."""
        model = _Model(self)
        model.problem.addConstraint(pulp.lpSum(model.cost) >= level, "level")
        apart = []
        for s, own in enumerate(model.share):
            for g, group in enumerate(self.groups):
                away = model.problem.add_variable(f"d_{s}_{g}", 0, 1)
                there = centre.shares[s][group]
                model.problem.addConstraint(own[g] - away <= there, f"above_{s}_{g}")
                model.problem.addConstraint(own[g] + away >= there, f"below_{s}_{g}")
                apart.append((away, 1.0))
        for s, heavy in enumerate(model.heavy if self.free else ()):
            away = model.problem.add_variable(f"e_{s}", 0, 1)
            model.problem.addConstraint(heavy - away <= centre.weights[s], f"heavier_{s}")
            model.problem.addConstraint(heavy + away >= centre.weights[s], f"lighter_{s}")
            apart.append((away, 1.0))
        model.problem.setObjective(total(apart))
        found = HIGHS.relaxation(model.problem, settings)
        if found is None:
            return None
        values = dict(zip((v.name for v in model.problem.variables()), found.values.tolist(), strict=True))
        shares = tuple(
            {group: min(1.0, max(0.0, values[own[g].name])) for g, group in enumerate(self.groups)} for own in model.share
        )
        return _safe(Split(shares=shares, weights=tuple(max(0.0, values[one.name]) for one in model.heavy)))


class _Model:
    """What every scenario pays at the most by the ways known, as a linear programme."""

    def __init__(self, splits: Splits) -> None:
        payers, groups = splits.payers, splits.groups
        self.problem = pulp.LpProblem("shares", pulp.LpMinimize)
        add = self.problem.add_variable
        self.cost = [add(f"t_{s}", 0) for s in range(len(payers))]
        self.share = [[add(f"f_{s}_{g}", 0, 1) for g in range(len(groups))] for s in range(len(payers))]
        self.heavy = [
            add(f"w_{s}", *_range(weight, splits.aim, free=splits.free)) for s, weight in enumerate(splits.weights)
        ]
        if splits.free:
            self.problem.addConstraint(pulp.lpSum(self.heavy) == 1.0, "weights")
        for g in range(len(groups)):
            self.problem.addConstraint(pulp.lpSum(own[g] for own in self.share) <= 1.0, f"group_{g}")
        for s, payer in enumerate(payers):
            for j, way in enumerate(payer.ways):
                terms = [(self.cost[s], 1.0), (self.heavy[s], -way.own_usd)]
                terms += [(self.share[s][g], -way.part(one, groups, payer.standing)) for g, one in enumerate(groups)]
                self.problem.addConstraint(total(terms) <= 0, f"way_{s}_{j}")


def _range(weight: float, aim: Aim, *, free: bool) -> tuple[float, float]:
    if not free:
        return weight, weight
    return 0.0, 1.0 if aim.minimise == "worst_cost" else min(1.0, weight / (1.0 - aim.level))


def _safe(split: Split) -> Split:
    """The same with no group paid more than once, whatever rounding did."""
    sums: dict[Group, float] = {}
    for own in split.shares:
        for group, share in own.items():
            sums[group] = sums.get(group, 0.0) + share
    over = {group: max(1.0, paid) for group, paid in sums.items()}
    whole = max(1.0, math.fsum(split.weights))
    return Split(
        shares=tuple({group: share / over[group] for group, share in own.items()} for own in split.shares),
        weights=tuple(weight / whole for weight in split.weights),
    )


def shared_terms(offers: Sequence[Mapping[str, Offer]], weights: Sequence[float], names: Sequence[str]) -> dict[str, Offer]:
    """Mean terms of entries over the scenarios, by what an hour of each weighs."""
    whole = math.fsum(weights)

    def mean(values: Sequence[float]) -> float:
        if len(set(values)) == 1:
            return values[0]
        return math.fsum(weight * value for weight, value in zip(weights, values, strict=True)) / whole

    return {
        name: replace(
            offers[0][name],
            usd_per_hour=mean([own[name].usd_per_hour for own in offers]),
            used_usd_per_hour=mean([own[name].used_usd_per_hour for own in offers]),
            owned_usd_per_hour=mean([own[name].owned_usd_per_hour for own in offers]),
        )
        for name in names
    }
