"""Why not: the price of using, or of doing without, a placement or a SKU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

import pulp

from epd_models import catalog
from epd_models.candidate import STAGES, STATES, Arc, Candidate, Rejection, Stage
from epd_models.placement import PLACEMENTS
from epd_opt.address import format_path
from epd_opt.document import Reason
from epd_opt.errors import UsageError
from epd_opt.explain.document import Alternative, Answer
from epd_opt.explain.ground import Ground
from epd_opt.formulation import Question
from epd_opt.formulation.constraints import Rows
from epd_opt.formulation.sets import Sets
from epd_opt.formulation.variables import Variables
from epd_opt.instance import Instance
from epd_opt.plan import Plan
from epd_opt.prune import connected
from epd_opt.wording import share as per_cent

LEAST_USE = 0.01
"""Share of some class that must pass through a placement or SKU for it to count as used: an idle replica is no use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is asked about: a placement, a device (entry name or SKU), both, or a pool by its name."""

    asked: str
    placement: str | None = None
    device: str | None = None
    pool: str | None = None

    def means(self, candidate: Candidate) -> bool:
        """Whether a candidate is meant."""
        return (
            self.placement in (None, candidate.placement)
            and self.device in (None, candidate.device, candidate.sku)
            and self.pool in (None, candidate.pool)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """A least share of the traffic, of one class or (None) of all."""

    share: float
    request_class: str | None = None


def target(text: str, instance: Instance, pools: Sequence[str] = ()) -> Target:
    """What ``PLACEMENT``, ``SKU``, ``PLACEMENT:SKU`` or a pool's name means; names may hold colons.

    Raises
    ------
    UsageError
        Nothing of this name is known; the nearest names are given.
    """
    devices = list(dict.fromkeys(name for entry in instance.devices for name in (entry.name, entry.sku)))
    if text in PLACEMENTS:
        return Target(asked=text, placement=text)
    if text in devices:
        return Target(asked=text, device=text)
    if text in pools:
        return Target(asked=text, pool=text)
    placement, _, device = text.partition(":")
    if placement in PLACEMENTS and device in devices:
        return Target(asked=text, placement=placement, device=device)
    known = [*PLACEMENTS, *devices]
    if placement in PLACEMENTS and device:
        text, known = device, devices
    if (sku := _of_the_catalogue(text)) is not None:
        raise UsageError(
            f"{text!r} is not on offer in this instance: add it under devices, as in "
            f"- {{sku: {sku}, price: {{usd_per_hour: ...}}}}, and plan or explain again"
        )
    near = get_close_matches(text, known, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known)}"
    raise UsageError(f"{text!r} is no placement and no device of this instance ({hint})")


def _of_the_catalogue(text: str) -> str | None:
    """The SKU of the card that goes by this name or alias, if any does."""
    try:
        return str(catalog.device_card(text)["sku"])
    except catalog.UnknownCard:
        return None


def traffic(text: str, instance: Instance) -> Traffic:
    """``0.3`` is of all traffic, ``album=1`` of a class; class names may hold anything.

    Raises
    ------
    UsageError
        Not a share above 0 and up to 1, or no such class.
    """
    name, equals, number = text.rpartition("=")
    try:
        share = float(number)
    except ValueError:
        share = float("nan")
    if not 0.0 < share <= 1.0:
        raise UsageError(f"--share {text}: expected a share above 0 and up to 1, or CLASS=SHARE")
    classes = [request.name for request in instance.workload.classes]
    if equals and name not in classes:
        near = get_close_matches(name, classes, n=1)
        hint = f"did you mean {near[0]}?" if near else f"classes: {', '.join(classes)}"
        raise UsageError(f"--share {text}: no class {name!r} ({hint})")
    return Traffic(share=share, request_class=name if equals else None)


def price_of_use(ground: Ground, asked: Target, wanted: Traffic | None, share: Callable[[], float]) -> Answer:
    """The cheapest plan that uses what is asked about: a hundredth of some class at least, or a wanted share."""
    ground.say(f"with {asked.asked}")

    def answer(alternative: Alternative) -> Answer:
        return Answer(
            asked=asked.asked,
            kind="with",
            share=None if wanted is None else wanted.share,
            request_class=None if wanted is None else wanted.request_class,
            alternative=alternative,
        )

    on_offer = [candidate for candidate in ground.offered.problem.candidates if asked.means(candidate)]
    usable = [c for c in connected(ground.offered.problem.candidates) if asked.means(c)]
    if not usable:
        return answer(_none(_why_not_on_offer(ground, asked, led_nowhere=bool(on_offer))))
    if wanted is None:
        if any(asked.means(solved.candidate) for solved in ground.solution.pools):
            return answer(_as_it_is(ground, "the plan uses it already"))
        return answer(_shown(ground, asked, _used_at_all(asked), share()))
    ways = list(_enough(ground, asked, wanted, usable))
    if not ways:
        return answer(_none(_too_little(ground, asked, wanted)))
    part = share()
    found = [_shown(ground, asked, question, part / (len(ways) - i)) for i, question in enumerate(ways)]
    return answer(min(found, key=lambda one: (one.usd_per_hour is None, one.usd_per_hour or 0.0)))


def price_without(ground: Ground, asked: Target, share: Callable[[], float]) -> Answer:
    """The cheapest plan that does without what is asked about."""
    ground.say(f"without {asked.asked}")
    if not any(asked.means(solved.candidate) for solved in ground.solution.pools):
        found = _as_it_is(ground, "the plan does not use it")
        return Answer(asked=asked.asked, kind="without", alternative=found)
    problem = ground.offered.problem
    left = tuple(candidate for candidate in problem.candidates if not asked.means(candidate))
    ends = {arc.request_class for candidate in connected(left) for arc in candidate.arcs if arc.end.state == "done"}
    stranded = [demand.name for demand in problem.demands if demand.name not in ends]
    if stranded:
        reasons = [
            Reason(
                limit="parallelism",
                request_class=name,
                text=f"without {asked.asked}, no device, placement and worker on offer together serve class {name!r}",
            )
            for name in stranded
        ]
        return Answer(asked=asked.asked, kind="without", alternative=_none(reasons))
    plan = ground.among(replace(problem, candidates=left), share=share())
    found = ground.alternative(plan, none="impossible")
    return Answer(asked=asked.asked, kind="without", alternative=_with_reasons(found))


def _shown(ground: Ground, asked: Target, question: Question, share: float) -> Alternative:
    plan = ground.ask(question, share=share, diagnose=True)
    found = ground.alternative(plan, none="impossible")
    rates = {demand.name: demand.rate for demand in ground.resolved.demands}
    keys = {c.key for c in ground.offered.problem.candidates if asked.means(c)}
    carried: dict[str, float] = {}
    for pool in plan.document.pools:
        for name, rate in pool.serves.items() if pool.key in keys else ():
            carried[name] = max(carried.get(name, 0.0), rate)
    if carried:
        parts = ", ".join(f"{per_cent(rate / rates[name])} of {name}" for name, rate in sorted(carried.items()))
        found = found.model_copy(update={"text": f"{found.text}; it serves {parts}"})
    return _with_reasons(found)


def _with_reasons(found: Alternative) -> Alternative:
    """An impossible alternative that says why in its text."""
    if not found.reasons:
        return found
    return found.model_copy(update={"text": f"impossible: {'; '.join(reason.text for reason in found.reasons)}"})


def _none(reasons: Sequence[Reason]) -> Alternative:
    return _with_reasons(Alternative(status="infeasible", reasons=list(reasons), text="impossible"))


def _as_it_is(ground: Ground, text: str) -> Alternative:
    """The plan itself as the answer."""
    return ground.alternative(Plan(ground.document), none="").model_copy(update={"text": text})


def _used_at_all(asked: Target) -> Question:
    def rows(_: pulp.LpProblem, sets: Sets, v: Variables) -> Rows:
        through = [variable for (k, _), variable in v.share.items() if asked.means(sets.candidates[k])]
        yield "used_at_all", -pulp.lpSum(through) <= -LEAST_USE

    return Question(rows=rows, favours=asked.means)


def _covers(arc: Arc, stage: Stage) -> bool:
    """Whether a class passes a stage on an arc."""
    number = STAGES.index(stage)
    return STATES.index(arc.start.state) <= number < STATES.index(arc.end.state)


def _enough(ground: Ground, asked: Target, wanted: Traffic, usable: Sequence[Candidate]) -> Iterator[Question]:
    """For each stage that what is asked about can run for enough of the traffic, the constraint that it does. Stages that
    the same arcs pass are one."""
    seen: list[set[tuple[str, Arc]]] = []
    for stage in STAGES:
        rates = _traffic_at(ground, stage, wanted)
        arcs = {(c.key, arc) for c in usable for arc in c.arcs if _covers(arc, stage) and arc.request_class in rates}
        reached = sum(rates[name] for name in {arc.request_class for _, arc in arcs})
        if arcs and arcs not in seen and reached >= wanted.share * sum(rates.values()) * (1 - 1e-9):
            seen.append(arcs)
            yield _share_of_stage(asked, wanted, stage, rates)


def _traffic_at(ground: Ground, stage: Stage, wanted: Traffic) -> dict[str, float]:
    """Requests/s of the classes that a share is of, those that have something to do at a stage."""
    vision = {request.name for request in ground.resolved.requests if request.has_vision}
    return {
        demand.name: demand.rate
        for demand in ground.resolved.demands
        if wanted.request_class in (None, demand.name) and (stage != "encode" or demand.name in vision)
    }


def _share_of_stage(asked: Target, wanted: Traffic, stage: Stage, rates: dict[str, float]) -> Question:
    total = sum(rates.values())

    def rows(_: pulp.LpProblem, sets: Sets, v: Variables) -> Rows:
        through = [
            (variable, -rates[arc.request_class] / total)
            for (k, arc), variable in v.share.items()
            if asked.means(sets.candidates[k]) and arc.request_class in rates and _covers(arc, stage)
        ]
        yield f"share_of_{stage}", pulp.LpAffineExpression(through) <= -wanted.share

    return Question(rows=rows, favours=asked.means)


def _too_little(ground: Ground, asked: Target, wanted: Traffic) -> list[Reason]:
    of = "all traffic" if wanted.request_class is None else f"class {wanted.request_class!r}"
    reasons = _why_not_on_offer(ground, asked, led_nowhere=True, names={wanted.request_class} - {None})
    text = f"{asked.asked} cannot serve {per_cent(wanted.share)} of {of}: {reasons[0].text}"
    return [reasons[0].model_copy(update={"text": text}), *reasons[1:]]


def _why_not_on_offer(
    ground: Ground, asked: Target, *, led_nowhere: bool, names: set[str | None] | None = None
) -> list[Reason]:
    """Why nothing of what is asked about can be used, from the rejections that the models gave."""
    instance = ground.resolved.instance
    entries = [e for e in instance.devices if asked.device in (None, e.name, e.sku)]
    if asked.placement is not None and instance.candidates.modelled and asked.placement not in instance.placements:
        text = f"placements of this instance leave out {asked.placement}"
        return [Reason(limit="parallelism", text=text)]
    met = [r for r in ground.offered.rejections if _about(r, asked, {e.name for e in entries} | {e.sku for e in entries})]
    if names:
        met = [r for r in met if r.request_class in (None, *names)]
    if met:
        unique = {(r.limit, r.request_class, r.text): r for r in met}
        return [
            Reason(
                limit=r.limit,
                request_class=r.request_class,
                wanted=r.wanted,
                best_reachable=r.best_reachable,
                text=r.text,
            )
            for r in list(unique.values())[:_MOST_REASONS]
        ]
    if asked.placement is not None and instance.candidates.modelled:
        needed = set(PLACEMENTS[asked.placement].stages)
        barred = [e.name for e in entries if not needed <= set(e.stages)]
        if barred and len(barred) == len(entries):
            paths = ", ".join(format_path(["devices", name, "stages"]) for name in barred)
            return [Reason(limit="parallelism", text=f"{paths} leave out a stage of {asked.placement}")]
    if led_nowhere:
        text = f"no pool on offer hands over to {asked.asked}, or none takes over from it"
        return [Reason(limit="parallelism", text=text)]
    return [Reason(limit="parallelism", text="no class of this workload has anything to do there, or no worker runs on it")]


_MOST_REASONS = 3


def _about(rejection: Rejection, asked: Target, names: set[str]) -> bool:
    """Whether a rejection concerns what is asked about."""
    of_device = asked.device is None or rejection.device in names
    if asked.placement is None or not rejection.pool:
        return of_device and bool(rejection.device)
    return of_device and any(rejection.pool.startswith(f"{asked.placement}-{name}-") for name in names)
