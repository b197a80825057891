"""What runs at a fixed concurrency say about the stages of a worker.

A run gives two times, of the first token and between tokens, in which stages, queues and habits of the benchmark are mixed.

Prompts first: all runs of one prompt length share the ratio of its prefill, and for this purpose one ratio of their
iterations. Both are the most likely ones (Gauss-Newton on the closed-loop model of :mod:`epd_models.serving`): intervals
between tokens, in which the share of prompts grows with concurrency, count with an error of 5 %, first tokens that hardly
wait for others with 15 %, both under a Cauchy loss, and ratios are expected near 1. A ratio that the runs leave as open as
it was is none.

Then iterations: each run's ratio is the one with which the model meets its interval, where iterations take most of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from epd_models.ratios import Curve, LanguageRatios, Surface
from epd_models.serving import Run, ServedTimes, closed_loop, in_flight
from epd_models.sources.analytic import Analytic
from epd_models.worker import Worker

Floats = NDArray[np.float64]

DOMINATES = 0.5
"""Least part of a time that a stage must take for the time to tell of it."""
_WIDEST = 300.0
"""Ratios beyond this or its inverse explain nothing."""


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
            self.worker,
            clients=clients,
            prompt_tokens=self.run.prompt_tokens,
            output_tokens=self.run.output_tokens,
            max_sequences=self.run.max_sequences,
        )
        return held / self.worker.cut.pipeline

    @property
    def context(self) -> float:
        """Mean tokens of context of a sequence."""
        return self.run.prompt_tokens + self.run.output_tokens / 2.0

    def hardly_waits(self) -> bool:
        """Whether most of its first token is its own prompt's and the engine's time, not that of prompts before it."""
        lone = replace(self.run, concurrency=float(self.run.decode.replicas))
        return closed_loop(lone).ttft_s >= DOMINATES * closed_loop(self.run).ttft_s

    def iteration_ratio(self, prompts: Curve | None) -> float | None:
        """Ratio of an iteration, prompts taking what ``prompts`` says; None where the interval is mostly theirs, or nothing
        explains it."""
        if self.itl_s is None:
            return None
        if self.times(2.0, prompts).itl_s / self.times(1.0, prompts).itl_s - 1.0 < DOMINATES:
            return None
        return _solved(lambda r: self.times(r, prompts).itl_s, self.itl_s)

    def times(self, iterations: float, prompts: Curve | None) -> ServedTimes:
        """What the closed-loop model predicts with these ratios."""
        source = _Multiplied(iterations, prompts)
        group = replace(self.run.decode, worker=replace(self.worker, source=source))
        return closed_loop(replace(self.run, decode=group))


_INTERVAL, _FIRST, _SCALE = 0.05, 0.15, 2.0
"""Errors of the closed-loop model's intervals and first tokens, relative, and how many of them a run may be off before it
counts less."""
_EXPECTED = np.array([1.0, 0.4])
"""Spread of the logarithm of the ratios of iterations and prompts that is expected before any run."""
_TOLD = 0.5
"""Part of that spread that runs must bring the ratio of prompts below to have told something of it."""


def prompt_ratios(runs: Sequence[LoopRun]) -> dict[float, float]:
    """Ratios of prefill by prompt length, for the lengths whose runs tell of it; the runs are of one worker."""
    found = {}
    for length in sorted({run.run.prompt_tokens for run in runs}):
        ratio = _prompt_ratio([run for run in runs if run.run.prompt_tokens == length])
        if ratio is not None:
            found[length] = ratio
    return found


def _prompt_ratio(runs: Sequence[LoopRun]) -> float | None:
    waits = [not run.hardly_waits() for run in runs]

    def residuals(x: Floats) -> Floats:
        off = []
        for run, waiting in zip(runs, waits, strict=True):
            times = run.times(math.exp(x[0]), Curve.constant(math.exp(x[1])))
            off.append(0.0 if run.itl_s is None else math.log(times.itl_s / run.itl_s) / _INTERVAL)
            told = run.ttft_s is not None and not waiting
            off.append(math.log(times.ttft_s / (run.ttft_s or 1.0)) / _FIRST if told else 0.0)
        return np.array(off)

    x = np.zeros(2)
    for _ in range(_STEPS):
        here = residuals(x)
        slopes = np.column_stack([(residuals(x + d) - here) / _NUDGE for d in np.eye(2) * _NUDGE])
        weight = 1.0 / (1.0 + (here / _SCALE) ** 2)
        information = slopes.T @ (weight[:, None] * slopes) + np.diag(_EXPECTED**-2)
        change = np.linalg.solve(information, slopes.T @ (weight * here) + x / _EXPECTED**2)
        x = x - np.clip(change, -0.7, 0.7)
        if float(np.abs(change).max()) < 1e-5:
            break
    left = math.sqrt(float(np.linalg.inv(information)[1, 1]))
    return math.exp(float(x[1])) if left < _TOLD * float(_EXPECTED[1]) else None


_STEPS, _NUDGE = 12, 1e-3


def _solved(time: Callable[[float], float], wanted: float) -> float | None:
    """The ratio at which a time that is affine in it comes to ``wanted``; None where none within reason does."""
    at_one = time(1.0)
    if math.isclose(at_one, wanted, rel_tol=1e-7):
        return 1.0
    ratio = 1.0 + (wanted - at_one) / (time(2.0) - at_one)
    return ratio if 1.0 / _WIDEST < ratio < _WIDEST else None
