"""A lane's iterations, worked by hand and against a plain loop that does one at a time."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

from epd_opt.simulate.clock import Clock
from epd_opt.simulate.lane import SEQUENCE_S, Lane
from support.lanes import PlainTimes, Witness, job, through_lane


def test_one_request_by_hand() -> None:
    """A prompt of 10 tokens at 1 s each and a chunk of 2 s, then three iterations of 5 s + 0.1 s per token of context."""
    one = job(0.0, 10, output=4)
    times = PlainTimes(fixed=5.0, per_context=0.1, per_prompt_token=1.0, per_chunk=2.0)
    seen, lane = through_lane(times, [one], decodes=True)
    assert one.first_s == pytest.approx(12.0)
    assert seen.done[one] == pytest.approx(12.0 + 3 * 5.0 + 0.1 * (10 + 11 + 12))
    assert one.gap_s == pytest.approx(5.0 + 0.1 * 12)
    assert lane.busy_s == pytest.approx(seen.done[one])


def test_a_prompt_joins_at_the_end_of_the_iteration_under_way() -> None:
    """It comes at 7.5 s, in the second iteration of 5 s; the third carries it, stalls the first request and is its gap."""
    early, late = job(0.0, 1, output=5), job(7.5, 3, output=1)
    seen, _ = through_lane(PlainTimes(fixed=5.0, per_prompt_token=1.0), [early, late], decodes=True)
    assert early.first_s == pytest.approx(1.0)
    assert late.first_s == pytest.approx(11.0 + 5.0 + 3.0)
    assert seen.done[early] == pytest.approx(1.0 + 4 * 5.0 + 3.0)
    assert early.gap_s == pytest.approx(8.0)


def test_prompts_are_cut_by_the_budget() -> None:
    """Six and five tokens at a budget of four take three iterations: 4, then 2 and 2, then 3."""
    first, second = job(0.0, 6), job(0.0, 5)
    times = PlainTimes(per_prompt_token=1.0, per_chunk=10.0, budget=4)
    through_lane(times, [first, second], decodes=True)
    assert first.first_s == pytest.approx(2 * 10.0 + 8.0)
    assert second.first_s == pytest.approx(3 * 10.0 + 11.0)


def test_memory_admits_and_preempts_by_hand() -> None:
    """Room for 12 tokens, prompts of 4 read in 1 s, iterations of 1 s.

    0-1 s the old one is read, 1-3 s the young one beside its first iteration; the third would need 9 + 2 + 4 tokens and
    waits. 3-4 s both decode; at 4 s 11 tokens are held and the next iteration would add 2, so the young one gives way with 2
    tokens out. 4-7 s the old one makes its last three. Then 4 + 2 tokens of the young one and 4 of the third are read
    in 2.5 s, and the young one lacks three more iterations.
    """
    old, young, third = job(0.0, 4, output=6), job(0.0, 4, output=6), job(0.0, 4, output=1)
    times = PlainTimes(fixed=1.0, per_prompt_token=0.25, per_token=1.0, capacity=12.0)
    seen, lane = through_lane(times, [old, young, third], decodes=True)
    assert [one.first_s for one in (old, young, third)] == pytest.approx([1.0, 3.0, 9.5])
    assert [seen.done[one] for one in (old, young, third)] == pytest.approx([7.0, 12.5, 9.5])
    assert young.gap_s == pytest.approx(5.5)
    assert lane.preemptions == 1
    assert lane.held_bytes == 0.0


def test_a_request_that_fits_nowhere_is_refused() -> None:
    """One prompt larger than the memory, and one answer that outgrows it, end refused; the next is served."""
    large, growing, small = job(0.0, 20), job(1.0, 5, output=50), job(2.0, 5)
    times = PlainTimes(fixed=1.0, per_prompt_token=0.1, per_token=1.0, capacity=12.0)
    seen, _ = through_lane(times, [large, growing, small], decodes=True)
    assert set(seen.lost) == {large, growing}
    assert set(seen.done) == {small}


def test_sliding_windows_stop_growing() -> None:
    """Context counts up to a window of 3 tokens: iterations of 1 + 0.1 * 2, then 1 + 0.1 * 3 each."""
    one = job(0.0, 2, output=6)
    times = PlainTimes(fixed=1.0, windows=((3.0, 0.1, 0.0),))
    seen, _ = through_lane(times, [one], decodes=True)
    assert seen.done[one] == pytest.approx(5 * 1.0 + 0.1 * (2 + 3 + 3 + 3 + 3))


def one_by_one(times: PlainTimes, arrivals: list[float], prompts: list[int], outputs: list[int]) -> tuple[list, list, list]:
    """The same loop, iteration by iteration."""
    count, now, iteration, context = len(arrivals), 0.0, 0, 0.0
    first, done, gap, last = [0.0] * count, [0.0] * count, [0.0] * count, [0.0] * count
    left, running, queue, came = list(map(float, prompts)), [], [], 0
    while came < count or running or queue:
        while came < count and arrivals[came] <= now + 1e-12:
            queue.append(came)
            came += 1
        if not running and not queue:
            now = arrivals[came]
            continue
        batch = len(running)
        seconds = times.fixed + batch * times.each + times.per_context * context if batch else times.per_chunk
        budget, read = times.budget, []
        while queue and budget > 0:
            i = queue[0]
            taken = min(left[i], budget)
            seconds += taken * times.per_prompt_token
            left[i] -= taken
            budget -= taken
            if left[i] > 0:
                break
            read.append(queue.pop(0))
        now += seconds
        iteration += 1
        context += batch
        for _, i in running:
            gap[i], last[i] = max(gap[i], now - last[i]), now
        while running and running[0][0] <= iteration:
            _, i = heapq.heappop(running)
            done[i] = now
            context -= prompts[i] + outputs[i] - 1
        for i in read:
            first[i] = last[i] = now
            heapq.heappush(running, (iteration + outputs[i] - 1, i))
            context += prompts[i]
    return first, done, gap


def test_stretches_agree_with_single_iterations() -> None:
    """Three hundred random requests get the same times to nine digits as in a loop over single iterations."""
    rng = np.random.default_rng(4)
    arrivals = np.cumsum(rng.exponential(0.6, 300)).tolist()
    prompts = rng.integers(1, 60, 300).tolist()
    outputs = rng.integers(2, 40, 300).tolist()
    times = PlainTimes(fixed=0.05, each=0.002, per_context=1e-4, per_prompt_token=0.004, per_chunk=0.04, budget=32)
    jobs = [job(at, prompt, output) for at, prompt, output in zip(arrivals, prompts, outputs, strict=True)]
    seen, _ = through_lane(times, jobs, decodes=True)
    first, done, gap = one_by_one(times, arrivals, prompts, outputs)
    assert [one.first_s for one in jobs] == pytest.approx(first, rel=1e-9)
    assert [seen.done[one] for one in jobs] == pytest.approx(done, rel=1e-9)
    assert [one.gap_s for one in jobs] == pytest.approx(gap, rel=1e-9)


def test_a_lane_in_the_middle_of_a_prompt_is_not_idle() -> None:
    """Ten seconds of reading, of which four have passed, and another prompt of five: eleven seconds before the next one."""
    clock = Clock()
    lane = Lane(clock, PlainTimes(per_prompt_token=1.0), Witness(), decodes=True)
    for one in (job(0.0, 10), job(0.0, 5)):
        lane.expect(one)
        lane.accept(0.0, one)
    clock.run_until(4.0)
    assert lane.load_s(4.0) == pytest.approx(6.0 + 5.0 + 2 * SEQUENCE_S)
    clock.run_until(20.0)
    assert lane.load_s(20.0) == 0.0
