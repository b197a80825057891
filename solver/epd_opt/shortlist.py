"""Candidates that a plan worth having may use, found by pricing them against the linear relaxation.

The relaxation is solved over a few candidates; its prices of requests at every point of their way tell what opening any
other candidate would earn. Candidates that would earn something join, until none does: then the bound holds for all of
them. An incumbent over the best of them leaves out every candidate that costs more to open than lies between the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pulp

from epd_models.candidate import STATES, Candidate, Node
from epd_opt.backends import HIGHS, Clock, Clocked, Matrix, Outcome, Relaxation, Settings
from epd_opt.formulation import Formulation, Question, build
from epd_opt.formulation.constraints.flow import hand_over_rows
from epd_opt.problem import PlanningProblem
from epd_opt.prune import connected, thin

Vector: TypeAlias = npt.NDArray[np.float64]
Place: TypeAlias = tuple[str, Node]

ENOUGH = 150
"""Problems of so few candidates are solved as they are."""
_FIRST, _JOINING, _TRIED = 150, 120, 20
"""Candidates that the relaxation starts with, that join it at a time, and that the incumbent is sought among per class."""
_POOR = 1.5
"""An incumbent that costs so many times the bound is sought again among more candidates."""
_CAREFUL = 1e-5
"""Share of the incumbent's cost that is added to it before anything is left out: more than all ties together weigh."""


@dataclass(frozen=True, kw_only=True)
class Incumbent:
    """A plan over some of the candidates."""

    formulation: Formulation
    outcome: Outcome

    @property
    def most(self) -> float:
        """What a better plan costs at most, US dollars per hour."""
        assert self.outcome.objective is not None
        return self.outcome.objective / self.formulation.scale.factor * (1.0 + _CAREFUL)

    def values(self, formulation: Formulation) -> dict[str, float]:
        """The same plan in the variables of a formulation over other candidates, those that it uses among them; what
        follows from the rest, as where groups stand, is left open."""
        assert self.outcome.values is not None
        v = formulation.variables
        open_ended = (v.nodes, v.loose, v.kept, v.ordered, v.sku)
        standing = {id(one) for group in open_ended for one in group.values()}
        result = {variable.name: 0.0 for variable in formulation.model.variables() if id(variable) not in standing}
        keys = {candidate.key: k for k, candidate in enumerate(formulation.sets.candidates)}
        mine, theirs = self.formulation.variables, formulation.variables
        pairs: list[tuple[pulp.LpVariable, pulp.LpVariable]] = []
        for k, candidate in enumerate(self.formulation.sets.candidates):
            if candidate.key not in keys and self.outcome.values[mine.open[k].name] < 0.5:
                continue
            there = keys[candidate.key]
            arcs = [arc for arc in candidate.arcs if (there, arc) in theirs.share]
            pairs += [(mine.replicas[k], theirs.replicas[there]), (mine.open[k], theirs.open[there])]
            pairs += [(mine.share[k, arc], theirs.share[there, arc]) for arc in arcs]
        pairs += [
            (variable, theirs.pool_open[pool]) for pool, variable in mine.pool_open.items() if pool in theirs.pool_open
        ]
        for before, after in ((mine.standby, theirs.standby), (mine.zone, theirs.zone)):
            pairs += [(one, after[pool]) for pool, one in before.items() if pool in after]
        for known, same in ((mine.used, theirs.used), (mine.lots, theirs.lots), (mine.owned, theirs.owned)):
            pairs += [(variable, same[name]) for name, variable in known.items() if name in same]
        return result | {same.name: self.outcome.values[variable.name] for variable, same in pairs}


@dataclass(frozen=True, kw_only=True)
class Shortlist:
    """A problem with the same optimum over fewer candidates, and what was found on the way, if anything.

    Attributes
    ----------
    bound : float
        On the cost of every plan with its tie-breaks, US dollars per hour.
    incumbent : Incumbent or None
        A plan.
    """

    problem: PlanningProblem
    bound: float = 0.0
    incumbent: Incumbent | None = None

    def start(self, formulation: Formulation) -> dict[str, float] | None:
        """The plan as values to start from."""
        return None if self.incumbent is None else self.incumbent.values(formulation)

    def known(self, formulation: Formulation, outcome: Outcome) -> Outcome:
        """The outcome of a solve that was stopped, with what is known here where that is better."""
        if self.incumbent is None or outcome.termination not in ("time_limit", "interrupted"):
            return outcome
        values = self.incumbent.values(formulation)
        objective = sum(c * values[variable.name] for variable, c in formulation.model.objective.items())
        bound = max(self.bound * formulation.scale.factor, -math.inf if outcome.bound is None else outcome.bound)
        if outcome.objective is not None and outcome.objective <= objective:
            return replace(outcome, bound=min(bound, outcome.objective))
        return replace(outcome, values=values, objective=objective, bound=min(bound, objective))


def shortlist(problem: PlanningProblem, settings: Settings, clock: Clock, questions: Sequence[Question] = ()) -> Shortlist:
    """Leave out candidates that no plan cheaper than a known one can use.

    Relaxations and the incumbent are HiGHS's, whatever solver is asked for afterwards.

    Returns
    -------
    Shortlist
        Of the problem itself where it is small, or nothing could be proved in time.
    """
    if len(problem.candidates) <= ENOUGH:
        return Shortlist(problem=problem)
    priced = _priced(counted(problem), settings, clock, questions)
    incumbent = None if priced is None else _incumbent(problem, priced, settings, clock, questions)
    if priced is None or incumbent is None or priced.bound > incumbent.most:
        return Shortlist(problem=problem)
    kept = priced.favoured | (priced.bound - priced.worth <= incumbent.most)
    return Shortlist(problem=_restricted(problem, kept), bound=priced.bound, incumbent=incumbent)


def counted(problem: PlanningProblem) -> PlanningProblem:
    """The problem without what only rules plans out or makes them dearer, and is seen to by plans that are sought, not by
    prices: servers, zones, smallest orders, numbers of SKUs, what is required. No plan of it costs less than its best."""
    return replace(
        problem,
        zones=1,
        lost_zones=0,
        limits=replace(problem.limits, skus=None, required=()),
        offers=tuple(replace(offer, nodes=None, minimum=0) for offer in problem.offers),
    )


def worth_staffing(
    outlines: PlanningProblem,
    staffed: Callable[[Collection[str]], PlanningProblem],
    settings: Settings,
    clock: Clock,
) -> Collection[str]:
    """Keys of the outlines that a plan cheaper than a known one may use an operating point of.

    The relaxation is solved over operating points of some pools and outlines of the others. An outline asks for no more than
    any operating point of its pool, so this bounds every plan. Pools whose outlines it uses, or nearly, are staffed, a few
    times over; the known plan is one over their points.

    Parameters
    ----------
    outlines : PlanningProblem
        Over outlines in place of operating points.
    staffed : callable
        The problem over the operating points of the pools of some keys.
    """
    every = [candidate.key for candidate in outlines.candidates]
    packed, outlines = outlines, counted(outlines)
    known = {candidate.key: candidate for candidate in connected(outlines.candidates)}
    if len(known) <= ENOUGH:
        return every
    some, owner = set[str](), dict[str, str]()
    points: list[Candidate] = []
    priced = _priced(replace(outlines, candidates=tuple(known.values())), settings, clock)
    joining = [] if priced is None else [list(known)[k] for k in _best(priced.worth, _SEEDS)]
    for _ in range(_ROUNDS):
        if priced is None or not joining:
            break
        some.update(joining)
        for key in sorted(joining):
            found = staffed([key]).candidates
            points += found
            owner |= {candidate.key: key for candidate in found}
        points = thin(replace(outlines, candidates=tuple(points)))
        mixed = [*points, *(candidate for key, candidate in known.items() if key not in some)]
        problem = replace(outlines, candidates=tuple(sorted(connected(mixed), key=lambda candidate: candidate.key)))
        priced = _priced(problem, settings, clock, first=priced.solved)
        if priced is not None:
            near = priced.worth > -_CLOSE * abs(priced.bound)
            keys = [candidate.key for candidate in problem.candidates]
            joining = [key for key, close in zip(keys, near, strict=True) if close and key in known and key not in some]
    if priced is None:
        return every
    real = np.array([candidate.key in owner for candidate in problem.candidates])
    incumbent = _incumbent(
        replace(packed, candidates=_only(problem, real).candidates),
        replace(priced, worth=priced.worth[real], favoured=priced.favoured[real]),
        settings,
        clock,
        (),
    )
    if incumbent is None or priced.bound > incumbent.most:
        return every
    kept = priced.bound - priced.worth <= incumbent.most
    used = {
        owner.get(candidate.key, candidate.key) for candidate, wanted in zip(problem.candidates, kept, strict=True) if wanted
    }
    return [key for key in every if key in used]


_ROUNDS = 4
"""Times that pools are staffed: each raises the bound less than the one before."""
_CLOSE = 0.002
"""An outline is staffed when it earns nearly something: its share of the bound."""


@dataclass(frozen=True, kw_only=True)
class _Priced:
    """What a relaxation says: a bound on every plan's cost, and what opening each candidate earns at most. Candidates that a
    question favours are worth more than that. ``solved``: keys of those that the relaxation was solved over."""

    bound: float
    worth: Vector
    favoured: npt.NDArray[np.bool_]
    solved: frozenset[str]


def _priced(
    problem: PlanningProblem,
    settings: Settings,
    clock: Clock,
    questions: Sequence[Question] = (),
    first: frozenset[str] = frozenset(),
) -> _Priced | None:
    """Prices all candidates; None where the relaxation has no optimum, or none in time. ``first`` is where
    it starts."""
    pricing = _Pricing(problem)
    labels = pricing.first_labels()
    worth = pricing.worth(labels, pricing.list_prices())
    favoured = np.array([any(q.favours(c) for q in questions) for c in problem.candidates])
    chosen = favoured | np.array([candidate.key in first for candidate in problem.candidates])
    if not first:
        chosen[_best(worth, _FIRST)] = True
    while True:
        # Ways that lead nowhere yet stay, so that no place is without a price that fits all candidates of the relaxation.
        formulation = build(_only(problem, chosen), questions)
        relaxed = HIGHS.relaxation(formulation.model, replace(settings, time_limit_s=clock.left_s))
        if relaxed is None:
            if chosen.all() or clock.left_s == 0.0:
                return None
            chosen[_best(np.where(chosen, -np.inf, worth), int(chosen.sum()))] = True
            continue
        labels = pricing.labels(formulation, relaxed, labels)
        prices = pricing.unit_prices(formulation, relaxed)
        worth = pricing.worth(labels, prices)
        bound = relaxed.objective / formulation.scale.factor
        missing = ~chosen & (worth > _NOTHING * abs(bound))
        if not missing.any():
            break
        chosen[_best(np.where(missing, worth, -np.inf), min(_JOINING, int(missing.sum())))] = True
    bound -= float(np.maximum(worth[~chosen], 0.0).sum())
    near = np.flatnonzero(worth > -_NEAR * abs(bound))
    worth[near] = pricing.sharp_worth(labels, prices, near, replace(settings, time_limit_s=clock.left_s), worth[near])
    solved = frozenset(candidate.key for candidate, wanted in zip(problem.candidates, chosen, strict=True) if wanted)
    return _Priced(bound=bound, worth=worth, favoured=favoured, solved=solved)


def _incumbent(
    problem: PlanningProblem, priced: _Priced, settings: Settings, clock: Clock, questions: Sequence[Question]
) -> Incumbent | None:
    """A plan over the best candidates; None where there is none, or none in time."""
    count, rough = _TRIED * len(problem.demands), replace(settings, gap=max(settings.gap, _ROUGH))
    while True:
        tried = priced.favoured.copy()
        tried[_best(priced.worth, count)] = True
        formulation = build(_restricted(problem, tried), questions)
        outcome = Clocked(solver=HIGHS, clock=clock).solve(formulation.model, rough)
        found = None if outcome.values is None else Incumbent(formulation=formulation, outcome=outcome)
        if found is not None and (found.most <= _POOR * priced.bound or tried.all() or clock.left_s == 0.0):
            return found
        if tried.all() or (found is None and outcome.termination != "infeasible"):
            return found
        count *= 3


_SEEDS = 60
"""Pools that are staffed first, for a plan to measure the others by."""
_ROUGH = 0.01
"""Relative gap within which the incumbent is sought."""
_NEAR = 0.25
"""Candidates whose opening is sure to cost more, as a share of the bound, are priced no further."""
_NOTHING = 1e-7
"""What a candidate may earn and still not join the relaxation, as a share of the bound."""


def _best(worth: Vector, count: int) -> npt.NDArray[np.intp]:
    """Positions of the highest values, the first of equals."""
    order: npt.NDArray[np.intp] = np.argsort(-worth, kind="stable")
    return order[:count]


def _only(problem: PlanningProblem, chosen: npt.NDArray[np.bool_]) -> PlanningProblem:
    some = (candidate for candidate, wanted in zip(problem.candidates, chosen, strict=True) if wanted)
    return replace(problem, candidates=tuple(some))


def _restricted(problem: PlanningProblem, chosen: npt.NDArray[np.bool_]) -> PlanningProblem:
    some = _only(problem, chosen)
    return replace(some, candidates=tuple(connected(some.candidates)))


class _Pricing:
    """What opening each candidate would earn at given prices of places and units: arrays over all candidates.

    A place is a class at a node of the stage graph; its label is the price of all requests of the class being there.
    Prices and earnings are US dollars per hour.
    """

    def __init__(self, problem: PlanningProblem) -> None:
        self.problem = problem
        self.classes = {demand.name: c for c, demand in enumerate(problem.demands)}
        rates = np.array([demand.rate for demand in problem.demands])
        offers = {offer.name: offer for offer in problem.offers}
        self.devices = {name: d for d, name in enumerate(offers)}
        self.places: dict[Place, int] = {}
        arcs, rows = [], []
        for k, candidate in enumerate(problem.candidates):
            offer = offers[candidate.device]
            for arc in candidate.arcs:
                c = self.classes[arc.request_class]
                start, end = ((arc.request_class, node) for node in (arc.start, arc.end))
                energy = 3600.0 * problem.demands[c].mean_rate * offer.busy_usd_per_unit_second
                energy *= candidate.busy_s[arc.request_class] * float(candidate.units)
                places = (self.places.setdefault(place, len(self.places)) for place in (start, end))
                arcs.append((k, c, *places, energy))
            for row in candidate.rows:
                load = dict(row.load)
                rows.append((k, row.setup, *(load.get(name, 0.0) for name in self.classes)))
        table = np.array(arcs)
        self.arc_owner, self.arc_class, self.arc_start, self.arc_end = table[:, :4].T.astype(np.intp)
        self.arc_cost = table[:, 4]
        table = np.array(rows).reshape(len(rows), 2 + len(rates))
        self.row_owner, self.row_setup, self.row_load = table[:, 0].astype(np.intp), table[:, 1], table[:, 2:] * rates
        self.units = np.array([float(candidate.units) for candidate in problem.candidates])
        self.device = np.array([self.devices[candidate.device] for candidate in problem.candidates], dtype=np.intp)
        self.owner = np.array([self.classes[name] for name, _ in self.places], dtype=np.intp)
        self.stage = np.array([STATES.index(node.state) for _, node in self.places])
        self.starts = np.array([node.sender is None and node.state != "done" for _, node in self.places])
        self.ends = self.stage == len(STATES) - 1
        chains: dict[Place, list[tuple[int, int]]] = {}
        for (name, node), i in self.places.items():
            chains.setdefault((name, Node(state=node.state, sender=node.sender)), []).append((node.level, i))
        self.chains = {place: np.array(sorted(chain)) for place, chain in chains.items()}

    def list_prices(self) -> Vector:
        """What a unit in use costs at least, by device entry."""
        offers = self.problem.offers
        bought = [o.usd_per_hour if not o.owned else min(o.usd_per_hour, o.owned_usd_per_hour) for o in offers]
        prices: Vector = np.array(bought) + np.array([offer.used_usd_per_hour for offer in offers])
        return prices

    def unit_prices(self, formulation: Formulation, relaxed: Relaxation) -> Vector:
        """What a unit in use costs in the relaxation; at least, where it does not know the device entry."""
        prices = self.list_prices()
        for d, name in enumerate(formulation.sets.offers):
            prices[self.devices[name]] = -relaxed.duals[f"used_{d}"] / formulation.scale.factor
        return prices

    def first_labels(self) -> Vector:
        """Labels where every class goes its cheapest way, by itself, and every replica is full."""
        replica = (self.units * self.list_prices()[self.device])[self.row_owner]
        dearest = np.zeros((len(self.problem.candidates), len(self.classes)))
        np.maximum.at(dearest, self.row_owner, replica[:, None] * self.row_load)
        cost = dearest[self.arc_owner, self.arc_class] + self.arc_cost
        labels = np.where(self.starts, 0.0, np.inf)
        for state in range(len(STATES)):
            for chain in self.chains.values():
                if self.stage[chain[0, 1]] == state:
                    labels[chain[:, 1]] = np.minimum.accumulate(labels[chain[:, 1]])
            leaving = self.stage[self.arc_start] == state
            np.minimum.at(labels, self.arc_end[leaving], (labels[self.arc_start] + cost)[leaving])
        through = np.zeros(len(self.classes))
        through[self.owner[self.ends]] = labels[self.ends]
        result: Vector = labels - through[self.owner]
        return result

    def labels(self, formulation: Formulation, relaxed: Relaxation, before: Vector) -> Vector:
        """Labels in the relaxation; places that it does not know keep their distance from where their class starts."""
        sets, factor = formulation.sets, formulation.scale.factor
        start = np.zeros(len(self.classes))
        for c, name in enumerate(sets.demands):
            start[self.classes[name]] = -relaxed.duals[f"demand_{c}"] / factor
        moved = np.zeros(len(self.classes))
        moved[self.owner[self.starts]] = (start[self.owner] - before)[self.starts]
        labels: Vector = np.where(self.ends, 0.0, np.minimum(before + moved[self.owner], 0.0))
        known: dict[Place, list[tuple[int, float]]] = {}
        for row, place, level, *_ in hand_over_rows(sets):
            known.setdefault(place, []).append((level, relaxed.duals.get(row, 0.0) / factor))
        for place, duals in known.items():
            chain = self.chains[place]
            labels[chain[:, 1]] = [-sum(dual for later, dual in duals if later >= level) for level in chain[:, 0]]
        return labels

    def worth(self, labels: Vector, prices: Vector) -> Vector:
        """An upper bound on what opening each candidate earns, rows taken one at a time, shape (candidates,)."""
        gain, replica = self._gain(labels), self.units * prices[self.device]
        left = np.maximum(gain[self.row_owner] - replica[self.row_owner, None] * self.row_load, 0.0).sum(axis=1)
        result: Vector = gain.sum(axis=1) - replica
        np.minimum.at(result, self.row_owner, left - replica[self.row_owner] * self.row_setup)
        return result

    def sharp_worth(
        self, labels: Vector, prices: Vector, some: npt.NDArray[np.intp], settings: Settings, otherwise: Vector
    ) -> Vector:
        """What opening some candidates earns at most, all their rows together, by one linear programme: for each of them,
        shares of the classes and a number of replicas. ``otherwise`` stands where there is no time for it."""
        gain, replica = self._gain(labels)[some], (self.units * prices[self.device])[some]
        count, classes = gain.shape
        position = np.full(len(self.problem.candidates), -1)
        position[some] = np.arange(count)
        rows = np.flatnonzero(position[self.row_owner] >= 0)
        owner = position[self.row_owner[rows]]
        # Columns: the classes' shares of each candidate, then its replicas.
        start = owner[:, None] * (classes + 1)
        terms = np.concatenate((self.row_load[rows], -np.ones((len(rows), 1))), axis=1)
        columns = start + np.arange(classes + 1)
        used = terms != 0.0
        found = HIGHS.linear(
            Matrix(
                names=tuple(str(i) for i in range(count * (classes + 1))),
                cost=np.concatenate((-gain, replica[:, None]), axis=1).ravel(),
                lower=np.tile(np.append(np.zeros(classes), 1.0), count),
                upper=np.tile(np.append(np.ones(classes), np.inf), count),
                integer=np.zeros(count * (classes + 1), dtype=bool),
                row_names=tuple(str(i) for i in range(len(rows))),
                row_lower=np.full(len(rows), -np.inf),
                row_upper=-self.row_setup[rows],
                starts=np.concatenate(([0], np.cumsum(used.sum(axis=1)))),
                columns=columns[used],
                coefficients=terms[used],
                offset=0.0,
            ),
            settings,
        )
        if found is None:
            return otherwise
        values = found.values.reshape(count, classes + 1)
        earned: Vector = (gain * values[:, :-1]).sum(axis=1) - replica * values[:, -1]
        return np.minimum(otherwise, earned + _NOTHING * np.abs(replica * values[:, -1]))

    def _gain(self, labels: Vector) -> Vector:
        """What all requests of each class earn on the best arc of each candidate, shape (candidates, classes)."""
        gain = np.zeros((len(self.problem.candidates), len(self.classes)))
        earned = labels[self.arc_end] - labels[self.arc_start] - self.arc_cost
        np.maximum.at(gain, (self.arc_owner, self.arc_class), earned)
        return gain
