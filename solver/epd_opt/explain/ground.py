"""What every part of an explanation stands on: the plan, its candidates, and searches for other plans."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from epd_models.candidate import Arc
from epd_opt.assemble import stopped_document
from epd_opt.backends import Clock, Clocked, SolverFailed, backend, out_of_time
from epd_opt.document import PlanDocument
from epd_opt.errors import InvalidInput, Problem
from epd_opt.explain.document import Alternative, AlternativePool, Use
from epd_opt.formulation import Question
from epd_opt.infeasible import relaxations
from epd_opt.offering import Offering
from epd_opt.pipeline import search
from epd_opt.plan import Plan
from epd_opt.problem import PlanningProblem
from epd_opt.prune import prune
from epd_opt.resolve import Resolved
from epd_opt.restore import restored
from epd_opt.solution import PoolSolution, Solution, Way
from epd_opt.verify import VerificationError
from epd_opt.wording import money

Uses = frozenset[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A plan with everything it was made from.

    Attributes
    ----------
    solution : Solution
        The plan's pools and ways, read back from the document.
    clock : Clock
        What is left of the time for the whole explanation.
    faults : list of str
        What went wrong in searches; the others stand.
    """

    document: PlanDocument
    resolved: Resolved
    offered: Offering
    solution: Solution
    clock: Clock
    say: Callable[[str], None]
    faults: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, document: PlanDocument, clock: Clock, say: Callable[[str], None]) -> Ground:
        """Rebuild a plan's candidates from its instance and cards.

        Raises
        ------
        InvalidInput
            A pool of the plan is not among them: another version of this program made it.
        OutOfTime
            There was no time to.
        """
        say("building candidates")
        resolved, offered = restored(document, each=clock.check)
        solution = _solution(document, resolved, offered)
        return cls(document=document, resolved=resolved, offered=offered, solution=solution, clock=clock, say=say)

    @cached_property
    def pruned(self) -> PlanningProblem:
        """The pruned problem of the plan's own instance."""
        return prune(self.offered.problem)

    @cached_property
    def unlimited(self) -> PlanningProblem:
        """The pruned problem of the plan's instance without its limits."""
        free = self.offered.problem
        while found := relaxations(free):
            free = found[0].problem
        return prune(free)

    @property
    def usd_per_hour(self) -> float:
        """Cost of the plan."""
        assert self.document.cost is not None
        return self.document.cost.usd_per_hour

    @property
    def uses(self) -> Uses:
        """Placements on SKUs that the plan uses."""
        return uses(self.document)

    def ask(self, *questions: Question, share: float = 1.0, diagnose: bool = False) -> Plan:
        """The cheapest plan that keeps further constraints, within a share of the time left."""
        return self._search(self.resolved, self.offered, questions, share, self.pruned, diagnose)

    def among(self, problem: PlanningProblem, *, share: float = 1.0) -> Plan:
        """The cheapest plan among fewer candidates, within a share of the time left."""
        return self._search(self.resolved, replace(self.offered, problem=problem), (), share, None, True)

    def within(self, limited: PlanningProblem, *, share: float = 1.0) -> Plan:
        """The cheapest plan under other limits, within a share of the time left."""
        resolved = replace(self.resolved, offers=limited.offers, limits=limited.limits)
        pruned = replace(self.unlimited, offers=limited.offers, limits=limited.limits)
        return self._search(resolved, replace(self.offered, problem=limited), (), share, pruned, False)

    def _search(
        self,
        resolved: Resolved,
        offered: Offering,
        questions: Sequence[Question],
        share: float,
        pruned: PlanningProblem | None,
        diagnose: bool,
    ) -> Plan:
        settings = resolved.instance.solver
        solver = Clocked(solver=backend(settings.name), clock=Clock(self.clock.left_s * share))
        start = time.perf_counter()
        if solver.clock.left_s == 0.0:
            return Plan(stopped_document(resolved, out_of_time(solver), start))
        try:
            return search(
                resolved,
                offered,
                solver,
                start=start,
                questions=questions,
                pruned=pruned,
                diagnose=diagnose,
            )
        except (SolverFailed, VerificationError) as error:
            self.faults.append(" ".join(str(error).split()))
            return Plan(stopped_document(resolved, out_of_time(solver), start))

    def alternative(self, plan: Plan, *, none: str) -> Alternative:
        """Another plan beside this one; ``none`` says in words that there is none."""
        document = plan.document
        if document.cost is None:
            why = [] if document.infeasibility is None else document.infeasibility.reasons
            text = none if document.status == "infeasible" else "not found out"
            return Alternative(status=document.status, reasons=why, text=text)
        cost = document.cost
        more = cost.usd_per_hour - self.usd_per_hour
        found = uses(document)
        text = f"{_price(more, self.usd_per_hour)}: {swapped(self.uses, found)}"
        if document.status != "optimal":
            text += f" (not proved: it may cost as little as {money(cost.bound_usd_per_hour)}/h)"
        return Alternative(
            status=document.status,
            usd_per_hour=cost.usd_per_hour,
            usd_per_request=cost.usd_per_request,
            bound_usd_per_hour=cost.bound_usd_per_hour,
            more_usd_per_hour=more,
            more_share=more / self.usd_per_hour if self.usd_per_hour else None,
            uses=[Use(placement=placement, sku=sku) for placement, sku in sorted(found)],
            pools=[
                AlternativePool(
                    name=pool.name,
                    placement=pool.placement,
                    sku=pool.sku,
                    device=pool.device,
                    replicas=pool.replicas,
                    devices=pool.devices,
                    serves=pool.serves,
                )
                for pool in document.pools
            ],
            text=text,
        )


def uses(document: PlanDocument) -> Uses:
    """Placements on SKUs that a plan uses: its structure."""
    return frozenset((pool.placement, pool.sku) for pool in document.pools)


def swapped(before: Uses, after: Uses) -> str:
    """What another structure has in place of what, in a line."""
    gone, come = _named(before - after), _named(after - before)
    if come and gone:
        return f"{come} in place of {gone}"
    if come or gone:
        return f"{come} as well" if come else f"without {gone}"
    return "the same placements and SKUs, in other numbers"


def _named(found: Uses) -> str:
    return " and ".join(f"{placement} on {sku}" for placement, sku in sorted(found))


def _price(more: float, base: float) -> str:
    """A difference in cost, in words; below a millionth there is none."""
    if abs(more) <= 1e-6 * max(base, 1e-9):
        return "the same cost"
    share = f" ({more / base:+.1%})" if base else ""
    return f"{'+' if more > 0 else '-'}{money(abs(more))}/h{share}"


def _solution(document: PlanDocument, resolved: Resolved, offered: Offering) -> Solution:
    """Pools and ways of a plan; which of a pool's levels of elapsed time a class enters at is left open."""
    known = {candidate.key: candidate for candidate in offered.problem.candidates}
    index = {pool.name: i for i, pool in enumerate(document.pools)}
    pools = []
    for pool in document.pools:
        if pool.key not in known:
            raise InvalidInput(
                [
                    Problem(
                        path=f"pools.{pool.name}",
                        message=f"is not among what the models of this version offer; version "
                        f"{document.provenance.epd_opt} made the plan",
                        hint="solve its instance again",
                    )
                ]
            )
        candidate = known[pool.key]
        arcs = {arc.request_class: arc for arc in reversed(candidate.arcs)}
        flows = {arcs[name]: rate for name, rate in pool.serves.items()}
        pools.append(PoolSolution(candidate=candidate, replicas=pool.replicas, flows=flows))
    ways = {
        request.name: tuple(
            _way(request.name, [index[name] for name in route.pools], route.rate_per_s, pools)
            for route in document.classes[request.name].routes
        )
        for request in resolved.requests
    }
    return Solution(pools=tuple(pools), ways=ways)


def _way(name: str, indices: Sequence[int], rate: float, pools: Sequence[PoolSolution]) -> Way:
    steps: list[tuple[int, Arc]] = []
    for i in indices:
        arcs = [arc for arc in pools[i].candidate.arcs if arc.request_class == name]
        if steps:
            there = steps[-1][1].end.all_levels
            steps.append((i, next(arc for arc in arcs if there.may_pass_for(arc.start.all_levels))))
        else:
            steps.append((i, next(arc for arc in arcs if arc.start.sender is None)))
    return Way(steps=tuple(steps), rate=rate)
