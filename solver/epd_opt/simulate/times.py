"""Seconds and bytes of a pool's replicas, looked up fast; every figure comes from `epd_models.placement.replica`."""

from __future__ import annotations

import numpy as np

from epd_models.placement import parts
from epd_models.placement.replica import Replica
from epd_models.stages.encode import EncodeTime
from epd_models.vision import ImageLoad
from epd_opt.simulate.job import Job

_MOST_REMEMBERED = 100_000


class LaneTimes:
    """What a lane needs to know; one for all lanes of a pool.

    Attributes
    ----------
    budget : int
        Tokens of one iteration: one for each decoding sequence (more with drafts), the rest for prompts.
    most_sequences, capacity : float
        Of one lane: lanes of a pipeline share a replica's memory and sequences evenly.
    windows : tuple of (float, float, float)
        Layers that look back a limited way: tokens, seconds and bytes per token up to there.
    per_chunk : float
        Seconds of an iteration that only reads prompts, on top of them.
    tokens, width : float
        Tokens that a sequence gains in an iteration, and that it puts through the model.
    """

    def __init__(self, replica: Replica) -> None:
        pool, engine = replica.pool, replica.context.engine
        lanes = pool.cut.pipeline
        step = replica.step(1)
        drafts = engine.speculative.draft_tokens if engine.speculative is not None else 0
        sizes = replica.kv.windows
        seconds = dict(enumerate(each for _, each in step.windows))
        full = self._reserves = replica.reserves_all or replica.reserves_output
        self._fixed, self._fixed_with_images = replica.kv.held(0.0), replica.kv.held(0.0, images=True)
        self.replica = replica
        self.budget = engine.max_batched_tokens
        self.most_sequences = max(1, replica.most_sequences // lanes)
        self.capacity = pool.kv_bytes / lanes
        self.per_token = 0.0 if full else replica.kv.per_token
        self.windows = tuple(
            (float(window), seconds.get(i, 0.0), 0.0 if full else size) for i, (window, size) in enumerate(sizes)
        )
        self.per_chunk = replica.prefill.per_chunk
        self.tokens = step.tokens
        self.width = 1 + drafts
        self._steps = [(0.0, 0.0)]
        self._prompts: dict[tuple[float, float], tuple[float, float]] = {}
        self._peaks = {load.name: load.peak_context for load in replica.context.loads}
        self._longest = max(self._peaks.values(), default=0.0)

    def step(self, batch: int) -> tuple[float, float]:
        """Seconds of an iteration over so many sequences without their context, and per token of it."""
        known = self._steps
        while batch >= len(known):
            step = self.replica.step(len(known))
            known.append((step.fixed, step.per_context))
        return known[batch]

    def plan(self, job: Job) -> None:
        """Write down what is to be read of a prompt, and of tokens whose KV cache was lost."""
        job.left = max(job.prompt - job.cached, 1.0) + job.generated
        job.taken = 0.0
        job.left_s = self._prompt(job.left, job.cached)[0]

    def latency_s(self, job: Job) -> float:
        """Seconds of a first token that take no time from the lane."""
        return self._prompt(max(job.prompt - job.cached, 1.0), job.cached)[1]

    def _prompt(self, new: float, cached: float) -> tuple[float, float]:
        found = self._prompts.get((new, cached))
        if found is None:
            tokens, prefill = np.array([new]), self.replica.prefill
            busy = float(prefill.busy_s(tokens, cached)[0])
            found = busy, float(prefill.own_s(tokens, cached)[0]) - busy
            if len(self._prompts) >= _MOST_REMEMBERED:
                self._prompts.clear()
            self._prompts[new, cached] = found
        return found

    def chunk_s(self, job: Job, tokens: float) -> float:
        """Seconds of the next ``tokens`` tokens of a prompt."""
        read = np.array([job.taken, job.taken + tokens])
        before, after = self.replica.prefill.busy_s(read, job.cached).tolist()
        job.taken += tokens
        return min(float(after - before), job.left_s)

    def room(self, job: Job) -> float:
        """KV bytes of what is to be read, or received."""
        if self._reserves or self.windows:
            return self._held(job, job.prompt + job.generated)
        fixed = self._fixed_with_images if job.embedded > 0.0 else self._fixed
        return fixed + self.per_token * (job.prompt + job.generated)

    def fixed_room(self, job: Job) -> float:
        """KV bytes of a decoding sequence that do not grow."""
        if self._reserves:
            return self._held(job, 0.0)
        return self._fixed_with_images if job.embedded > 0.0 else self._fixed

    def _held(self, job: Job, tokens: float) -> float:
        """KV bytes of so many tokens, or of what is reserved in their place."""
        if self.replica.reserves_all:
            tokens = self._longest
        elif self.replica.reserves_output:
            tokens = job.prompt + job.output
        return self.replica.kv.held(tokens, images=job.embedded > 0.0)


class ImageTimes:
    """Times of one kind of image on a replica.

    Attributes
    ----------
    device_s, serial_s : float
        Device time, and seconds that a process takes for it when the others rest.
    alone, beside : list of float
        Seconds for it while so many processes of the device work, without and with a loop at work beside them.
    decoding_s : dict of int to float
        Seconds until so many sources are decoded.
    """

    __slots__ = ("alone", "beside", "decoding_s", "device_s", "serial_s")

    def __init__(self, device_s: float, serial_s: float, alone: list[float], beside: list[float]) -> None:
        self.device_s = device_s
        self.serial_s = serial_s
        self.alone = alone
        self.beside = beside
        self.decoding_s: dict[int, float] = {}


class EncoderTimes:
    """Times of images on the encoder processes of a replica, or in the loop of one that encodes in line.

    Attributes
    ----------
    processes : int
        Encoder processes of one logical device.
    slowdown, stall : float
        Shared placement: how much longer images take beside a busy loop; what of their device time the loop loses.
    """

    def __init__(self, replica: Replica) -> None:
        engine = replica.context.engine
        shared = replica.pool.placement == "shared"
        self.replica = replica
        self.processes = replica.pool.encoder_processes
        self.slowdown = engine.shared_slowdown if shared else 0.0
        self.stall = engine.shared_stall if shared else 0.0
        self._times: dict[tuple[ImageLoad, float], EncodeTime] = {}
        self._images: dict[int, tuple[ImageLoad, float, ImageTimes]] = {}

    def image(self, job: Job) -> ImageTimes:
        """One of its images; requests of a class share theirs, which are known by identity."""
        known = self._images.get(id(job.image))
        if known is not None and known[0] is job.image and known[1] == job.megapixels:
            return known[2]
        assert job.image is not None
        if len(self._images) >= _MOST_REMEMBERED:
            self._images.clear()
        time = self._time(job.image, job.megapixels)
        busy = range(self.processes + 1)
        found = ImageTimes(
            time.device_s,
            time.serial_s,
            [parts.process_seconds(time, max(1, n)) for n in busy],
            [parts.process_seconds(time, max(1, n), self.slowdown) for n in busy],
        )
        self._images[id(job.image)] = (job.image, job.megapixels, found)
        return found

    def _time(self, image: ImageLoad, megapixels: float) -> EncodeTime:
        found = self._times.get((image, megapixels))
        if found is None:
            if len(self._times) >= _MOST_REMEMBERED:
                self._times.clear()
            found = self._times[image, megapixels] = self.replica.image(image, megapixels)
        return found

    def each_s(self, job: Job) -> float:
        """Seconds for which one of its images keeps all processes busy."""
        return self.image(job).alone[self.processes] / self.processes

    def in_line_s(self, job: Job) -> float:
        """Seconds for which all its images hold up a loop."""
        return job.images * self.image(job).serial_s if job.images else 0.0

    def decoding_s(self, job: Job) -> float:
        """Seconds until the sources of its images are decoded; they take no time from the processes that encode."""
        if not job.images:
            return 0.0
        image = self.image(job)
        found = image.decoding_s.get(job.images)
        if found is None:
            assert job.image is not None
            time, processes = self._time(job.image, job.megapixels), max(1, self.processes)
            found = float(parts.decoding_s(time, self.replica.entry, np.array([float(job.images)]), processes)[0])
            image.decoding_s[job.images] = found
        return found


def split(images: int, ways: int) -> list[int]:
    """Images of a request over encoder processes, as evenly as can be.

    >>> split(10, 4)
    [3, 3, 2, 2]
    """
    ways = min(images, ways)
    least, more = divmod(images, ways)
    return [least + 1] * more + [least] * (ways - more)
