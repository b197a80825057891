"""A scenario by itself that pays shares of what it holds of the fleet.

What a fleet for several scenarios costs is shared out among them: of the cost of every device entry that stands at all times
each scenario pays a share, and the shares add up to one. No scenario holds more than stands. So what each would cost at the
least by itself, paying its shares of what it holds, adds up to no more than the cost of any fleet for all of them, whatever
the shares are: a Lagrangian bound.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pulp

from epd_models.candidate import Candidate
from epd_opt.accounting import ways_to_hold
from epd_opt.backends import HIGHS, Clock, Clocked, Settings
from epd_opt.bound import proved_bound
from epd_opt.formulation import Question, build
from epd_opt.formulation.constraints import Rows
from epd_opt.formulation.sets import Sets
from epd_opt.formulation.variables import Variables, standing_by
from epd_opt.pricing import best, only, priced
from epd_opt.problem import Limits, Offer, PlanningProblem
from epd_opt.prune import connected
from epd_opt.robust.scene import Physical
from epd_opt.shortlist import Incumbent, Scout, counted

Group = str | Physical
"""What shares are paid of: a device entry, or one physical pool on it that has shares of its own."""


_AGAIN = 2.0
"""What is known within so many times the gap that is asked for is not worked out again."""
_LITTLE = 0.3
"""Share that is paid of what stands anyway while a way beside it is looked for: units are not run for nothing."""
_EACH, _NEARLY, _NODES = 100, 0.01, 100
"""Candidates per class, gap, and nodes of the search tree, with which a way beside a fleet is looked for."""


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way to serve a scenario.

    Attributes
    ----------
    own_usd : float
        Units hired by the hour and the energy of the work, US dollars per hour.
    holds : Mapping
        What it holds of every device entry that stands at all times, US dollars per hour at the terms that all share.
    replicas : Mapping
        Replicas of each physical pool on those entries, spares among them.
    sizes : Mapping
        Units of one of those replicas.
    keys : frozenset of str
        Candidates that it uses.
    """

    incumbent: Incumbent
    own_usd: float
    holds: Mapping[str, float]
    replicas: Mapping[Physical, int]
    sizes: Mapping[Physical, float]
    keys: frozenset[str]

    def part(self, group: Group, groups: Collection[Group], standing: Mapping[str, Offer]) -> float:
        """What it holds of a group, US dollars per hour: of an entry, without the pools that are groups of their own."""
        if not isinstance(group, str):
            return self._pool(group, standing)
        apart = (self._pool(one, standing) for one in groups if not isinstance(one, str) and one[0] == group)
        return max(0.0, self.holds.get(group, 0.0) - math.fsum(apart))

    def _pool(self, physical: Physical, standing: Mapping[str, Offer]) -> float:
        count = self.replicas.get(physical, 0)
        if not count:
            return 0.0
        offer = standing[physical[0]]
        return count * self.sizes[physical] * (offer.usd_per_hour + offer.used_usd_per_hour)


@dataclass(kw_only=True)
class Payer:
    """A scenario by itself, and the ways to serve it that are known.

    Attributes
    ----------
    problem : PlanningProblem
        At the prices of the scenario.
    standing : Mapping
        The terms that all scenarios share, of the entries that stand at all times, by name.
    """

    problem: PlanningProblem
    standing: Mapping[str, Offer]
    settings: Settings
    clock: Clock
    ways: list[Way] = field(default_factory=list)
    scout: Scout = field(init=False)
    known: dict[tuple[float, tuple[tuple[Group, float], ...]], tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scout = Scout(settings=self.settings, clock=self.clock)

    @property
    def metered(self) -> bool:
        """Whether work costs anything beside the units that do it."""
        return any(offer.busy_usd_per_unit_second for offer in self.problem.offers)

    def pays(self, weight: float, shares: Mapping[Group, float], gap: float) -> float | None:
        """What no way costs less than that pays these shares, where its own hour weighs so much; US dollars per hour. None
        where that is not known in time. The best way found is kept."""
        if weight <= 0.0 or self._free(shares):
            return 0.0
        asked = weight, tuple(sorted(shares.items(), key=repr))
        before = self.known.get(asked)
        if before is not None and before[0] <= _AGAIN * gap:
            return before[1]
        problem = apart(self._at(weight, shares), _pools_of(shares))
        self.scout.settings = replace(self.settings, gap=gap)
        self.scout.incumbent = self._best_known(problem, weight, shares)
        found = self._solved(problem, self.scout, [])
        if found is None:
            return None
        self._keep(found)
        assert found.outcome.objective is not None
        cost = found.outcome.objective / found.formulation.scale.factor
        self.known[asked] = gap, proved_bound(found.formulation, found.outcome, cost)[0]
        return self.known[asked][1]

    def with_unstaffed(
        self, weight: float, shares: Mapping[Group, float], paid: float, unstaffed: Sequence[Candidate], clock: Clock
    ) -> float:
        """What no way costs less than, whether or not it runs pools of which outlines alone are known: ``paid``, which holds
        without them, or as much as the relaxation leaves where one of them runs."""
        if weight <= 0.0 or not unstaffed or self._free(shares):
            return paid
        problem = self._at(weight, shares)
        mixed = sorted(connected([*problem.candidates, *unstaffed]), key=lambda one: one.key)
        problem = apart(replace(problem, candidates=tuple(mixed)), _pools_of(shares))
        found = priced(counted(problem), self.settings, clock)
        if found is None:
            return 0.0
        keys = {one.key for one in unstaffed}
        worth = [float(w) for w, one in zip(found.worth, problem.candidates, strict=True) if one.key in keys]
        return max(0.0, min(paid, found.bound - max(worth, default=0.0)))

    def _free(self, shares: Mapping[Group, float]) -> bool:
        """Whether a way is known that costs nothing at these shares."""
        return all(share <= 0.0 for share in shares.values()) and any(way.own_usd <= 0.0 for way in self.ways)

    def beside(self, stands: Mapping[Physical, int]) -> bool:
        """Look for the way of least own cost beside a fleet that stands; whether one is known."""
        fitting = [w for w in self.ways if all(n <= stands.get(p, 0) for p, n in w.replicas.items())]
        if not self.metered and any(way.own_usd <= 0.0 for way in fitting):
            return True
        problem = self._at(1.0, dict.fromkeys(self.standing, _LITTLE))
        kept = [one for one in problem.candidates if one.device not in self.standing or one.physical in stands]
        problem = replace(problem, candidates=tuple(connected(kept)))
        served = {name for one in problem.candidates for name in one.classes}
        if not {demand.name for demand in problem.demands} <= served:
            return False
        question = no_more_than(stands)
        found = priced(counted(problem), self.settings, self.clock, [question])
        if found is None:
            return bool(fitting)
        known = frozenset[str]().union(*(way.keys for way in self.ways))
        tried = np.array([one.key in known or one.physical in stands for one in problem.candidates])
        for demand in problem.demands:
            serves = np.array([demand.name in one.classes for one in problem.candidates])
            tried[best(np.where(serves, found.worth, -np.inf), min(_EACH, int(serves.sum())))] = True
        least = min(fitting, key=lambda way: way.own_usd) if fitting else None
        start = None if least is None else self._again(problem, least.keys, [question])
        formulation = build(replace(problem, candidates=tuple(connected(only(problem, tried).candidates))), [question])
        settings = replace(self.settings, gap=_NEARLY, nodes=_NODES)
        if start is not None and start.fits(formulation.sets.problem):
            settings = replace(settings, start=start.values(formulation))
        outcome = Clocked(solver=HIGHS, clock=self.clock).solve(formulation.model, settings)
        if outcome.values is None:
            return bool(fitting)
        self._keep(Incumbent(formulation=formulation, outcome=outcome))
        return True

    def _at(self, weight: float, shares: Mapping[Group, float]) -> PlanningProblem:
        """The problem where shares are paid of the entries that stand, and an hour of everything else weighs so much."""
        offers = []
        for offer in self.problem.offers:
            held = self.standing.get(offer.name)
            factor, terms = (weight, offer) if held is None else (shares[offer.name], held)
            offers.append(
                replace(
                    offer,
                    usd_per_hour=factor * terms.usd_per_hour,
                    used_usd_per_hour=factor * terms.used_usd_per_hour,
                    owned_usd_per_hour=factor * terms.owned_usd_per_hour,
                    busy_usd_per_unit_second=weight * offer.busy_usd_per_unit_second,
                )
            )
        for group, share in shares.items():
            if not isinstance(group, str):
                held = self.standing[group[0]]
                offers.append(
                    replace(
                        held,
                        name=_joined(group),
                        usd_per_hour=share * held.usd_per_hour,
                        used_usd_per_hour=share * held.used_usd_per_hour,
                        owned_usd_per_hour=0.0,
                        busy_usd_per_unit_second=weight * self._busy(group[0]),
                    )
                )
        offers.sort(key=lambda offer: offer.name)
        return replace(self.problem, offers=tuple(offers), limits=replace(self.problem.limits, usd_per_hour=None))

    def _busy(self, name: str) -> float:
        return self.problem.offer(name).busy_usd_per_unit_second

    def _best_known(self, problem: PlanningProblem, weight: float, shares: Mapping[Group, float]) -> Incumbent | None:
        """The cheapest of the ways that are known, at these shares."""
        if not self.ways:
            return None
        costs = [weight * w.own_usd + paid(w, shares, self.standing) for w in self.ways]
        return self._again(problem, self.ways[costs.index(min(costs))].keys, [])

    def _again(self, problem: PlanningProblem, keys: Collection[str], questions: list[Question]) -> Incumbent | None:
        """The best plan over a few candidates."""
        some = tuple(connected(one for one in problem.candidates if one.key in keys))
        formulation = build(replace(problem, candidates=some), questions)
        outcome = Clocked(solver=HIGHS, clock=self.clock).solve(formulation.model, self.settings)
        return None if outcome.values is None else Incumbent(formulation=formulation, outcome=outcome)

    def _solved(self, problem: PlanningProblem, scout: Scout, questions: list[Question]) -> Incumbent | None:
        listed = scout.shortlist(problem, questions)
        formulation = build(listed.problem, questions)
        settings = replace(scout.settings, start=listed.start(formulation))
        outcome = listed.known(formulation, Clocked(solver=HIGHS, clock=self.clock).solve(formulation.model, settings))
        return None if outcome.values is None else Incumbent(formulation=formulation, outcome=outcome)

    def _keep(self, found: Incumbent) -> None:
        """Remember a way."""
        way = self._way(found)
        if all(one.keys != way.keys or one.replicas != way.replicas for one in self.ways):
            self.ways.append(way)

    def _way(self, found: Incumbent) -> Way:
        values, v, sets = found.outcome.values, found.formulation.variables, found.formulation.sets
        assert values is not None
        known = {one.key: one.physical for one in self.problem.candidates}
        offers = {offer.name: offer for offer in self.problem.offers}
        own = 0.0
        for name, used in v.used.items():
            if name in offers and name not in self.standing:
                terms = offers[name]
                own += values[v.lots[name].name] * terms.lot * terms.usd_per_hour
                own += values[used.name] * terms.used_usd_per_hour + values[v.owned[name].name] * terms.owned_usd_per_hour
        for (k, arc), share in v.share.items():
            one = sets.candidates[k]
            busy = one.busy_s[arc.request_class] * float(one.units) * self._busy(known[one.key][0])
            own += 3600.0 * sets.demands[arc.request_class].mean_rate * busy * values[share.name]
        replicas: dict[Physical, int] = {}
        sizes: dict[Physical, float] = {}
        for members in sets.pools.values():
            one = sets.candidates[members[0]]
            physical = known[one.key]
            count = sum(round(values[v.replicas[k].name]) for k in members)
            if count and physical[0] in self.standing:
                replicas[physical], sizes[physical] = count + sets.problem.standing_by(count), float(one.units)
        return Way(
            incumbent=found,
            own_usd=own,
            holds=self.holds(replicas, sizes),
            replicas=replicas,
            sizes=sizes,
            keys=frozenset(found.used),
        )

    def holds(self, replicas: Mapping[Physical, int], sizes: Mapping[Physical, float]) -> dict[str, float]:
        """What the cheapest units for some replicas cost at the terms that all share, by entry."""
        units = dict.fromkeys(self.standing, 0.0)
        for physical, count in replicas.items():
            units[physical[0]] += count * sizes[physical]
        held = {}
        for name, terms in self.standing.items():
            used = math.ceil(units[name] - 1e-9)
            ways = ways_to_hold(terms, used)
            held[name] = (ways[0].usd_per_hour if ways else math.inf) + used * terms.used_usd_per_hour
        return held


def _pools_of(shares: Mapping[Group, float]) -> list[Physical]:
    return [group for group in shares if not isinstance(group, str)]


def paid(way: Way, shares: Mapping[Group, float], standing: Mapping[str, Offer]) -> float:
    """What a way pays of the fleet at some shares, US dollars per hour."""
    return math.fsum(share * way.part(group, shares, standing) for group, share in shares.items() if share)


def no_more_than(stands: Mapping[Physical, int]) -> Question:
    """The question for plans that run no more replicas of the pools that stand than there are; of others, as many as they
    like."""

    def rows(_: pulp.LpProblem, sets: Sets, v: Variables) -> Rows:
        for p, (physical, members) in enumerate(sets.pools.items()):
            if physical in stands:
                terms = [*((v.replicas[k], 1.0) for k in members), *standing_by(sets, v, physical)]
                yield f"within_{p}", pulp.LpAffineExpression(terms) <= float(stands[physical])

    return Question(rows=rows)


def _joined(physical: Physical) -> str:
    """A name for a pool as if it were an entry."""
    return "\0".join(physical)


def apart(problem: PlanningProblem, pools: Iterable[Physical]) -> PlanningProblem:
    """The problem with some physical pools on terms of their own, as if each were an entry: what entries have together -
    stock, servers, racks - is then no limit on them."""
    own = set(pools)
    if not own:
        return problem
    candidates = [replace(one, device=_joined(one.physical)) if one.physical in own else one for one in problem.candidates]
    entries = {name for name, _ in own} | {_joined(one) for one in own}
    offers = [replace(offer, nodes=None) if offer.name in entries else offer for offer in problem.offers]
    required = tuple(
        (what, (*names, *(_joined(one) for one in sorted(own) if one[0] in names)))
        for what, names in problem.limits.required
    )
    limits: Limits = replace(problem.limits, required=required, racks=None)
    return replace(problem, candidates=tuple(candidates), offers=tuple(offers), limits=limits)


def separable(offer: Offer) -> bool:
    """Whether the cost of an entry's units is that of its pools, each by itself: every unit costs the same."""
    whole = offer.nodes is not None and offer.nodes.whole
    return offer.lot == 1 and not offer.owned and not whole and offer.minimum <= 1 and not offer.interruption_allowance
