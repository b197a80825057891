"""Why a plan is as it is: what binds, what the runner-up costs, what was asked about; or why there is no plan."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from epd_opt.backends import Clock, OutOfTime
from epd_opt.document import PlanDocument
from epd_opt.errors import UsageError
from epd_opt.explain.asked import Target, Traffic, price_of_use, price_without, target, traffic
from epd_opt.explain.binding import limit_facts, one_less, pool_facts, priced_limits
from epd_opt.explain.document import Alternative, ExplanationDocument
from epd_opt.explain.ground import Ground
from epd_opt.explain.latency import class_facts
from epd_opt.explain.runner_up import other_structures
from epd_opt.explain.source import plan_or_instance
from epd_opt.held import Held
from epd_opt.instance import Instance
from epd_opt.pipeline import planned, solve, with_mends
from epd_opt.plan import Plan
from epd_opt.reading import complaining_in_place
from epd_opt.resolve import resolve
from epd_opt.scenarios import demand_one_case

RUNNERS_UP = 3


class Explanation(Held[ExplanationDocument]):
    """An explanation; shows itself in a terminal (``print``) and in a notebook.

    Attributes
    ----------
    document : ExplanationDocument
        All of it, as in the JSON document.
    """

    def __str__(self) -> str:
        from epd_opt.explain.view import explanation_text

        return explanation_text(self.document)

    def __repr__(self) -> str:
        return f"<Explanation of {self.document.instance!r}: {self.document.status}>"

    def _repr_html_(self) -> str:
        from epd_opt.explain.view import explanation_html

        return explanation_html(self.document)


NOT_THE_BEST_OF_ONE = (
    "a fleet for several scenarios is not the best plan of any one of them: explain the plan of one, with "
    "epd-opt explain INSTANCE --scenario NAME"
)


@complaining_in_place(plan_or_instance)
def explain(
    plan: Plan | Instance | Mapping[str, Any] | str | Path,
    *,
    why_not: Sequence[str] = (),
    without: Sequence[str] = (),
    share: float | str | None = None,
    runners_up: int = RUNNERS_UP,
    time_limit_s: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> Explanation:
    """Say what binds in a plan, what the next best ones cost, and what was asked about; or why there is no plan.

    Parameters
    ----------
    plan : Plan, Instance, mapping or path
        A plan, which needs nothing else, or an instance, which is solved first.
    why_not, without : sequence of str
        Placements, SKUs, ``PLACEMENT:SKU`` or pools whose use, or whose absence, is priced.
    share : float or str, optional
        Least share of the traffic that ``why_not`` means, above 0 and up to 1; ``"album=0.5"`` is of one class. Without
        it, a hundredth of some class is enough.
    runners_up : int
        How many plans of other structures to look for.
    time_limit_s : float, optional
        Wall-clock seconds for all of it, solving an instance included; default that of the instance.
    progress : callable, optional
        Called with one line per step.

    Raises
    ------
    InvalidInput, UsageError
        The input makes no sense, or a name in a question is unknown.
    """
    say = progress or (lambda _: None)
    start = time.perf_counter()
    given = plan_or_instance(plan)
    if isinstance(given, Plan):
        if given.document.scenarios is not None:
            raise UsageError(NOT_THE_BEST_OF_ONE)
    else:
        demand_one_case(given, "an explanation")
    instance = Instance(**given.document.instance_document) if isinstance(given, Plan) else given
    pools = [pool.name for pool in given.document.pools] if isinstance(given, Plan) else []
    uses = [target(text, instance, pools) for text in why_not]
    absences = [target(text, instance, pools) for text in without]
    wanted = None if share is None else traffic(str(share), instance)
    limit = time_limit_s or instance.solver.time_limit_s
    clock = Clock(limit)
    if isinstance(given, Plan):
        document = given.document
    else:
        settings = instance.solver.model_copy(update={"time_limit_s": limit})
        document = solve(instance.model_copy(update={"solver": settings}), progress=say, mends=False).document
    try:
        if document.cost is None:
            return Explanation(_planless(given, document, clock, start, say))
        ground = Ground.of(document, clock, say)
    except OutOfTime:
        return Explanation(_document(document, start, notes=["no time was left to build the candidates"]))
    return Explanation(_explained(ground, uses, absences, wanted, runners_up, start))


class _Budget:
    """Shares of the time left for searches that are still to come: each gets as much as any other."""

    def __init__(self, searches: int) -> None:
        self.left = searches

    def share(self) -> float:
        """Of the next search."""
        part = 1.0 / max(1, self.left)
        self.left -= 1
        return part


def _explained(
    ground: Ground,
    uses: Sequence[Target],
    absences: Sequence[Target],
    wanted: Traffic | None,
    runners_up: int,
    start: float,
) -> ExplanationDocument:
    pools, classes, limits = pool_facts(ground), class_facts(ground), limit_facts(ground)
    of_limits = 1 + len(limits) if limits else 0
    budget = _Budget(len(uses) + len(absences) + runners_up + of_limits + len(pools))
    answers = [price_of_use(ground, asked, wanted, budget.share) for asked in uses]
    answers += [price_without(ground, asked, budget.share) for asked in absences]
    others = sorted(other_structures(ground, runners_up, budget.share), key=lambda other: other.usd_per_hour or math.inf)
    budget.left = of_limits + len(pools)
    limits = list(priced_limits(ground, limits, budget.share))
    less = _one_less(ground)
    pools = [facts.model_copy(update={"one_less": less[facts.name]}) for facts in pools]
    return _document(
        ground.document,
        start,
        pools=pools,
        classes=classes,
        limits=limits,
        runners_up=others,
        why_not=answers,
        notes=_notes(ground),
    )


def _one_less(ground: Ground) -> dict[str, Alternative]:
    """For every pool, the plan with a replica less; operating points of one physical pool share it."""
    physical = [solved.candidate.physical for solved in ground.solution.pools]
    budget = _Budget(len(set(physical)))
    found: dict[tuple[str, str], Alternative] = {}
    for pool, which in zip(ground.document.pools, physical, strict=True):
        if which not in found:
            found[which] = one_less(ground, pool, share=budget.share())
    return {pool.name: found[which] for pool, which in zip(ground.document.pools, physical, strict=True)}


def _notes(ground: Ground) -> list[str]:
    """What the other plans are compared by, where it is not the plan's own objective, and which searches were left."""
    document = ground.document
    notes = [f"a search for another plan failed: {fault}" for fault in ground.faults]
    notes += ["no time was left for every search"] if ground.clock.left_s == 0.0 else []
    if document.goodput is None and document.rate_multiple is None:
        return notes
    return [*notes, f"other plans serve as much, {document.multiple:g} times the stated demand, and are compared by cost"]


def _planless(
    given: Plan | Instance, document: PlanDocument, clock: Clock, start: float, say: Callable[[str], None]
) -> ExplanationDocument:
    """Why there is no plan, with every mend that there is time for; of a plan document the reasons are found anew."""
    if document.status != "infeasible":
        return _document(document, start, notes=["the time limit passed before there was a plan to explain"])
    resolved = resolve(Instance(**document.instance_document), cards=document.cards)
    plan = planned(resolved, clock, start=start, say=say) if isinstance(given, Plan) else Plan(document)
    if plan.status != "infeasible":
        return _document(document, start, notes=[f"solved anew, the instance is {plan.status}"])
    plan = with_mends(plan, resolved, clock, thorough=True, cards=document.cards, say=say)
    return _document(document, start, infeasibility=plan.infeasibility)


def _document(document: PlanDocument, start: float, **parts: Any) -> ExplanationDocument:
    return ExplanationDocument(
        instance=document.instance,
        status=document.status,
        usd_per_hour=None if document.cost is None else document.cost.usd_per_hour,
        seconds=round(time.perf_counter() - start, 3),
        **parts,
    )
