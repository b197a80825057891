"""The physics of a pool: what its replicas do for each class, before any choice of how full they run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from epd_models.candidate import Stage, State
from epd_models.entry import Entry
from epd_models.loop import Loop
from epd_models.parallelism import Parallelism
from epd_models.queueing import ServiceMoments
from epd_models.request import RequestLoad
from epd_models.risk import Promise, RiskShares
from epd_models.row import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue in front of the replicas of a pool; ``services`` hold the classes that wait in it."""

    name: str
    servers_per_replica: int
    services: tuple[ServiceMoments, ...]

    def served(self, names: frozenset[str]) -> tuple[ServiceMoments, ...]:
        """Services of some classes only."""
        return tuple(service for service in self.services if service.name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """Prompts that arrive behind a request but leave with it: ``share`` of its wait, between ``least`` and ``most``
    seconds."""

    share: float = 0.0
    least: float = 0.0
    most: float = 0.0

    def seconds(self, wait: float) -> float:
        """Seconds that they add to a request that waited so long."""
        return min(max(self.share * wait, self.least), self.most)


@dataclass(frozen=True, kw_only=True)
class Hop:
    """How one class passes through a pool.

    Attributes
    ----------
    start, end : State
        States before and after.
    own_s : float
        Seconds on the way to the first token without waits and hand-over, at the class's size quantile.
    entering : tuple of (float, float, int)
        Loops: own encode and prefill seconds, and iterations of the prompt.
    behind : Behind
        Loops: what a wait adds to the time in the loop.
    receives, sends : float
        Bytes handed over on arrival and on leaving, at the class's size quantile; 0 where nothing is.
    queues : tuple of str
        Queues that the class waits in.
    """

    load: RequestLoad
    promise: Promise
    shares: RiskShares
    start: State
    end: State
    own_s: float
    entering: tuple[float, float, int] = (0.0, 0.0, 0)
    behind: Behind = Behind()
    queues: tuple[str, ...] = ()
    receives: float = 0.0
    sends: float = 0.0

    @property
    def name(self) -> str:
        """Name of the class."""
        return self.load.name

    def wait_s(self, tau: Mapping[str, float]) -> float:
        """Planned wait over all queues of the hop."""
        return sum(tau[queue] * math.log(1.0 / self.shares.wait_eps) for queue in self.queues)

    def delay_s(self, wait: float) -> float:
        """Seconds from arrival to the end of the hop for a request that waits so long."""
        return self.own_s + wait + self.behind.seconds(wait)

    def affordable_wait_s(self, left: float) -> float:
        """Longest wait with which the hop takes at most ``left`` seconds; not positive where there is none."""
        room = left - self.own_s
        by_share = min(room - self.behind.least, room / (1.0 + self.behind.share))
        return max(room - self.behind.most, by_share)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How the replicas of a pool are run.

    Attributes
    ----------
    itl_level_s : float
        Mean iteration time that loop workers are sized for (the token interval times the tokens that an iteration
        emits); 0 for pools that do not decode.
    burst_share : float
        Most of a loop's time that prefill and encode may take.
    smallest, pooled, strictest_s
        The rest of the loop's operating point: smallest pool, whether bursts count as spread over it, and the shortest
        interval target (per iteration) of the classes admitted.
    batch : int
        Compiled batch size on devices with static shapes; 0 elsewhere.
    fan_out : int
        Encoder processes that the images of one request go to at once.
    portion : int
        Which of the ways to share an end-to-end target is kept (see :func:`epd_models.risk.promises`).
    """

    itl_level_s: float = 0.0
    burst_share: float = 0.0
    smallest: int = 1
    pooled: bool = True
    strictest_s: float = 0.0
    batch: int = 0
    fan_out: int = 1
    portion: int = 0


@dataclass(frozen=True, kw_only=True)
class Pool:
    """A kind of pool: placement, entry and cut under given settings.

    Attributes
    ----------
    rows : tuple of Row
        Requirements that depend on nothing but the settings (compute, host, link, memory of prefill pools, fan-out).
    loop : Loop or None
        The decode loop, where there is one.
    busy_s : Mapping[str, float]
        Replica-seconds of work per request of each class.
    bandwidth : float
        Network bytes/s of one replica.
    tokens_per_step : float
        Tokens that a sequence gains per iteration (above 1 with speculative decoding).
    kv_bytes : float
        KV memory of one replica, after weights, activations and encoder; 0 for encoder pools.
    """

    placement: str
    stages: tuple[Stage, ...]
    entry: Entry
    cut: Parallelism
    settings: Settings
    bandwidth: float
    hops: tuple[Hop, ...]
    queues: tuple[Queue, ...]
    rows: tuple[Row, ...]
    loop: Loop | None
    busy_s: Mapping[str, float]
    kv_bytes: float
    max_batched_tokens: int
    memory_fraction: float
    encoder_processes: int
    tokens_per_step: float = 1.0

    @property
    def name(self) -> str:
        """Name of the physical pool, the same under all settings."""
        return f"{self.placement}-{self.entry.name}-{self.cut.label}"
