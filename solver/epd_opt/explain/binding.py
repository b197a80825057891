"""What holds the pools to their size, and which limits of the fleet cost money."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pulp

from epd_models.candidate import Candidate
from epd_models.row import Row
from epd_opt.document import Pool
from epd_opt.explain.document import Alternative, LimitFacts, PoolFacts, RequirementFacts
from epd_opt.explain.ground import Ground
from epd_opt.formulation import Question
from epd_opt.formulation.constraints import Rows
from epd_opt.formulation.sets import Sets
from epd_opt.formulation.variables import Variables
from epd_opt.infeasible import Relaxation, relaxations
from epd_opt.wording import money, requirement, significant

_SLACK = 1e-9
_SAME = 1e-6
"""Costs closer than this share are the same."""


def pool_facts(ground: Ground) -> list[PoolFacts]:
    """Every pool's requirements at its load, without any search."""
    return [
        _facts(pool, solved.candidate) for pool, solved in zip(ground.document.pools, ground.solution.pools, strict=True)
    ]


def _facts(pool: Pool, candidate: Candidate) -> PoolFacts:
    fullest: dict[str, float] = {}
    for row in candidate.rows:
        fullest[row.kind] = max(fullest.get(row.kind, 0.0), row.need(pool.serves))
    return PoolFacts(
        name=pool.name,
        placement=pool.placement,
        device=pool.device,
        replicas=pool.replicas,
        requirements=[
            RequirementFacts(
                kind=kind,
                text=requirement(kind),
                needs_replicas=need,
                slack_replicas=pool.replicas - need,
                utilisation=need / pool.replicas,
                binding=kind in pool.binding,
            )
            for kind, need in sorted(fullest.items(), key=lambda item: (-item[1], item[0]))
        ],
        room=room(candidate.rows, pool, pool.replicas),
        room_with_one_more=room(candidate.rows, pool, pool.replicas + 1),
        room_with_one_less=room(candidate.rows, pool, pool.replicas - 1),
    )


def room(rows: tuple[Row, ...], pool: Pool, replicas: int) -> float:
    """Most traffic of a pool's mix that so many replicas carry, over what the pool carries; 0 where they carry none."""
    most = math.inf
    for row in rows:
        load = row.need(pool.serves) - row.setup
        if row.setup > replicas * (1 + _SLACK):
            return 0.0
        if load > 0.0:
            most = min(most, max(0.0, replicas - row.setup) / load)
    return most if math.isfinite(most) and replicas > 0 else 0.0


def one_less(ground: Ground, pool: Pool, *, share: float) -> Alternative:
    """The cheapest plan in which a physical pool has one replica less over all its operating points."""
    candidate = next(c.candidate for c in ground.solution.pools if c.candidate.key == pool.key)
    together = [s.replicas for s in ground.solution.pools if s.candidate.physical == candidate.physical]

    def fewer(_: pulp.LpProblem, sets: Sets, v: Variables) -> Rows:
        members = sets.pools.get(candidate.physical, ())
        yield "one_less", pulp.lpSum(v.replicas[k] for k in members) <= sum(together) - 1

    ground.say(f"one replica less of {pool.name}")
    return ground.alternative(ground.ask(Question(rows=fewer), share=share), none="no plan does with one replica less")


def limit_facts(ground: Ground) -> list[LimitFacts]:
    """Limits of the fleet and what the plan takes of them, without any search."""
    return [_limit(ground, relaxed) for relaxed in relaxations(ground.offered.problem)]


def _limit(ground: Ground, relaxed: Relaxation) -> LimitFacts:
    used = _used(ground, relaxed)
    left = relaxed.wanted - used
    spent = "all used" if left <= _SLACK * max(1.0, relaxed.wanted) else f"{significant(left)} left"
    return LimitFacts(
        limit=relaxed.limit,
        path=relaxed.path,
        allowed=relaxed.wanted,
        used=used,
        slack=left,
        text=f"{relaxed.label}: {significant(used)} of {significant(relaxed.wanted)}, {spent}",
    )


def _used(ground: Ground, relaxed: Relaxation) -> float:
    devices, cost = ground.document.devices, ground.document.cost
    assert cost is not None
    if relaxed.limit == "usd_per_hour":
        return cost.usd_per_hour
    if relaxed.limit == "power_kw":
        return cost.power_kw
    if relaxed.limit == "skus":
        skus = {offer.name: offer.sku for offer in ground.resolved.offers}
        return float(len({skus[name] for name, use in devices.items() if use.used}))
    if relaxed.limit == "racks":
        return float(sum(use.racks or 0 for use in devices.values()))
    held = devices.values() if relaxed.device is None else [devices[n] for n in [relaxed.device] if n in devices]
    return float(sum(use.bought + use.owned for use in held))


def priced_limits(ground: Ground, limits: list[LimitFacts], share: Callable[[], float]) -> Iterator[LimitFacts]:
    """The limits with the plan that each one's absence would allow; one search tells whether any of them costs money."""
    if not limits:
        return
    ground.say("what the limits cost")
    all_gone = ground.within(ground.unlimited, share=share())
    least = ground.alternative(all_gone, none="no plan without the limits")
    settled = least.status == "optimal" and (least.more_usd_per_hour or 0.0) >= -_SAME * ground.usd_per_hour
    for facts, relaxed in zip(limits, relaxations(ground.offered.problem), strict=True):
        if settled:
            yield facts.model_copy(update={"text": f"{facts.text}; costs nothing"})
            continue
        found = ground.alternative(ground.within(relaxed.problem, share=share()), none="no plan without it")
        yield facts.model_copy(update={"without": found, "text": f"{facts.text}; {_worth(found, ground.usd_per_hour)}"})


def _worth(found: Alternative, cost: float) -> str:
    if found.more_usd_per_hour is None:
        return "no time was left to find out what it costs"
    if found.more_usd_per_hour >= -_SAME * cost:
        return "costs nothing" if found.status == "optimal" else "no cheaper plan without it was found in the time"
    return f"without it the fleet costs {money(-found.more_usd_per_hour)}/h less"
