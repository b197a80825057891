"""Points between others along prices, whose plans follow from those on both sides of them.

Along prices alone every plan costs a straight line and serves everywhere or nowhere, so the least cost is concave: it lies
above the straight line between what is proved of it at two points. Where both have the same plan, it is best all the way
between; and where the cheaper of two plans comes within the gap of that line, it is proved as a solve would prove it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from epd_opt.assemble import fleet_cost, pool_costs
from epd_opt.errors import EpdError
from epd_opt.instance import Instance
from epd_opt.resolve import Resolved, resolve
from epd_opt.sensitivity.document import KeptFleet, Point
from epd_opt.sensitivity.point import Answer, Job, regret
from epd_opt.sensitivity.shift import Dimension, shifted
from epd_opt.sensitivity.spending import Spending, straight

_SERVES = 1e-6
"""Share of a class's rate that routings which are the same may differ by."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A point that is known, with the instance there."""

    answer: Answer
    point: Point
    resolved: Resolved
    unpriced: Any

    def value(self, m: Dimension) -> float:
        """Where it lies along a dimension of numbers."""
        return float(str(self.point.at[m.path]))


class Between:
    """What is known along the dimensions of a study, and what follows from it.

    Parameters
    ----------
    document : mapping
        The instance as stated.
    moved : sequence of Dimension
        The study's.
    """

    def __init__(self, document: Mapping[str, Any], moved: Sequence[Dimension]) -> None:
        self._moved = moved
        self._priced = [m for m in moved if m.numeric and _prices_alone(document, m)]
        self._known: dict[str, dict[tuple[str, ...], dict[float, _Place]]] = {m.path: {} for m in self._priced}
        self._resolved: dict[tuple[str, ...], Resolved | None] = {}
        self._refused: set[tuple[Any, ...]] = set()

    def ranks(self, places: Sequence[Mapping[str, Any]]) -> list[int]:
        """In which order places are worth knowing: along each dimension of prices the ends first, then the middle, the
        quarters, and so on."""
        result = [0] * len(places)
        for m in self._priced:
            values = sorted({float(at[m.path]) for at in places})
            rank = dict(zip(values, bisected(len(values)), strict=True))
            result = [before + rank[float(at[m.path])] for before, at in zip(result, places, strict=True)]
        return result

    def learn(self, job: Job, answer: Answer) -> None:
        """Take note of a point."""
        if not self._priced or answer.point["status"] not in ("optimal", "feasible", "infeasible"):
            return
        if answer.point["cost"] is not None and answer.plan is None:
            return
        resolved = self._resolved_at(job)
        if resolved is None:
            return
        place = _Place(answer, Point.model_validate(answer.point), resolved, _unpriced(job.document))
        for m in self._priced:
            self._known[m.path].setdefault(self._others(job, m), {})[float(job.at[m.path])] = place

    def of(self, job: Job) -> Answer | None:
        """The point, where it follows from two that are known."""
        for m in self._priced:
            ends = self._ends(job, m)
            if ends is None:
                continue
            tried = (m.path, _key(job.at), *(_key(place.point.at) for place in ends), job.fleet is None)
            resolved = None if tried in self._refused else self._resolved_at(job)
            found = None if resolved is None else _between(job, resolved, m, *ends)
            if found is not None:
                return found
            self._refused.add(tried)
        return None

    def _resolved_at(self, job: Job) -> Resolved | None:
        """The instance at a point; None where there is none, which solving it will tell."""
        key = _key(job.at)
        if key not in self._resolved:
            try:
                self._resolved[key] = resolve(Instance(**job.document), cards=job.cards)
            except EpdError:
                self._resolved[key] = None
        return self._resolved[key]

    def _ends(self, job: Job, m: Dimension) -> tuple[_Place, _Place] | None:
        """The nearest known points on both sides along a dimension."""
        line = self._known[m.path].get(self._others(job, m), {})
        value = float(job.at[m.path])
        below = [other for other in line if other < value]
        above = [other for other in line if other > value]
        return (line[max(below)], line[min(above)]) if below and above else None

    def _others(self, job: Job, m: Dimension) -> tuple[Any, ...]:
        return tuple(repr(job.at[other.path]) for other in self._moved if other.path != m.path)


def _key(at: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(repr(value) for value in at.values())


def bisected(count: int) -> list[int]:
    """Ranks of so many places in a row: 0 of both ends, 1 of the middle, and so on.

    >>> bisected(6)
    [0, 2, 1, 2, 3, 0]
    """
    ranks = [0] * count
    spans = [(0, count - 1)]
    rank = 1
    while spans:
        halves = []
        for low, high in spans:
            if high - low > 1:
                middle = (low + high) // 2
                ranks[middle] = rank
                halves += [(low, middle), (middle, high)]
        spans, rank = halves, rank + 1
    return ranks


def _unpriced(document: Mapping[str, Any]) -> Any:
    """The instance without its prices and terms of ownership."""
    devices = [{key: value for key, value in entry.items() if key != "price"} for entry in document["devices"]]
    return {**{key: value for key, value in document.items() if key != "cost"}, "devices": devices}


def _prices_alone(document: Mapping[str, Any], m: Dimension) -> bool:
    """Whether a dimension moves prices and terms of ownership alone, and no budget makes plans possible or impossible by
    them."""
    if (document.get("limits") or {}).get("usd_per_hour") is not None:
        return False
    try:
        return all(_unpriced(shifted(document, [(m, value)])) == _unpriced(document) for value in m.values)
    except EpdError:
        return False


def _between(job: Job, resolved: Resolved, m: Dimension, low: _Place, high: _Place) -> Answer | None:
    part = (float(job.at[m.path]) - low.value(m)) / (high.value(m) - low.value(m))
    if not low.unpriced == _unpriced(job.document) == high.unpriced or resolved.limits.usd_per_hour is not None:
        return None
    if not low.resolved.limits == resolved.limits == high.resolved.limits:
        return None
    if not straight(low.resolved.offers, resolved.offers, high.resolved.offers, part):
        return None
    known, fleet, spent = _kept(job, resolved, low, high)
    if not known:
        return None
    if low.point.cost is None and high.point.cost is None and low.point.reasons == high.point.reasons:
        nothing = low.point.model_copy(
            update={"at": dict(job.at), "kept_fleet": fleet, "regret_usd_per_hour": None, "found": "between"}
        )
        return Answer(point=nothing.model_dump(mode="json", by_alias=True), kept=spent)
    return _planned(job, resolved, part, low, high, fleet, spent)


def _planned(
    job: Job,
    resolved: Resolved,
    part: float,
    low: _Place,
    high: _Place,
    fleet: KeptFleet | None,
    spent: Spending | None,
) -> Answer | None:
    """The cheaper of the plans on both sides, where it is proved."""
    if low.point.cost is None or high.point.cost is None or low.answer.plan is None or high.answer.plan is None:
        return None
    costs = [plan.usd_per_hour(resolved.offers) for plan in (low.answer.plan, high.answer.plan)]
    best, plan = (low, low.answer.plan) if costs[0] <= costs[1] else (high, high.answer.plan)
    held, cost = plan.holdings(resolved.offers), min(costs)
    chord = (1.0 - part) * low.point.cost.bound_usd_per_hour + part * high.point.cost.bound_usd_per_hour
    bound = min(chord, cost)
    gap = 0.0 if cost == 0.0 else (cost - bound) / cost
    same, within = _same(low, high), gap <= resolved.instance.solver.gap
    if not (same or within):
        return None
    proved = within or low.point.status == high.point.status == "optimal"
    offers = {offer.name: offer for offer in resolved.offers}
    requests = sum(demand.mean_rate for demand in resolved.demands) * 3600.0
    shares = pool_costs([p.device for p in best.point.pools], [float(p.devices) for p in best.point.pools], held)
    pools = [pool.model_copy(update={"usd_per_hour": usd}) for pool, usd in zip(best.point.pools, shares, strict=True)]
    total = fleet_cost(offers, held, requests, bound, gap)
    point = Point(
        at=dict(job.at),
        status="optimal" if proved else "feasible",
        cost=total,
        pools=pools,
        kept_fleet=fleet,
        regret_usd_per_hour=regret(fleet, total),
        found="between",
    )
    return Answer(point=point.model_dump(mode="json", by_alias=True), plan=plan, kept=spent)


def _same(low: _Place, high: _Place) -> bool:
    """Whether two points have the same plan: pools, counts, routing and units that are held."""
    one, other = low.answer.plan, high.answer.plan
    pairs = list(zip(low.point.pools, high.point.pools, strict=False))
    return (
        one is not None
        and other is not None
        and one.same(other)
        and len(low.point.pools) == len(high.point.pools)
        and all((p.key, p.replicas, p.spare_replicas) == (q.key, q.replicas, q.spare_replicas) for p, q in pairs)
        and all(
            p.serves.keys() == q.serves.keys()
            and all(math.isclose(rate, q.serves[name], rel_tol=_SERVES) for name, rate in p.serves.items())
            for p, q in pairs
        )
    )


def _kept(job: Job, resolved: Resolved, low: _Place, high: _Place) -> tuple[bool, KeptFleet | None, Spending | None]:
    """Whether it is known what becomes of today's fleet, and what: it serves at both ends for the same, or at neither."""
    if job.fleet is None:
        return True, None, None
    one, other = low.point.kept_fleet, high.point.kept_fleet
    if one is None or other is None or one.feasible is None or one.feasible != other.feasible:
        return False, None, None
    if not one.feasible:
        return one.breaks == other.breaks, one, None
    spent, same = low.answer.kept, high.answer.kept
    if spent is None or same is None or not spent.same(same):
        return False, None, None
    return True, one.model_copy(update={"usd_per_hour": spent.usd_per_hour(resolved.offers)}), spent
