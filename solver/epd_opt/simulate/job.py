"""A request on its way through the fleet."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from epd_models.vision import ImageLoad

if TYPE_CHECKING:
    from epd_opt.simulate.lane import Lane
    from epd_opt.simulate.replicas import SimulatedPool, SimulatedReplica


class Job:
    """One request; mutable, and with slots, because there are many.

    Attributes
    ----------
    label : int
        Index of its class.
    measured : bool
        Whether it counts: neither warm-up nor what comes after the last request that does.
    images : int
        Images or clip steps left to encode; 0 where they are found in the encoder cache.
    image, megapixels : ImageLoad or None, float
        One of them.
    prompt, cached, embedded : float
        Prompt tokens, images included; those in the prefix cache; those that images take.
    output : float
        Tokens wanted.
    generated : float
        Tokens that were out when its KV cache was last lost; they are read again, and the next one comes of that.
    left, taken : float
        Tokens still to read before it decodes, and those already read.
    left_s, stall_s : float
        Replica seconds of reading them, and of encoding its images in the loop.
    room : float
        KV bytes taken on a lane while it is read, received or handed over.
    joined, last_step, entry : int
        Iterations of its lane at which it began to decode and will end; number of its entry in the lane's heap.
    first_s, last_s, gap_s : float
        Time of the first token (negative before), of the last one before an interruption, longest gap so far.
    parts : int
        Encode jobs still out.
    excused : bool
        Whether it has no times of its own because measured workers decode it.
    late : bool
        Whether a measured worker was over its rate.
    """

    __slots__ = (
        "arrival_s",
        "cached",
        "embedded",
        "entry",
        "excused",
        "first_s",
        "gap_s",
        "generated",
        "image",
        "images",
        "joined",
        "label",
        "lane",
        "last_s",
        "last_step",
        "late",
        "left",
        "left_s",
        "leg",
        "measured",
        "megapixels",
        "output",
        "parts",
        "prompt",
        "room",
        "route",
        "sender",
        "stall_s",
        "taken",
    )

    def __init__(self, *, label: int, arrival_s: float, prompt: float, cached: float, output: float, measured: bool) -> None:
        self.label = label
        self.arrival_s = arrival_s
        self.prompt = prompt
        self.cached = cached
        self.output = output
        self.measured = measured
        self.embedded = 0.0
        self.images = 0
        self.image: ImageLoad | None = None
        self.megapixels = 0.0
        self.generated = 0.0
        self.left = self.taken = 0.0
        self.left_s = self.stall_s = 0.0
        self.room = 0.0
        self.joined = self.last_step = self.entry = 0
        self.first_s = self.last_s = -1.0
        self.gap_s = 0.0
        self.parts = 0
        self.leg = 0
        self.route: tuple[SimulatedPool, ...] = ()
        self.lane: Lane | None = None
        self.sender: SimulatedReplica | None = None
        self.excused = self.late = False

    def interval_s(self, done_s: float) -> float:
        """Mean interval between tokens; nan where there is none."""
        if self.output <= 1.0 or self.excused:
            return math.nan
        return (done_s - self.first_s) / (self.output - 1.0)
