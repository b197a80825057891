"""An instance that nothing can serve says which limit stands in the way, what was wanted, and what could be had."""

from __future__ import annotations

from typing import Any

import pytest

from epd_opt import solve
from epd_opt.document import Reason

A100 = {"sku": "A100-80-SXM", "price": {"usd_per_hour": 1.9}, "tensor_parallel": [1]}


def chat(**changes: Any) -> dict[str, Any]:
    """A workload of one class of text."""
    slo = {"ttft_ms": 1500, "itl_ms": 60} | changes.pop("slo", {})
    return {"classes": [{"name": "chat", "rate_per_s": 12, "text_tokens": 800, "output_tokens": 200, "slo": slo, **changes}]}


def instance(**changes: Any) -> dict[str, Any]:
    """A dense 8B model on one kind of GPU; feasible as it stands."""
    return {
        "schema": "epd-opt/instance/v1",
        "model": "Qwen3-8B",
        "engine": "vllm",
        "workload": chat(),
        "devices": [A100],
        "placements": ["prefill_decode"],
        "solver": {"gap": 0.0, "threads": 1},
        **changes,
    }


def reason(**changes: Any) -> Reason:
    """The only reason given."""
    plan = solve(instance(**changes))
    assert plan.status == "infeasible"
    assert (plan.pools, plan.cost) == ([], None)
    (only,) = plan.infeasibility.reasons
    assert isinstance(only, Reason)
    return only


def test_the_instance_itself_is_feasible() -> None:
    """Each test below takes one thing away from something that works."""
    assert solve(instance()).status == "optimal"


def test_memory_for_weights() -> None:
    """A 70B model in BF16 does not fit 80 GB: the weights alone take 131 GiB of 72 GiB."""
    found = reason(model="Llama-3.1-70B")
    assert found.limit == "memory"
    assert found.wanted == pytest.approx(145.7e9, rel=0.01)
    assert found.best_reachable == pytest.approx(80 * 2**30 * 0.9, rel=0.1)
    assert "weights 131" in found.text


def test_memory_for_one_long_request() -> None:
    """Weights fit an L4, the KV cache of a 30,000-token prompt does not."""
    l4 = {"sku": "L4", "price": {"usd_per_hour": 0.7}, "tensor_parallel": [1]}
    found = reason(devices=[l4], workload=chat(text_tokens=30_000))
    assert (found.limit, found.request_class) == ("memory", "chat")
    assert found.wanted == pytest.approx(30_200 * 36 * 2 * 8 * 128 * 2, rel=0.01)
    assert found.best_reachable is not None
    assert found.wanted is not None
    assert found.best_reachable < found.wanted


@pytest.mark.parametrize("key", ["ttft_ms", "itl_ms"])
def test_times(key: str) -> None:
    """A target that no pool meets names the best one that a pool does; two per cent above it, there is a plan."""
    found = reason(workload=chat(slo={key: 2}))
    assert (found.limit, found.request_class, found.wanted) == (key, "chat", 2.0)
    assert found.best_reachable is not None
    assert found.best_reachable > 2.0
    assert reason(workload=chat(slo={key: found.best_reachable * 0.99})).limit == key
    assert solve(instance(workload=chat(slo={key: found.best_reachable * 1.02}))).status == "optimal"


def test_times_of_split_stages() -> None:
    """With prefill and decode apart, the best TTFT includes the hand-over and the first decode step."""
    apart = {"placements": ["prefill", "decode"]}
    found = reason(workload=chat(slo={"ttft_ms": 100}), **apart)
    assert (found.limit, found.wanted) == ("ttft_ms", 100.0)
    assert found.best_reachable is not None
    tight = reason(workload=chat(slo={"ttft_ms": found.best_reachable * 1.005}), **apart)
    assert "leaves too little for its waits" in tight.text
    assert solve(instance(workload=chat(slo={"ttft_ms": found.best_reachable * 2}), **apart)).status == "optimal"


def test_end_to_end() -> None:
    """The interval asked for is within reach; 200 tokens in a third of a second are not."""
    found = reason(workload=chat(slo={"e2e_ms": 300}))
    assert (found.limit, found.request_class, found.wanted) == ("e2e_ms", "chat", 300.0)
    assert found.best_reachable is not None
    assert found.best_reachable > 1000.0
    assert "200 output tokens take at least" in found.text


@pytest.mark.parametrize(("key", "hint"), [("ttft_ms", "for 0.5 s write 500"), ("itl_ms", "for 0.05 s write 50")])
def test_seconds_taken_for_milliseconds(key: str, hint: str) -> None:
    """A target typed in seconds is infeasible, and the reason says what was probably meant."""
    found = reason(workload=chat(slo={key: 0.5 if key == "ttft_ms" else 0.05}))
    assert found.limit == key
    assert hint in found.text


BUSY = chat(rate_per_s=100)


def with_limit(limit: str, value: float) -> dict[str, Any]:
    """The busy instance under one limit."""
    if limit == "stock":
        return {"workload": BUSY, "devices": [{**A100, "stock": int(value)}]}
    return {"workload": BUSY, "limits": {limit: value}}


@pytest.mark.parametrize(("limit", "value"), [("stock", 1), ("devices", 1), ("usd_per_hour", 2), ("power_kw", 0.5)])
def test_limits_of_the_fleet(limit: str, value: float) -> None:
    """The least value that would do is exact: with it there is a plan, a little below there is none."""
    found = reason(**with_limit(limit, value))
    assert (found.limit, found.request_class, found.wanted) == (limit, None, value)
    least = found.best_reachable
    assert least is not None
    assert solve(instance(**with_limit(limit, least))).status == "optimal"
    below = least - 1 if limit in ("stock", "devices") else least * 0.99
    assert reason(**with_limit(limit, below)).limit == limit


def test_minimum_order() -> None:
    """Four units would do, and the stock holds four, but they come in lots of eight."""
    lots = {**A100, "price": {"usd_per_hour": 1.9, "pack": 8}, "stock": 4}
    found = reason(devices=[lots])
    assert (found.limit, found.wanted, found.best_reachable) == ("minimum_order", 4.0, 8.0)
    assert "lots of 8" in found.text


def test_two_limits_at_once() -> None:
    """Where lifting no single limit helps, the reasons are those that must give way, and no others."""
    document = instance(
        workload=BUSY, devices=[{**A100, "stock": 1}], limits={"usd_per_hour": 2, "devices": 1000, "power_kw": 1000}
    )
    found = solve(document).infeasibility.reasons
    assert [(r.limit, r.wanted) for r in found] == [("stock", 1.0), ("usd_per_hour", 2.0)]
    assert "raising it alone is not enough; together with limits.usd_per_hour" in found[0].text
    (listed,) = solve(document, mends=False).infeasibility.reasons
    assert "stock of A100-80-SXM, limits.usd_per_hour" in listed.text


def test_each_limit_that_is_enough_alone_is_a_reason() -> None:
    """One entry is too few and another out of stock: either stock would do."""
    plan = solve(
        instance(
            workload=BUSY,
            devices=[{**A100, "stock": 1}, {**A100, "name": "other", "stock": 2}],
        )
    )
    assert [(r.limit, r.wanted) for r in plan.infeasibility.reasons] == [("stock", 1.0), ("stock", 2.0)]


def test_context_length() -> None:
    """A prompt and output beyond the model's context."""
    found = reason(workload=chat(text_tokens=60_000))
    assert (found.limit, found.request_class) == ("context_length", "chat")
    assert (found.wanted, found.best_reachable) == (60_200.0, 40_960.0)
    assert found.text.count("chat") == 1


def test_no_price() -> None:
    """The only device has no price, and the reason says where to give one."""
    found = reason(devices=[{"sku": "A100-80-SXM"}])
    assert found.limit == "no_price"
    assert "devices.A100-80-SXM.price" in found.text


def test_parallelism() -> None:
    """A tensor degree of three cuts 32 heads of nothing; the reason lists the degrees that do."""
    found = reason(devices=[{**A100, "tensor_parallel": [3]}])
    assert found.limit == "parallelism"
    assert "degrees that do: 1, 2, 4, 8" in found.text


def test_stages_that_nobody_runs() -> None:
    """Devices allowed to encode only cannot serve text."""
    found = reason(devices=[{**A100, "stages": ["encode"]}])
    assert (found.limit, found.request_class) == ("parallelism", "chat")
    assert "devices[].stages" in found.text


def test_pairs_that_may_not_exchange_kv_caches() -> None:
    """One device reads prompts, another one decodes, and the two may not exchange KV caches: this is said, not a time."""
    reader, decoder = {**A100, "stages": ["prefill"]}, {**A100, "sku": "MI300X", "stages": ["decode"]}
    apart = {"forbidden_kv_pairs": [["NVIDIA", "AMD"]]}
    found = reason(devices=[reader, decoder], placements=["prefill", "decode"], network=apart)
    assert (found.limit, found.request_class) == ("parallelism", "chat")
    assert "network.forbidden_kv_pairs" in found.text
    assert "MI300X" in found.text


def test_precision() -> None:
    """The card does not store the KV cache in the format asked for, and lists those it does."""
    found = reason(precision={"kv_cache": "fp8"})
    assert found.limit == "precision"
    assert "bf16" in found.text


def test_measured_workers_that_cover_no_class() -> None:
    """A class that no worker names is not served, and is named."""
    plan = solve(
        {
            "schema": "epd-opt/instance/v1",
            "candidates": {"modelled": False},
            "workload": {"classes": [{"name": "chat", "rate_per_s": 1}, {"name": "mail", "rate_per_s": 1}]},
            "devices": [{"sku": "A", "price": {"usd_per_hour": 1}}],
            "workers": [
                {"name": "w", "sku": "A", "devices": 1, "stages": ["prefill", "decode"], "max_rate_per_s": {"chat": 1}}
            ],
        }
    )
    assert [(r.limit, r.request_class) for r in plan.infeasibility.reasons] == [("parallelism", "mail")]
