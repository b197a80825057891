"""Scenarios made ready for planning: resolved, with what is on offer in each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from epd_opt.instance import Instance
from epd_opt.offering import Offering, Screen
from epd_opt.problem import Occasion, PlanningProblem
from epd_opt.prune import connected
from epd_opt.resolve import Resolved, nothing_asked, resolve
from epd_opt.scenarios import Case, cases, hired_entries
from epd_opt.search import Task
from epd_opt.shortlist import Scout

Physical = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A scenario with all that it may be served by.

    Attributes
    ----------
    problem : PlanningProblem
        Over the candidates that matter.
    """

    case: Case
    resolved: Resolved
    offered: Offering
    problem: PlanningProblem

    @property
    def occasion(self) -> Occasion:
        """As the model takes it."""
        return Occasion(name=self.case.name, weight=self.case.weight, problem=self.problem)


@dataclass(frozen=True, kw_only=True)
class Scenes:
    """All scenarios of an instance, sorted by name.

    Attributes
    ----------
    reduced : bool
        Whether pools were left out that a best fleet for all scenarios might use: those that no scenario would use if it
        were alone.
    hired : frozenset of str
        Device entries whose units are no part of the fleet: each scenario hires its own, by the hour.
    """

    each: tuple[Scene, ...]
    reduced: bool
    hired: frozenset[str] = frozenset()

    def on(self, devices: Collection[str]) -> Scenes:
        """The same with the candidates of some device entries alone."""
        each = tuple(
            replace(
                scene,
                problem=_on(scene.problem, devices),
                offered=replace(scene.offered, problem=_on(scene.offered.problem, devices)),
            )
            for scene in self.each
        )
        return replace(self, each=each)


def scenes_of(instance: Instance, task_of: Callable[[Resolved], Task]) -> Scenes:
    """Resolve the scenarios of an instance and gather what is on offer in each.

    Pools are screened as for a single plan, scenario by scenario; a pool that some scenario may use stays in all of them.

    Raises
    ------
    InvalidInput
        See :func:`epd_opt.scenarios.cases` and :func:`epd_opt.resolve.resolve`.
    OutOfTime
        The clock ended.
    """
    found = cases(instance)
    hired = hired_entries(instance) if len(found) > 1 else frozenset()
    tasks = [task_of(_resolved(case, instance)) for case in found]
    screened = [_Screened(task=task, hired=hired) for task in tasks]
    offerings = [task.offering_at([1.0], own.screen) for task, own in zip(tasks, screened, strict=True)]
    wanted = {pool for own in screened for pool in own.wanted}
    for index, own in enumerate(screened):
        if own.known & wanted > own.wanted:
            offerings[index] = tasks[index].offering_at([1.0], _only(wanted))
    problems = [task.pruned(offered) for task, offered in zip(tasks, offerings, strict=True)]
    listed, reduced = _listed(tasks, problems, hired)
    return Scenes(
        each=tuple(
            Scene(case=case, resolved=task.resolved, offered=offered, problem=problem)
            for case, task, offered, problem in zip(found, tasks, offerings, listed, strict=True)
        ),
        reduced=reduced or any(own.known - wanted for own in screened),
        hired=hired,
    )


def _resolved(case: Case, instance: Instance) -> Resolved:
    """A scenario looked up; that a class rests for some hours of the day is no reason for a warning."""
    resolved = resolve(case.instance)
    if not instance.workload.by_the_hour:
        return resolved
    resting = {nothing_asked(request.name) for request in instance.workload.classes if request.rate_per_s > 0}
    return replace(resolved, warnings=tuple(text for text in resolved.warnings if text not in resting))


def _on(problem: PlanningProblem, devices: Collection[str]) -> PlanningProblem:
    """The same over the candidates of some device entries, those that lead nowhere then left out."""
    kept = connected(one for one in problem.candidates if one.device in devices)
    return replace(problem, candidates=tuple(sorted(kept, key=lambda one: one.key)))


def _apart(problem: PlanningProblem, hired: Collection[str]) -> PlanningProblem | None:
    """A problem over what is hired by the hour, where that can serve all classes.

    Beside a fleet that is paid for anyway, units by the hour would never be priced into a plan for one scenario alone.
    """
    if not hired:
        return None
    some = _on(problem, hired)
    served = {name for one in some.candidates for name in one.classes}
    return some if {demand.name for demand in problem.demands} <= served else None


@dataclass(kw_only=True)
class _Screened:
    """Screens pools for one scenario and keeps which there are and which may matter."""

    task: Task
    hired: frozenset[str]
    known: frozenset[Physical] = frozenset()
    wanted: frozenset[Physical] = frozenset()

    def screen(self, outlines: PlanningProblem, staffed: Callable[[Collection[str]], PlanningProblem]) -> Collection[str]:
        """As :data:`epd_opt.offering.Screen`."""
        keys = set(_scout(self.task).worth_staffing(outlines, staffed))
        some = _apart(outlines, self.hired)
        if some is not None:

            def hireable(wanted: Collection[str]) -> PlanningProblem:
                return _on(staffed(wanted), self.hired)

            keys |= set(_scout(self.task).worth_staffing(some, hireable))
        self.known = frozenset(one.physical for one in outlines.candidates)
        self.wanted = frozenset(one.physical for one in outlines.candidates if one.key in keys)
        return [one.key for one in outlines.candidates if one.key in keys]


def _scout(task: Task) -> Scout:
    return Scout(settings=task.means.settings, clock=task.means.clock)


def _only(wanted: Collection[Physical]) -> Screen:
    return lambda outlines, _: [one.key for one in outlines.candidates if one.physical in wanted]


def _listed(
    tasks: Sequence[Task], problems: Sequence[PlanningProblem], hired: Collection[str]
) -> tuple[list[PlanningProblem], bool]:
    """The problems over the pools that some scenario would use if it were alone, and whether others are left out."""
    pools: set[Physical] = set()
    for task, problem in zip(tasks, problems, strict=True):
        for one in (problem, _apart(problem, hired)):
            if one is not None:
                pools |= _pools(_scout(task).shortlist(one).problem)
    if all(_pools(problem) <= pools for problem in problems):
        return list(problems), False
    kept = [connected(one for one in problem.candidates if one.physical in pools) for problem in problems]
    return [replace(problem, candidates=tuple(own)) for problem, own in zip(problems, kept, strict=True)], True


def _pools(problem: PlanningProblem) -> set[Physical]:
    return {one.physical for one in problem.candidates}


def restricted(offered: Offering, pools: Iterable[Physical]) -> Offering:
    """What is on offer in some physical pools."""
    wanted = set(pools)
    some = tuple(one for one in offered.problem.candidates if one.physical in wanted)
    return replace(offered, problem=replace(offered.problem, candidates=some))
