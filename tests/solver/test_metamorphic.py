"""How the optimum must move when a problem changes, without knowing where it lies."""

from __future__ import annotations

import copy
import itertools
import math
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from epd_models.loop import predicted_occupancy
from epd_models.memory import activation_bytes, language_weights_bytes
from epd_models.parallelism import check_legal
from epd_models.precision import check_supported
from epd_opt import Instance, Plan, solve
from epd_opt.offering import offering
from epd_opt.problem import Limits, PlanningProblem
from epd_opt.resolve import resolve
from support.documents import measured, modelled
from support.problems import random_problem
from support.solving import least_cost

SLACK = 1 + 1e-6
"""Ties below the cost may move it by less than this, where work costs energy."""

quick = settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.filter_too_much])
problems = st.integers(0, 10_000).map(lambda seed: random_problem(seed, energy=seed % 2 == 1))
served = problems.filter(lambda problem: math.isfinite(least_cost(problem)))
factors = st.floats(1.01, 3.0)


def scaled_demand(problem: PlanningProblem, factor: float) -> PlanningProblem:
    """The first class grows by a factor."""
    first, *others = problem.demands
    grown = replace(first, rate=first.rate * factor, mean_rate=first.mean_rate * factor)
    return replace(problem, demands=(grown, *others))


def times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


@quick
@given(served, factors)
def test_more_demand_never_costs_less(problem: PlanningProblem, factor: float) -> None:
    """One class grows; the least cost does not fall."""
    assert least_cost(scaled_demand(problem, factor)) >= least_cost(problem) / SLACK


@quick
@given(served)
def test_a_class_less_never_costs_more(problem: PlanningProblem) -> None:
    """Without its last class, a problem costs at most as much."""
    assume(len(problem.demands) > 1)
    kept = {demand.name for demand in problem.demands[:-1]}
    fewer = [
        replace(
            c,
            arcs=tuple(a for a in c.arcs if a.request_class in kept),
            rows=tuple(replace(r, load=tuple((n, v) for n, v in r.load if n in kept)) for r in c.rows),
        )
        for c in problem.candidates
    ]
    smaller = replace(problem, demands=problem.demands[:-1], candidates=tuple(c for c in fewer if c.arcs))
    assert least_cost(smaller) <= least_cost(problem) * SLACK


@quick
@given(served, st.integers(0, 4))
def test_one_more_candidate_never_costs_more(problem: PlanningProblem, index: int) -> None:
    """Taking any candidate away does not lower the cost; a SKU is a set of candidates."""
    assume(len(problem.candidates) > 1)
    left_out = problem.candidates[index % len(problem.candidates)]
    fewer = replace(problem, candidates=tuple(c for c in problem.candidates if c is not left_out))
    assert least_cost(fewer) >= least_cost(problem) / SLACK


@quick
@given(served, st.integers(1, 4))
def test_looser_limits_never_cost_more(problem: PlanningProblem, more: int) -> None:
    """More stock, budget, power or devices leave every plan in place."""
    limits = problem.limits
    cost = least_cost(problem)
    looser = [
        replace(
            problem, offers=tuple(replace(o, stock=None if o.stock is None else o.stock + more) for o in problem.offers)
        ),
        replace(problem, limits=replace(limits, usd_per_hour=times(limits.usd_per_hour, 1.0 + more / 4))),
        replace(problem, limits=replace(limits, power_w=times(limits.power_w, 1.0 + more / 4))),
        replace(problem, limits=replace(limits, devices=None if limits.devices is None else limits.devices + more)),
        replace(problem, limits=Limits()),
        replace(problem, spare_replicas=0),
    ]
    for other in looser:
        assert least_cost(other) <= cost * SLACK


@quick
@given(served, st.sampled_from([1e-3, 0.5, 7.0, 1e4]))
def test_prices_scale_the_cost(problem: PlanningProblem, factor: float) -> None:
    """All prices, tariffs and the budget times k: the cost is k times as high, whatever the currency."""
    offers = tuple(
        replace(
            o,
            usd_per_hour=o.usd_per_hour * factor,
            used_usd_per_hour=o.used_usd_per_hour * factor,
            owned_usd_per_hour=o.owned_usd_per_hour * factor,
            busy_usd_per_unit_second=o.busy_usd_per_unit_second * factor,
        )
        for o in problem.offers
    )
    limits = replace(problem.limits, usd_per_hour=times(problem.limits.usd_per_hour, factor))
    dearer = replace(problem, offers=offers, limits=limits)
    assert least_cost(dearer) == pytest.approx(factor * least_cost(problem), rel=1e-6, abs=1e-12)


@quick
@given(served, st.sampled_from([1e-3, 60.0]))
def test_the_unit_of_time_does_not_matter(problem: PlanningProblem, factor: float) -> None:
    """Rates times k and loads over k leave the cost as it is, energy aside: small rates do not vanish in tolerances."""
    slower = replace(
        problem,
        demands=tuple(replace(d, rate=d.rate * factor, mean_rate=d.mean_rate * factor) for d in problem.demands),
        candidates=tuple(
            replace(
                c,
                rows=tuple(replace(r, load=tuple((n, v / factor) for n, v in r.load)) for r in c.rows),
                busy_s={name: seconds / factor for name, seconds in c.busy_s.items()},
            )
            for c in problem.candidates
        ),
    )
    assert least_cost(slower) == pytest.approx(least_cost(problem), rel=1e-6, abs=1e-12)


@quick
@given(problems)
def test_pruning_leaves_the_optimum(problem: PlanningProblem) -> None:
    """The cost is the same with and without candidates that pruning leaves out, infeasible problems included."""
    assert least_cost(problem) == pytest.approx(least_cost(problem, pruned=False), rel=1e-6, abs=1e-12)


def shuffled(value: Any, order: random.Random) -> Any:
    """The same document with every mapping and every list of named things in another order."""
    if isinstance(value, dict):
        items = [(key, shuffled(item, order)) for key, item in value.items()]
        order.shuffle(items)
        return dict(items)
    if isinstance(value, list):
        items = [shuffled(item, order) for item in value]
        if all(isinstance(item, dict) and {"name", "sku"} & set(item) for item in items):
            order.shuffle(items)
        return items
    return value


def essence(plan: Plan) -> dict[str, Any]:
    """Everything that is decided: pools, classes, devices and cost."""
    document = plan.to_dict()
    return {
        key: document[key] for key in ("status", "cost", "pools", "classes", "devices", "infeasibility") if key in document
    }


@pytest.mark.parametrize("seed", range(6))
def test_order_does_not_matter(seed: int) -> None:
    """Keys, classes, devices and workers in another order: the same plan to the last digit."""
    assert essence(solve(shuffled(measured(), random.Random(seed)))) == essence(solve(measured()))


def with_targets(document: dict[str, Any], key: str, factor: float) -> dict[str, Any]:
    """The document with one target of every class times a factor."""
    looser = copy.deepcopy(document)
    for request in looser["workload"]["classes"]:
        request["slo"][key] *= factor
    return looser


def hourly(document: dict[str, Any]) -> float:
    """Least cost of a document, infinite where there is no plan."""
    plan = solve(document)
    return math.inf if plan.cost is None else float(plan.cost.usd_per_hour)


A_REPLICA = 1.9
"""USD/h of the dearest replica of the modelled instance: operating points are few, so a pool's size may be off by one."""


@pytest.mark.parametrize("placements", [["integrated"], ["encode_prefill", "decode"], ["prefill_decode", "encoder_pool"]])
@pytest.mark.parametrize("key", ["ttft_ms", "itl_ms"])
def test_looser_targets_do_not_cost_more(placements: list[str], key: str) -> None:
    """Along ever looser targets the cost falls, but for a replica on the edge; the loosest costs least or the same."""
    base = modelled(placements=placements)
    costs = [hourly(with_targets(base, key, factor)) for factor in (0.25, 0.5, 1.0, 2.0)]
    assert all(after <= before + A_REPLICA * 1.001 for before, after in itertools.pairwise(costs))
    assert costs[-1] == min(costs) < costs[0]


def test_a_looser_interval_keeps_swift_loops_on_offer() -> None:
    """With a tight TTFT a pool must iterate faster than a loose interval asks for; loosening it must not take that away."""
    document = modelled(placements=["encoder_pool", "prefill_decode"])
    document["workload"]["classes"] = [
        {
            "name": "photo",
            "rate_per_s": 9.251,
            "text_tokens": 800,
            "images": {"count": 1, "width_px": 336, "height_px": 336},
            "output_tokens": 50,
            "slo": {"ttft_ms": 345, "itl_ms": 25, "percentile": 50},
            "interarrival_scv": 3,
        }
    ]
    document["devices"] = [{"sku": "MI300X", "price": {"usd_per_hour": 1.0}, "tensor_parallel": [1]}]
    assert hourly(with_targets(document, "itl_ms", 3)) <= hourly(document)


def test_few_sequences_do_not_make_a_looser_interval_dear() -> None:
    """Where the number of sequences binds, occupancy is taken at the level that is kept, not at the loosest allowed: a pool
    costs at most one level's width more at 100 ms than at 60."""
    pages = {"text_tokens": 9000, "output_tokens": 1024, "images": {"count": 10, "tokens": 256, "source_megapixels": 3.7}}
    document = {
        "schema": "epd-opt/instance/v1",
        "name": "few-sequences",
        "model": "Qwen3.5-122B-A10B",
        "engine": {"name": "vllm", "max_sequences": 128, "max_batched_tokens": 131072, "memory_fraction": 0.85},
        "precision": {"weights": "nvfp4", "kv_cache": "fp8", "encoder": "bf16"},
        "workload": {"classes": [{"name": "pages", "rate_per_s": 100, **pages, "slo": {"ttft_ms": 3000, "itl_ms": 60}}]},
        "devices": [{"sku": "GB200", "price": {"usd_per_hour": 4.54}, "tensor_parallel": [1]}],
        "placements": ["shared"],
        "network": {"gbit_per_s_per_device": 20},
    }
    assert hourly(with_targets(document, "itl_ms", 5 / 3)) <= hourly(document) * 1.03


def test_more_of_everything_costs_more_on_modelled_workers() -> None:
    """Twice and four times the rates cost no less, and less than twice and four times as much."""
    costs = []
    for factor in (1, 2, 4):
        document = modelled(placements=["integrated"])
        for request in document["workload"]["classes"]:
            request["rate_per_s"] *= factor
        costs.append(hourly(document))
    assert costs[0] <= costs[1] <= costs[2]
    assert costs[1] <= 2 * costs[0] * SLACK
    assert costs[2] <= 4 * costs[0] * SLACK


def test_one_more_sku_never_costs_more_on_modelled_workers() -> None:
    """Every SKU added to those on offer leaves the cost or lowers it; one of them is worth it."""
    base = modelled(placements=["integrated", "prefill_decode", "encoder_pool"])
    first, *others = base["devices"]
    offered, costs = [first], []
    for more in (None, *others, {"sku": "L40S", "price": {"usd_per_hour": 0.9}, "tensor_parallel": [1]}):
        offered = [*offered, more] if more else offered
        costs.append(hourly({**base, "devices": offered}))
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < costs[0]


def test_prices_scale_a_modelled_plan() -> None:
    """Everything seven times as dear: the same pools at seven times the cost."""
    base, dear = modelled(placements=["integrated"]), modelled(placements=["integrated"])
    for entry in dear["devices"]:
        entry["price"]["usd_per_hour"] *= 7
    cheap_plan, dear_plan = solve(base), solve(dear)
    assert dear_plan.cost.usd_per_hour == pytest.approx(7 * cheap_plan.cost.usd_per_hour, rel=1e-9)
    assert [(p.key, p.replicas) for p in dear_plan.pools] == [(p.key, p.replicas) for p in cheap_plan.pools]


def test_order_does_not_matter_to_modelled_workers() -> None:
    """Keys, classes and devices in another order: the same plan to the last digit."""
    base = modelled(placements=["integrated", "prefill_decode", "encoder_pool"])
    assert essence(solve(shuffled(base, random.Random(3)))) == essence(solve(base))


FITS = [
    ("Qwen3-8B", {"sku": "L40S", "tensor_parallel": [1, 2]}, {}),
    ("Qwen3-30B-A3B", {"sku": "H100-SXM", "tensor_parallel": [1, 2, 4]}, {}),
    ("Llama-3.1-70B", {"sku": "H200-SXM", "tensor_parallel": [2, 4, 8]}, {"weights": "fp8", "kv_cache": "fp8"}),
    ("DeepSeek-V3", {"sku": "H200-SXM", "parallelism": [{"tensor": 8}, {"attention_data": 8, "expert": 8}]}, {}),
    ("Qwen3.5-27B", {"sku": "H100-SXM", "tensor_parallel": [2, 4]}, {}),
    ("Llama-3.1-8B", {"sku": "RBLN-ATOM-MAX-CA25", "tensor_parallel": [4, 8]}, {}),
]


@pytest.mark.parametrize(("model", "entry", "precision"), FITS, ids=[name for name, *_ in FITS])
@pytest.mark.parametrize("placements", [["prefill_decode"], ["prefill", "decode"]], ids="-".join)
def test_no_plan_exceeds_memory_or_cuts_unevenly(
    model: str, entry: dict[str, Any], precision: dict[str, str], placements: list[str]
) -> None:
    """Weights, activations, runtime, and the KV cache held at the load that a pool carries fit every logical device; its
    degrees are legal and its formats supported."""
    slo = {"ttft_ms": 4000, "itl_ms": 100}
    chat = {"name": "chat", "rate_per_s": 8, "text_tokens": {"mean": 1500, "p95": 5000}, "output_tokens": 400, "slo": slo}
    document = {
        "schema": "epd-opt/instance/v1",
        "model": model,
        "engine": "vllm",
        "precision": precision,
        "workload": {"classes": [chat]},
        "devices": [{**entry, "price": {"usd_per_hour": 1.0}}],
        "placements": placements,
        "solver": {"gap": 0.02, "threads": 1},
    }
    resolved = resolve(Instance(**document))
    offered = offering(resolved)
    plan = solve(document)
    assert plan.pools, plan.infeasibility
    assert resolved.model is not None
    for pool in plan.pools:
        behaviour = offered.behaviours[pool.key]
        (device_entry,) = resolved.entries
        device, cut = device_entry.device, behaviour.pool.cut
        check_legal(cut, resolved.model, device)
        check_supported(device.sku, "weights", device_entry.precision.weights, device.weight_formats)
        check_supported(device.sku, "KV", device_entry.precision.kv_cache, device.kv_formats)
        fixed = (
            language_weights_bytes(resolved.model, device_entry.precision, cut)
            + activation_bytes(resolved.model, resolved.engine, cut)
            + resolved.engine.runtime_bytes
        )
        room = device.memory_bytes * resolved.engine.memory_fraction - fixed
        ranks = cut.attention_data
        assert room > 0
        assert behaviour.pool.kv_bytes <= room * ranks * (1 + 1e-9)
        if behaviour.pool.loop is not None:
            held = predicted_occupancy(behaviour.pool.loop, pool.serves, pool.replicas)
            assert held.held_bytes <= room * ranks * (1 + 1e-6)
            assert held.sequences <= resolved.engine.max_sequences * ranks * (1 + 1e-6)
