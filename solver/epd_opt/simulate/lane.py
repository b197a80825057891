"""One loop of a replica that batches continuously: prompts in chunks, sequences token by token.

Whatever happens, happens between two iterations. Iterations in which nobody joins, leaves or is read differ only by the
context that grows evenly, so a whole *stretch* of them is one event: k iterations of B sequences take
``k a + g k (k - 1) / 2`` seconds. A stretch ends when a sequence has all its tokens, memory is full, a sliding window is
full, or, at the iteration then under way, a prompt arrives.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable
from typing import Protocol

from epd_opt.simulate.clock import Clock
from epd_opt.simulate.job import Job
from epd_opt.simulate.longest import Longest
from epd_opt.simulate.times import LaneTimes

_IDLE, _MIXED, _STRETCH, _DEAD = range(4)
_ROOM_SLACK = 1e-6
_BYTE = 1.0
SEQUENCE_S = 1e-3
"""Seconds of prompt work that one more sequence counts for where lanes are compared."""


class LaneOwner(Protocol):
    """Who is told what becomes of requests."""

    def prompt_read(self, time: float, job: Job) -> None:
        """A prompt is read on a lane that does not decode; its KV memory stays taken until `Lane.release`."""

    def answered(self, time: float, job: Job) -> None:
        """All tokens are out."""

    def refused(self, time: float, job: Job) -> None:
        """A request does not fit even alone."""

    def pull(self, time: float, job: Job) -> None:
        """Room is made for a KV cache that waits elsewhere."""


class Lane:
    """A loop; ``decodes`` tells whether sequences stay to be decoded.

    Attributes
    ----------
    sequences : int
        Those that hold KV memory, wait for it or are on their way here; routers count them.
    work_s : float
        Seconds of prompts that are waiting, or not yet in an iteration.
    deaths : int
        Times that everything here was lost; what was under way to it before is not for it any more.
    busy_s : float
        Seconds spent in iterations that have ended, or in stretches of them.
    """

    def __init__(self, clock: Clock, times: LaneTimes, owner: LaneOwner, *, decodes: bool) -> None:
        self.clock = clock
        self.times = times
        self.owner = owner
        self.decodes = decodes
        self.busy_s = 0.0
        self.preemptions = self.deaths = 0
        self.slow = 1.0
        self.notify: Callable[[float], None] | None = None
        self._version = 0
        self._entries = 0
        self._reset()

    def _reset(self) -> None:
        self.sequences = 0
        self.work_s = 0.0
        self.expected = 0
        self.waiting: deque[Job] = deque()
        self.pulling: deque[Job] = deque()
        self.arrived: list[Job] = []
        self.handing: dict[Job, float] = {}
        self.coming: dict[Job, None] = {}
        self.running: dict[Job, None] = {}
        self.reserved = 0.0
        self._state = _IDLE
        self._iteration = 0
        self._context = 0.0
        self._windows = [0.0] * len(self.times.windows)
        self._growing = [0] * len(self.times.windows)
        self._crossings: list[list[tuple[int, int, Job]]] = [[] for _ in self.times.windows]
        self._ends: list[tuple[int, int, Job]] = []
        self._finishing: list[Job] = []
        self._fresh: list[Job] = []
        self._longest = Longest()
        self._start = self._first_s = self._growth_s = self._stretch_slow = 0.0
        self._until = 0.0
        self._steps = 0

    # What others see.

    @property
    def idle(self) -> bool:
        """Whether no iteration is under way."""
        return self._state == _IDLE

    def load_s(self, time: float) -> float:
        """What routers compare: seconds of prompts before a new one, which are those that wait and what is left of an
        iteration that reads some, and a little for each sequence."""
        seconds = self.work_s + SEQUENCE_S * self.sequences
        return seconds + self._until - time if self._until > time else seconds

    @property
    def held_bytes(self) -> float:
        """KV bytes taken, as of the last iteration that ended."""
        held = self.reserved + self.times.per_token * self._context
        if self._windows:
            for (_, _, size), tokens in zip(self.times.windows, self._windows, strict=True):
                held += size * tokens
        return held

    def busy_until(self, time: float) -> float:
        """Seconds spent in iterations until now, the one under way included."""
        return self.busy_s + (time - self._start if self._state in (_MIXED, _STRETCH) else 0.0)

    @property
    def queued(self) -> int:
        """Requests that wait to be read or received."""
        return len(self.waiting) + len(self.pulling)

    # What others do.

    def expect(self, job: Job) -> None:
        """A prompt is on its way here; routers count it from now on."""
        job.lane = self
        self.times.plan(job)
        self.work_s += job.left_s + job.stall_s
        self.expected += 1
        self.sequences += 1

    def accept(self, time: float, job: Job) -> None:
        """An expected prompt arrives to be read."""
        self.expected -= 1
        self.waiting.append(job)
        self._poke(time)

    def offer(self, time: float, job: Job) -> None:
        """A KV cache that was made elsewhere waits to be taken over."""
        job.lane = self
        self.sequences += 1
        self.pulling.append(job)
        self._pull(time)

    def receive(self, time: float, job: Job) -> None:
        """A KV cache for which room was made has come."""
        del self.coming[job]
        self.arrived.append(job)
        self._poke(time)

    def release(self, time: float, job: Job) -> None:
        """A prompt that was read here is handed over."""
        room = self.handing.pop(job, None)
        if room is not None:
            self.reserved -= room
            if self.waiting:
                self._poke(time)

    def set_slowdown(self, time: float, factor: float) -> None:
        """Iterations take ``factor`` times as long from the next one on."""
        if factor != self.slow:
            self.slow = factor
            if self._state == _STRETCH:
                self._cut(time)

    def kill(self, time: float) -> list[Job]:
        """Lose everything; returns the requests that must start anew elsewhere. KV caches on their way arrive."""
        if self._state in (_MIXED, _STRETCH):
            self.busy_s += time - self._start
            if self._state == _STRETCH:
                self._iteration += max(0, self._steps_by(time) - 1)
        for job in self.running:
            job.gap_s = max(job.gap_s, self._longest.since(job.joined))
            job.generated = min(self._context_of(job) - job.prompt + 1.0, job.output - 1.0)
            job.last_s = time
        given_up = [job for job in self.handing if job.lane is not None and job.lane.forget(job)]
        lost = [*self.running, *self._finishing, *self.waiting, *self.arrived, *self.coming, *self.pulling, *given_up]
        for job in lost:
            job.room = 0.0
            job.entry = 0
        self._version += 1
        self.deaths += 1
        self._reset()
        self._state = _DEAD
        return lost

    def forget(self, job: Job) -> bool:
        """Drop a KV cache that was to be taken over; False where it is under way or was never on offer."""
        if job not in self.pulling:
            return False
        self.pulling.remove(job)
        self.sequences -= 1
        return True

    def revive(self) -> None:
        """An empty lane, ready to work."""
        self._version += 1
        self._reset()
        self.slow = 1.0

    # Iterations.

    def _poke(self, time: float) -> None:
        if self._state == _IDLE:
            self._begin(time)
        elif self._state == _STRETCH:
            self._cut(time)

    def _cut(self, time: float) -> None:
        """End the stretch with the iteration under way."""
        if self._steps == 1:
            return
        steps = self._steps_by(time)
        if steps < self._steps:
            self._steps = steps
            half = self._growth_s / 2.0
            self._plan(self._start + (self._first_s - half + half * steps) * steps * self._stretch_slow)

    def _steps_by(self, time: float) -> int:
        """Iterations of the stretch that have begun by ``time``, one at least."""
        passed = (time - self._start) / self._stretch_slow
        half = self._growth_s / 2.0
        linear = self._first_s - half
        root = math.sqrt(linear * linear + 4.0 * half * passed)
        return max(1, math.ceil(2.0 * passed / (linear + root) - 1e-9))

    def _plan(self, time: float) -> None:
        self._version += 1
        self.clock.at(time, self._wake, self._version)

    def _wake(self, time: float, version: int) -> None:
        if version != self._version:
            return
        self.busy_s += time - self._start
        if self._state == _STRETCH:
            steps = self._steps
            longest = (self._first_s + self._growth_s * (steps - 1)) * self._stretch_slow
        else:
            steps, longest = 1, time - self._start
        self._advance(time, steps, longest)
        if self._finishing:
            finished, self._finishing = self._finishing, []
            for job in finished:
                self._read(time, job)
        if self.pulling:
            self._pull(time)
        self._begin(time)

    def _advance(self, time: float, steps: int, longest: float) -> None:
        """Let every sequence gain the tokens of ``steps`` iterations, the longest of which took ``longest`` seconds."""
        self._iteration += steps
        now = self._iteration
        if self.running:
            gained = steps * self.times.tokens
            self._context += gained * len(self.running)
            if self._longest.add(now, longest):
                self._longest.forget(next(iter(self.running)).joined)
            if self._windows:
                self._slide(gained)
        if self._fresh:
            for job in self._fresh:
                if job.first_s < 0.0:
                    job.first_s = time
            self._fresh.clear()
        ends = self._ends
        while ends and ends[0][0] <= now:
            _, entry, job = heapq.heappop(ends)
            if job.entry == entry:
                self._leave(job)
                self.sequences -= 1
                job.gap_s = max(job.gap_s, self._longest.since(job.joined))
                self.owner.answered(time, job)

    def _slide(self, gained: float) -> None:
        for w, (window, _, _) in enumerate(self.times.windows):
            self._windows[w] += gained * self._growing[w]
            crossings = self._crossings[w]
            while crossings and crossings[0][0] <= self._iteration:
                at, entry, job = heapq.heappop(crossings)
                if job.entry == entry:
                    reached = self._context_of(job) - (self._iteration - at) * self.times.tokens
                    self._windows[w] -= reached - window + (self._iteration - at) * self.times.tokens
                    self._growing[w] -= 1

    def _context_of(self, job: Job) -> float:
        return job.prompt + job.generated + (self._iteration - job.joined) * self.times.tokens

    def _join(self, job: Job) -> None:
        """From here on a sequence decodes; its room becomes part of the growing whole."""
        times = self.times
        self._entries += 1
        job.entry = self._entries
        job.joined = self._iteration
        remaining = job.output - 1.0 - job.generated
        job.last_step = self._iteration + max(1, math.ceil(remaining / times.tokens - 1e-9))
        self.running[job] = None
        context = job.prompt + job.generated
        self._context += context
        heapq.heappush(self._ends, (job.last_step, job.entry, job))
        fixed = times.fixed_room(job)
        self.reserved += fixed - job.room
        job.room = fixed
        if self._windows:
            self._enter_windows(job, context)

    def _enter_windows(self, job: Job, context: float) -> None:
        """A sequence begins to count in layers that look back a limited way."""
        times = self.times
        for w, (window, _, _) in enumerate(times.windows):
            self._windows[w] += min(context, window)
            if context < window:
                self._growing[w] += 1
                at = self._iteration + math.ceil((window - context) / times.tokens)
                heapq.heappush(self._crossings[w], (at, job.entry, job))

    def _leave(self, job: Job) -> None:
        """A sequence stops decoding and gives its memory back."""
        del self.running[job]
        context = self._context_of(job)
        self._context -= context
        self.reserved -= job.room
        job.room = 0.0
        for w, (window, _, _) in enumerate(self.times.windows if self._windows else ()):
            self._windows[w] -= min(context, window)
            if context < window:
                self._growing[w] -= 1
        job.entry = 0
        if not self.running:
            self._context = 0.0
            self._windows = [0.0] * len(self.times.windows)

    def _read(self, time: float, job: Job) -> None:
        """A prompt has been read to its end."""
        if not self.decodes:
            self.sequences -= 1
            self.handing[job] = job.room
            job.room = 0.0
            self.owner.prompt_read(time, job)
            return
        if job.first_s < 0.0:
            job.first_s = time
        else:
            job.gap_s = max(job.gap_s, time - job.last_s)
        if job.generated + 1.0 >= job.output:
            self.sequences -= 1
            self.reserved -= job.room
            job.room = 0.0
            self.owner.answered(time, job)
        else:
            self._join(job)

    def _begin(self, time: float) -> None:
        """Form the next iteration, or a stretch of them."""
        self._start = time
        times = self.times
        if self.arrived:
            for job in self.arrived:
                self._join(job)
                if job.first_s < 0.0:
                    self._fresh.append(job)
                else:
                    job.gap_s = max(job.gap_s, time - job.last_s)
            self.arrived.clear()
        batch = len(self.running)
        step = growth = added = 0.0
        if batch:
            added = self._growth_bytes(batch)
            if self.held_bytes + added > times.capacity * (1.0 + _ROOM_SLACK):
                self._make_room(time)
                batch = len(self.running)
                added = self._growth_bytes(batch)
        seconds, read = self._prompts(time, batch, added) if self.waiting else (0.0, False)
        if batch:
            fixed, per_context = times.step(batch)
            step = fixed + per_context * self._context
            growth = per_context * batch
            if self._windows:
                for (_, per_token, _), tokens, growing in zip(times.windows, self._windows, self._growing, strict=True):
                    step += per_token * tokens
                    growth += per_token * growing
        before = self._state
        if read:
            seconds += step if batch else times.per_chunk
            self._state = _MIXED
            self._until = time + seconds * self.slow
            self._plan(self._until)
        elif batch:
            self._state = _STRETCH
            self._first_s, self._growth_s = step, growth * times.tokens
            self._stretch_slow = self.slow
            self._steps = 1 if self._fresh else self._stretch(added)
            half = self._growth_s / 2.0
            self._plan(time + (step - half + half * self._steps) * self._steps * self.slow)
        else:
            self._state = _IDLE
        if self.notify is not None and (before == _IDLE) != (self._state == _IDLE):
            self.notify(time)

    def _stretch(self, growth: float) -> int:
        """Iterations that each add ``growth`` bytes until somebody leaves, memory may be full, or a window is."""
        ends = self._ends
        while ends[0][2].entry != ends[0][1]:
            heapq.heappop(ends)
        steps = ends[0][0] - self._iteration
        if growth > 0.0:
            steps = min(steps, max(1, int((self.times.capacity - self.held_bytes) / growth)))
        for crossings in self._crossings:
            while crossings and crossings[0][2].entry != crossings[0][1]:
                heapq.heappop(crossings)
            if crossings:
                steps = min(steps, max(1, crossings[0][0] - self._iteration))
        return steps

    def _growth_bytes(self, batch: int) -> float:
        """KV bytes that one iteration adds."""
        growth = self.times.per_token * batch
        if self._windows:
            for (_, _, size), growing in zip(self.times.windows, self._growing, strict=True):
                growth += size * growing
        return growth * self.times.tokens

    def _make_room(self, time: float) -> None:
        """Preempt the sequences that joined last until the next iteration fits; their tokens are read again later."""
        capacity = self.times.capacity * (1.0 + _ROOM_SLACK)
        while self.held_bytes + self._growth_bytes(len(self.running)) > capacity:
            job = next(reversed(self.running))
            context = self._context_of(job)
            job.gap_s = max(job.gap_s, self._longest.since(job.joined))
            self._leave(job)
            if not self.running and self.reserved < _BYTE:
                self.sequences -= 1
                self.owner.refused(time, job)
                return
            self.preemptions += 1
            job.generated = context - job.prompt + 1.0
            job.last_s = time
            self.times.plan(job)
            self.work_s += job.left_s
            self.waiting.appendleft(job)
            if not self.running:
                return

    def _prompts(self, time: float, batch: int, growth: float) -> tuple[float, bool]:
        """Seconds of prompts that the iteration carries beside ``batch`` sequences that add ``growth`` bytes, and whether
        there are any; admits them in order of arrival."""
        times, waiting = self.times, self.waiting
        budget = float(times.budget - batch * times.width)
        seconds, read = 0.0, False
        admitted = batch + len(self.handing) + len(self.coming)
        while waiting and budget >= 1.0:
            job = waiting[0]
            if job.room == 0.0:
                need = times.room(job)
                if admitted + len(self._finishing) >= times.most_sequences:
                    break
                if self.held_bytes + growth + need > times.capacity:
                    if self.running or self.reserved >= _BYTE:
                        break
                    waiting.popleft()
                    self.sequences -= 1
                    self.work_s -= job.left_s + job.stall_s
                    self.owner.refused(time, job)
                    continue
                job.room = need
                self.reserved += need
                seconds += job.stall_s
                self.work_s -= job.stall_s
                job.stall_s = 0.0
            if job.left <= budget:
                budget -= job.left
                chunk = job.left_s
                job.left = job.left_s = 0.0
                waiting.popleft()
                self._finishing.append(job)
            else:
                chunk = times.chunk_s(job, budget)
                job.left -= budget
                job.left_s -= chunk
                budget = 0.0
            seconds += chunk
            self.work_s -= chunk
            read = True
        if not waiting and not self.expected:
            self.work_s = 0.0
        return seconds, read

    def _pull(self, time: float) -> None:
        """Take KV caches over as far as there is room, in order of arrival."""
        times = self.times
        while self.pulling and not self.waiting:
            job = self.pulling[0]
            need = times.room(job)
            taken = len(self.running) + len(self.arrived) + len(self.coming)
            grown = self.held_bytes + self._growth_bytes(len(self.running))
            if taken >= times.most_sequences or grown + need > times.capacity:
                if taken == 0 and self.reserved < _BYTE:
                    self.pulling.popleft()
                    self.sequences -= 1
                    self.owner.refused(time, job)
                    continue
                return
            self.pulling.popleft()
            job.room = need
            self.reserved += need
            self.coming[job] = None
            self.owner.pull(time, job)
