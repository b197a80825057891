"""What runs at a fixed concurrency say about the stages of a worker.

A run gives two times, of the first token and between tokens, in which stages, queues and habits of the benchmark are mixed.
Each ratio is the one with which the closed-loop model (:mod:`epd_models.serving`) meets the measured time, and it is read
off only where the stage dominates: the interval of runs in which iterations, not prompts, take most of it; the first token
of runs in which it mostly waits for its own prompt.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from epd_models.ratios import Curve, LanguageRatios, Surface
from epd_models.serving import Run, closed_loop, in_flight
from epd_models.sources.analytic import Analytic
from epd_models.worker import Worker

DOMINATES = 0.5
"""Least part of a time that a stage must take for the time to tell of it."""
_WIDEST = 300.0
"""Ratios are sought between this and its inverse."""


@dataclass(frozen=True, slots=True)
class _Multiplied(Analytic):
    """The model with the same ratio for all iterations, and a curve for prompts."""

    iterations: float = 1.0
    prompts: Curve | None = None

    def language(self, worker: Worker) -> LanguageRatios:
        """As given."""
        whole = 1.0 if self.prompts is None else min(self.prompts.ratios)
        return LanguageRatios(decode=Surface.constant(self.iterations), prefill=self.prompts, per_chunk=whole)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRun:
    """A run of one group of aggregated workers with its measured times, seconds; None where there is none."""

    run: Run
    ttft_s: float | None
    itl_s: float | None

    @property
    def worker(self) -> Worker:
        """The worker, without a source."""
        return self.run.decode.worker

    @property
    def batch(self) -> float:
        """Sequences that decode together in one lane."""
        clients = self.run.concurrency / self.run.decode.replicas
        held = in_flight(
            self.worker, clients=clients, prompt_tokens=self.run.prompt_tokens, output_tokens=self.run.output_tokens
        )
        return held / self.worker.cut.pipeline

    @property
    def context(self) -> float:
        """Mean tokens of context of a sequence."""
        return self.run.prompt_tokens + self.run.output_tokens / 2.0

    def prompt_ratio(self) -> float | None:
        """Ratio of the prompt's prefill; None where its first token mostly waits for others, or nothing explains it."""
        if self.ttft_s is None or self.ttft_s <= 0.0:
            return None
        lone = replace(self.run, concurrency=float(self.run.decode.replicas))
        if closed_loop(lone).ttft_s < DOMINATES * closed_loop(self.run).ttft_s:
            return None
        ratio, pace = 1.0, 1.0
        for _ in range(3):
            found = _solved(lambda r, at=pace: self._times(at, Curve.constant(r)).ttft_s, self.ttft_s)  # type: ignore[misc]
            if found is None:
                return None
            ratio = found
            if self.itl_s is None:
                return ratio
            paced = _solved(lambda r, at=ratio: self._times(r, Curve.constant(at)).itl_s, self.itl_s)  # type: ignore[misc]
            if paced is None or math.isclose(paced, pace, rel_tol=1e-6):
                break
            pace = paced
        return ratio

    def iteration_ratio(self, prompts: Curve | None) -> float | None:
        """Ratio of an iteration, prompts taking what ``prompts`` says; None where the interval is mostly theirs, or nothing
        explains it."""
        if self.itl_s is None or self.itl_s <= 0.0:
            return None
        step = self._times(1.0, prompts).itl_s
        if (self._times(1.01, prompts).itl_s / step - 1.0) / 0.01 < DOMINATES:
            return None
        return _solved(lambda r: self._times(r, prompts).itl_s, self.itl_s)

    def _times(self, iterations: float, prompts: Curve | None):  # type: ignore[no-untyped-def]
        source = _Multiplied(iterations, prompts)
        group = replace(self.run.decode, worker=replace(self.worker, source=source))
        return closed_loop(replace(self.run, decode=group))


def _solved(time: Callable[[float], float], wanted: float) -> float | None:
    """The ratio at which a time that grows with it comes to ``wanted``; None where none within reason does."""
    if math.isclose(time(1.0), wanted, rel_tol=1e-7):
        return 1.0
    low, high = -math.log(_WIDEST), math.log(_WIDEST)
    at_low, at_high = time(math.exp(low)) - wanted, time(math.exp(high)) - wanted
    if at_low > 0.0 or at_high < 0.0:
        return None
    for _ in range(60):
        middle = (low + high) / 2.0
        if time(math.exp(middle)) > wanted:
            high = middle
        else:
            low = middle
        if high - low < 1e-8:
            break
    return math.exp((low + high) / 2.0)
