"""Times that classes get at the load the fleet really carries."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from epd_models.loop import predicted_interval
from epd_models.placement.generate import Behaviour, hand_over_s
from epd_models.pool import Hop
from epd_models.queueing import predicted_wait
from epd_opt.offering import Offering, context_of, loads_of
from epd_opt.resolve import Resolved
from epd_opt.solution import PoolSolution, Solution

_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassTimes:
    """Predicted times of a class at its percentiles, the longest over its routes; None where only measured workers serve
    it, which meet every target at their rates."""

    ttft_s: float | None
    itl_s: float | None
    e2e_s: float | None
    slo_met: bool


def class_times(resolved: Resolved, offered: Offering, solution: Solution) -> dict[str, ClassTimes]:
    """Predicted times of every class with a rate."""
    loads, _ = loads_of(resolved)
    context = context_of(resolved, loads) if resolved.model is not None and loads else None
    result = {}
    for request in resolved.requests:
        ttft: list[float] = []
        itl: list[float] = []
        for way in solution.ways[request.name]:
            modelled = [
                (solution.pools[p], arc, behaviour)
                for p, arc in way.steps
                if (behaviour := offered.behaviours.get(solution.pools[p].candidate.key)) is not None
            ]
            if not modelled:
                continue
            assert context is not None
            total = 0.0
            for pool, arc, behaviour in modelled:
                hop = _hop(behaviour, request.name)
                if arc.start.sender is not None:
                    crossing = hand_over_s(context, hop.receives, arc.start.sender, behaviour.pool, hop.start)
                    total += math.inf if crossing is None else crossing
                total += hop.delay_s(waits_s(pool, behaviour, hop))
                interval = _interval_s(pool, behaviour, hop)
                itl += [] if interval is None else [interval]
            ttft.append(total)
        result[request.name] = _judged(resolved, request.name, ttft, itl)
    return result


def waits_s(pool: PoolSolution, behaviour: Behaviour, hop: Hop) -> float:
    """Waits of a class over the queues of a pool, each at its share of the risk."""
    flows = pool.serves()
    total = 0.0
    for queue in behaviour.pool.queues:
        if queue.name in hop.queues:
            total += predicted_wait(
                queue.served(frozenset(flows)),
                flows,
                pool.replicas,
                1.0 - hop.shares.wait_eps,
                servers_per_replica=queue.servers_per_replica,
                point=behaviour.waiting[queue.name].point if queue.name in behaviour.waiting else None,
            )
    return total


def reinforced(offered: Offering, solution: Solution) -> Solution:
    """The solution with replicas added to pools whose predicted intervals exceed a promise.

    The rows of a loop bound its intervals by formulas that are linear in the flows; where a mix lies far from those that
    they were made for, the prediction at the real load may come out a little higher, and it is the one that counts.
    """
    pools = []
    for pool in solution.pools:
        behaviour = offered.behaviours.get(pool.candidate.key)
        while behaviour is not None and _late(pool, behaviour):
            pool = replace(pool, replicas=pool.replicas + 1)
        pools.append(pool)
    return replace(solution, pools=tuple(pools))


def _late(pool: PoolSolution, behaviour: Behaviour) -> bool:
    """Whether some class of a pool gets a longer interval than it is promised."""
    serves = pool.serves()
    for name in serves:
        hop = _hop(behaviour, name)
        interval = _interval_s(pool, behaviour, hop)
        if interval is not None and interval > hop.promise.itl_s * (1 + _TOLERANCE):
            return True
    return False


def _interval_s(pool: PoolSolution, behaviour: Behaviour, hop: Hop) -> float | None:
    """Predicted interval of a class at its percentile; None where it has none in this pool."""
    if behaviour.pool.loop is None or hop.load.averaging_steps <= 0:
        return None
    found = predicted_interval(behaviour.pool.loop, pool.serves(), pool.replicas, 1.0 - hop.promise.itl_eps)
    return found[hop.name][1] / behaviour.pool.tokens_per_step


def _hop(behaviour: Behaviour, name: str) -> Hop:
    return next(hop for hop in behaviour.pool.hops if hop.name == name)


def _judged(resolved: Resolved, name: str, ttft: list[float], itl: list[float]) -> ClassTimes:
    request = next(request for request in resolved.requests if request.name == name)
    targets = request.targets
    ttft_s = max(ttft, default=None)
    itl_s = max(itl, default=None)
    e2e_s = None
    if targets.e2e_s is not None and ttft_s is not None:
        share = (1.0 - targets.e2e_probability) / (3.0 if request.output_tokens.varies else 2.0)
        e2e_s = ttft_s + (request.output_tokens.quantile(1.0 - share) - 1.0) * (itl_s or 0.0)
    pairs = [(ttft_s, targets.ttft_s), (itl_s, targets.itl_s), (e2e_s, targets.e2e_s)]
    met = all(value is None or target is None or value <= target * (1 + _TOLERANCE) for value, target in pairs)
    return ClassTimes(ttft_s=ttft_s, itl_s=itl_s, e2e_s=e2e_s, slo_met=met)
