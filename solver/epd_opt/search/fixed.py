"""The cheapest fleet at fixed rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from epd_opt.backends import OutOfTime
from epd_opt.document import Infeasibility
from epd_opt.formulation import Question, build
from epd_opt.infeasible import unservable
from epd_opt.offering import Offering
from epd_opt.problem import PlanningProblem
from epd_opt.prune import connected
from epd_opt.search.reinforcing import Beyond, beyond_limits
from epd_opt.search.task import Found, NoPlan, Task
from epd_opt.shortlist import Scout


def cheapest(task: Task, multiple: float = 1.0) -> Found | NoPlan:
    """The cheapest fleet that serves a multiple of the stated demand.

    Raises
    ------
    OutOfTime
        The clock ended before there was a model.
    SolverFailed
        See :meth:`epd_opt.search.task.Task.solve`.
    """
    scout = Scout(settings=task.means.settings, clock=task.means.clock)
    return cheapest_of(task, task.offering_at([multiple], scout.worth_staffing), multiple, scout=scout)


def cheapest_of(
    task: Task,
    offered: Offering,
    multiple: float = 1.0,
    *,
    questions: Sequence[Question] = (),
    pruned: PlanningProblem | None = None,
    diagnose: bool = True,
    scout: Scout | None = None,
) -> Found | NoPlan:
    """The cheapest fleet, among what is on offer, that serves a multiple of the stated demand.

    Parameters
    ----------
    questions : sequence of Question
        Constraints that the fleet must keep beside those of every plan.
    pruned : PlanningProblem, optional
        The pruned problem of an earlier search, every class of which has a way to its end.
    diagnose : bool
        Whether to look for the reasons where nothing is feasible.
    scout : Scout, optional
        With what it knows of the offering; without questions only.
    """
    why = unservable(task.resolved, offered) if pruned is None else None
    if why is not None:
        return NoPlan(why=why)
    scout = scout or Scout(settings=task.means.settings, clock=task.means.clock)
    if pruned is None or not scout.whole:
        pruned = _pruned(task, offered, multiple, scout)
    problem = pruned.at(multiple)
    first: Found | None = None
    refused: list[Beyond] = []
    while True:
        found = _solved(task, offered, problem, multiple, questions, scout, diagnose=diagnose and not refused)
        if isinstance(found, NoPlan):
            infeasible = found.outcome is not None and found.outcome.termination == "infeasible"
            return NoPlan(why=refused[0].why, outcome=found.outcome) if refused and infeasible else found
        beyond = beyond_limits(problem, found, task.means.settings)
        if beyond is not None and not scout.whole and task.means.clock.left_s != 0.0:
            scout = Scout(settings=task.means.settings, clock=task.means.clock, eager=False)
            everything = task.offering_at([multiple], scout.worth_staffing)
            return cheapest_of(task, everything, multiple, diagnose=diagnose, scout=scout)
        if beyond is None:
            return found if first is None else _among_the_rest(first, found, refused)
        if len(refused) == _MOST_REFUSED:
            return NoPlan(why=beyond.why, outcome=found.outcome)
        first = first or found
        refused.append(beyond)
        task.means.say(f"without {', '.join(beyond.points)}, which needs more than there is")
        left = (candidate for candidate in problem.candidates if candidate.key not in beyond.points)
        problem = replace(problem, candidates=tuple(connected(left)))
        scout = Scout(settings=task.means.settings, clock=task.means.clock)


def _pruned(task: Task, offered: Offering, multiple: float, scout: Scout) -> PlanningProblem:
    """The problem without what cannot matter; as it is where the scout's plan stands for what there was no time for."""
    if scout.whole:
        try:
            return task.pruned(offered, multiple)
        except OutOfTime:
            if scout.incumbent is None:
                raise
            scout.whole = False
    return offered.problem


_MOST_REFUSED = 8
"""Times that a fleet is refused before the search ends."""


def _among_the_rest(first: Found, found: Found, refused: Sequence[Beyond]) -> Found:
    """A fleet without the operating points of those that were refused: the bound is that of the first search, over all of
    them, and what is best of the rest is not proved to be best."""
    points = ", ".join(key for each in refused for key in each.points)
    left_out = f"planned without operating points whose predicted intervals ask for more than there is: {points}"
    return replace(found, bounded_by=first, warnings=(left_out,))


def _solved(
    task: Task,
    offered: Offering,
    problem: PlanningProblem,
    multiple: float,
    questions: Sequence[Question],
    scout: Scout,
    *,
    diagnose: bool,
) -> Found | NoPlan:
    """The cheapest fleet by the rows of the candidates."""
    if scout.settled and scout.incumbent is not None:
        known = scout.incumbent
        return Found(multiple=multiple, offered=offered, formulation=known.formulation, outcome=known.outcome)
    listed = scout.shortlist(problem, questions)
    formulation = build(listed.problem, questions)
    settings = replace(task.means.settings, start=listed.start(formulation), proving=scout.informed)
    outcome = task.means.solve(formulation, settings)
    outcome = listed.known(formulation, outcome)
    if outcome.termination == "infeasible":
        nothing = Infeasibility(reasons=[], mends=[])
        why = task.limiting(problem, questions) if diagnose else nothing
        return NoPlan(why=why, outcome=outcome)
    if outcome.values is None:
        return NoPlan(outcome=outcome)
    return Found(multiple=multiple, offered=offered, formulation=formulation, outcome=outcome, whole=listed.whole)
