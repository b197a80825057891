"""Who goes where: routes as the plan weighs them, replicas by the chosen rule."""

from __future__ import annotations

import itertools
import random
from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal

from epd_opt.simulate.replicas import SimulatedPool, SimulatedReplica

Policy = Literal["least-loaded", "round-robin", "random"]
POLICIES: tuple[Policy, ...] = ("least-loaded", "round-robin", "random")
Way = tuple[SimulatedPool, ...]


class Routes:
    """The ways of one class with their shares of its requests."""

    def __init__(self, ways: Sequence[tuple[Way, float]], chance: random.Random) -> None:
        self._ways = [way for way, _ in ways]
        self._rates = [rate for _, rate in ways]
        self._edges = list(itertools.accumulate(self._rates))
        self._chance = chance

    def choose(self) -> Way:
        """A way, at random by weight; ways with a dead pool only where there is no other."""
        if len(self._ways) == 1:
            return self._ways[0]
        way = self._drawn(self._ways, self._edges)
        if all(pool.alive for pool in way):
            return way
        usable = [(w, rate) for w, rate in zip(self._ways, self._rates, strict=True) if all(p.alive for p in w)]
        if not usable:
            return way
        return self._drawn([w for w, _ in usable], list(itertools.accumulate(rate for _, rate in usable)))

    def _drawn(self, ways: Sequence[Way], edges: Sequence[float]) -> Way:
        found = bisect_right(edges, self._chance.random() * edges[-1])
        return ways[min(found, len(ways) - 1)]


class Router:
    """Picks a living replica of a pool."""

    def __init__(self, policy: Policy, chance: random.Random) -> None:
        self._policy = policy
        self._chance = chance

    def pick(self, time: float, pool: SimulatedPool) -> SimulatedReplica | None:
        """The replica for the next request; None where nobody lives."""
        alive = pool.alive
        if len(alive) < 2:
            return alive[0] if alive else None
        if self._policy == "least-loaded":
            best, least = alive[0], alive[0].load_s(time)
            for replica in itertools.islice(alive, 1, None):
                load = replica.load_s(time)
                if load < least:
                    best, least = replica, load
            return best
        if self._policy == "random":
            return self._chance.choice(alive)
        pool.turn += 1
        return alive[pool.turn % len(alive)]

    def spread(
        self, time: float, pool: SimulatedPool, shares: Sequence[int], each_s: float
    ) -> list[tuple[SimulatedReplica, list[int]]]:
        """Living replicas of a pool for the shares of a request, each picked as if the shares before it had come to where
        they go; ``each_s`` is the load that an image brings."""
        alive = pool.alive
        taken: list[list[int]] = [[] for _ in alive]
        if self._policy == "least-loaded" and len(alive) > 1:
            loads = [replica.load_s(time) for replica in alive]
            for images in shares:
                least = loads.index(min(loads))
                loads[least] += images * each_s
                taken[least].append(images)
        else:
            for images in shares:
                replica = self.pick(time, pool)
                assert replica is not None
                taken[alive.index(replica)].append(images)
        return [(replica, some) for replica, some in zip(alive, taken, strict=True) if some]
