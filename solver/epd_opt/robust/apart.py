"""The best fleet for many scenarios, found scenario by scenario.

A model of all scenarios together grows with their number, and its relaxation bounds small fleets badly. Here each scenario
is planned by itself, paying shares of what it holds of the fleet (:mod:`epd_opt.robust.paying`): that bounds the cost of
every fleet, and the ways to serve the scenarios that are found on the way make up fleets. Shares move to where the bound is
highest; where an entry's shares leave it too low, because its units would have to change roles between scenarios, pools get
shares of their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from epd_opt.backends import HIGHS, Clock, Clocked, Outcome, Settings
from epd_opt.formulation import OccasionsFormulation, build_occasions
from epd_opt.problem import Aim
from epd_opt.prune import connected
from epd_opt.robust.paying import Group, Payer, separable
from epd_opt.robust.scene import Physical, Scenes
from epd_opt.robust.shares import Split, Splits, shared_terms
from epd_opt.search.task import Means

_ROUNDS = 60
"""Times at most that shares move."""
_LEVEL = 0.6
"""How far up, between what is proved and what the known ways leave possible, the next shares are to prove."""
_SHORT = 0.3
"""Where shares leave so little to prove, as a part of what they can never prove of the best fleet, pools get shares of
their own."""
_ROUGH = 0.01
"""Gap at which a scenario is planned by itself while shares are far from where they come to rest."""
_FLEETS = 4
"""Fleets that are looked at each time that ways are put together."""
_BY_THE_HOUR = 1.6
"""What a unit by the hour costs, as a multiple of a committed one: a guess, to choose what to look at first."""
_TOGETHER_S = 5.0
"""Seconds for which the ways known are put together to a fleet."""


@dataclass(frozen=True, kw_only=True)
class Together:
    """A fleet made up of ways to serve the scenarios: the model of all scenarios over what those use, and its solution."""

    formulation: OccasionsFormulation
    outcome: Outcome

    @property
    def value(self) -> float:
        """What is minimised, ties among it, US dollars per hour."""
        assert self.outcome.objective is not None
        return self.outcome.objective / self.formulation.scale.factor

    @property
    def stands(self) -> dict[Physical, int]:
        """Replicas of the physical pools that stand."""
        assert self.outcome.values is not None
        fleet = self.formulation.fleet
        counts = {
            candidate.physical: round(self.outcome.values[variable.name])
            for candidate, variable in zip(fleet.sets.candidates, fleet.variables.replicas, strict=True)
        }
        return {physical: count for physical, count in counts.items() if count}


@dataclass(kw_only=True)
class Apart:
    """The search.

    Attributes
    ----------
    bound : float
        On what is minimised over all fleets, US dollars per hour.
    best : Together or None
        The best fleet found.
    """

    scenes: Scenes
    aim: Aim
    means: Means
    bound: float = 0.0
    best: Together | None = None
    looked_at: set[frozenset[tuple[Physical, int]]] = field(default_factory=set)
    split: Split = field(init=False)
    payers: list[Payer] = field(init=False)
    groups: list[Group] = field(init=False)
    free: bool = field(init=False)

    def __post_init__(self) -> None:
        each = self.scenes.each
        offers = [{offer.name: offer for offer in scene.problem.offers} for scene in each]
        used = {one.device for scene in each for one in scene.problem.candidates}
        names = sorted(used - self.scenes.hired)
        weights = tuple(scene.case.weight for scene in each)
        standing = shared_terms(offers, weights, names)
        alike = all(own[name] == standing[name] for own in offers for name in names)
        self.free = self.aim.minimise != "expected_cost" and alike
        self.groups = list(names)
        self.split = Split(shares=tuple(dict.fromkeys(names, weight) for weight in weights), weights=weights)
        self.payers = [
            Payer(problem=scene.problem, standing=standing, settings=self.means.settings, clock=self.means.clock)
            for scene in each
        ]

    def run(self) -> None:
        """Search until the fleet is proved within the gap, no shares prove more, or the time is over."""
        wanted = self.means.settings.gap
        split, rough = self.split, _ROUGH
        for count in range(_ROUNDS):
            paid = self._paid(split, max(wanted / 4.0, rough))
            if paid is None:
                break
            if count == 0 or paid > self.bound:
                self.split, self.bound = split, max(self.bound, paid)
            if count == 0:
                self._make_up()
            most = self._splits.highest(self._lp)
            self.means.say(
                f"shares {count + 1}: bound {self.bound:.6g} of at most {most or 0.0:.6g}, plan {self._value:.6g}"
            )
            if most is None or self._proved(wanted):
                break
            rough = (most - self.bound) / most / 4.0 if most > 0.0 else 0.0
            beyond = max(0.0, self._value - most) if self.best is not None else 0.0
            if most - self.bound <= max(wanted / 2.0 * most, 1e-7 * most, _SHORT * beyond):
                self._make_up()
                if self._proved(wanted) or not self._divide():
                    break
                self.split = self.split.over(self.groups)
                most = self._splits.highest(self._lp)
                if most is None:
                    break
            found = self._splits.nearest(self.split, self.bound + _LEVEL * (most - self.bound), self._lp)
            if found is None:
                break
            split = found
        if not self._proved(wanted):
            self._make_up()

    @property
    def _splits(self) -> Splits:
        weights = tuple(scene.case.weight for scene in self.scenes.each)
        return Splits(payers=self.payers, groups=self.groups, weights=weights, aim=self.aim, free=self.free)

    @property
    def _lp(self) -> Settings:
        return replace(self.means.settings, time_limit_s=self.means.clock.left_s)

    @property
    def _value(self) -> float:
        return math.inf if self.best is None else self.best.value

    def _proved(self, gap: float) -> bool:
        return self.best is not None and self.best.value - self.bound <= gap * self.best.value

    def _paid(self, split: Split, gap: float) -> float | None:
        """The bound that shares prove; None where time ran out."""
        paid = []
        for payer, weight, shares in zip(self.payers, split.weights, split.shares, strict=True):
            own = payer.pays(weight, shares, gap)
            if own is None:
                return None
            paid.append(own)
        return math.fsum(paid) * (1.0 - 1e-9)

    def _divide(self) -> bool:
        """Give pools shares of their own: those that stand in the best fleet or that a known way runs; whether there are
        more of them now."""
        wanted: set[Physical] = set() if self.best is None else set(self.best.stands)
        for payer in self.payers:
            for way in payer.ways:
                wanted |= way.replicas.keys()
        apart = {physical for physical in wanted if separable(self.payers[0].standing[physical[0]])}
        new = sorted(apart - {group for group in self.groups if not isinstance(group, str)})
        self.groups += new
        return bool(new)

    def _make_up(self) -> None:
        """Make up fleets of the ways known, and look for better ways beside each of them."""
        if any(not payer.ways for payer in self.payers):
            return
        self._together()
        for stands in self._fleets() if self.groups else ():
            self.looked_at.add(_frozen(stands))
            if self.means.clock.left_s == 0.0:
                return
            known = self._known
            if all(payer.beside(stands) for payer in self.payers) and self._known > known:
                self._together()

    @property
    def _known(self) -> int:
        return sum(len(payer.ways) for payer in self.payers)

    def bound_on_all(self, clock: Clock) -> float:
        """The bound where pools that were left out for their number count as well, within the time that is left."""
        if not self.scenes.reduced:
            return self.bound
        paid = []
        for scene, payer, weight, shares in zip(
            self.scenes.each, self.payers, self.split.weights, self.split.shares, strict=True
        ):
            own = payer.pays(weight, shares, _ROUGH)
            paid.append(0.0 if own is None else payer.with_unstaffed(weight, shares, own, scene.unstaffed, clock))
        return math.fsum(paid) * (1.0 - 1e-9)

    def _fleets(self) -> Iterator[dict[Physical, int]]:
        """Fleets worth a look: those that a way runs, and with one replica more or less, the best one known."""
        for _ in range(_FLEETS):
            found = {_frozen(way.replicas) for payer in self.payers for way in payer.ways}
            if self.best is not None:
                stands = self.best.stands
                found.add(_frozen(stands))
                found |= {_frozen({**stands, physical: stands[physical] + by}) for physical in stands for by in (-1, 1)}
            cost = {one: self._costs(dict(one)) for one in found - self.looked_at}
            new = sorted((usd, sorted(one)) for one, usd in cost.items() if usd < self._value)
            if not new:
                return
            yield dict(new[0][1])

    def _costs(self, stands: Mapping[Physical, int]) -> float:
        """What a fleet costs about, with the best ways known beside it; replicas that a way runs and that do not stand are
        dearer by the hour."""
        payer, sizes = self.payers[0], self._sizes
        costs = [sum(payer.holds(stands, sizes).values())]
        for scene, own in zip(self.scenes.each, self.payers, strict=True):
            hired = [
                way.own_usd + _BY_THE_HOUR * sum(payer.holds(_beyond(way.replicas, stands), sizes).values())
                for way in own.ways
            ]
            costs.append(scene.case.weight * min(hired))
        return math.fsum(costs)

    @property
    def _sizes(self) -> dict[Physical, float]:
        return {p: size for payer in self.payers for way in payer.ways for p, size in way.sizes.items()}

    def _together(self) -> None:
        """The best fleet over the candidates that the ways known use."""
        if self.means.clock.left_s == 0.0:
            return
        occasions = []
        for scene, payer in zip(self.scenes.each, self.payers, strict=True):
            keys = frozenset().union(*(way.keys for way in payer.ways))
            some = tuple(connected(one for one in scene.problem.candidates if one.key in keys))
            occasions.append(replace(scene.occasion, problem=replace(scene.problem, candidates=some)))
        formulation = build_occasions(occasions, self.aim, self.scenes.hired)
        clock = Clock(min(_TOGETHER_S, self.means.clock.left_s))
        settings = replace(self.means.settings, gap=self.means.settings.gap / 4.0, start=self._start(formulation))
        outcome = Clocked(solver=HIGHS, clock=clock).solve(formulation.model, settings)
        if clock.stopped:
            self.means.clock.stop()
        if outcome.values is None:
            return
        found = Together(formulation=formulation, outcome=outcome)
        if self.best is None or found.value < self.best.value:
            self.best = found

    def _start(self, formulation: OccasionsFormulation) -> dict[str, float] | None:
        """The best fleet known in the variables of a model over more candidates."""
        return None if self.best is None else carried(self.best, formulation)


def _beyond(replicas: Mapping[Physical, int], stands: Mapping[Physical, int]) -> dict[Physical, int]:
    """Replicas beside those that stand."""
    missing = {physical: count - stands.get(physical, 0) for physical, count in replicas.items()}
    return {physical: count for physical, count in missing.items() if count > 0}


def _frozen(stands: Mapping[Physical, int]) -> frozenset[tuple[Physical, int]]:
    return frozenset((physical, count) for physical, count in stands.items() if count)


def carried(found: Together, formulation: OccasionsFormulation) -> dict[str, float]:
    """A fleet in the variables of a model over other candidates, those that it uses among them: what runs at each
    occasion; the rest follows."""
    assert found.outcome.values is not None
    values = found.outcome.values
    result: dict[str, float] = {}
    for mine, theirs in zip(found.formulation.parts, formulation.parts, strict=True):
        keys = {one.key: k for k, one in enumerate(mine.sets.candidates)}
        before, after = mine.variables, theirs.variables
        for k, one in enumerate(theirs.sets.candidates):
            own = keys.get(one.key)
            result[after.replicas[k].name] = 0.0 if own is None else values[before.replicas[own].name]
            result[after.open[k].name] = 0.0 if own is None else values[before.open[own].name]
    stands = found.stands
    for one, variable in zip(formulation.fleet.sets.candidates, formulation.fleet.variables.replicas, strict=True):
        result[variable.name] = float(stands.get(one.physical, 0))
    return result
