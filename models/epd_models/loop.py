"""Continuous batching as rows that are affine in the flows: decode loops, alone or with prefill and encode in them.

A replica repeats an iteration of ``alpha`` seconds plus the work of the sequences in it. With
R = sum x_c (decode_c + burst_c) replica-seconds of work per second spread over n replicas, the mean iteration takes
n alpha / (n - R) seconds: exact in the mean, and affine once the level L is fixed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from epd_models.row import Row

OVERFLOW = 0.01
"""Probability with which a replica's sequences or KV memory may exceed what it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopClass:
    """One class in a loop, per request.

    Attributes
    ----------
    steps : float
        Mean iterations that a request takes part in.
    averaging_steps : float
        Iterations over which a request averages its interval (harmonic mean); 0 where it has no interval.
    decode_s : float
        Replica-seconds of its decoding.
    burst_s, burst_second : float
        Mean (s) and second moment (s**2) of the work that stalls the others: prefill, encode.
    held : float
        KV bytes held, summed over iterations (byte-iterations).
    peak_bytes : float
        KV bytes of a very long request.
    """

    name: str
    steps: float
    averaging_steps: float
    decode_s: float
    burst_s: float
    burst_second: float
    held: float
    peak_bytes: float

    @property
    def work_s(self) -> float:
        """Replica-seconds per request."""
        return self.decode_s + self.burst_s

    @property
    def sequence_s(self) -> float:
        """Seconds that one sequence of this class adds to an iteration."""
        return self.decode_s / self.steps if self.steps else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """The decode loop of one replica.

    Attributes
    ----------
    step_s : float
        alpha: seconds of an iteration over no sequence.
    kv_bytes, max_sequences : float
        KV memory and sequence limit of one lane.
    lanes : int
        Loops that a replica runs side by side (pipeline stages).
    """

    step_s: float
    classes: tuple[LoopClass, ...]
    kv_bytes: float
    max_sequences: float
    lanes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPoint:
    """A level of the mean iteration, and the intervals promised at it.

    Attributes
    ----------
    level_s : float
        Mean iteration time that replicas are sized for.
    burst_share : float
        Share of the loop taken by bursts at which the interval row is tight.
    promised : tuple of (str, float, float)
        Class, interval promised (seconds per iteration), and the probability of exceeding it.
    """

    level_s: float
    burst_share: float
    promised: tuple[tuple[str, float, float], ...]

    def rows(self, loop: Loop) -> tuple[Row, ...]:
        """Rows on the replicas of a pool that serves the promised classes."""
        names = {name for name, _, _ in self.promised}
        classes = [c for c in loop.classes if c.name in names]
        alpha, level, lanes = loop.step_s, self.level_s, loop.lanes
        spare = 1.0 - alpha / level
        memory = headroom(
            loop.kv_bytes - max((c.peak_bytes for c in classes), default=0.0),
            max((c.held / c.steps for c in classes if c.steps), default=0.0),
            level / alpha,
        )
        sequences = headroom(loop.max_sequences, 1.0, level / alpha)
        rows = [
            Row(kind="time", load=tuple((c.name, c.work_s / spare / lanes) for c in classes)),
            Row(
                kind="sequences",
                load=tuple((c.name, (c.work_s + alpha * c.steps / sequences) / lanes) for c in classes),
            ),
        ]
        if any(c.held for c in classes):
            load = tuple((c.name, (c.work_s + alpha * c.held / memory) / lanes) for c in classes)
            rows.append(Row(kind="kv_memory", load=load))
        if any(c.burst_s for c in classes):
            rows += [row for c in classes if (row := self._interval(loop, classes, c)) is not None]
        return tuple(rows)

    def _interval(self, loop: Loop, classes: Sequence[LoopClass], own: LoopClass) -> Row | None:
        """``interval``: bursts during the life of a request of class ``own`` keep within its promise."""
        if own.averaging_steps <= 0:
            return None
        _, promised, eps = next(item for item in self.promised if item[0] == own.name)
        z = NormalDist().inv_cdf(1.0 - eps)
        room = (promised - self.level_s) ** 2 / z**2 - occupancy_variance(loop, classes, self.level_s)
        kappa = own.averaging_steps * room / self.level_s
        p = self.burst_share
        whole = (1.0 - p) * (1.0 + p) * loop.lanes
        load = tuple((c.name, (c.burst_second / kappa + 2.0 * (1.0 - p) * c.burst_s) / whole) for c in classes)
        return Row(kind="interval", load=load)


def headroom(capacity: float, unit: float, dispersion: float) -> float:
    """Mean occupancy at which ``capacity`` is exceeded with probability :data:`OVERFLOW`.

    Sequences in flight have a variance of ``dispersion`` times their mean (negative binomial, dispersion = level /
    alpha); one sequence takes ``unit`` of the capacity.
    """
    v = NormalDist().inv_cdf(1.0 - OVERFLOW) ** 2 * dispersion * unit
    return capacity + v / 2.0 - math.sqrt(capacity * v + v * v / 4.0)


def occupancy_variance(loop: Loop, classes: Sequence[LoopClass], level: float) -> float:
    """Variance of the iteration time through the number of sequences in flight, s**2, on one replica."""
    alpha = loop.step_s
    per_sequence = max((c.sequence_s for c in classes), default=0.0)
    return per_sequence * max(0.0, level - alpha) * level / alpha


def best_levels(loop: Loop, promises: Mapping[str, tuple[float, float]], *, limit: int = 6) -> list[LoopPoint]:
    """Levels worth considering for classes with these promises (interval per iteration, probability of exceeding it).

    For each class's promise, the highest level that its occupancy leaves room for, and lower ones that leave more room
    for bursts; classes that a level leaves no room for are not admitted there.
    """
    points: dict[tuple[object, ...], LoopPoint] = {}
    bursts = any(c.burst_s for c in loop.classes)
    shares = (0.25, 0.6) if bursts else (0.0,)
    parts = (0.9, 0.75, 0.55) if bursts else (1.0,)
    for name, (target, _) in sorted(promises.items()):
        if target <= loop.step_s:
            continue
        for part in parts:
            highest = _highest_level(loop, [c for c in loop.classes if c.name == name], target, promises[name][1])
            level = loop.step_s + part * (highest - loop.step_s) if math.isfinite(highest) else loop.step_s * 20
            admitted = tuple(
                (c.name, *promises[c.name])
                for c in loop.classes
                if c.name in promises
                and level <= _highest_level(loop, [c], *promises[c.name]) * (1 + 1e-12)
                and c.peak_bytes < loop.kv_bytes
            )
            for share in shares:
                if admitted and level > loop.step_s:
                    point = LoopPoint(level_s=level, burst_share=share, promised=admitted)
                    points.setdefault((round(level / loop.step_s, 3), share, admitted), point)
    return list(points.values())


def _highest_level(loop: Loop, classes: Sequence[LoopClass], target: float, eps: float) -> float:
    """Highest level at which the spread through occupancy alone keeps a class within its target."""
    if not math.isfinite(target):
        return math.inf
    z = NormalDist().inv_cdf(1.0 - eps)
    low, high = loop.step_s, target
    for _ in range(40):
        level = (low + high) / 2.0
        kept = level + z * math.sqrt(occupancy_variance(loop, classes, level)) <= target
        low, high = (level, high) if kept else (low, level)
    return low


def predicted_interval(
    loop: Loop, flows: Mapping[str, float], replicas: int, name: str, probability: float
) -> tuple[float, float]:
    """Mean and quantile over requests of class ``name`` of the mean iteration time, seconds."""
    n = replicas * loop.lanes
    classes = [c for c in loop.classes if flows.get(c.name, 0.0) > 0]
    work = sum(flows[c.name] * c.work_s for c in classes)
    if work >= n:
        return math.inf, math.inf
    mean = n * loop.step_s / (n - work)
    own = next(c for c in loop.classes if c.name == name)
    if own.averaging_steps <= 0:
        return mean, mean
    burst = sum(flows[c.name] * c.burst_s for c in classes) / n
    second = sum(flows[c.name] * c.burst_second for c in classes) / n
    variance = mean * second / own.averaging_steps / max(1e-9, 1.0 - burst) ** 2
    variance += occupancy_variance(loop, classes, mean)
    return mean, mean + NormalDist().inv_cdf(probability) * math.sqrt(variance)
