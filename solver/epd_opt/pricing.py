"""What opening a candidate would earn, by the prices of a linear relaxation.

The relaxation is solved over a few candidates; its prices of requests at every point of their way tell what opening any
other candidate would earn. Candidates that would earn something join, until none does: then the bound holds for all of
them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from epd_models.candidate import STATES, Node, every_arc
from epd_opt.backends import HIGHS, Basis, Clock, Matrix, Relaxation, Settings
from epd_opt.formulation import Formulation, Question, build
from epd_opt.formulation.constraints.flow import hand_over_rows
from epd_opt.problem import PlanningProblem
from epd_opt.prune import grids

Vector: TypeAlias = npt.NDArray[np.float64]
Place: TypeAlias = tuple[str, Node]

FIRST, JOINING = 150, 120
"""Candidates that the relaxation starts with, and that join it at a time at least."""
_SHARE = 0.5
"""Candidates that join at a time at the most, beyond that: a share of those that are in already."""
NEAR = 0.25
"""Candidates whose opening is sure to cost more, as a share of the bound, are priced no further."""
_STAYING = 0.05
"""Candidates whose opening is sure to cost more, as a share of the bound, are no start for a like relaxation."""
NOTHING = 1e-7
"""What a candidate may earn and still not join the relaxation, as a share of the bound."""


@dataclass(frozen=True, kw_only=True)
class Priced:
    """What a relaxation says.

    Attributes
    ----------
    bound : float
        On every plan's cost, US dollars per hour.
    worth : Vector
        What opening each candidate earns at most, US dollars per hour; those that a question favours are worth more.
    favoured : array of bool
        Whether a question favours a candidate.
    solved : frozenset of str
        Keys of the candidates that the relaxation was solved over and that a like one starts with.
    basis : Mapping[str, int]
        Where the relaxation ended, by names that do not depend on which candidates it was solved over.
    """

    bound: float
    worth: Vector
    favoured: npt.NDArray[np.bool_]
    solved: frozenset[str]
    basis: Mapping[str, int]


def priced(
    problem: PlanningProblem,
    settings: Settings,
    clock: Clock,
    questions: Sequence[Question] = (),
    before: Priced | None = None,
) -> Priced | None:
    """Price all candidates; None where the relaxation has no optimum, or none in time. It starts from where one over much
    the same candidates ended before."""
    pricing = _Pricing(problem)
    labels = pricing.first_labels()
    worth = pricing.worth(labels, pricing.list_prices())
    favoured = np.array([any(q.favours(c) for q in questions) for c in problem.candidates])
    chosen = favoured.copy()
    basis: Mapping[str, int] = {}
    if before is None:
        chosen[best(worth, FIRST)] = True
    else:
        chosen |= np.array([candidate.key in before.solved for candidate in problem.candidates])
        basis = before.basis
    while True:
        # Ways that lead nowhere yet stay, so that no place is without a price that fits all candidates of the relaxation.
        formulation = build(only(problem, chosen), questions)
        names = _lasting_names(formulation)
        start = Basis(
            variables={name: basis[lasting] for name, lasting in names.variables.items() if lasting in basis},
            rows={name: basis[lasting] for name, lasting in names.rows.items() if lasting in basis},
        )
        relaxed = HIGHS.relaxation(formulation.model, replace(settings, time_limit_s=clock.left_s), start if basis else None)
        if relaxed is None:
            if chosen.all() or clock.left_s == 0.0:
                return None
            chosen[best(np.where(chosen, -np.inf, worth), max(JOINING, int(chosen.sum())))] = True
            continue
        basis = {names.variables[name]: status for name, status in relaxed.basis.variables.items()}
        basis |= {names.rows[name]: status for name, status in relaxed.basis.rows.items()}
        labels = pricing.labels(formulation, relaxed, labels)
        prices = pricing.unit_prices(formulation, relaxed)
        worth = pricing.worth(labels, prices)
        bound = relaxed.objective / formulation.scale.factor
        missing = ~chosen & (worth > NOTHING * abs(bound))
        if not missing.any():
            break
        chosen[
            best(np.where(missing, worth, -np.inf), min(max(JOINING, int(_SHARE * chosen.sum())), int(missing.sum())))
        ] = True
    bound -= float(np.maximum(worth[~chosen], 0.0).sum())
    near = np.flatnonzero(worth > -NEAR * abs(bound))
    worth[near] = pricing.sharp_worth(labels, prices, near, replace(settings, time_limit_s=clock.left_s), worth[near])
    staying = chosen & (worth > -_STAYING * abs(bound))
    solved = frozenset(candidate.key for candidate, wanted in zip(problem.candidates, staying, strict=True) if wanted)
    return Priced(bound=bound, worth=worth, favoured=favoured, solved=solved, basis=basis)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """For the names of a model's variables and rows, names that do not depend on the other candidates in the model."""

    variables: Mapping[str, str]
    rows: Mapping[str, str]


_INDEXED = re.compile(r"(.+?)_(\d+)((?:_\d+)?)")
"""A kind, the index of a candidate or of a device entry, and what else tells names of a kind apart."""
_OF_ENTRIES = frozenset({"u", "b", "o", "used", "buy", "stock"})
_LASTING = frozenset({"demand"})


def _lasting_names(formulation: Formulation) -> _Names:
    candidates = [candidate.key for candidate in formulation.sets.candidates]
    entries = list(formulation.sets.offers)
    places = {name: f"hand_over {there.place} {level}" for name, there, level in hand_over_rows(formulation.sets)}
    places |= {variable.name: f"t {arc}" for arc, variable in formulation.variables.slowed.items()}

    def lasting(name: str) -> str:
        if name in places:
            return places[name]
        found = _INDEXED.fullmatch(name)
        if found is None or found[1] in _LASTING:
            return name
        known = entries if found[1] in _OF_ENTRIES else candidates
        index = int(found[2])
        return f"{found[1]} {known[index]} {found[3]}" if index < len(known) else name

    model = formulation.model
    return _Names(
        variables={variable.name: lasting(variable.name) for variable in model.variables()},
        rows={row.name: lasting(row.name) for row in model.constraints()},
    )


def best(worth: Vector, count: int) -> npt.NDArray[np.intp]:
    """Positions of the highest values, the first of equals."""
    order: npt.NDArray[np.intp] = np.argsort(-worth, kind="stable")
    return order[:count]


def only(problem: PlanningProblem, chosen: npt.NDArray[np.bool_]) -> PlanningProblem:
    """The problem over some of its candidates."""
    some = (candidate for candidate, wanted in zip(problem.candidates, chosen, strict=True) if wanted)
    return replace(problem, candidates=tuple(some))


def _falling(grid: Vector) -> Vector:
    """The largest values, none above those given, that fall with each row and column."""
    result: Vector = np.minimum.accumulate(np.minimum.accumulate(grid, axis=0), axis=1)
    return result


def _rising_back(grid: Vector) -> Vector:
    """The smallest values, none below those given, that fall with each row and column."""
    back = grid[::-1, ::-1]
    result: Vector = np.maximum.accumulate(np.maximum.accumulate(back, axis=0), axis=1)[::-1, ::-1]
    return result


class _Pricing:
    """What opening each candidate would earn at given prices of places and units: arrays over all candidates.

    A place is a class at a node of the stage graph; its label is the price of all requests of the class being there.
    Prices and earnings are US dollars per hour.
    """

    def __init__(self, problem: PlanningProblem) -> None:
        self.problem = problem
        self.classes = {demand.name: c for c, demand in enumerate(problem.demands)}
        rates = np.array([demand.rate for demand in problem.demands])
        self.devices = {offer.name: d for d, offer in enumerate(problem.offers)}
        candidates = problem.candidates
        self.units = np.array([float(candidate.units) for candidate in candidates])
        self.device = np.array([self.devices[candidate.device] for candidate in candidates], dtype=np.intp)

        arcs = {arc: a for a, arc in enumerate(dict.fromkeys(every_arc(candidates)))}
        passed: dict[str, set[Node]] = {}
        for arc in arcs:
            passed.setdefault(arc.request_class, set()).update((arc.start, arc.end))
        self.places: dict[Place, int] = {}
        self.grids: list[npt.NDArray[np.intp]] = []
        for name, nodes in sorted(passed.items()):
            for node in sorted((node for node in nodes if node.sender is None), key=repr):
                self.places[name, node] = len(self.places)
            for grid in grids(nodes).values():
                for node in itertools.chain.from_iterable(grid):
                    self.places[name, node] = len(self.places)
                self.grids.append(np.array([[self.places[name, node] for node in row] for row in grid], dtype=np.intp))
        places = [((arc.request_class, arc.start), (arc.request_class, arc.end)) for arc in arcs]
        ends = np.array([[self.places[start], self.places[end]] for start, end in places], dtype=np.intp)
        of_class = np.array([self.classes[arc.request_class] for arc in arcs], dtype=np.intp)
        which = np.fromiter(map(arcs.__getitem__, every_arc(candidates)), dtype=np.intp)
        self.arc_owner = np.repeat(np.arange(len(candidates)), [len(candidate.arcs) for candidate in candidates])
        self.arc_class, self.arc_start, self.arc_end = of_class[which], ends[which, 0], ends[which, 1]
        busy = np.array([[candidate.busy_s.get(name, 0.0) for name in self.classes] for candidate in candidates])
        metered = np.array([offer.busy_usd_per_unit_second for offer in problem.offers])[self.device] * self.units
        energy = 3600.0 * metered[:, None] * busy * np.array([demand.mean_rate for demand in problem.demands])
        self.arc_cost = energy[self.arc_owner, self.arc_class]

        rows = [row for candidate in candidates for row in candidate.rows]
        self.row_owner = np.repeat(np.arange(len(candidates)), [len(candidate.rows) for candidate in candidates])
        self.row_setup = np.array([row.setup for row in rows])
        self.row_load = np.zeros((len(rows), len(rates)))
        loaded = np.repeat(np.arange(len(rows)), [len(row.load) for row in rows])
        loads = list(itertools.chain.from_iterable(row.load for row in rows))
        self.row_load[loaded, [self.classes[name] for name, _ in loads]] = [load for _, load in loads]
        self.row_load *= rates

        self.owner = np.array([self.classes[name] for name, _ in self.places], dtype=np.intp)
        self.stage = np.array([STATES.index(node.state) for _, node in self.places])
        self.starts = np.array([node.sender is None and node.state != "done" for _, node in self.places])
        self.ends = self.stage == len(STATES) - 1

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
            for grid in self.grids:
                if self.stage[grid[0, 0]] == state:
                    labels[grid] = _falling(labels[grid])
            leaving = self.stage[self.arc_start] == state
            np.minimum.at(labels, self.arc_end[leaving], (labels[self.arc_start] + cost)[leaving])
        through = np.zeros(len(self.classes))
        through[self.owner[self.ends]] = labels[self.ends]
        result: Vector = labels - through[self.owner]
        return result

    def labels(self, formulation: Formulation, relaxed: Relaxation, before: Vector) -> Vector:
        """Labels in the relaxation; places that it does not know keep their distance from where their class starts, as far
        as those that they may pass for allow it: no label is below one that its place may pass for."""
        sets, factor = formulation.sets, formulation.scale.factor
        start = np.zeros(len(self.classes))
        for c, name in enumerate(sets.demands):
            start[self.classes[name]] = -relaxed.duals[f"demand_{c}"] / factor
        moved = np.zeros(len(self.classes))
        moved[self.owner[self.starts]] = (start[self.owner] - before)[self.starts]
        labels: Vector = np.where(self.ends, 0.0, np.minimum(before + moved[self.owner], 0.0))
        known = np.full(len(self.places), np.nan)
        label = 0.0
        for row, at, level in reversed(list(hand_over_rows(sets))):
            name, node = at.place
            label = (0.0 if level == at.levels[-1] else label) - relaxed.duals.get(row, 0.0) / factor
            known[self.places[name, Node.at(node.state, node.sender, level)]] = label
        for grid in self.grids:
            told = known[grid]
            unknown = np.isnan(told)
            most = _falling(np.where(unknown, 0.0, told))
            least = _rising_back(np.where(unknown, -np.inf, told))
            labels[grid] = np.where(unknown, np.clip(labels[grid], least, most), told)
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
        return np.minimum(otherwise, earned + NOTHING * np.abs(replica * values[:, -1]))

    def _gain(self, labels: Vector) -> Vector:
        """What all requests of each class earn on the best arc of each candidate, shape (candidates, classes)."""
        gain = np.zeros((len(self.problem.candidates), len(self.classes)))
        earned = labels[self.arc_end] - labels[self.arc_start] - self.arc_cost
        np.maximum.at(gain, (self.arc_owner, self.arc_class), earned)
        return gain
