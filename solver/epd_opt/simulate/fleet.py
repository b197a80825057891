"""The planned fleet as it runs: requests pass from pool to pool along their routes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from epd_models.catalog import CardError
from epd_models.parallelism import Parallelism
from epd_models.placement import NotBuildable
from epd_models.placement.replica import Replica, built_replica
from epd_models.pool import Settings
from epd_models.workload import Targets
from epd_opt.document import PlanDocument, Pool
from epd_opt.errors import InvalidInput, Problem
from epd_opt.offering import context_of, loads_of
from epd_opt.resolve import Resolved
from epd_opt.simulate.clock import Clock
from epd_opt.simulate.encoders import EncoderBank
from epd_opt.simulate.job import Job
from epd_opt.simulate.lane import Lane
from epd_opt.simulate.replicas import MeasuredLimit, SimulatedPool, SimulatedReplica
from epd_opt.simulate.router import Policy, Router, Routes
from epd_opt.simulate.times import EncoderTimes, LaneTimes, split

Finished = Callable[[float, Job], None]


class Fleet:
    """All pools of a plan with their replicas.

    Attributes
    ----------
    refusals : int
        Requests that fitted nowhere.
    """

    def __init__(
        self, document: PlanDocument, resolved: Resolved, clock: Clock, finished: Finished, *, policy: Policy, seed: int
    ) -> None:
        self.clock = clock
        self.finished = finished
        self.refusals = 0
        self.resolved = resolved
        self._latency_s = resolved.network.latency_s
        self._overhead_s = resolved.engine.request_overhead_s
        self.pools = [self._pool(planned) for planned in document.pools]
        self._by_lane = {id(lane): r for pool in self.pools for r in pool.replicas for lane in r.lanes}
        chance = random.Random(seed)
        named = {pool.name: pool for pool in self.pools}
        self._router = Router(policy, random.Random(chance.getrandbits(64)))
        self._routes = [
            Routes(
                [
                    (tuple(named[name] for name in route.pools), route.rate_per_s)
                    for route in document.classes[request.name].routes
                ],
                random.Random(chance.getrandbits(64)),
            )
            for request in resolved.requests
        ]

    # Building.

    def _pool(self, planned: Pool) -> SimulatedPool:
        pool = SimulatedPool(planned)
        count = planned.replicas + planned.spare_replicas
        if pool.measured:
            pool.limit = MeasuredLimit(self._measured_s(planned))
            pool.replicas = [SimulatedReplica(pool, i, float("inf"), [], None) for i in range(count)]
        else:
            replica = self._replica(planned)
            if "encode" in planned.stages:
                pool.encoder_times = EncoderTimes(replica)
            if pool.reads or pool.decodes:
                pool.lane_times = LaneTimes(replica)
            pool.replicas = [self._simulated(pool, replica, i) for i in range(count)]
        for spare in pool.replicas[planned.replicas :]:
            spare.alive, spare.standby = False, True
        pool.refresh()
        return pool

    def _simulated(self, pool: SimulatedPool, replica: Replica, number: int) -> SimulatedReplica:
        lanes: list[Lane] = []
        bank: EncoderBank | None = None
        if pool.lane_times is not None:
            times = pool.lane_times
            lanes = [Lane(self.clock, times, self, decodes=pool.decodes) for _ in range(replica.pool.cut.pipeline)]
        if pool.encoder_times is not None and not pool.in_line:
            bank = EncoderBank(self.clock, pool.encoder_times, self._encoded)
        made = SimulatedReplica(pool, number, replica.pool.bandwidth, lanes, bank)
        if bank is not None and lanes:

            def slow_down(time: float, pressure: float) -> None:
                for lane in lanes:
                    lane.set_slowdown(time, 1.0 / (1.0 - pressure))

            bank.pressure = slow_down
            bank.loop_busy = lambda: any(not lane.idle for lane in lanes)
            for lane in lanes:
                lane.notify = bank.replan
        return made

    def _replica(self, planned: Pool) -> Replica:
        """The replica that the plan's pool is made of."""
        resolved = self.resolved
        loads, _ = loads_of(resolved)
        entry = next((entry for entry in resolved.entries if entry.name == planned.device), None)
        cut, point = planned.parallelism, planned.operating_point
        if entry is None:
            raise _broken(planned.name, f"its device {planned.device!r} is not in the plan's instance")
        engine = resolved.engine
        tokens = 1.0 + (engine.speculative.accepted_tokens if engine.speculative is not None else 0.0)
        settings = Settings(
            itl_level_s=point.design_itl_ms / 1e3 * tokens,
            batch=point.batch,
            fan_out=point.fan_out,
            portion=point.portion,
        )
        degrees = Parallelism(tensor=cut.tensor, pipeline=cut.pipeline, attention_data=cut.attention_data, expert=cut.expert)
        try:
            return built_replica(context_of(resolved, loads), entry, degrees, planned.placement, settings)
        except (NotBuildable, CardError, KeyError) as error:
            raise _broken(planned.name, f"cannot be built: {error}") from None

    def _measured_s(self, planned: Pool) -> list[float]:
        """Replica seconds per request of each class, from the measured rates."""
        resolved = self.resolved
        for worker in resolved.instance.workers:
            if planned.key == f"measured|{worker.name}|{planned.device}":
                return [1.0 / rate if (rate := worker.rate_per_s(r.name)) else float("inf") for r in resolved.requests]
        raise _broken(planned.name, "its measured worker is not in the plan's instance")

    # Passing through.

    def enter(self, time: float, job: Job) -> None:
        """A request arrives at the fleet."""
        job.route = self._routes[job.label].choose()
        self._enter(time, job)

    def _enter(self, time: float, job: Job) -> None:
        """A request comes to the pool of its present leg."""
        pool = job.route[job.leg]
        pool.served += 1
        if pool.limit is not None:
            self._pass(time, job, pool)
        elif not pool.alive:
            pool.backlog.append(job)
        elif not pool.reads and not pool.decodes:
            self._encode(time, job, pool)
        elif not pool.reads:
            replica = self._router.pick(time, pool)
            assert replica is not None
            replica.lane(time).offer(time, job)
        else:
            replica = self._router.pick(time, pool)
            assert replica is not None
            if job.images and pool.encoder_times is not None and replica.bank is not None:
                job.sender = replica
                job.parts = 1
                replica.bank.submit(time, job, [job.images])
            else:
                self._send_prompt(time, job, replica)

    def _pass(self, time: float, job: Job, pool: SimulatedPool) -> None:
        """Through measured workers, which have no times of their own."""
        assert pool.limit is not None
        if not pool.alive:
            pool.backlog.append(job)
            return
        delay = pool.limit.delay_s(time, job.label, len(pool.alive))
        if job.sender is not None:
            for lane in job.sender.lanes:
                lane.release(time, job)
            job.sender = None
        job.late |= delay > 0.0
        job.excused |= pool.decodes
        self.clock.at(time + delay, self._passed, job)

    def _passed(self, time: float, job: Job) -> None:
        if job.leg + 1 == len(job.route):
            job.first_s = time
        self._next(time, job)

    def _next(self, time: float, job: Job) -> None:
        job.leg += 1
        if job.leg == len(job.route):
            self.finished(time, job)
        else:
            self._enter(time, job)

    def _encode(self, time: float, job: Job, pool: SimulatedPool) -> None:
        if not job.images:
            self._next(time, job)
            return
        shares = split(job.images, pool.planned.operating_point.fan_out)
        job.parts = len(shares)
        self._encode_some(time, job, pool, shares)

    def _encode_some(self, time: float, job: Job, pool: SimulatedPool, shares: list[int]) -> None:
        assert pool.encoder_times is not None
        for replica, some in self._router.spread(time, pool, shares, pool.encoder_times.each_s(job)):
            assert replica.bank is not None
            job.sender = replica
            replica.bank.submit(time, job, some)

    def _encoded(self, time: float, job: Job) -> None:
        """Some images of a request are encoded."""
        job.parts -= 1
        if job.parts:
            return
        pool = job.route[job.leg]
        if pool.reads:
            replica, job.sender = job.sender, None
            assert replica is not None
            self._send_prompt(time, job, replica)
        else:
            assert pool.encoder_times is not None
            self.clock.at(time + pool.encoder_times.decoding_s(job), self._next, job)

    def _send_prompt(self, time: float, job: Job, replica: SimulatedReplica) -> None:
        """A prompt, and its embeddings where they come from elsewhere, go to a lane."""
        pool = replica.pool
        lane = replica.lane(time)
        job.stall_s = 0.0
        if pool.in_line and job.images and pool.encoder_times is not None:
            job.stall_s = pool.encoder_times.in_line_s(job)
        decoding = 0.0 if pool.encoder_times is None else pool.encoder_times.decoding_s(job)
        lane.expect(job)
        assert pool.lane_times is not None
        if job.sender is not None:
            size = job.embedded * pool.lane_times.replica.embedding_bytes_per_token
            time = self._cross(time, job.sender, replica, size)
            job.sender = None
        before = decoding + self._overhead_s + pool.lane_times.latency_s(job)
        self.clock.at(time + before, self._prompt_arrives, (job, lane, lane.deaths))

    def _prompt_arrives(self, time: float, argument: tuple[Job, Lane, int]) -> None:
        job, lane, deaths = argument
        if lane.deaths == deaths:
            lane.accept(time, job)
        else:
            self._restart(time, job)

    def _cross(self, time: float, sender: SimulatedReplica, receiver: SimulatedReplica, size: float) -> float:
        """When ``size`` bytes have come over; each network card sends and receives one thing after the other."""
        if size <= 0.0:
            return time
        begin = max(time, sender.out_free_s, receiver.in_free_s)
        end = begin + size / min(sender.bandwidth, receiver.bandwidth)
        sender.out_free_s = receiver.in_free_s = end
        return end + self._latency_s + sender.pool.delay_s + receiver.pool.delay_s

    # What lanes tell.

    def prompt_read(self, time: float, job: Job) -> None:
        """A prompt is read where it is not decoded."""
        assert job.lane is not None
        job.sender = self._by_lane[id(job.lane)]
        self._next(time, job)

    def pull(self, time: float, job: Job) -> None:
        """A decode lane has room for a KV cache that waits with its sender."""
        assert job.lane is not None
        assert job.sender is not None
        receiver = self._by_lane[id(job.lane)]
        times = job.sender.pool.lane_times
        assert times is not None
        size = times.replica.whole_kv.held(job.prompt + job.generated, images=job.embedded > 0.0)
        ours, theirs = times.replica.entry, receiver.pool.lane_times
        assert theirs is not None
        entry = theirs.replica.entry
        if ours.device.vendor != entry.device.vendor or ours.precision.kv_cache != entry.precision.kv_cache:
            size *= self.resolved.network.conversion_factor
        self.clock.at(self._cross(time, job.sender, receiver, size), self._received, (job, job.lane, job.sender))

    def _received(self, time: float, argument: tuple[Job, Lane, SimulatedReplica]) -> None:
        job, lane, sender = argument
        for each in sender.lanes:
            each.release(time, job)
        if job.lane is lane and job in lane.coming:
            job.sender = None
            lane.receive(time, job)

    def answered(self, time: float, job: Job) -> None:
        """All tokens are out."""
        job.leg = len(job.route)
        self.finished(time, job)

    def refused(self, time: float, job: Job) -> None:
        """A request does not fit even alone."""
        self.refusals += 1
        if job.sender is not None:
            for lane in job.sender.lanes:
                lane.release(time, job)
        job.first_s = job.last_s = float("inf")
        self.finished(time, job)

    # Failures.

    def kill(self, time: float, replica: SimulatedReplica) -> None:
        """A replica dies with all that it holds; a spare of its pool takes its place."""
        replica.failures += 1
        if not replica.alive:
            replica.standby = False
            return
        pool = replica.pool
        replica.alive = False
        spare = next((r for r in pool.replicas if r.standby), None)
        if spare is not None:
            spare.standby, spare.alive = False, True
        pool.refresh()
        if pool.limit is not None:
            pool.limit.restart(time)
        lost = [job for lane in replica.lanes for job in lane.kill(time)]
        images = [] if replica.bank is None else replica.bank.kill()
        for job in lost:
            self._restart(time, job)
        for job, count in images:
            if pool.reads:
                job.sender = None
                self._restart(time, job)
            elif pool.alive:
                self._encode_some(time, job, pool, [count])
            else:
                job.parts -= 1
                if not job.parts:
                    pool.backlog.append(job)

    def revive(self, time: float, replica: SimulatedReplica) -> None:
        """One of its failures is mended. With the last of them it comes back empty: to work, or as a spare where one has
        taken its place."""
        pool = replica.pool
        replica.failures -= 1
        if replica.failures:
            return
        for lane in replica.lanes:
            lane.revive()
        replica.out_free_s = replica.in_free_s = time
        if len(pool.alive) >= pool.planned.replicas:
            replica.standby = True
            return
        replica.alive = True
        pool.refresh()
        if pool.limit is not None:
            pool.limit.restart(time)
        waiting, pool.backlog = pool.backlog, []
        for job in waiting:
            self._enter(time, job)

    def _restart(self, time: float, job: Job) -> None:
        """A request whose replica died begins its present stage anew, or the one before where its KV cache is lost."""
        pool = job.route[job.leg]
        if pool.lane_times is not None and not pool.reads:
            if job.sender is not None and any(job in lane.handing for lane in job.sender.lanes):
                self._enter(time, job)
                return
            job.leg -= 1
        job.sender = None
        self._enter(time, job)


def _broken(pool: str, why: str) -> InvalidInput:
    return InvalidInput([Problem(path=f"pools.{pool}", message=why, hint="solve the instance again")])


def stated_targets(resolved: Resolved) -> dict[str, Targets]:
    """The targets that simulation judges by: as stated, whatever the formulas plan for."""
    slos = {request.name: request.slo for request in resolved.instance.workload.classes}
    return {
        request.name: replace(
            request.targets,
            ttft_s=None if (ttft := slos[request.name].ttft_ms) is None else ttft / 1e3,
            itl_s=None if (itl := slos[request.name].itl_ms) is None else itl / 1e3,
        )
        for request in resolved.requests
    }
