"""A fleet that is kept as it is: does it serve another instance, and what does it cost there?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import pulp

from epd_models.candidate import Candidate
from epd_models.parallelism import Parallelism
from epd_opt.accounting import Holding, cheapest_holdings, energy_usd_per_hour, spares, standing_groups, ways_to_hold
from epd_opt.address import format_path
from epd_opt.assemble import with_all_rows
from epd_opt.backends import HIGHS, Clocked, Settings
from epd_opt.document import PlanDocument, Pool, Reason
from epd_opt.formulation import Formulation, Question, build
from epd_opt.formulation.constraints import Rows
from epd_opt.formulation.sets import Sets
from epd_opt.formulation.variables import Variables, standing_by
from epd_opt.infeasible import unservable
from epd_opt.offering import Offering, offering_at
from epd_opt.predict import class_times, reinforced
from epd_opt.problem import Limits, PlanningProblem
from epd_opt.prune import prune
from epd_opt.resolve import Resolved
from epd_opt.shortlist import Scout
from epd_opt.solution import Solution, replica_counts, route
from epd_opt.standing import units_of_a_replica

Physical = tuple[str, str]

_LOOSE = 0.1
"""Relative gap at which a fleet is good enough where only its being large enough counts."""
_ROUNDS = 8
"""Times that operating points whose predictions ask for more replicas than there are may be left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """What stands in the hall.

    Attributes
    ----------
    replicas : dict
        By physical pool (device entry and name), spares included.
    placements : tuple of str
        Placements of those pools.
    units : dict
        Sold units in use by device entry.
    sizes : dict
        Sold units of one replica by physical pool.
    points_for : tuple of float
        Multiples of the demand, that of the instance among them, that operating points are made for.
    """

    replicas: dict[Physical, int]
    placements: tuple[str, ...]
    units: dict[str, int]
    sizes: dict[Physical, Fraction]
    points_for: tuple[float, ...] = (1.0,)

    @classmethod
    def of(cls, document: PlanDocument) -> Fleet:
        """The fleet of a plan; the operating points of one physical pool are put together."""
        replicas: dict[Physical, int] = {}
        sizes: dict[Physical, Fraction] = {}
        for pool in document.pools:
            physical = _physical(pool)
            sizes[physical] = units_of_a_replica(pool)
            replicas[physical] = replicas.get(physical, 0) + pool.replicas + pool.spare_replicas
        return cls(
            replicas=dict(sorted(replicas.items())),
            placements=tuple(sorted({pool.placement for pool in document.pools})),
            units={name: use.used for name, use in sorted(document.devices.items())},
            sizes=dict(sorted(sizes.items())),
            points_for=tuple(sorted({1.0, *(multiple / document.multiple for multiple in document.points_for)})),
        )

    def named(self) -> dict[str, int]:
        """Replicas by the names of the physical pools."""
        several = {pool for _, pool in self.replicas if sum(pool == name for _, name in self.replicas) > 1}
        return {f"{pool} on {device}" if pool in several else pool: n for (device, pool), n in self.replicas.items()}


def _physical(pool: Pool) -> Physical:
    if pool.provenance == "measured":
        worker = pool.key.removeprefix("measured|").removesuffix(f"|{pool.device}")
        return pool.device, f"{worker}-{pool.device}"
    cut = pool.parallelism
    label = Parallelism(tensor=cut.tensor, pipeline=cut.pipeline, attention_data=cut.attention_data, expert=cut.expert).label
    return pool.device, f"{pool.placement}-{pool.device}-{label}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What becomes of a kept fleet.

    Attributes
    ----------
    feasible : bool or None
        None where time ran out.
    usd_per_hour : float or None
        Where it is feasible.
    reasons : tuple of Reason
        Why it is not, as far as that shows without further search.
    held : mapping
        Where it is feasible: how its units are held, by device entry.
    busy : mapping
        Likewise, unit-seconds of work per second, at mean rates.
    """

    feasible: bool | None
    usd_per_hour: float | None = None
    reasons: tuple[Reason, ...] = ()
    held: Mapping[str, Holding] = field(default_factory=dict)
    busy: Mapping[str, float] = field(default_factory=dict)


def offered_to(fleet: Fleet, resolved: Resolved, solver: Clocked) -> Offering:
    """All operating points of the fleet's pools at an instance.

    Raises
    ------
    OutOfTime
        The solver's clock ended.
    """
    placements = tuple(name for name in resolved.instance.placements if name in fleet.placements)
    narrow = replace(resolved, instance=resolved.instance.model_copy(update={"placements": placements}))
    only = {name for _, name in fleet.replicas}
    return among(fleet, offering_at(narrow, fleet.points_for, each=solver.clock.check, only=only))


def among(fleet: Fleet, offered: Offering) -> Offering:
    """Of all that is on offer, the operating points of the fleet's pools."""
    ours = tuple(candidate for candidate in offered.problem.candidates if candidate.physical in fleet.replicas)
    return replace(offered, problem=replace(offered.problem, candidates=ours))


def kept(
    fleet: Fleet,
    resolved: Resolved,
    solver: Clocked,
    offered: Offering | None = None,
    *,
    serve: Callable[[], Solution | Kept] | None = None,
) -> Kept:
    """Whether a fleet serves an instance within its targets and limits, with routing and operating points free, and what
    it costs at the instance's terms.

    All of the fleet is paid for, whether it is needed or not. Where its work takes energy, routing takes as little as the
    solver's gap allows.

    Parameters
    ----------
    offered : Offering, optional
        All operating points of the fleet's pools at the instance, where they are at hand.
    serve : callable, optional
        Asked in place of :func:`serving`, which it has to agree with.

    Raises
    ------
    OutOfTime, SolverFailed
        See :meth:`epd_opt.search.task.Task.solve`.
    """
    held, missing = _held(fleet, resolved)
    if missing:
        return Kept(feasible=False, reasons=tuple(missing))
    ask = serve or (lambda: serving(fleet, resolved, offered or offered_to(fleet, resolved, solver), solver))
    solution = ask()
    if not isinstance(solution, Solution):
        return solution
    busy = _busy(held, resolved, solution)
    cost = _cost(held, resolved, busy)
    broken = list(_limits(held, resolved, cost))
    if broken:
        return Kept(feasible=False, reasons=tuple(broken))
    return Kept(feasible=True, usd_per_hour=cost, held=held, busy=busy)


def idle_cost(fleet: Fleet, resolved: Resolved) -> float | None:
    """What a fleet costs per hour at an instance's terms, without the energy of any work; None where its units are not to
    be had."""
    held, missing = _held(fleet, resolved)
    return None if missing else _cost(held, resolved, dict.fromkeys(held, 0.0))


def serving(fleet: Fleet, resolved: Resolved, offered: Offering, solver: Clocked) -> Solution | Kept:
    """How a fleet serves an instance; whatever it costs and whatever limits the instance puts on fleets."""
    if not resolved.requests:
        return Solution(pools=(), ways={})
    candidates = offered.problem.candidates
    whole = offered
    for _ in range(_ROUNDS):
        offered = replace(offered, problem=replace(offered.problem, candidates=candidates))
        why = unservable(resolved, offered)
        if why is not None:
            return Kept(feasible=False, reasons=tuple(why.reasons))
        problem = free_of_limits(prune(offered.problem))
        metered = any(offer.busy_usd_per_unit_second for offer in problem.offers)
        wanted = resolved.instance.solver
        gap = wanted.gap if metered else max(wanted.gap, _LOOSE)
        settings = Settings(gap=gap, time_limit_s=None, threads=wanted.threads)
        question = within(fleet)
        listed = Scout(settings=settings, clock=solver.clock).shortlist(problem, [question])
        formulation = build(listed.problem, [question])
        outcome = solver.solve(formulation.model, replace(settings, start=listed.start(formulation)))
        if outcome.termination == "infeasible":
            return Kept(feasible=False)
        if outcome.values is None:
            return Kept(feasible=None)
        found = route(formulation, replica_counts(formulation, outcome), HIGHS, settings)
        if found is None:
            return Kept(feasible=None)
        found = with_all_rows(found, whole)
        real = reinforced(whole, found)
        late = {
            pool.candidate.key
            for pool, before in zip(real.pools, found.pools, strict=True)
            if pool.replicas > before.replicas and _exceeds(fleet, formulation, real, pool.candidate.physical)
        }
        if not late:
            return real if _on_time(resolved, whole, real) else Kept(feasible=False)
        candidates = tuple(candidate for candidate in candidates if candidate.key not in late)
    return Kept(feasible=False)


def _exceeds(fleet: Fleet, formulation: Formulation, solution: Solution, physical: Physical) -> bool:
    taken = sum(
        pool.replicas + spare
        for pool, spare in zip(solution.pools, spares(formulation.sets.problem, solution.pools), strict=True)
        if pool.candidate.physical == physical
    )
    return taken > fleet.replicas[physical]


def _on_time(resolved: Resolved, offered: Offering, solution: Solution) -> bool:
    return all(times.slo_met for times in class_times(resolved, offered, solution).values())


def within(fleet: Fleet) -> Question:
    """``kept_p``: the replicas of all operating points of a physical pool, with its spares, are no more than there are."""

    def rows(_: pulp.LpProblem, sets: Sets, v: Variables) -> Rows:
        for p, (physical, members) in enumerate(sets.pools.items()):
            yield f"kept_{p}", used_replicas(sets, v, physical, members) <= fleet.replicas[physical]

    return Question(rows=rows)


def used_replicas(sets: Sets, v: Variables, physical: Physical, members: Sequence[int]) -> pulp.LpAffineExpression:
    """Replicas of a physical pool, spares included."""
    terms = [(v.replicas[k], 1.0) for k in members]
    return pulp.LpAffineExpression([*terms, *standing_by(sets, v, physical)])


def free_of_limits(problem: PlanningProblem) -> PlanningProblem:
    """A problem in which units cost nothing but the energy of their work, and any number of them may be used."""
    free = tuple(
        replace(
            offer, stock=None, owned=0, lot=1, usd_per_hour=0.0, used_usd_per_hour=0.0, owned_usd_per_hour=0.0, nodes=None
        )
        for offer in problem.offers
    )
    return replace(problem, offers=free, limits=Limits())


def _held(fleet: Fleet, resolved: Resolved) -> tuple[dict[str, Holding], list[Reason]]:
    """How the fleet's units are held at the instance's terms, and which of them are not to be had."""
    offers = {offer.name: offer for offer in resolved.offers}
    standing = ((device, fleet.sizes[device, name], count) for (device, name), count in fleet.replicas.items())
    groups = standing_groups(offers, (one for one in standing if one[0] in offers))
    missing = []
    for name, units in fleet.units.items():
        if name not in offers:
            text = f"{units} units of {name} stand in the fleet, and the instance does not offer any"
            missing.append(Reason(limit="no_price", wanted=float(units), text=text))
        elif not ways_to_hold(offers[name], units, groups.get(name)):
            stock = offers[name].stock if offers[name].for_sale else offers[name].owned
            text = f"{stock} units of {name} are to be had; the fleet holds {units}"
            missing.append(Reason(limit="stock", wanted=float(stock or 0), best_reachable=float(units), text=text))
    if missing:
        return {}, missing
    problem = PlanningProblem(
        demands=resolved.demands,
        candidates=(),
        offers=resolved.offers,
        limits=resolved.limits,
        spare_replicas=resolved.spare_replicas,
    )
    return cheapest_holdings(problem, fleet.units, groups), []


def _cost(held: Mapping[str, Holding], resolved: Resolved, busy: Mapping[str, float]) -> float:
    offers = {offer.name: offer for offer in resolved.offers}
    return math.fsum(h.usd_per_hour + energy_usd_per_hour(offers[name], h.used, busy[name]) for name, h in held.items())


def _busy(held: Mapping[str, Holding], resolved: Resolved, solution: Solution) -> dict[str, float]:
    means = {demand.name: demand.mean_rate / demand.rate for demand in resolved.demands}
    busy = dict.fromkeys(held, 0.0)
    for pool in solution.pools:
        candidate: Candidate = pool.candidate
        busy[candidate.device] += sum(
            rate * means[name] * candidate.busy_s[name] * float(candidate.units) for name, rate in pool.serves().items()
        )
    return busy


def _limits(held: Mapping[str, Holding], resolved: Resolved, cost: float) -> Iterator[Reason]:
    """Limits of the whole fleet that it exceeds."""
    offers = {offer.name: offer for offer in resolved.offers}
    power = math.fsum(offers[name].power_w * h.installed for name, h in held.items()) / 1e3
    limits = resolved.limits
    power_kw = None if limits.power_w is None else limits.power_w / 1e3
    has = (
        ("usd_per_hour", limits.usd_per_hour, cost),
        ("power_kw", power_kw, power),
        ("devices", limits.devices, float(sum(h.installed for h in held.values()))),
        ("racks", limits.racks, float(sum(limits.racks_of(offers[name], h.installed) for name, h in held.items()))),
    )
    for name, limit, value in has:
        if limit is not None and value > limit * (1 + 1e-9):
            path = format_path(["limits", name])
            yield Reason(
                limit=name,
                wanted=float(limit),
                best_reachable=value,
                text=f"{path} is {limit:g}; the fleet comes to {value:.6g}",
            )
