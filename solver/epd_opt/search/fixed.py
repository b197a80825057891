"""The cheapest fleet at fixed rates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from epd_opt.document import Infeasibility
from epd_opt.formulation import Question, build
from epd_opt.infeasible import unservable
from epd_opt.offering import Offering
from epd_opt.problem import PlanningProblem
from epd_opt.search.task import Found, NoPlan, Task
from epd_opt.shortlist import shortlist, worth_staffing


def cheapest(task: Task, multiple: float = 1.0) -> Found | NoPlan:
    """The cheapest fleet that serves a multiple of the stated demand.

    Raises
    ------
    OutOfTime
        The clock ended before there was a model.
    SolverFailed
        See :meth:`epd_opt.search.task.Task.solve`.
    """

    def screen(outlines: PlanningProblem, staffed: Callable[[Collection[str]], PlanningProblem]) -> Collection[str]:
        return worth_staffing(outlines, staffed, task.means.settings, task.means.clock)

    return cheapest_of(task, task.offering_at([multiple], screen), multiple)


def cheapest_of(
    task: Task,
    offered: Offering,
    multiple: float = 1.0,
    *,
    questions: Sequence[Question] = (),
    pruned: PlanningProblem | None = None,
    diagnose: bool = True,
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
    """
    why = unservable(task.resolved, offered) if pruned is None else None
    if why is not None:
        return NoPlan(why=why)
    problem = task.pruned(offered, multiple) if pruned is None else pruned
    problem = problem.at(multiple)
    listed = shortlist(problem, task.means.settings, task.means.clock, questions)
    formulation = build(listed.problem, questions)
    outcome = task.means.solve(formulation, replace(task.means.settings, start=listed.start(formulation)))
    outcome = listed.known(formulation, outcome)
    if outcome.termination == "infeasible":
        nothing = Infeasibility(reasons=[], mends=[])
        why = task.limiting(problem, questions) if diagnose else nothing
        return NoPlan(why=why, outcome=outcome)
    if outcome.values is None:
        return NoPlan(outcome=outcome)
    return Found(multiple=multiple, offered=offered, formulation=formulation, outcome=outcome)
