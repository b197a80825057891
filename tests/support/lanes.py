"""Lanes and encoders with times of one's choice, to set beside results in closed form."""

from __future__ import annotations

from dataclasses import dataclass

from epd_opt.simulate.clock import Clock
from epd_opt.simulate.job import Job
from epd_opt.simulate.lane import Lane
from epd_opt.simulate.times import ImageTimes


@dataclass(kw_only=True)
class PlainTimes:
    """Times of a lane: iterations of ``fixed + batch * each + context * per_context``, prompts at ``per_prompt_token``.

    Stands in for `epd_opt.simulate.times.LaneTimes`.
    """

    fixed: float = 0.0
    each: float = 0.0
    per_context: float = 0.0
    per_prompt_token: float = 0.0
    per_chunk: float = 0.0
    budget: float = 1e9
    most_sequences: int = 10**9
    capacity: float = 1e18
    per_token: float = 0.0
    windows: tuple[tuple[float, float, float], ...] = ()
    tokens: float = 1.0
    width: int = 0

    def step(self, batch: int) -> tuple[float, float]:
        return self.fixed + batch * self.each, self.per_context

    def plan(self, job: Job) -> None:
        job.left = max(job.prompt - job.cached, 1.0) + job.generated
        job.taken = 0.0
        job.left_s = job.left * self.per_prompt_token

    def chunk_s(self, job: Job, tokens: float) -> float:
        job.taken += tokens
        return tokens * self.per_prompt_token

    def room(self, job: Job) -> float:
        windows = sum(size * min(job.prompt + job.generated, window) for window, _, size in self.windows)
        return self.per_token * (job.prompt + job.generated) + windows

    def fixed_room(self, job: Job) -> float:
        return 0.0


@dataclass(kw_only=True)
class PlainEncoders:
    """Encoder processes that take ``megapixels`` seconds for an image, whoever else is at work."""

    processes: int = 1
    slowdown: float = 0.0
    stall: float = 0.0

    def image(self, job: Job) -> ImageTimes:
        each = [job.megapixels] * (self.processes + 1)
        return ImageTimes(job.megapixels, job.megapixels, each, each)


class Witness:
    """Notes when requests are read, answered or refused."""

    def __init__(self) -> None:
        self.read: dict[Job, float] = {}
        self.done: dict[Job, float] = {}
        self.lost: dict[Job, float] = {}

    def prompt_read(self, time: float, job: Job) -> None:
        self.read[job] = time
        job.lane.release(time, job)

    def answered(self, time: float, job: Job) -> None:
        self.done[job] = time

    def refused(self, time: float, job: Job) -> None:
        self.lost[job] = time

    def pull(self, time: float, job: Job) -> None:
        raise AssertionError("nothing is pulled here")


def job(arrival_s: float, prompt: float, output: float = 1.0) -> Job:
    """A request without images."""
    return Job(label=0, arrival_s=arrival_s, prompt=prompt, cached=0.0, output=output, measured=True)


def through_lane(times: PlainTimes, jobs: list[Job], *, decodes: bool) -> tuple[Witness, Lane]:
    """Send requests to one lane and wait until nothing more happens."""
    clock, seen = Clock(), Witness()
    lane = Lane(clock, times, seen, decodes=decodes)  # type: ignore[arg-type]
    for each in jobs:
        clock.run_until(each.arrival_s)
        lane.expect(each)
        lane.accept(each.arrival_s, each)
    while clock.step():
        pass
    return seen, lane
