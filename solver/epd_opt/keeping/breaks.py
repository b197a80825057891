"""What breaks first when a kept fleet no longer serves everything."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import pulp

from epd_models.workload import RequestClass
from epd_opt.backends import Clocked, OutOfTime, Settings, SolverFailed
from epd_opt.document import Reason
from epd_opt.formulation import build
from epd_opt.infeasible import unservable
from epd_opt.keeping.fleet import Fleet, Kept, free_of_limits, offered_to, serving, used_replicas
from epd_opt.offering import Offering
from epd_opt.prune import prune
from epd_opt.resolve import Resolved
from epd_opt.solution import Solution

LOOSER = (1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.5, 1.75, 2.0, 3.0, 5.0, 10.0)
"""Factors by which a target is loosened to see whether it is what breaks."""
_TARGETS = {"ttft_ms": "ttft_s", "itl_ms": "itl_s", "e2e_ms": "e2e_s"}


def breaks(
    fleet: Fleet,
    resolved: Resolved,
    found: Kept,
    solver: Clocked,
    offered: Offering | None = None,
    suspects: Collection[tuple[str | None, str]] | None = None,
) -> list[Reason]:
    """Why a fleet does not serve an instance, what is nearest to a cure first.

    Each target that lets the fleet serve the instance when it alone is loosened, up to tenfold, with the least of
    :data:`LOOSER` that does; then the replicas that are missing, as few as possible. Where time runs out, what was found
    until then. ``wanted`` is the target (milliseconds) or the replicas at hand, ``best_reachable`` what would do.

    Parameters
    ----------
    offered : Offering, optional
        All operating points of the fleet's pools at the instance, where they are at hand.
    suspects : collection of (str, str), optional
        Classes with the only targets that may be what breaks.
    """
    if found.reasons:
        return list(found.reasons)
    reasons: list[Reason] = []
    try:
        loosened = [
            (factor, reason)
            for request, limit in _in_the_way(fleet, resolved, solver, suspects)
            if (hit := _loosened(fleet, resolved, request, limit, solver)) is not None
            for factor, reason in [hit]
        ]
        reasons = [
            reason for _, reason in sorted(loosened, key=lambda hit: (hit[0], hit[1].limit, hit[1].request_class or ""))
        ]
        reasons += missing_replicas(fleet, resolved, solver, offered)
    except (OutOfTime, SolverFailed):
        pass
    return reasons


def _in_the_way(
    fleet: Fleet, resolved: Resolved, solver: Clocked, suspects: Collection[tuple[str | None, str]] | None
) -> list[tuple[RequestClass, str]]:
    """Targets that may be what breaks: none of them, where the fleet does not serve with all of them loosened together."""
    targets = [
        (request, limit) for request in resolved.requests for limit in _TARGETS if _target(request, limit) is not None
    ]
    if suspects is not None:
        return [(request, limit) for request, limit in targets if (request.name, limit) in suspects]
    return targets if _serves(fleet, resolved, targets, LOOSER[-1], solver) else []


def _target(request: RequestClass, limit: str) -> float | None:
    target: float | None = getattr(request.targets, _TARGETS[limit])
    return target


def _serves(
    fleet: Fleet, resolved: Resolved, targets: Sequence[tuple[RequestClass, str]], factor: float, solver: Clocked
) -> bool:
    """Whether the fleet serves everything with some targets loosened."""
    looser: dict[str, dict[str, float]] = {}
    for request, limit in targets:
        target = _target(request, limit)
        assert target is not None
        looser.setdefault(request.name, {})[_TARGETS[limit]] = target * factor
    requests = tuple(
        replace(request, targets=replace(request.targets, **looser.get(request.name, {}))) for request in resolved.requests
    )
    loose = replace(resolved, requests=requests)
    return isinstance(serving(fleet, loose, offered_to(fleet, loose, solver), solver), Solution)


def _loosened(
    fleet: Fleet, resolved: Resolved, request: RequestClass, limit: str, solver: Clocked
) -> tuple[float, Reason] | None:
    """The least of the factors on a target that lets the fleet serve everything."""

    def serves(factor: float) -> bool:
        return _serves(fleet, resolved, [(request, limit)], factor, solver)

    if not serves(LOOSER[-1]):
        return None
    low, high = -1, len(LOOSER) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if serves(LOOSER[middle]) else (middle, high)
    target = _target(request, limit)
    assert target is not None
    wanted, enough = target * 1e3, target * 1e3 * LOOSER[high]
    return LOOSER[high], Reason(
        limit=limit,
        request_class=request.name,
        wanted=wanted,
        best_reachable=enough,
        text=f"class {request.name!r} wants {limit.removesuffix('_ms').upper()} {wanted:g} ms; {enough:.4g} ms would do",
    )


def missing_replicas(fleet: Fleet, resolved: Resolved, solver: Clocked, offered: Offering | None = None) -> Iterator[Reason]:
    """Replicas that the fleet's pools lack, as few sold units as possible, within a hundredth."""
    offered = offered or offered_to(fleet, resolved, solver)
    if unservable(resolved, offered) is not None:
        return
    formulation = build(free_of_limits(prune(offered.problem)))
    model, sets, v = formulation.model, formulation.sets, formulation.variables
    more = {}
    for p, (physical, members) in enumerate(sets.pools.items()):
        used = used_replicas(sets, v, physical, members)
        more[physical] = model.add_variable(f"more_{p}", 0, _most(used), cat=pulp.LpInteger)
        model.addConstraint(used - more[physical] <= fleet.replicas[physical], f"kept_{p}")
    units = {physical: float(sets.candidates[members[0]].units) for physical, members in sets.pools.items()}
    model.setObjective(pulp.LpAffineExpression([(variable, units[physical]) for physical, variable in more.items()]))
    settings = Settings(gap=0.01, time_limit_s=None, threads=resolved.instance.solver.threads)
    values = solver.solve(model, settings).values
    if values is None:
        return
    for physical, variable in more.items():
        lacking = math.floor(values[variable.name] + 0.5)
        if lacking:
            has, (_, pool) = fleet.replicas[physical], physical
            yield Reason(
                limit="replicas",
                wanted=float(has),
                best_reachable=float(has + lacking),
                text=f"{pool} has {has} replicas, spares included; {has + lacking} would do",
            )


def _most(used: pulp.LpAffineExpression) -> float:
    """The largest value of a sum of variables that count, each at its bound: solvers of whole numbers need one."""
    return math.fsum(coefficient * variable.upBound for variable, coefficient in used.items())
