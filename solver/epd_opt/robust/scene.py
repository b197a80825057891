"""Scenarios made ready for planning: resolved, with what is on offer in each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from epd_models.candidate import Candidate
from epd_opt.instance import Instance
from epd_opt.offering import Offering, Screen
from epd_opt.problem import Occasion, PlanningProblem
from epd_opt.prune import connected
from epd_opt.resolve import Resolved, nothing_asked, resolve
from epd_opt.scenarios import Case, cases, hired_entries
from epd_opt.search import Task
from epd_opt.shortlist import Scout

Physical = tuple[str, str]

FEW = 500
"""So few outlines of pools are staffed all, which takes less time than to find out which need not be."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A scenario with all that it may be served by.

    Attributes
    ----------
    problem : PlanningProblem
        Over the candidates that matter.
    unstaffed : tuple of Candidate
        Outlines of pools that were left out for their number: each asks for no more than any operating point of its pool.
    """

    case: Case
    resolved: Resolved
    offered: Offering
    problem: PlanningProblem
    unstaffed: tuple[Candidate, ...] = ()

    @property
    def occasion(self) -> Occasion:
        """As the model takes it."""
        return Occasion(name=self.case.name, weight=self.case.weight, problem=self.problem)


@dataclass(frozen=True, kw_only=True)
class Scenes:
    """All scenarios of an instance, sorted by name.

    Attributes
    ----------
    hired : frozenset of str
        Device entries whose units are no part of the fleet: each scenario hires its own, by the hour.
    """

    each: tuple[Scene, ...]
    hired: frozenset[str] = frozenset()

    @property
    def reduced(self) -> bool:
        """Whether pools were left out that a best fleet for all scenarios might use: those that no scenario would use if it
        were alone."""
        return any(scene.unstaffed for scene in self.each)

    def on(self, devices: Collection[str]) -> Scenes:
        """The same with the candidates of some device entries alone."""
        each = tuple(
            replace(
                scene,
                problem=_on(scene.problem, devices),
                unstaffed=tuple(one for one in scene.unstaffed if one.device in devices),
                offered=replace(scene.offered, problem=_on(scene.offered.problem, devices)),
            )
            for scene in self.each
        )
        return replace(self, each=each)


def scenes_of(instance: Instance, task_of: Callable[[Resolved], Task]) -> Scenes:
    """Resolve the scenarios of an instance and gather what is on offer in each.

    Where pools are very many, they are screened as for a single plan, scenario by scenario; a pool that some scenario may
    use stays in all of them.

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
    return Scenes(
        each=tuple(
            Scene(
                case=case,
                resolved=task.resolved,
                offered=offered,
                problem=task.pruned(offered),
                unstaffed=tuple(one for one in own.outlines if one.physical not in wanted),
            )
            for case, task, offered, own in zip(found, tasks, offerings, screened, strict=True)
        ),
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
    outlines: tuple[Candidate, ...] = ()
    wanted: frozenset[Physical] = frozenset()

    @property
    def known(self) -> frozenset[Physical]:
        """The physical pools that there are."""
        return frozenset(one.physical for one in self.outlines)

    def screen(self, outlines: PlanningProblem, staffed: Callable[[Collection[str]], PlanningProblem]) -> Collection[str]:
        """As :data:`epd_opt.offering.Screen`."""
        self.outlines = outlines.candidates
        if len(self.outlines) <= FEW:
            self.wanted = self.known
            return [one.key for one in self.outlines]
        keys = set(_scout(self.task).worth_staffing(outlines, staffed))
        some = _apart(outlines, self.hired)
        if some is not None:

            def hireable(wanted: Collection[str]) -> PlanningProblem:
                return _on(staffed(wanted), self.hired)

            keys |= set(_scout(self.task).worth_staffing(some, hireable))
        self.wanted = frozenset(one.physical for one in outlines.candidates if one.key in keys)
        return [one.key for one in outlines.candidates if one.key in keys]


def _scout(task: Task) -> Scout:
    return Scout(settings=task.means.settings, clock=task.means.clock, eager=False)


def _only(wanted: Collection[Physical]) -> Screen:
    return lambda outlines, _: [one.key for one in outlines.candidates if one.physical in wanted]


def restricted(offered: Offering, pools: Iterable[Physical]) -> Offering:
    """What is on offer in some physical pools."""
    wanted = set(pools)
    some = tuple(one for one in offered.problem.candidates if one.physical in wanted)
    return replace(offered, problem=replace(offered.problem, candidates=some))
