"""Encoder processes of one replica: each takes the images of a request one by one; together they share host and device."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

from epd_opt.simulate.clock import Clock
from epd_opt.simulate.job import Job
from epd_opt.simulate.times import EncoderTimes, ImageTimes

_MOMENT_S = 1e-8
"""Work below this is done: less than what a time of some months can tell apart."""


class _Task:
    """Some images of a request; ``left`` of the whole is still to do, at ``seconds`` for the whole."""

    __slots__ = ("image", "images", "job", "left", "seconds")

    def __init__(self, job: Job, images: int, image: ImageTimes) -> None:
        self.job = job
        self.images = images
        self.image = image
        self.left = 1.0
        self.seconds = 0.0


class EncoderBank:
    """The processes of one replica with their common queue.

    Attributes
    ----------
    device_s : float
        Seconds for which one device would have been busy with all images so far.
    """

    def __init__(self, clock: Clock, times: EncoderTimes, done: Callable[[float, Job], None]) -> None:
        self.clock = clock
        self.times = times
        self.done = done
        self.device_s = 0.0
        self.loop_busy: Callable[[], bool] = lambda: False
        self.pressure: Callable[[float, float], None] | None = None
        self._version = 0
        self._reset()

    def _reset(self) -> None:
        self._queue: deque[_Task] = deque()
        self._running: list[_Task] = []
        self._since = 0.0
        self._queued_s = 0.0

    @property
    def queued(self) -> int:
        """Tasks that wait for a process."""
        return len(self._queue)

    @property
    def busy(self) -> int:
        """Processes at work."""
        return len(self._running)

    def work_s(self, time: float) -> float:
        """Seconds of work per process, waiting and under way."""
        passed = time - self._since
        left = self._queued_s
        for task in self._running:
            remaining = task.left * task.seconds - passed
            if remaining > 0.0:
                left += remaining
        return left / self.times.processes

    def submit(self, time: float, job: Job, images: int) -> None:
        """Encode some images of a request; `done` is called when they are."""
        task = _Task(job, images, self.times.image(job))
        if len(self._running) < self.times.processes:
            self._progress(time)
            self._running.append(task)
            self._replan(time)
        else:
            self._queue.append(task)
            self._queued_s += self._nominal_s(task)

    def _nominal_s(self, task: _Task) -> float:
        return task.images * task.image.alone[self.times.processes]

    def _progress(self, time: float) -> None:
        """Account for what was done since the last change."""
        passed = time - self._since
        self._since = time
        if passed > 0.0:
            for task in self._running:
                done = passed / task.seconds
                if done > task.left:
                    done = task.left
                task.left -= done
                self.device_s += done * task.images * task.image.device_s

    def replan(self, time: float) -> None:
        """The loop beside has begun or ended its work."""
        if self._running:
            self._progress(time)
            self._replan(time)

    def _replan(self, time: float) -> None:
        """Speeds for the processes now at work, and the next of them to end."""
        self._version += 1
        running, stall = self._running, self.times.stall
        busy, beside = len(running), self.pressure is not None and self.loop_busy()
        soonest = math.inf
        pressure = 0.0
        for task in running:
            image = task.image
            each = image.beside[busy] if beside else image.alone[busy]
            task.seconds = seconds = task.images * each
            if stall:
                pressure += stall * image.device_s / each
            remaining = task.left * seconds
            if remaining < soonest:
                soonest = remaining
        if busy:
            self.clock.at(time + soonest, self._end, self._version)
        if self.pressure is not None:
            self.pressure(time, pressure)

    def _end(self, time: float, version: int) -> None:
        if version != self._version:
            return
        self._progress(time)
        ended: list[_Task] = []
        running: list[_Task] = []
        for task in self._running:
            (ended if task.left * task.seconds <= _MOMENT_S else running).append(task)
        self._running = running
        queue, processes = self._queue, self.times.processes
        while queue and len(running) < processes:
            task = queue.popleft()
            self._queued_s -= self._nominal_s(task)
            running.append(task)
        if not queue:
            self._queued_s = 0.0
        self._replan(time)
        for task in ended:
            self.done(time, task.job)

    def kill(self) -> list[tuple[Job, int]]:
        """Forget everything; returns the requests that were here, with their images."""
        lost = [(task.job, task.images) for task in [*self._running, *self._queue]]
        self._version += 1
        self._reset()
        return lost
