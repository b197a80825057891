"""Loop rows and predictions against closed results and against iteration-level simulation."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from epd_models.loop import (
    IntervalTarget,
    Loop,
    LoopClass,
    LoopPoint,
    behind_s,
    best_levels,
    memory_headroom,
    predicted_interval,
    predicted_occupancy,
    prefill_service,
)
from epd_models.queueing import ServiceMoments, waiting_points
from support.loop_simulation import Arrivals, Result, Timing, simulate_loop
from support.queue_simulation import Array, Sampler

TIMING = Timing(step=0.008, per_sequence=5e-5, per_context=1e-8, budget=2048)
PREFILL = 5e-5
"""Seconds per prompt token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A class of requests: relative rate, prompt, output, and images of 10 ms in line where ``images`` > 0."""

    rate: float = 1.0
    prompt: int = 0
    output: int = 300
    encode: float = 0.0
    images: int = 0
    scv: float = 1.0
    vary: bool = False

    def encode_sampler(self) -> Sampler | None:
        if self.images:
            return lambda rng, count: 0.01 * rng.integers(1, self.images + 1, count)
        return (lambda rng, count: np.full(count, self.encode)) if self.encode else None

    def output_sampler(self) -> Sampler:
        if self.vary:
            return lambda rng, count: rng.geometric(1.0 / self.output, count).astype(float)
        return lambda rng, count: np.full(count, float(self.output))

    def loop_class(self, name: str) -> LoopClass:
        encode = 0.01 * (self.images + 1) / 2 if self.images else self.encode
        variance = 1e-4 * (self.images**2 - 1) / 12 if self.images else 0.0
        context = self.prompt + self.output * (1.0 if self.vary else 0.5)
        prefill = self.prompt * PREFILL
        return LoopClass(
            name=name,
            output_tokens=self.output,
            decode=(self.output - 1) * (TIMING.per_sequence + TIMING.per_context * context),
            prefill=prefill,
            encode=encode,
            burst_second=(prefill + encode) ** 2 + variance,
            held=self.output * context,
            scv=self.scv,
        )


KINDS: dict[str, list[Kind]] = {
    "prompts": [Kind(prompt=2000)],
    "text and albums": [Kind(rate=3, prompt=800), Kind(prompt=2800, output=1000, encode=0.28)],
    "bursty prompts": [Kind(prompt=800, scv=4)],
    "images in line": [Kind(prompt=500, images=19)],
    "long prompts": [Kind(prompt=8000, output=1000)],
    "decode only": [Kind()],
    "bursty decode": [Kind(scv=4)],
    "varied outputs": [Kind(vary=True)],
}


def loop_of(name: str) -> Loop:
    classes = tuple(kind.loop_class(f"class {i}") for i, kind in enumerate(KINDS[name]))
    return Loop(classes=classes, step=TIMING.step, chunk=TIMING.budget * PREFILL)


def flows_of(name: str, seconds: float) -> dict[str, float]:
    """Flows in the case's proportions that bring ``seconds`` replica-seconds per second."""
    classes = loop_of(name).classes
    unit = sum(kind.rate * c.seconds for kind, c in zip(KINDS[name], classes, strict=True))
    return {c.name: seconds * kind.rate / unit for kind, c in zip(KINDS[name], classes, strict=True)}


def run(name: str, flows: dict[str, float], replicas: int, requests: int, seed: int = 1) -> Result:
    classes = [
        Arrivals(
            rate=flows[f"class {i}"],
            prompt_tokens=kind.prompt,
            prefill_per_token=PREFILL,
            output_tokens=kind.output_sampler(),
            encode=kind.encode_sampler(),
            scv=kind.scv,
        )
        for i, kind in enumerate(KINDS[name])
    ]
    return simulate_loop(classes, TIMING, replicas, requests, seed)


def intervals(result: Result, label: int) -> Array:
    return result.interval[result.label == label]


def largest_flows(point: LoopPoint, loop: Loop, direction: dict[str, float], replicas: int) -> dict[str, float]:
    scale = math.inf
    for row in point.rows(loop):
        load = row.need(direction) - row.setup
        scale = min(scale, (replicas - row.setup) / load if load > 0 else (math.inf if row.setup <= replicas else 0.0))
    return {name: flow * max(scale, 0.0) for name, flow in direction.items()}


def test_simulator_gives_the_negative_binomial_occupancy() -> None:
    """Without prefill the batch is negative binomial: mean rho r / (1 - rho), variance over mean 1 / (1 - rho)."""
    timing = replace(TIMING, per_context=0.0, per_sequence=2e-4)
    rate = 0.5 / (299 * 2e-4)
    decode = Arrivals(rate=rate, prompt_tokens=0, prefill_per_token=0.0, output_tokens=Kind(vary=True).output_sampler())
    result = simulate_loop([decode], timing, 1, 30_000, seed=1)
    shape = 1.0 + timing.step / timing.per_sequence
    assert result.sequences.mean() == pytest.approx(0.5 * shape / 0.5, rel=0.03)
    assert result.sequences.var() / result.sequences.mean() == pytest.approx(2.0, rel=0.15)


def test_simulator_gives_the_poisson_occupancy_of_a_step_that_ignores_the_batch() -> None:
    """With a constant step the loop is M/G/inf: Poisson with mean rate * N * step."""
    timing = replace(TIMING, per_context=0.0, per_sequence=0.0)
    decode = Arrivals(rate=10.0, prompt_tokens=0, prefill_per_token=0.0, output_tokens=Kind().output_sampler())
    result = simulate_loop([decode], timing, 1, 30_000, seed=2)
    assert result.sequences.mean() == pytest.approx(10.0 * 299 * 0.008, rel=0.02)
    assert result.sequences.var() / result.sequences.mean() == pytest.approx(1.0, rel=0.1)


def test_simulator_gives_the_waits_of_one_deterministic_server() -> None:
    """Prompts as long as the budget, hardly any output: M/D/1 with service prefill + step."""
    timing = Timing(step=0.001, per_sequence=0.0, per_context=0.0, budget=1000)
    prompts = Arrivals(
        rate=50.0, prompt_tokens=1000, prefill_per_token=1e-5, output_tokens=lambda rng, count: np.full(count, 2.0)
    )
    result = simulate_loop([prompts], timing, 1, 40_000, seed=3)
    service, use = 0.011, 0.55
    assert result.first_token.mean() == pytest.approx(service + use * service / (2 * (1 - use)), rel=0.05)


@pytest.mark.parametrize("name", KINDS)
def test_predicted_intervals_match(name: str) -> None:
    """Up to three quarters of the replica-seconds, mean within 5 % (3 % without prefill), 95th percentile within 10 %.

    One replica alone up to half of them; it is looser above where prefill prevails.
    """
    loop = loop_of(name)
    bursts = loop.classes[0].burst > 0
    close = 0.05 if bursts else 0.03
    for replicas, use in ((1, 0.5), (2, 0.7), (4, 0.5), (4, 0.75) if bursts else (3, 0.65)):
        flows = flows_of(name, use * replicas)
        result = run(name, flows, replicas, 15_000 if bursts else 60_000)
        for i, c in enumerate(loop.classes):
            mean, upper = predicted_interval(loop, flows, replicas, 0.95)[c.name]
            measured = intervals(result, i)
            assert measured.mean() == pytest.approx(mean, rel=close), (replicas, use)
            if name != "varied outputs":
                assert np.quantile(measured, 0.95) == pytest.approx(upper, rel=0.10), (replicas, use)


@pytest.mark.parametrize("name", [name for name in KINDS if name != "varied outputs"])
def test_rows_hold_the_interval_and_are_tight(name: str) -> None:
    """At the largest flow the rows allow, the 95th percentile meets the target; at 12 % more flow the target breaks.

    Within 3 %, or 8 % for one replica alone.
    """
    loop = loop_of(name)
    for target_s, replicas in ((0.02, 2), (0.05, 1), (0.05, 5)):
        target = IntervalTarget(interval=target_s, probability=0.95)
        targets = {c.name: target for c in loop.classes}
        points = best_levels(loop, targets, flows_of(name, 0.7 * replicas))
        assert 1 <= len(points) <= 6
        unit = flows_of(name, 1.0)
        flows = max((largest_flows(p, loop, unit, replicas) for p in points), key=lambda f: f["class 0"])
        result = run(name, flows, replicas, 12_000)
        upper = max(float(np.quantile(intervals(result, i), 0.95)) for i in range(len(loop.classes)))
        assert upper <= (1.08 if replicas == 1 else 1.03) * target_s, (target_s, replicas)
        more = {label: 1.12 * flow for label, flow in flows.items()}
        result = run(name, more, replicas, 15_000)
        upper = max(float(np.quantile(intervals(result, i), 0.95)) for i in range(len(loop.classes)))
        assert upper > 0.99 * target_s, (target_s, replicas)


@pytest.mark.parametrize("seed", range(6))
def test_prediction_never_exceeds_the_target_where_the_rows_hold(seed: int) -> None:
    """For any flows that meet a point's rows, at any share of prefill below its cap, the prediction meets the target."""
    rng = np.random.default_rng(seed)
    name = list(KINDS)[seed]
    loop = loop_of(name)
    targets = {c.name: IntervalTarget(interval=0.04, probability=0.95) for c in loop.classes}
    for point in best_levels(loop, targets, flows_of(name, 6.0)):
        for replicas in (point.minimum_replicas, 3 * point.minimum_replicas):
            direction = {c.name: float(rng.uniform(0.05, 1.0)) for c in loop.classes}
            flows = largest_flows(point, loop, direction, replicas)
            for _, upper in predicted_interval(loop, flows, replicas, 0.95).values():
                assert upper <= 0.04 * 1.01, (point, replicas)


def test_a_decode_pool_needs_room_for_its_own_occupancy() -> None:
    """At the level of the target itself, without prefill, more than one request in four misses the target."""
    loop = loop_of("decode only")
    flows = {"class 0": (1.0 - loop.step / 0.02) / loop.classes[0].seconds}
    result = run("decode only", flows, 1, 15_000)
    assert np.mean(result.interval > 0.02) > 0.25


def first_token_lateness(name: str, replicas: int, over: float, eps: float) -> float:
    """Largest P(TTFT > wait + own) / eps when the waiting rows just hold, own as loops plan it (`behind_s`)."""
    loop, unit = loop_of(name), flows_of(name, 1.0)
    kinds, level = KINDS[name], 0.04

    def services() -> list[ServiceMoments]:
        result = []
        for kind, c in zip(kinds, loop.classes, strict=True):
            images = [0.01 * k for k in range(1, kind.images + 1)] or [kind.encode]
            values = tuple(image + c.prefill * prefill_service(loop, level) for image in images)
            result.append(ServiceMoments(name=c.name, values=values, weights=(1 / len(values),) * len(values)))
        return result

    served = services()
    mean = sum(unit[s.name] * s.mean for s in served) / sum(unit.values())
    wait = over * mean
    points = waiting_points(served, wait / math.log(1 / eps), flows_of(name, 0.8 * replicas), tail=eps)
    flows = dict.fromkeys(unit, 0.0)
    for point in points:
        scale = min(
            (replicas - row.setup) / max(row.need(unit) - row.setup, 1e-12) if row.load else math.inf
            for row in point.rows(served)
        )
        cap = (1.0 - loop.step / level) * replicas
        if point.minimum_replicas <= replicas and min(scale, cap) > flows["class 0"] / unit["class 0"]:
            flows = {label: flow * min(scale, cap) for label, flow in unit.items()}
    share = sum(flows[c.name] * c.burst for c in loop.classes) / replicas
    result = run(name, flows, replicas, 8_000)
    worst = 0.0
    for i, (kind, c) in enumerate(zip(kinds, loop.classes, strict=True)):
        chosen = result.label == i
        own = c.prefill + (math.ceil(kind.prompt / TIMING.budget) + 1) * level + behind_s(loop, share * wait)
        late = result.first_token[chosen] - (result.own_work[chosen] - c.prefill) > wait + own
        worst = max(worst, float(late.mean()) / eps)
    return worst


@pytest.mark.parametrize("name", ["prompts", "text and albums", "images in line", "long prompts"])
def test_first_tokens_come_in_time_where_the_waiting_rows_hold(name: str) -> None:
    """P(TTFT > wait + own) <= 1.2 eps with services encode + prefill * (chunk + level) / chunk."""
    for replicas in (1, 2, 5):
        for over in (0.5, 2.0):
            assert first_token_lateness(name, replicas, over, 0.05) <= 1.2, (replicas, over)


@pytest.mark.parametrize("name", ["prompts", "bursty prompts", "decode only"])
def test_memory_overflows_no_oftener_than_asked(name: str) -> None:
    """Filled in the mean up to the headroom, one replica overflows with at most the probability asked for."""
    loop, kind = loop_of(name), KINDS[name][0]
    flows = flows_of(name, 0.65)
    found = predicted_occupancy(loop, flows, 1)
    mean = kind.prompt + kind.output / 2
    sequence = (mean**2 + kind.output**2 / 12) / mean
    memory = found.held_bytes
    for _ in range(60):
        filled = memory * memory_headroom(
            memory_bytes=memory, sequence_bytes=sequence, dispersion=found.dispersion, probability=0.01
        )
        memory *= found.held_bytes / filled
    result = run(name, flows, 1, 40_000)
    overflow = float(np.mean(result.context > memory))
    assert overflow <= 0.012
    assert float(np.mean(result.context > 0.6 * memory)) > 0.01


def test_occupancy_agrees_with_the_mean_interval() -> None:
    """Little's law: sequences in flight = rate * tokens * interval."""
    loop, flows = loop_of("text and albums"), flows_of("text and albums", 1.4)
    tokens = sum(flows[c.name] * c.output_tokens for c in loop.classes)
    interval = predicted_interval(loop, flows, 2, 0.5)["class 0"][0]
    assert predicted_occupancy(loop, flows, 2).sequences == pytest.approx(tokens * interval / 2)


def test_lanes_divide_time_but_not_memory() -> None:
    """Two lanes halve a replica's time row; memory and sequence limits are the replica's."""
    target = {"class 0": IntervalTarget(interval=0.04, probability=0.95)}
    one = replace(loop_of("decode only"), memory_bytes=1e6, max_sequences=64.0)
    point = best_levels(one, target, {"class 0": 10.0})[0]
    rows = {row.kind: dict(row.load)["class 0"] for row in point.rows(one) if row.load}
    halved = {row.kind: dict(row.load)["class 0"] for row in point.rows(replace(one, lanes=2)) if row.load}
    c = one.classes[0]
    assert halved["time"] == pytest.approx(rows["time"] / 2)
    assert halved["kv_memory"] == pytest.approx(c.seconds / 2 + one.step * c.held / 1e6)
    assert halved["sequences"] == pytest.approx(c.seconds / 2 + one.step * c.output_tokens / 64.0)


def test_unreachable_targets_have_no_level() -> None:
    """A target below the shortest interval gives no operating point; a point out of reach says so."""
    loop = loop_of("prompts")
    target = IntervalTarget(interval=0.0079, probability=0.95)
    assert best_levels(loop, {"class 0": target}, {"class 0": 1.0}) == []
    point = LoopPoint(level=0.02, share=0.3, minimum_replicas=1, pooled=True, promised=(("class 0", target),))
    with pytest.raises(ValueError, match="out of reach at level"):
        point.rows(loop)


def test_an_overloaded_loop_has_no_interval() -> None:
    """Beyond its replica-seconds a pool has no finite interval and no finite occupancy."""
    loop, flows = loop_of("prompts"), flows_of("prompts", 2.5)
    assert predicted_interval(loop, flows, 2, 0.95)["class 0"] == (math.inf, math.inf)
    assert predicted_occupancy(loop, flows, 2).sequences == math.inf
