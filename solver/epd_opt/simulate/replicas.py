"""Pools and their replicas as they run: lanes, encoder processes, network cards, and who is alive."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from epd_opt.document import Pool
from epd_opt.simulate.encoders import EncoderBank
from epd_opt.simulate.job import Job
from epd_opt.simulate.lane import Lane
from epd_opt.simulate.times import EncoderTimes, LaneTimes

_SLACK = 3.0
"""Standard deviations of random arrivals that a measured worker takes without delay."""


class SimulatedReplica:
    """One replica.

    Attributes
    ----------
    alive, standby : bool
        Whether it serves; whether it is a spare that waits for another one to fail.
    failures : int
        Failures that keep it dead, not mended yet.
    out_free_s, in_free_s : float
        When its network card has sent and received all that was promised so far.
    load_s : callable
        What routers compare at a time: seconds of prompts and images before a new request, and a little for each sequence.
    """

    __slots__ = (
        "alive",
        "bandwidth",
        "bank",
        "failures",
        "in_free_s",
        "lanes",
        "load_s",
        "number",
        "out_free_s",
        "pool",
        "standby",
    )

    def __init__(
        self, pool: SimulatedPool, number: int, bandwidth: float, lanes: list[Lane], bank: EncoderBank | None
    ) -> None:
        self.pool = pool
        self.number = number
        self.bandwidth = bandwidth
        self.lanes = lanes
        self.bank = bank
        self.alive = True
        self.standby = False
        self.failures = 0
        self.out_free_s = self.in_free_s = 0.0
        self.load_s: Callable[[float], float] = self._load_s
        if not lanes and bank is not None:
            self.load_s = bank.work_s
        elif len(lanes) == 1 and bank is None:
            self.load_s = lanes[0].load_s

    def _load_s(self, time: float) -> float:
        seconds = 0.0 if self.bank is None else self.bank.work_s(time)
        return seconds + sum([lane.load_s(time) for lane in self.lanes]) / max(1, len(self.lanes))

    def lane(self, time: float) -> Lane:
        """The lane with least to do."""
        if len(self.lanes) == 1:
            return self.lanes[0]
        return min(self.lanes, key=lambda lane: lane.load_s(time))


class MeasuredLimit:
    """Measured workers: no delay up to their rate, and a queue beyond it.

    Random arrivals come faster than their mean now and then, which the measurement has seen; so what counts as beyond is
    work that outgrows three standard deviations of what came since the number of replicas last changed.
    """

    def __init__(self, each_s: list[float]) -> None:
        self.each_s = each_s
        self._backlog_s = self._came = self._squares = self._time = 0.0
        self.work_s = 0.0

    def restart(self, time: float) -> None:
        """The number of replicas changes."""
        self._backlog_s = max(0.0, self._backlog_s - self._allowed())
        self._came = self._squares = 0.0
        self._time = time

    def _allowed(self) -> float:
        return _SLACK * math.sqrt(self._squares)

    def delay_s(self, time: float, label: int, replicas: int) -> float:
        """Seconds that a request must wait."""
        work = self.each_s[label]
        self._backlog_s = max(0.0, self._backlog_s - (time - self._time) * replicas)
        self._time = time
        self._backlog_s += work
        self._squares += work * work
        self.work_s += work
        return max(0.0, self._backlog_s - work - self._allowed()) / replicas if replicas else math.inf


class SimulatedPool:
    """A pool of the plan.

    Attributes
    ----------
    planned : Pool
        As in the plan document.
    lane_times, encoder_times, limit
        Where its times come from: loops, encoders, or measured rates.
    reads, decodes, encodes : bool
        What its lanes do; ``encodes`` in the loop itself.
    delay_s : float
        Added to every hand-over from and to it while a link is slow.
    """

    def __init__(self, planned: Pool) -> None:
        self.planned = planned
        self.name = planned.name
        self.placement = planned.placement
        self.measured = planned.provenance == "measured"
        self.decodes = "decode" in planned.stages
        self.reads = "prefill" in planned.stages
        self.in_line = planned.placement in ("integrated", "encode_prefill")
        self.lane_times: LaneTimes | None = None
        self.encoder_times: EncoderTimes | None = None
        self.limit: MeasuredLimit | None = None
        self.replicas: list[SimulatedReplica] = []
        self.alive: list[SimulatedReplica] = []
        self.backlog: list[Job] = []
        self.delay_s = 0.0
        self.turn = 0
        self.served = 0

    def refresh(self) -> None:
        """Find out anew who is alive."""
        self.alive = [replica for replica in self.replicas if replica.alive]

    def lanes(self) -> Iterator[Lane]:
        """All lanes, dead ones included."""
        for replica in self.replicas:
            yield from replica.lanes

    @property
    def queued(self) -> int:
        """Requests that wait in front of lanes and encoders, or for a replica to live."""
        waiting = sum(lane.queued for lane in self.lanes())
        return waiting + len(self.backlog) + sum(r.bank.queued for r in self.replicas if r.bank is not None)

    @property
    def preemptions(self) -> int:
        """Sequences that had to give their memory back."""
        return sum(lane.preemptions for lane in self.lanes())

    def busy_s(self, time: float) -> float:
        """Replica seconds at work until now: of the loop, of the device that encodes, or of a measured worker's rate."""
        if self.limit is not None:
            return self.limit.work_s
        total = 0.0
        for replica in self.replicas:
            if replica.lanes:
                total += sum(lane.busy_until(time) for lane in replica.lanes) / len(replica.lanes)
            elif replica.bank is not None:
                total += replica.bank.device_s
        return total

    def working(self) -> float:
        """Share of the living replicas at work now."""
        if not self.alive:
            return 0.0
        busy = 0.0
        for replica in self.alive:
            if replica.lanes:
                busy += sum(not lane.idle for lane in replica.lanes) / len(replica.lanes)
            elif replica.bank is not None:
                busy += replica.bank.busy / replica.bank.times.processes
        return busy / len(self.alive)

    def kv_share(self) -> float:
        """Share of the KV memory of the living replicas that is taken."""
        lanes = [lane for replica in self.alive for lane in replica.lanes]
        room = sum(lane.times.capacity for lane in lanes)
        return sum(lane.held_bytes for lane in lanes) / room if room else 0.0
