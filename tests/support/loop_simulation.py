"""Replicas that batch continuously, iteration by iteration: the judge of the loop's rows.

An iteration decodes every sequence in flight by one token and reads prompts in order of arrival up to a budget of
tokens; the images of a prompt are encoded in one piece when its turn comes. All prompts finished in an iteration emit
their first token at its end. Requests go to the replica with least prompt work, then fewest sequences.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from support.queue_simulation import Array, Sampler, Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds of an iteration: ``step`` + ``per_sequence`` * batch + ``per_context`` * context tokens, plus prompts."""

    step: float
    per_sequence: float
    per_context: float
    budget: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """Requests of one class."""

    rate: float
    prompt_tokens: int
    prefill_per_token: float
    output_tokens: Sampler
    encode: Sampler | None = None
    scv: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One entry per request, warm-up and tail cut off; the last two are what an arrival finds on one replica."""

    label: NDArray[np.int64]
    interval: Array
    first_token: Array
    own_work: Array
    sequences: Array
    context: Array


@dataclass(slots=True)
class _Replica:
    now: float = 0.0
    iteration: int = 0
    context: float = 0.0
    prompt_context: float = 0.0
    work: float = 0.0
    in_flight: list[tuple[int, int]] = field(default_factory=list)
    queue: deque[int] = field(default_factory=deque)
    left: float = 0.0
    encoded: bool = False


def simulate_loop(classes: Sequence[Arrivals], timing: Timing, replicas: int, requests: int, seed: int) -> Result:
    """About ``requests`` requests through ``replicas`` replicas."""
    rng = np.random.default_rng(seed)
    horizon = requests / sum(c.rate for c in classes)
    parts = []
    for label, c in enumerate(classes):
        times = Stream(rate=c.rate, scv=c.scv, service=c.output_tokens).arrivals(rng, horizon)
        count = len(times)
        output = np.maximum(np.round(c.output_tokens(rng, count)), 2)
        encode = c.encode(rng, count) if c.encode else np.zeros(count)
        columns = (times, output, encode, np.full(count, float(label)))
        parts.append(np.stack(columns))
    merged = np.concatenate(parts, axis=1)
    merged = merged[:, np.argsort(merged[0], kind="stable")]
    arrival, output, encode, label = (row.tolist() for row in merged)
    prompt = [float(classes[int(i)].prompt_tokens) for i in label]
    per_token = [classes[int(i)].prefill_per_token for i in label]
    count = len(arrival)
    first, done = [0.0] * count, [0.0] * count
    seen_sequences, seen_context = [0.0] * count, [0.0] * count
    pool = [_Replica() for _ in range(replicas)]

    step, per_sequence, per_context, whole = timing.step, timing.per_sequence, timing.per_context, float(timing.budget)

    def advance(r: _Replica, until: float) -> None:
        now, iteration, context, in_flight, queue = r.now, r.iteration, r.context, r.in_flight, r.queue
        finished: list[int] = []
        while now <= until and (in_flight or queue):
            batch = len(in_flight)
            seconds = step + per_sequence * batch + per_context * context
            if queue:
                budget = whole
                while queue and budget > 0 and arrival[queue[0]] <= now:
                    i = queue[0]
                    if not r.encoded:
                        seconds += encode[i]
                        r.encoded, r.left = True, prompt[i]
                    tokens = min(r.left, budget)
                    seconds += tokens * per_token[i]
                    r.left -= tokens
                    r.prompt_context += tokens
                    budget -= tokens
                    if r.left <= 0:
                        finished.append(queue.popleft())
                        r.encoded = False
                        r.work -= prompt[i] * per_token[i] + encode[i]
                        r.prompt_context -= prompt[i]
            now += seconds
            iteration += 1
            context += batch
            while in_flight and in_flight[0][0] <= iteration:
                _, i = heapq.heappop(in_flight)
                done[i] = now
                context -= prompt[i] + output[i] - 1
            if finished:
                for i in finished:
                    first[i] = now
                    heapq.heappush(in_flight, (iteration + int(output[i]) - 1, i))
                    context += prompt[i]
                finished.clear()
        r.now, r.iteration, r.context = now, iteration, context

    for i in range(count):
        at = arrival[i]
        for r in pool:
            if r.now <= at:
                advance(r, at)
        chosen = min(pool, key=lambda r: r.work + 1e-3 * (len(r.in_flight) + len(r.queue)))
        looked_at = pool[i % replicas]
        seen_sequences[i] = float(len(looked_at.in_flight))
        seen_context[i] = looked_at.context + looked_at.prompt_context
        chosen.now = max(chosen.now, arrival[i])
        chosen.queue.append(i)
        chosen.work += prompt[i] * per_token[i] + encode[i]
    for r in pool:
        advance(r, float("inf"))

    kept = slice(int(0.15 * count), int(0.97 * count))
    first_at, times, outputs = np.array(first), np.array(arrival), np.array(output)
    return Result(
        label=np.array(label, dtype=np.int64)[kept],
        interval=((np.array(done) - first_at) / (outputs - 1))[kept],
        first_token=(first_at - times)[kept],
        own_work=(np.array(prompt) * np.array(per_token) + np.array(encode))[kept],
        sequences=np.array(seen_sequences)[kept],
        context=np.array(seen_context)[kept],
    )
