"""A pool of one-loop replicas as a plain SimPy model: every iteration an event, every sequence counted token by token.

What the twin does in closed form and in one event per change of a batch is spelled out here, to set the two side by side.
Sequences are never preempted: a pool that is short of KV memory is refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import simpy

from epd_opt.offering import loads_of
from epd_opt.plan import Plan
from epd_opt.restore import resolved_plan
from epd_opt.simulate.arrivals import Arrival
from epd_opt.simulate.clock import Clock
from epd_opt.simulate.fleet import Fleet
from epd_opt.simulate.job import Job
from epd_opt.simulate.lane import SEQUENCE_S
from epd_opt.simulate.sizing import Sizing
from epd_opt.simulate.times import LaneTimes


class _Loop:
    """One replica."""

    def __init__(self, env: simpy.Environment, times: LaneTimes, answered: list[tuple[Job, float]]) -> None:
        self.env = env
        self.times = times
        self.answered = answered
        self.waiting: deque[Job] = deque()
        self.running: list[Job] = []
        self.coming = self.finishing = 0
        self._partial = False
        self.work_s = self.until = 0.0
        self.woken = env.event()
        env.process(self._iterate())

    def load_s(self) -> float:
        """What routers compare."""
        sequences = self.coming + len(self.waiting) + self.finishing + len(self.running)
        return self.work_s + max(0.0, self.until - self.env.now) + SEQUENCE_S * sequences

    def request(self, job: Job, delay_s: float) -> Iterator[Any]:
        """A prompt on its way to the loop."""
        self.times.plan(job)
        self.work_s += job.left_s
        self.coming += 1
        yield self.env.timeout(delay_s)
        self.coming -= 1
        self.waiting.append(job)
        if not self.woken.triggered:
            self.woken.succeed()

    def _iterate(self) -> Iterator[Any]:
        times = self.times
        while True:
            if not self.waiting and not self.running:
                self.woken = self.env.event()
                yield self.woken
            seconds, read = self._prompts()
            self.finishing = len(read)
            if self.running:
                fixed, per_context = times.step(len(self.running))
                contexts = [job.prompt + job.generated for job in self.running]
                assert times.per_token * sum(contexts) <= times.capacity, "this model does not preempt"
                seconds += fixed + per_context * sum(contexts)
                seconds += sum(each * min(context, window) for window, each, _ in times.windows for context in contexts)
            else:
                seconds += times.per_chunk
            if read or self._partial:
                self.until = self.env.now + seconds
            yield self.env.timeout(seconds)
            self.finishing = 0
            for job in self.running:
                job.generated += times.tokens
                if job.first_s < 0.0:
                    job.first_s = self.env.now
            for job in [job for job in self.running if job.generated >= job.output - 1.0]:
                self.running.remove(job)
                self.answered.append((job, self.env.now))
            for job in read:
                job.first_s = self.env.now
                if job.output > 1.0:
                    self.running.append(job)
                else:
                    self.answered.append((job, self.env.now))

    def _prompts(self) -> tuple[float, list[Job]]:
        """Seconds of prompts in the next iteration, and those that it reads to their end."""
        budget = self.times.budget - len(self.running) * self.times.width
        seconds, read = 0.0, []
        self._partial = False
        while self.waiting and budget >= 1.0:
            job = self.waiting[0]
            if job.left <= budget:
                self.waiting.popleft()
                read.append(job)
                budget -= job.left
                chunk = job.left_s
            else:
                chunk = self.times.chunk_s(job, budget)
                job.left -= budget
                job.left_s -= chunk
                budget = 0.0
                self._partial = True
            seconds += chunk
            self.work_s -= chunk
        if not self.waiting and not self.coming:
            self.work_s = 0.0
        return seconds, read


def through_simpy(plan: Plan, arrivals: Iterable[Arrival]) -> dict[Job, float]:
    """Send requests to the one pool of a plan, each to the replica with least to do; returns when they were answered."""
    resolved = resolved_plan(plan.document)
    fleet = Fleet(plan.document, resolved, Clock(), lambda *_: None, policy="least-loaded", seed=0)
    (pool,) = fleet.pools
    times = pool.lane_times
    assert times is not None
    sizing = Sizing(resolved.requests, {load.name: load for load in loads_of(resolved)[0]}, 0)
    env = simpy.Environment()
    answered: list[tuple[Job, float]] = []
    loops = [_Loop(env, times, answered) for _ in pool.alive]

    def clients() -> Iterator[Any]:
        for arrival in arrivals:
            job = sizing.job(arrival, measured=True)
            yield env.timeout(job.arrival_s - env.now)
            loop = min(loops, key=_Loop.load_s)
            env.process(loop.request(job, resolved.engine.request_overhead_s + times.latency_s(job)))

    env.process(clients())
    env.run()
    return dict(answered)
