"""From a resolved instance to the planning problem: candidates modelled and measured, gathered in canonical order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from epd_models.candidate import Candidate, Rejection, State
from epd_models.placement import LAST_LEVEL, Behaviour, Context, modelled_candidates
from epd_models.placement.measured import MEASURED_SENDER, MeasuredWorker, measured_candidate
from epd_models.request import ContextExceeded, RequestLoad, request_load
from epd_models.transfer import Sender
from epd_opt.address import format_path
from epd_opt.errors import InvalidInput, Problem
from epd_opt.problem import PlanningProblem
from epd_opt.resolve import Resolved


@dataclass(frozen=True, kw_only=True)
class Offering:
    """Everything the optimiser may choose from.

    Attributes
    ----------
    behaviours : Mapping[str, Behaviour]
        For each modelled candidate's key, the physics that predicts its times.
    rejections : tuple of Rejection
        What is not on offer, and why.
    fastest : Mapping[str, float]
        Seconds to the first token on the fastest way of each class through modelled pools, without any wait; classes
        without such a way are absent.
    """

    problem: PlanningProblem
    behaviours: Mapping[str, Behaviour]
    rejections: tuple[Rejection, ...]
    fastest: Mapping[str, float]


def loads_of(resolved: Resolved) -> tuple[tuple[RequestLoad, ...], tuple[Rejection, ...]]:
    """Classes as work for the model, and the classes it can never serve."""
    loads, rejections = [], []
    if resolved.model is not None:
        for request in resolved.requests:
            try:
                loads.append(request_load(request, resolved.model))
            except ContextExceeded as error:
                rejections.append(
                    Rejection(
                        limit="context_length",
                        device="",
                        request_class=request.name,
                        wanted=error.wanted,
                        best_reachable=error.most,
                        text=str(error),
                    )
                )
            except ValueError as error:
                key = "video" if request.video is not None else "images"
                path = format_path(["workload", "classes", request.name, key])
                raise InvalidInput([Problem(path=path, message=str(error))]) from None
    return tuple(loads), tuple(rejections)


def context_of(resolved: Resolved, loads: tuple[RequestLoad, ...]) -> Context:
    """What all modelled pools share."""
    assert resolved.model is not None
    per_unit = resolved.network.bandwidth_per_unit
    slowest = min((e.device.nic_bandwidth for e in resolved.entries), default=0.0) if per_unit is None else per_unit
    return Context(
        model=resolved.model,
        engine=resolved.engine,
        loads=loads,
        network=resolved.network,
        slowest_bandwidth=slowest,
    )


Screen = Callable[[PlanningProblem, Callable[[Collection[str]], PlanningProblem]], Collection[str]]
"""Which pools may matter: given the problem over outlines of them (see :data:`epd_models.placement.Choice`), and the problem
over the operating points of those of some keys; the keys that may."""


def offering(
    resolved: Resolved,
    *,
    each: Callable[[], None] = lambda: None,
    screen: Screen | None = None,
    only: Collection[str] | None = None,
) -> Offering:
    """Gather the candidates of a resolved instance.

    Parameters
    ----------
    each : callable
        Called again and again; may raise to end the work.
    screen : Screen, optional
        Tells for which pools operating points are needed; not asked where measured workers are on offer beside them.
    only : collection of str, optional
        Names of the only modelled pools that are looked at.
    """
    workers = _measured(resolved)
    vision = {request.name: request.has_vision for request in resolved.requests}
    loads, rejections = loads_of(resolved)
    senders: dict[tuple[str, State], set[Sender]] = {}
    for worker in workers:
        for name in worker.max_rate:
            passage = worker.passage(has_vision=vision[name])
            if passage is not None:
                senders.setdefault((name, passage[1]), set()).add(MEASURED_SENDER)
    candidates: list[Candidate] = []
    behaviours: dict[str, Behaviour] = {}
    fastest: dict[str, float] = {}
    if resolved.model is not None and loads:

        def choice(outlines: Sequence[Candidate], staff: Callable[[Collection[str]], list[Candidate]]) -> Collection[str]:
            assert screen is not None
            return screen(planning_problem(resolved, outlines), lambda keys: planning_problem(resolved, staff(keys)))

        modelled = modelled_candidates(
            context_of(resolved, loads),
            resolved.entries,
            resolved.instance.placements,
            senders,
            each=each,
            choice=None if screen is None or workers else choice,
            only=only,
        )
        candidates += modelled.candidates
        behaviours, fastest = dict(modelled.behaviours), dict(modelled.fastest)
        rejections = (*rejections, *modelled.rejections)
        senders = {key: set(found) for key, found in modelled.senders.items()}
    for worker in workers:
        candidate = measured_candidate(worker, vision=vision, senders=senders, last_level=LAST_LEVEL)
        if candidate is not None:
            candidates.append(candidate)
    return Offering(
        problem=planning_problem(resolved, candidates),
        behaviours=behaviours,
        fastest=fastest,
        rejections=(*resolved.rejections, *rejections),
    )


def planning_problem(resolved: Resolved, candidates: Iterable[Candidate]) -> PlanningProblem:
    """The problem of an instance over some candidates, in canonical order."""
    return PlanningProblem(
        demands=resolved.demands,
        candidates=tuple(sorted(candidates, key=lambda candidate: candidate.key)),
        offers=resolved.offers,
        limits=resolved.limits,
        spare_replicas=resolved.spare_replicas,
        zones=resolved.zones,
        lost_zones=resolved.lost_zones,
    )


def offering_at(
    resolved: Resolved,
    multiples: Sequence[float],
    *,
    each: Callable[[], None] = lambda: None,
    screen: Screen | None = None,
    only: Collection[str] | None = None,
) -> Offering:
    """Everything on offer where so many times the demand may be served.

    Operating points hold at any flow, but those worth offering depend on how large pools may become. So points are made
    for the demand at each of the multiples, and offered together; the problem keeps the stated demand.
    """
    first, *others = [offering(resolved.at(multiple), each=each, screen=screen, only=only) for multiple in multiples]
    candidates = {candidate.key: candidate for one in (first, *others) for candidate in one.problem.candidates}
    behaviours = {key: behaviour for one in (*reversed(others), first) for key, behaviour in one.behaviours.items()}
    return replace(
        first,
        problem=replace(
            first.problem,
            demands=resolved.demands,
            candidates=tuple(sorted(candidates.values(), key=lambda candidate: candidate.key)),
        ),
        behaviours=behaviours,
    )


def _measured(resolved: Resolved) -> list[MeasuredWorker]:
    """Measured workers on every priced entry of their SKU, sorted by name and entry."""
    names = [request.name for request in resolved.requests]
    result = []
    for worker in resolved.instance.workers:
        entries = [offer for offer in resolved.offers if worker.sku in (offer.name, offer.sku)]
        rates = {name: rate for name in names if (rate := worker.rate_per_s(name))}
        for offer in entries:
            result.append(
                MeasuredWorker(
                    name=worker.name,
                    device=offer.name,
                    sku=offer.sku,
                    units=worker.devices,
                    stages=worker.stages,
                    max_rate=rates,
                )
            )
    return sorted(result, key=lambda worker: (worker.name, worker.device))
