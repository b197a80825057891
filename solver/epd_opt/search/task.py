"""What every search is given, and how it ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from epd_opt import document as doc
from epd_opt.backends import Clock, Clocked, Outcome, Settings, SolverFailed
from epd_opt.formulation import Formulation, OccasionsFormulation, Question
from epd_opt.infeasible import limiting
from epd_opt.offering import Offering, Screen, offering_at
from epd_opt.problem import PlanningProblem
from epd_opt.prune import prune
from epd_opt.resolve import Resolved

ANY = 1e12
"""A multiple of the demand that no fleet will ever serve: what is pruned at it matters at no multiple."""


@dataclass(frozen=True, kw_only=True)
class Means:
    """What a search solves with.

    Attributes
    ----------
    solver : Clocked
        A back-end with the time that the whole search may take.
    settings : Settings
        Gap and threads; the time is the clock's.
    say : callable
        Called with one line per step.
    """

    solver: Clocked
    settings: Settings
    say: Callable[[str], None] = lambda _: None

    @property
    def clock(self) -> Clock:
        """The solver's."""
        return self.solver.clock

    def solve(self, formulation: Formulation | OccasionsFormulation, settings: Settings | None = None) -> Outcome:
        """Solve a model.

        Raises
        ------
        SolverFailed
            The solver ended without a plan, and not because of the clock, the keyboard or the instance.
        """
        self.say(f"{len(formulation.variables.replicas)} pools, {len(formulation.model.constraints())} rows")
        outcome = self.solver.solve(formulation.model, settings or self.settings)
        self.say(f"{outcome.solver}: {outcome.termination} in {outcome.seconds:.2f} s")
        if outcome.values is None and outcome.termination in ("error", "unbounded"):
            raise SolverFailed(f"{outcome.solver} ended without a plan ({outcome.termination}). {outcome.note}".strip())
        return outcome


@dataclass(frozen=True, kw_only=True)
class Task:
    """An instance to plan, and the means to do so."""

    resolved: Resolved
    means: Means

    @classmethod
    def of(cls, resolved: Resolved, solver: Clocked, say: Callable[[str], None]) -> Task:
        """With gap and threads as the instance wants them."""
        wanted = resolved.instance.solver
        settings = Settings(gap=wanted.gap, time_limit_s=None, threads=wanted.threads)
        return cls(resolved=resolved, means=Means(solver=solver, settings=settings, say=say))

    def offering_at(self, multiples: Sequence[float], screen: Screen | None = None) -> Offering:
        """See :func:`epd_opt.offering.offering_at`.

        Raises
        ------
        OutOfTime
            The clock ended.
        """
        return offering_at(self.resolved, multiples, each=self.means.clock.check, screen=screen)

    def pruned(self, offered: Offering, multiple: float = ANY) -> PlanningProblem:
        """The problem at its stated demand, without what cannot matter up to a multiple of it.

        Raises
        ------
        OutOfTime
            The clock ended.
        """
        problem = pruned(offered.problem, multiple, self.means.clock.check)
        self.means.say(f"{len(offered.problem.candidates)} candidates, {len(problem.candidates)} after pruning")
        return problem

    def limiting(self, problem: PlanningProblem, questions: Sequence[Question] = ()) -> doc.Infeasibility:
        """See :func:`epd_opt.infeasible.limiting`."""
        return limiting(problem, self.means.solver, self.means.settings, questions)


def pruned(problem: PlanningProblem, multiple: float = ANY, each: Callable[[], None] = lambda: None) -> PlanningProblem:
    """A problem at its stated demand, without what cannot matter up to a multiple of it; ``each`` is as for
    :func:`epd_opt.prune.prune`."""
    return replace(prune(problem.at(multiple), each), demands=problem.demands)


@dataclass(frozen=True, kw_only=True)
class Found:
    """A fleet for a multiple of the stated demand.

    Attributes
    ----------
    formulation, outcome : Formulation, Outcome
        The model of least cost at that multiple, and a solution of it.
    proved : bool or None
        Whether the multiple is proved to be best within the gap; None where it is given.
    goodput, rate_multiple : optional
        What the search for the multiple has found.
    bounded_by : Found or None
        The search over all candidates, whose bound holds, where some of them were then left out.
    whole : bool
        Whether the model knows all that a better plan may use.
    """

    multiple: float
    offered: Offering
    formulation: Formulation
    outcome: Outcome
    proved: bool | None = None
    goodput: doc.Goodput | None = None
    rate_multiple: doc.RateMultiple | None = None
    warnings: tuple[str, ...] = ()
    bounded_by: Found | None = None
    whole: bool = True


@dataclass(frozen=True, kw_only=True)
class NoPlan:
    """The end of a search without a plan: infeasible, with reasons, or stopped."""

    why: doc.Infeasibility | None = None
    outcome: Outcome | None = None


def rounded_down(multiple: float) -> float:
    """A multiple to nine digits, never above it but for arithmetic."""
    if multiple <= 0.0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(multiple)) - 8)
    return float(f"{math.floor(multiple * (1.0 + 1e-9) / unit) * unit:.9g}")
