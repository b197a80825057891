"""Times that classes get at the load the fleet really carries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from epd_models.loop import predicted_interval
from epd_models.placement import Context
from epd_models.placement.generate import Behaviour, hand_over_s
from epd_models.pool import Hop
from epd_models.queueing import predicted_wait
from epd_models.transfer import Sender
from epd_opt.offering import Offering, context_of, loads_of
from epd_opt.resolve import Resolved
from epd_opt.solution import PoolSolution, Solution, Way

_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassTimes:
    """Predicted times of a class at its percentiles, the longest over its routes; None where only measured workers serve
    it, which meet every target at their rates."""

    ttft_s: float | None
    itl_s: float | None
    e2e_s: float | None
    slo_met: bool


@dataclass(frozen=True, kw_only=True)
class Leg:
    """A class's passage through one modelled pool at the load that it really carries.

    Attributes
    ----------
    index : int
        Of the pool in its solution.
    crossing_s : float
        Hand-over from the pool before; infinite where the two may not exchange it.
    waits_s : Mapping[str, float]
        Wait in each queue that the class meets, each at its share of the risk.
    """

    index: int
    pool: PoolSolution
    behaviour: Behaviour
    hop: Hop
    crossing_s: float
    waits_s: Mapping[str, float]

    @property
    def delay_s(self) -> float:
        """Seconds from arrival at the pool to leaving it."""
        return self.hop.delay_s(sum(self.waits_s.values()))

    @property
    def interval_s(self) -> tuple[float, float] | None:
        """Predicted interval of the class: its mean, and its quantile at the class's percentile; None where it has none."""
        loop, tokens = self.behaviour.pool.loop, self.behaviour.pool.tokens_per_step
        if loop is None or self.hop.load.averaging_steps <= 0:
            return None
        found = predicted_interval(loop, self.pool.serves(), self.pool.replicas, 1.0 - self.hop.promise.itl_eps)
        mean, quantile = found[self.hop.name]
        return mean / tokens, quantile / tokens


def context_for(resolved: Resolved) -> Context | None:
    """What all modelled pools share; None where none are."""
    loads, _ = loads_of(resolved)
    return context_of(resolved, loads) if resolved.model is not None and loads else None


def legs(context: Context | None, offered: Offering, solution: Solution, way: Way) -> list[Leg]:
    """The modelled pools of a way, in order; measured ones add no delay."""
    found = []
    sender: Sender | None = None
    for index, arc in way.steps:
        handed, sender = sender, arc.end.sender
        pool = solution.pools[index]
        behaviour = offered.behaviours.get(pool.candidate.key)
        if behaviour is None:
            continue
        assert context is not None
        hop = _hop(behaviour, arc.request_class)
        found.append(
            Leg(
                index=index,
                pool=pool,
                behaviour=behaviour,
                hop=hop,
                crossing_s=0.0 if handed is None else _crossing_s(context, behaviour, hop, handed),
                waits_s=waits_s(pool, behaviour, hop),
            )
        )
    return found


def _crossing_s(context: Context, behaviour: Behaviour, hop: Hop, sender: Sender) -> float:
    crossing = hand_over_s(context, hop.receives, sender, behaviour.pool, hop.start)
    return math.inf if crossing is None else crossing


def class_times(resolved: Resolved, offered: Offering, solution: Solution) -> dict[str, ClassTimes]:
    """Predicted times of every class with a rate."""
    context = context_for(resolved)
    result = {}
    for request in resolved.requests:
        ttft: list[float] = []
        itl: list[float] = []
        for way in solution.ways[request.name]:
            total = 0.0
            modelled = legs(context, offered, solution, way)
            for leg in modelled:
                total += leg.crossing_s
                total += leg.delay_s
                itl += [] if leg.interval_s is None else [leg.interval_s[1]]
            ttft += [total] if modelled else []
        result[request.name] = _judged(resolved, request.name, ttft, itl)
    return result


def waits_s(pool: PoolSolution, behaviour: Behaviour, hop: Hop) -> dict[str, float]:
    """Waits of a class in the queues of a pool, each at its share of the risk."""
    flows = pool.serves()
    waits = {}
    for queue in behaviour.pool.queues:
        if queue.name in hop.queues:
            waits[queue.name] = predicted_wait(
                queue.served(frozenset(flows)),
                flows,
                pool.replicas,
                1.0 - hop.shares.wait_eps,
                servers_per_replica=queue.servers_per_replica,
                point=behaviour.waiting[queue.name].point if queue.name in behaviour.waiting else None,
            )
    return waits


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
