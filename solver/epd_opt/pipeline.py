"""The whole trip, from an instance to a verified plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from epd_opt.assemble import feasible_document, infeasible_document, stopped_document
from epd_opt.backends import BACKENDS, Clock, Clocked, OutOfTime, Settings, SolverFailed, backend, out_of_time
from epd_opt.document import Infeasibility
from epd_opt.formulation import Question, build
from epd_opt.infeasible import limiting, unservable
from epd_opt.instance import Instance
from epd_opt.offering import Offering, offering
from epd_opt.plan import Plan
from epd_opt.problem import PlanningProblem
from epd_opt.prune import prune
from epd_opt.reading import read
from epd_opt.resolve import Resolved, resolve
from epd_opt.solution import replica_counts, route
from epd_opt.verify import VerificationError, verify


def solve(instance: Instance | Mapping[str, Any] | str, *, progress: Callable[[str], None] | None = None) -> Plan:
    """Find the cheapest fleet that serves an instance within its targets.

    Parameters
    ----------
    instance : Instance, mapping or path
        What to plan.
    progress : callable, optional
        Called with one line per step.

    Returns
    -------
    Plan
        With status ``optimal`` (proved within the gap), ``feasible`` (not proved), ``infeasible`` (with reasons) or
        ``stopped`` (the limit passed before any plan was found).

    Raises
    ------
    InvalidInput
        The instance makes no sense.
    SolverFailed
        The solver ended without a plan, and not because of the clock, the keyboard or the instance.
    VerificationError
        The plan failed its own check: a fault of this program, never shown as a plan.
    """
    say = progress or (lambda _: None)
    start = time.perf_counter()
    instance = instance if isinstance(instance, Instance) else read(instance)
    clock = Clock(instance.solver.time_limit_s)
    solver = Clocked(solver=backend(instance.solver.name), clock=clock)
    resolved = resolve(instance)
    try:
        offered = offering(resolved, each=clock.check)
    except OutOfTime:
        return Plan(stopped_document(resolved, out_of_time(solver), start))
    return search(resolved, offered, solver, start=start, say=say)


def search(
    resolved: Resolved,
    offered: Offering,
    solver: Clocked,
    *,
    start: float,
    say: Callable[[str], None] = lambda _: None,
    questions: Sequence[Question] = (),
    pruned: PlanningProblem | None = None,
    diagnose: bool = True,
) -> Plan:
    """The cheapest fleet among what is on offer, verified, or why there is none.

    Parameters
    ----------
    solver : Clocked
        A back-end with the time that it may take.
    start : float
        When the work began (``time.perf_counter``).
    questions : sequence of Question
        Constraints that the fleet must keep beside those of every plan.
    pruned : PlanningProblem, optional
        The pruned problem of an earlier search, every class of which has a way to its end.
    diagnose : bool
        Whether to look for the reasons where nothing is feasible.
    """
    instance = resolved.instance
    why = unservable(resolved, offered) if pruned is None else None
    if why is not None:
        return Plan(infeasible_document(resolved, why, None, start))
    problem = prune(offered.problem) if pruned is None else pruned
    say(f"{len(offered.problem.candidates)} candidates, {len(problem.candidates)} after pruning")
    settings = Settings(gap=instance.solver.gap, time_limit_s=None, threads=instance.solver.threads)
    formulation = build(problem, questions)
    say(f"{len(formulation.variables.replicas)} pools, {len(formulation.model.constraints())} rows")
    outcome = solver.solve(formulation.model, settings)
    say(f"{outcome.solver}: {outcome.termination} in {outcome.seconds:.2f} s")
    if outcome.termination == "infeasible":
        nothing = Infeasibility(reasons=[], mends=[])
        why = limiting(problem, solver, settings, questions) if diagnose else nothing
        return Plan(infeasible_document(resolved, why, outcome, start))
    if outcome.values is None and outcome.termination in ("error", "unbounded"):
        raise SolverFailed(f"{outcome.solver} ended without a plan ({outcome.termination}). {outcome.note}".strip())
    if outcome.values is None:
        return Plan(stopped_document(resolved, outcome, start))
    solution = route(formulation, replica_counts(formulation, outcome), BACKENDS["highs"], settings)
    if solution is None:
        raise VerificationError("the fleet found by the solver cannot route the demand")
    plan = Plan(feasible_document(resolved, offered, formulation, outcome, solution, start))
    verify(plan, offered=offered, resolved=resolved)
    return plan
