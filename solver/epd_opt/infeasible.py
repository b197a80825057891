"""Why an instance cannot be served: the first honest reasons, with the best value that could be reached."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import pulp

from epd_models.candidate import Rejection
from epd_models.workload import RequestClass
from epd_opt.address import format_path
from epd_opt.backends import Backend, Clocked, Outcome, Settings
from epd_opt.document import Infeasibility, Mend, Reason
from epd_opt.formulation import Formulation, Question, build
from epd_opt.offering import Offering
from epd_opt.problem import Limits, Offer, PlanningProblem
from epd_opt.prune import connected
from epd_opt.resolve import Resolved

_PROGRESS = (
    "no_price",
    "forbid",
    "rack_kw",
    "precision",
    "parallelism",
    "performance",
    "memory",
    "context_length",
    "itl_ms",
    "e2e_ms",
    "ttft_ms",
)
"""Limits in the order in which a pool meets them: the last one met stands closest to a plan."""


def progress(reason: Reason) -> int:
    """How near to a plan a class has come that ends at this reason."""
    return _PROGRESS.index(reason.limit)


def unservable(resolved: Resolved, offered: Offering) -> Infeasibility | None:
    """Reasons of the classes that no candidate leads to an end; None where every class has a way."""
    found = [_class_reason(resolved, offered, name) for name in without_way(resolved, offered)]
    return Infeasibility(reasons=found, mends=[]) if found else None


def without_way(resolved: Resolved, offered: Offering) -> list[str]:
    """Classes that no candidate leads to an end."""
    ways = {
        arc.request_class
        for candidate in connected(offered.problem.candidates)
        for arc in candidate.arcs
        if arc.end.state == "done"
    }
    return [request.name for request in resolved.requests if request.name not in ways]


def _class_reason(resolved: Resolved, offered: Offering, name: str) -> Reason:
    about = [r for r in offered.rejections if r.request_class in (None, name)]
    own = [r for r in about if r.limit == "context_length"]
    if not own and offered.fastest.get(name) is not None:
        return _too_slow(resolved, offered, name)
    if not about:
        return Reason(
            limit="parallelism",
            request_class=name,
            text=f"no device, placement and worker of this instance together serve class {name!r} to its end; "
            "check devices[].stages, placements and workers",
        )
    furthest = max(own or about, key=lambda r: _PROGRESS.index(r.limit)).limit
    met = [r for r in about if r.limit == furthest]
    nearest = min(met, key=_shortfall)
    request = next(r for r in resolved.requests if r.name == name)
    if furthest == "itl_ms" and _interval_is_of_e2e(request, nearest):
        return _output_too_long(request, nearest)
    text = nearest.text if nearest.request_class == name else f"class {name!r}: {nearest.text}"
    others = len({r.device for r in met}) - 1
    text += f" (and likewise {others} more device entries)" if others > 0 else ""
    return Reason(
        limit=furthest,
        request_class=name,
        wanted=nearest.wanted,
        best_reachable=nearest.best_reachable,
        text=text + _hint(resolved, name),
    )


def _too_slow(resolved: Resolved, offered: Offering, name: str) -> Reason:
    """The class has pools for every stage, and yet its first token comes too late on the fastest way through them."""
    fastest = offered.fastest[name]
    request = next(r for r in resolved.requests if r.name == name)
    limit, wanted = "ttft_ms", (request.targets.ttft_s or 0.0) * 1e3
    if request.targets.e2e_s is not None and fastest * 1e3 < wanted:
        limit, wanted = "e2e_ms", request.targets.e2e_s * 1e3
    return Reason(
        limit=limit,
        request_class=name,
        wanted=wanted,
        best_reachable=fastest * 1e3,
        text=f"class {name!r} wants {wanted:g} ms; the fastest way to its first token takes {fastest * 1e3:.1f} ms "
        + ("before any wait" if fastest * 1e3 >= wanted else "and leaves too little for its waits")
        + _hint(resolved, name),
    )


def _interval_is_of_e2e(request: RequestClass, nearest: Rejection) -> bool:
    """Whether it is the end-to-end target that asks for the interval, the class's own interval being within reach."""
    itl_s, reached_ms = request.targets.itl_s, nearest.best_reachable
    return request.targets.e2e_s is not None and reached_ms is not None and (itl_s is None or reached_ms < itl_s * 1e3)


def _output_too_long(request: RequestClass, nearest: Rejection) -> Reason:
    """The output alone, at the shortest interval, takes longer than the end-to-end target leaves for it."""
    assert request.targets.e2e_s is not None
    assert nearest.best_reachable is not None
    tokens = request.output_tokens.quantile(request.targets.e2e_probability)
    return Reason(
        limit="e2e_ms",
        request_class=request.name,
        wanted=request.targets.e2e_s * 1e3,
        best_reachable=(tokens - 1.0) * nearest.best_reachable,
        text=f"class {request.name!r} wants {request.targets.e2e_s * 1e3:g} ms end to end; {tokens:.0f} output tokens take "
        f"at least {(tokens - 1.0) * nearest.best_reachable:.0f} ms after the first ({nearest.text})",
    )


def _hint(resolved: Resolved, name: str) -> str:
    path = format_path(["workload", "classes", name, "slo"])
    hints = [warning for warning in resolved.warnings if warning.startswith(path)]
    return f" ({'; '.join(hints)})" if hints else ""


def _shortfall(rejection: Rejection) -> float:
    """How far a rejection is from being none, relative; unknown distances last."""
    if rejection.wanted is None or rejection.best_reachable is None or not rejection.wanted:
        return float("inf")
    ratio = rejection.best_reachable / rejection.wanted
    return abs(ratio - 1.0)


def limiting(
    problem: PlanningProblem, solver: Clocked, settings: Settings, questions: Sequence[Question] = ()
) -> Infeasibility:
    """Reasons where every class has a way but the fleet's limits leave no room: each limit that, taken away alone,
    leaves a plan, with the least value that would do; all limits together where no single one is enough.

    Each value of a mend belongs to a fleet that was found.
    """
    reasons: list[Reason] = []
    mends: list[Mend] = []
    decided = True
    found = relaxations(problem)
    for relaxed in found:
        if solver.clock.left_s == 0.0:
            decided = False
            break
        formulation = build(relaxed.problem, questions)
        outcome = _least(formulation, relaxed.least, solver, settings)
        decided &= outcome.termination in ("optimal", "infeasible")
        if outcome.values is None or outcome.objective is None:
            continue
        enough = _rounded_up(outcome.objective)
        needed = f"at least {enough:.6g} is needed" if outcome.termination == "optimal" else f"{enough:.6g} is enough"
        reasons.append(
            Reason(
                limit=relaxed.limit,
                wanted=relaxed.wanted,
                best_reachable=enough,
                text=f"{relaxed.label} is {relaxed.wanted:g}; with everything else as it is, {needed}",
            )
        )
        mends.append(Mend(change=relaxed.path, to=enough))
    reasons += _requirements(problem, solver, settings, questions)
    if not reasons:
        unsold = [offer.name for offer in problem.offers if not offer.for_sale]
        labels = [relaxed.label for relaxed in found] + (["limits.require"] if problem.limits.required else [])
        names = ", ".join([*labels, *(f"{name} without a price" for name in unsold)]) or "stock"
        text = f"no plan keeps all limits together ({names}); relax several"
        if unsold and not labels:
            text = f"the owned units of {' and '.join(unsold)} are too few, and more have no price"
        if not decided:
            text = f"no plan keeps all limits ({names}); there was no time to find out which of them is in the way"
        reasons.append(Reason(limit=_first_limit(problem), text=text))
    return Infeasibility(reasons=reasons, mends=mends)


def _requirements(
    problem: PlanningProblem, solver: Backend, settings: Settings, questions: Sequence[Question]
) -> list[Reason]:
    """Devices that are required, without any one of which, or without all of which, there is a plan."""
    required = problem.limits.required

    def possible(rest: Sequence[tuple[str, tuple[str, ...]]]) -> bool:
        free = replace(problem, limits=replace(problem.limits, required=tuple(rest)))
        return solver.solve(build(free, questions).model, replace(settings, gap=1.0)).values is not None

    found = []
    for one in required:
        if possible([other for other in required if other != one]):
            text = f"limits.require asks for {one[0]}; there are plans, but none in which it serves anything"
            found.append(Reason(limit="require", text=text))
    if not found and len(required) > 1 and possible([]):
        names = " and ".join(name for name, _ in required)
        text = f"limits.require asks for {names}; there are plans, but none in which all of them serve something"
        found.append(Reason(limit="require", text=text))
    return found


def _rounded_up(value: float) -> float:
    """A value that a limit may be set to: whole where it is nearly so, else rounded up in the fifth digit."""
    if abs(value - round(value)) <= 1e-6 * max(1.0, abs(value)):
        return float(round(value))
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 5)
    return float(f"{math.ceil(value / step) * step:.10g}")


Least = Callable[[Formulation], list[tuple[pulp.LpVariable, float]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """The problem without one of its limits.

    Attributes
    ----------
    limit, path, label : str
        Kind of limit, address of its value, and what to call it.
    wanted : float
        Its value.
    least : callable
        What to make least to see how much of it is needed.
    device : str or None
        The device entry that it is a limit of; None for limits of the whole fleet.
    """

    problem: PlanningProblem
    limit: str
    path: str
    label: str
    wanted: float
    least: Least
    device: str | None = None


def relaxations(problem: PlanningProblem) -> list[Relaxation]:
    """The problem without each of its limits in turn."""
    limits = problem.limits
    result: list[Relaxation] = []
    for offer in problem.offers:
        if offer.stock is not None and offer.for_sale:
            free = tuple(replace(o, stock=None) if o.name == offer.name else o for o in problem.offers)
            smallest = max(offer.lot, offer.minimum)
            short = smallest > 1 and offer.stock - offer.owned < smallest
            result.append(
                Relaxation(
                    problem=replace(problem, offers=free),
                    limit="minimum_order" if short else "stock",
                    path=format_path(["devices", offer.name, "stock"]),
                    label=f"stock of {offer.name}" + (f" (sold in {_order(offer)})" if short else ""),
                    wanted=float(offer.stock),
                    least=_units(offer),
                    device=offer.name,
                )
            )
    skus = len({offer.sku for offer in problem.offers})
    fleet: list[tuple[str, float | None, Limits, Least]] = [
        ("usd_per_hour", limits.usd_per_hour, replace(limits, usd_per_hour=None), _cost),
        (
            "power_kw",
            None if limits.power_w is None else limits.power_w / 1e3,
            replace(limits, power_w=None),
            _power,
        ),
        ("devices", limits.devices, replace(limits, devices=None), _devices),
        ("skus", limits.skus if limits.skus is not None and limits.skus < skus else None, replace(limits, skus=skus), _skus),
        (
            "racks",
            limits.racks if limits.racks is not None and limits.racks < math.inf else None,
            replace(limits, racks=math.inf),
            _racks,
        ),
    ]
    result += [
        Relaxation(
            problem=replace(problem, limits=rest),
            limit=name,
            path=f"limits.{name}",
            label=f"limits.{name}",
            wanted=float(value),
            least=least,
        )
        for name, value, rest, least in fleet
        if value is not None
    ]
    return result


def _units(offer: Offer) -> Least:
    def terms(f: Formulation) -> list[tuple[pulp.LpVariable, float]]:
        if offer.name not in f.variables.lots:
            return []
        return [(f.variables.lots[offer.name], float(offer.lot)), (f.variables.owned[offer.name], 1.0)]

    return terms


def _cost(f: Formulation) -> list[tuple[pulp.LpVariable, float]]:
    from epd_opt.formulation.objective import cost_expression

    return cost_expression(f.sets, f.variables)


def _power(f: Formulation) -> list[tuple[pulp.LpVariable, float]]:
    terms = []
    for name, offer in f.sets.offers.items():
        terms += [(f.variables.lots[name], offer.lot * offer.power_w / 1e3)]
        terms += [(f.variables.owned[name], offer.power_w / 1e3)]
    return terms


def _order(offer: Offer) -> str:
    return f"lots of {offer.lot}" if offer.minimum <= offer.lot else f"orders of at least {offer.minimum}"


def _skus(f: Formulation) -> list[tuple[pulp.LpVariable, float]]:
    return [(variable, 1.0) for variable in f.variables.sku.values()]


def _racks(f: Formulation) -> list[tuple[pulp.LpVariable, float]]:
    return [(variable, 1.0) for variable in f.variables.racks.values()]


def _devices(f: Formulation) -> list[tuple[pulp.LpVariable, float]]:
    terms = []
    for name, offer in f.sets.offers.items():
        terms += [(f.variables.lots[name], float(offer.lot)), (f.variables.owned[name], 1.0)]
    return terms


def _least(formulation: Formulation, least: Least, solver: Backend, settings: Settings) -> Outcome:
    """Make a quantity least over all plans."""
    merged: dict[pulp.LpVariable, float] = {}
    for variable, coefficient in least(formulation):
        merged[variable] = merged.get(variable, 0.0) + coefficient
    formulation.model.setObjective(pulp.LpAffineExpression(list(merged.items())))
    return solver.solve(formulation.model, settings)


def _first_limit(problem: PlanningProblem) -> str:
    order: Iterable[tuple[bool, str]] = (
        (any(offer.stock is not None for offer in problem.offers), "stock"),
        (problem.limits.devices is not None, "devices"),
        (problem.limits.power_w is not None, "power_kw"),
    )
    return next((name for present, name in order if present), "usd_per_hour")
