"""Encoder processes of one replica: each takes the images of a request one by one; together they share host and device."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Sequence

from epd_opt.simulate.clock import Clock
from epd_opt.simulate.job import Job
from epd_opt.simulate.times import EncoderTimes, ImageTimes

_MOMENT_S = 1e-8
"""Work below this is done: less than what a time of some months can tell apart."""


class _Kind:
    """Images of one kind that are under way. Their processes all go at one speed, so one count of images done serves them
    all: a request whose process began at ``done`` and has n images ends at ``done + n``.

    Attributes
    ----------
    each_s : float
        Seconds that an image takes now.
    done : float
        Images that each process has done since the first of the kind began.
    ends : list of (float, int, Job, int)
        A heap: where a request's images end, number of the entry, the request, and how many images it has here.
    left : float
        Images left of all of them.
    """

    __slots__ = ("done", "each_s", "ends", "image", "left")

    def __init__(self, image: ImageTimes) -> None:
        self.image = image
        self.each_s = math.inf
        self.done = 0.0
        self.ends: list[tuple[float, int, Job, int]] = []
        self.left = 0.0


class EncoderBank:
    """The processes of one replica with their common queue.

    Attributes
    ----------
    busy : int
        Processes at work.
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
        self._version = self._begun = 0
        self._reset()

    def _reset(self) -> None:
        self.busy = 0
        self._queue: deque[tuple[Job, int, ImageTimes]] = deque()
        self._kinds: dict[ImageTimes, _Kind] = {}
        self._since = 0.0
        self._queued_s = 0.0

    @property
    def queued(self) -> int:
        """Requests, or parts of them, that wait for a process."""
        return len(self._queue)

    def work_s(self, time: float) -> float:
        """Seconds of work per process, waiting and under way."""
        left = self._queued_s - (time - self._since) * self.busy
        for kind in self._kinds.values():
            left += kind.left * kind.each_s
        return left / self.times.processes if left > 0.0 else 0.0

    def submit(self, time: float, job: Job, shares: Sequence[int]) -> None:
        """Encode so many images of a request in a process each; `done` is called for each share that is."""
        image, processes = self.times.image(job), self.times.processes
        begins = self.busy < processes
        if begins:
            self._progress(time)
        for images in shares:
            if self.busy < processes:
                self._begin(job, images, image)
            else:
                self._queue.append((job, images, image))
                self._queued_s += images * image.alone[processes]
        if begins:
            self._replan(time)

    def replan(self, time: float) -> None:
        """The loop beside has begun or ended its work."""
        if self.busy:
            self._progress(time)
            self._replan(time)

    def _begin(self, job: Job, images: int, image: ImageTimes) -> None:
        """A process takes some images of a request."""
        kind = self._kinds.get(image)
        if kind is None:
            kind = self._kinds[image] = _Kind(image)
        self.busy += 1
        self._begun += 1
        kind.left += images
        heapq.heappush(kind.ends, (kind.done + images, self._begun, job, images))

    def _progress(self, time: float) -> None:
        """Account for what was done since the last change."""
        passed = time - self._since
        self._since = time
        if passed > 0.0:
            for kind in self._kinds.values():
                each = passed / kind.each_s
                kind.done += each
                each *= len(kind.ends)
                kind.left -= each
                self.device_s += each * kind.image.device_s

    def _replan(self, time: float) -> None:
        """Speeds for the processes now at work, and the next of them to end."""
        self._version += 1
        busy, stall, pressure = self.busy, self.times.stall, self.pressure
        beside = pressure is not None and self.loop_busy()
        soonest, pressed = math.inf, 0.0
        for kind in self._kinds.values():
            image = kind.image
            kind.each_s = each = image.beside[busy] if beside else image.alone[busy]
            if stall:
                pressed += len(kind.ends) * stall * image.device_s / each
            remaining = (kind.ends[0][0] - kind.done) * each
            if remaining < soonest:
                soonest = remaining
        if busy:
            self.clock.at(time + soonest if soonest > 0.0 else time, self._end, self._version)
        if pressure is not None:
            pressure(time, pressed)

    def _end(self, time: float, version: int) -> None:
        if version != self._version:
            return
        self._progress(time)
        ended: list[Job] = []
        emptied: list[ImageTimes] = []
        for kind in self._kinds.values():
            ends, until = kind.ends, kind.done + _MOMENT_S / kind.each_s
            while ends and ends[0][0] <= until:
                ended.append(heapq.heappop(ends)[2])
            if not ends:
                emptied.append(kind.image)
        for image in emptied:
            del self._kinds[image]
        self.busy -= len(ended)
        queue, processes = self._queue, self.times.processes
        while queue and self.busy < processes:
            job, images, image = queue.popleft()
            self._queued_s -= images * image.alone[processes]
            self._begin(job, images, image)
        if not queue:
            self._queued_s = 0.0
        self._replan(time)
        for job in ended:
            self.done(time, job)

    def kill(self) -> list[tuple[Job, int]]:
        """Forget everything; returns the requests that were here, with their images."""
        under_way = sorted(end[1:] for kind in self._kinds.values() for end in kind.ends)
        lost = [(job, images) for _, job, images in under_way] + [(job, images) for job, images, _ in self._queue]
        self._version += 1
        self._reset()
        return lost
