"""Candidates that a plan worth having may use.

Priced against the linear relaxation (:mod:`epd_opt.pricing`), every candidate says what opening it earns at most. A known
plan leaves out all that cost more to open than lies between the bound and the plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pulp

from epd_models.candidate import Arc, Candidate
from epd_opt.backends import HIGHS, Clock, Clocked, Outcome, OutOfTime, Settings
from epd_opt.formulation import Formulation, Question, build
from epd_opt.pricing import NOTHING, Priced, Vector, best, only, priced
from epd_opt.problem import PlanningProblem
from epd_opt.prune import connected, thin

ENOUGH = 150
"""Problems of so few candidates are solved as they are."""


_SURELY = 0.9
"""Share of the gap asked for that a known plan must keep to be enough: ties and predictions may add to its cost."""


@dataclass(frozen=True, kw_only=True)
class _Effort:
    """How hard a plan is sought.

    Attributes
    ----------
    most : int
        Candidates that it is sought among: so many of the best of all, and so many of the best that serve each class, at
        most one of each physical pool, because its best points are much alike.
    nodes : int
        Nodes of the search tree that are looked at.
    gap, part : float
        Relative gap that is enough, or this part of the gap asked for where that is more: a plan is compared with the
        best of the candidates that it is sought among, which costs more than the bound.
    poor : float
        A plan that costs so many times the bound is sought again among more candidates.
    """

    most: int
    each: int
    nodes: int
    gap: float
    poor: float
    part: float = _SURELY


_POOR = 1.5
"""A plan that costs so many times the bound is no measure for what to leave out."""
_QUICK = _Effort(most=40, each=40, nodes=1, gap=0.05, poor=10.0)
_THOROUGH = _Effort(most=150, each=20, nodes=100, gap=0.01, poor=_POOR)
_PATIENT = _Effort(most=150, each=20, nodes=400, gap=0.002, poor=_POOR)
_CLOSING = _Effort(most=600, each=40, nodes=300, gap=0.0, poor=math.inf, part=0.3)
_NEARLY = 0.01
"""Share of its cost by which a plan may exceed the bound and a longer search still be worth its time."""
_CAREFUL = 1e-5
"""Share of the incumbent's cost that is added to it before anything is left out: more than all ties together weigh."""


@dataclass(frozen=True, kw_only=True)
class Incumbent:
    """A plan over some of the candidates."""

    formulation: Formulation
    outcome: Outcome

    @property
    def used(self) -> Mapping[str, frozenset[Arc]]:
        """Keys of the candidates that the plan uses, with the arcs on which something flows."""
        assert self.outcome.values is not None
        values, v = self.outcome.values, self.formulation.variables
        return {
            candidate.key: frozenset(arc for arc in candidate.arcs if values[v.share[k, arc].name] > 0.0)
            for k, candidate in enumerate(self.formulation.sets.candidates)
            if values[v.open[k].name] > 0.5
        }

    def fits(self, problem: PlanningProblem) -> bool:
        """Whether a problem has all that the plan uses."""
        known = {candidate.key: frozenset(candidate.arcs) for candidate in problem.candidates}
        return all(arcs <= known.get(key, frozenset()) for key, arcs in self.used.items())

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
        open_ended = (v.slowed, v.nodes, v.loose, v.kept, v.ordered, v.sku)
        standing = {id(one) for group in open_ended for one in group.values()}
        result = {variable.name: 0.0 for variable in formulation.model.variables() if id(variable) not in standing}
        keys = {candidate.key: k for k, candidate in enumerate(formulation.sets.candidates)}
        mine, theirs = self.formulation.variables, formulation.variables
        pairs: list[tuple[pulp.LpVariable, pulp.LpVariable]] = []
        for k, candidate in enumerate(self.formulation.sets.candidates):
            if candidate.key not in keys:
                assert self.outcome.values[mine.open[k].name] < 0.5
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
        units = ((mine.used, theirs.used), (mine.lots, theirs.lots), (mine.owned, theirs.owned), (mine.racks, theirs.racks))
        for known, same in units:
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
    whole : bool
        Whether a bound over the problem's candidates holds for every plan.
    """

    problem: PlanningProblem
    bound: float = 0.0
    incumbent: Incumbent | None = None
    whole: bool = True

    def start(self, formulation: Formulation) -> dict[str, float] | None:
        """The plan as values to start from."""
        return None if self.incumbent is None else self.incumbent.values(formulation)

    def known(self, formulation: Formulation, outcome: Outcome) -> Outcome:
        """The outcome of a solve with what is known here where that is better; where the problem is not whole, the solver
        has proved nothing."""
        if self.incumbent is None or (self.whole and outcome.termination not in ("time_limit", "interrupted")):
            return outcome
        if not self.whole:
            outcome = replace(outcome, termination="time_limit", bound=None)
        values = self.incumbent.values(formulation)
        objective = sum(c * values[variable.name] for variable, c in formulation.model.objective.items())
        bound = max(self.bound * formulation.scale.factor, -math.inf if outcome.bound is None else outcome.bound)
        if outcome.objective is not None and outcome.objective <= objective:
            return replace(outcome, bound=min(bound, outcome.objective))
        return replace(outcome, values=values, objective=objective, bound=min(bound, objective))


def counted(problem: PlanningProblem) -> PlanningProblem:
    """The problem without what only rules plans out or makes them dearer, and is seen to by plans that are sought, not by
    prices: servers, racks, zones, smallest orders, numbers of SKUs, what is required. No plan of the problem costs less than
    the best one of it."""
    return replace(
        problem,
        zones=1,
        lost_zones=0,
        limits=replace(problem.limits, skus=None, required=(), racks=None),
        offers=tuple(replace(offer, nodes=None, minimum=0) for offer in problem.offers),
    )


@dataclass
class Scout:
    """Looks ahead of a search: over outlines of pools, then over their operating points.

    Attributes
    ----------
    settings, clock : Settings, Clock
        Of the search. Relaxations and plans on the way are HiGHS's, whatever solver is asked for afterwards.
    eager : bool
        Whether to look no further once the incumbent is known to be as good as is asked for.
    bound : float
        On the cost of every plan with its tie-breaks, US dollars per hour, as far as is known.
    incumbent : Incumbent or None
        The best plan known.
    whole : bool
        Whether all pools that may matter got their operating points: not where the time was over before, or the incumbent
        is enough without.
    informed : bool
        Whether the incumbent owes itself to a like problem, and is thought to be the best.
    settled : bool
        Whether the incumbent is known to be as good as is asked for, so that nothing is left to search.
    priced : Priced or None
        What a relaxation over much the same candidates says, for the next one to start from.
    """

    settings: Settings
    clock: Clock
    eager: bool = True
    bound: float = 0.0
    incumbent: Incumbent | None = None
    whole: bool = True
    informed: bool = False
    settled: bool = False
    priced: Priced | None = None

    @property
    def enough(self) -> bool:
        """Whether the incumbent is known to be as good as is asked for."""
        if self.incumbent is None or not self.eager:
            return False
        return 0.0 <= self.incumbent.most - self.bound <= _SURELY * self.settings.gap * self.incumbent.most

    @property
    def nearly_enough(self) -> bool:
        """Whether the incumbent is so close to the bound that a longer search may well find one that is enough."""
        if self.incumbent is None or not self.eager or self.enough:
            return False
        return self.incumbent.most - self.bound <= _NEARLY * self.incumbent.most

    def shortlist(self, problem: PlanningProblem, questions: Sequence[Question] = ()) -> Shortlist:
        """Leave out candidates that no plan cheaper than a known one can use.

        Returns
        -------
        Shortlist
            Of the problem itself where it is small, or nothing could be proved in time.
        """
        if not self.whole and self.incumbent is not None:
            known = self.incumbent.formulation.sets.problem
            return Shortlist(problem=known, bound=self.bound, incumbent=self.incumbent, whole=False)
        start = self.incumbent if self.incumbent is not None and self.incumbent.fits(problem) else None
        if len(problem.candidates) <= ENOUGH:
            return Shortlist(problem=problem, bound=self.bound, incumbent=start)
        found = priced(counted(problem), self.settings, self.clock, questions, self.priced)
        self.priced = found or self.priced
        if found is None and start is not None and self.clock.left_s == 0.0:
            self.whole = False
            return Shortlist(problem=start.formulation.sets.problem, bound=self.bound, incumbent=start, whole=False)
        if found is not None and start is None:
            start = self._plan(problem, found, _THOROUGH, questions)
        if found is None or start is None or found.bound > start.most:
            return Shortlist(problem=problem, bound=self.bound, incumbent=start)
        kept = found.favoured | (found.bound - found.worth <= start.most)
        kept |= np.array([candidate.key in start.used for candidate in problem.candidates])
        return Shortlist(problem=_restricted(problem, kept), bound=max(self.bound, found.bound), incumbent=start)

    def worth_staffing(
        self, outlines: PlanningProblem, staffed: Callable[[Collection[str]], PlanningProblem]
    ) -> Collection[str]:
        """Keys of the outlines that a plan cheaper than a known one may use an operating point of.

        The relaxation is solved over operating points of some pools and outlines of the others. An outline asks for no more
        than any operating point of its pool, so this bounds every plan. Pools whose outlines it uses, or nearly, are
        staffed, a few times over; a plan is sought over their points. Once it is good enough, or the time is over, the
        pools that it was sought among are all there is to staff.

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
        closest: Incumbent | None = None
        found = priced(replace(outlines, candidates=tuple(known.values())), self.settings, self.clock)
        self.bound = max(self.bound, 0.0 if found is None else found.bound)
        joining = [] if found is None else _seeds(list(known.values()), found)
        try:
            for turn in range(_TURNS):
                if found is None or not joining:
                    break
                new: list[Candidate] = []
                for key in sorted(joining):
                    operated = staffed([key]).candidates
                    new += operated
                    owner |= {candidate.key: key for candidate in operated}
                some |= set(joining)
                touched = {candidate.physical for candidate in new}
                new += [candidate for candidate in points if candidate.physical in touched]
                points = [candidate for candidate in points if candidate.physical not in touched]
                points += thin(replace(outlines, candidates=tuple(new)))
                mixed = [*points, *(candidate for key, candidate in known.items() if key not in some)]
                problem = replace(outlines, candidates=tuple(sorted(connected(mixed), key=lambda candidate: candidate.key)))
                found = priced(problem, self.settings, self.clock, before=found)
                if found is None:
                    break
                rising = self.bound < found.bound * (1.0 - _RISING)
                self.bound = max(self.bound, found.bound)
                if turn == 0 or not rising or self.incumbent is None or self.incumbent.most > _FAR * self.bound:
                    self._look(packed, problem.candidates, found, owner, _QUICK)
                if not rising and self.nearly_enough and self.incumbent is not closest:
                    self._look(packed, problem.candidates, found, owner, _CLOSING)
                    closest = self.incumbent
                if self.enough:
                    break
                left = {key for key in known if key not in some}
                if not self.nearly_enough and self._final(problem, found, left) and self._kept(found).sum() > _MANY:
                    # The bound stays as it is: what time there is is best spent on the plan.
                    self._look(packed, problem.candidates, found, owner, _PATIENT)
                joining = self._joining(problem, found, left)
            if found is not None and not self.enough:
                effort = _PATIENT if self._kept(found).sum() > _MANY else _THOROUGH
                self._look(packed, problem.candidates, found, owner, effort)
            if self.incumbent is None or self.bound > self.incumbent.most:
                self.bound, self.incumbent = 0.0, None
                return every
            if found is not None and not self.enough:
                kept = self._kept(found)
                wanted = {owner[key] for key in self.incumbent.used}
                wanted |= {
                    owner.get(candidate.key, candidate.key)
                    for candidate, worthy in zip(problem.candidates, kept, strict=True)
                    if worthy
                }
                for key in every:
                    if key in wanted:
                        self.clock.check()
                        staffed([key])
                return [key for key in every if key in wanted]
        except OutOfTime:
            if self.incumbent is None:
                raise
        self.whole = False
        tried = {owner[candidate.key] for candidate in self.incumbent.formulation.sets.candidates}
        return [key for key in every if key in tried]

    def _kept(self, found: Priced) -> npt.NDArray[np.bool_]:
        """Which candidates a plan cheaper than the incumbent may use."""
        dearest = math.inf if self.incumbent is None else self.incumbent.most
        return found.bound - found.worth <= dearest

    def _final(self, problem: PlanningProblem, found: Priced, outlines: Collection[str]) -> bool:
        """Whether the relaxation does without outlines, so that its bound is that over operating points."""
        used = found.worth > -NOTHING * abs(found.bound)
        return not any(candidate.key in outlines for candidate, uses in zip(problem.candidates, used, strict=True) if uses)

    def _joining(self, problem: PlanningProblem, found: Priced, outlines: Collection[str]) -> list[str]:
        """Which outlines to staff next: all that the relaxation uses, or nearly, and the best of the rest that may matter;
        none where it uses none, because its bound rises no more then."""
        order = [k for k in best(found.worth, len(found.worth)) if problem.candidates[k].key in outlines]
        near = sum(found.worth[k] > -_CLOSE * abs(found.bound) for k in order)
        matter = int(self._kept(found)[order].sum())
        return [problem.candidates[k].key for k in order[: min(max(near, _SEEDS), matter)]] if near else []

    def _look(
        self,
        packed: PlanningProblem,
        mixed: Sequence[Candidate],
        found: Priced,
        owner: Collection[str],
        effort: _Effort,
    ) -> None:
        """Look for a better plan among the operating points in a mixture of outlines and points; ``owner`` knows the
        points."""
        real = np.array([candidate.key in owner for candidate in mixed])
        points = replace(found, worth=found.worth[real], favoured=found.favoured[real])
        problem = replace(packed, candidates=tuple(candidate for candidate in mixed if candidate.key in owner))
        plan = self._plan(problem, points, effort)
        if plan is not None and (self.incumbent is None or plan.most < self.incumbent.most):
            self.incumbent = plan

    def _plan(
        self, problem: PlanningProblem, found: Priced, effort: _Effort, questions: Sequence[Question] = ()
    ) -> Incumbent | None:
        """A plan over the best candidates; None where there is none, or none in time."""
        most, each = effort.most, effort.each
        rough = replace(self.settings, gap=max(effort.part * self.settings.gap, effort.gap), nodes=effort.nodes)
        known = self.incumbent if self.incumbent is not None and self.incumbent.fits(problem) else None
        while self.clock.left_s != 0.0:
            tried = found.favoured.copy()
            tried[best(found.worth, most)] = True
            if known is not None:
                tried |= np.array([candidate.key in known.used for candidate in problem.candidates])
            for demand in problem.demands:
                tried[_spread(problem, found.worth, demand.name, max(1, each // len(problem.demands)))] = True
            formulation = build(_restricted(problem, tried), questions)
            start = None if known is None else known.values(formulation)
            outcome = Clocked(solver=HIGHS, clock=self.clock).solve(formulation.model, replace(rough, start=start))
            plan = None if outcome.values is None else Incumbent(formulation=formulation, outcome=outcome)
            if plan is not None and (plan.most <= effort.poor * found.bound or tried.all() or self.clock.left_s == 0.0):
                return plan
            if tried.all() or (plan is None and outcome.termination in ("interrupted", "error")):
                return plan
            most, each = 3 * most, 3 * each
        return None


def _seeds(outlines: Sequence[Candidate], found: Priced) -> list[str]:
    """Keys of the outlines to staff first: the best, and of many outlines the best of each physical pool."""
    order = best(found.worth, len(found.worth)).tolist()
    if len(order) > _LARGE:
        firsts: dict[tuple[str, str], int] = {}
        for k in order:
            firsts.setdefault(outlines[k].physical, k)
        order = list(firsts.values())
    return [outlines[k].key for k in order[:_SEEDS]]


_SEEDS, _LARGE = 60, 2000
"""Pools that are staffed first, for a plan to measure the others by, and then at a time at least; where there are more
outlines than the second number, the first ones are of different pools."""
_TURNS = 10
"""Times that pools are staffed and priced again."""
_MANY = 600
"""Where more candidates than that are left, a better plan is worth a longer search."""
_RISING, _FAR = 1e-3, 1.1
"""A plan is looked for at first, where the bound has risen by less than the first share of it, and where the known one costs
so many times as much."""
_CLOSE = 0.002
"""An outline is staffed when it earns nearly something: its share of the bound."""


def _spread(problem: PlanningProblem, worth: Vector, name: str, count: int) -> list[int]:
    """Positions of the highest values among candidates that serve a class, one of each physical pool."""
    seen = set[tuple[str, str]]()
    result: list[int] = []
    for k in best(worth, len(worth)).tolist():
        candidate = problem.candidates[k]
        if name in candidate.classes and candidate.physical not in seen:
            seen.add(candidate.physical)
            result.append(k)
            if len(result) == count:
                break
    return result


def _restricted(problem: PlanningProblem, chosen: npt.NDArray[np.bool_]) -> PlanningProblem:
    some = only(problem, chosen)
    return replace(some, candidates=tuple(connected(some.candidates)))
