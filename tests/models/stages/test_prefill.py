"""Prefill counts two FLOPs per parameter and token and four per head dimension and attended pair, and meets public runs."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epd_models import catalog
from epd_models.parallelism import IllegalParallelism, Parallelism
from epd_models.precision import Precision, UnsupportedPrecision
from epd_models.stages.prefill import prefill_time
from epd_models.worker import Worker

IDEAL = dataclasses.replace(
    catalog.device("H100-SXM").coefficients["default"],
    bandwidth_share=1.0,
    expert_bandwidth_share=1.0,
    kv_bandwidth_share=1.0,
    prefill_share=1.0,
    expert_share=1.0,
    attention_share=1.0,
    narrow_share=1.0,
    link_share=1.0,
    step_overhead_s=0.0,
    layer_overhead_s=0.0,
    narrow_layer_overhead_s=0.0,
    latent_layer_overhead_s=0.0,
    expert_layer_overhead_s=0.0,
    expert_half_width=0.0,
    sequence_overhead_s=0.0,
    activation_passes=0.0,
    prompt_overhead_s=0.0,
    collective_latency_s=0.0,
)


def worker(name, sku="H100-SXM", *, weights="bf16", engine="vllm", coefficients=None, **degrees):
    """A worker of the catalogue; with its peaks reached where ``coefficients`` are ideal."""
    device = catalog.device(sku)
    if coefficients is not None:
        device = dataclasses.replace(device, coefficients={"default": coefficients})
    return Worker.checked(
        model=catalog.model(name),
        device=device,
        cut=Parallelism(**degrees),
        precision=Precision(weights=weights, kv_cache="bf16"),
        engine=catalog.engine(engine),
    )


def busy(time, new, cached=0.0):
    """Seconds of one prompt."""
    return float(time.busy_s(np.array([float(new)]), cached)[0])


def counted_s(layers_parameters, pair_flops, new, cached=0, peak=989e12):
    """Seconds of a prompt, its causal attention summed token by token."""
    pairs = sum(cached + token + 0.5 for token in range(new))
    return (2 * layers_parameters * new + pair_flops * pairs) / peak


@pytest.mark.parametrize(("new", "cached"), [(1, 0), (1000, 0), (1000, 7000), (8000, 0)])
def test_a_dense_prompt_is_counted_token_by_token(new, cached):
    """Llama 3.1 8B in BF16 on an ideal H100: 6.98 billion layer parameters, 32 x 128 x 32 values per attended pair."""
    time = prefill_time(worker("Llama-3.1-8B", coefficients=IDEAL))
    layers = catalog.model("Llama-3.1-8B").parameters - 2 * 128256 * 4096
    assert busy(time, new, cached) == pytest.approx(counted_s(layers, 4 * 32 * 128 * 32, new, cached), rel=1e-9)


@pytest.mark.parametrize(("new", "cached"), [(100, 0), (500, 0), (500, 100), (64, 64), (300, 4000)])
def test_windowed_layers_attend_no_further_back_than_their_window(new, cached):
    """gpt-oss-20b: 12 full layers, 12 that see 128 tokens; summed token by token."""
    time = prefill_time(worker("gpt-oss-20b", weights="mxfp4", coefficients=IDEAL))
    full = [cached + token + 0.5 for token in range(new)]
    seen = sum(full) + sum(min(position, 128) for position in full)
    attention = busy(time, new, cached) - time.per_token * new
    assert attention == pytest.approx(4 * 64 * 64 * 12 * seen / 989e12, rel=1e-3)


def test_a_mixture_computes_its_active_parameters_only():
    """Qwen3-30B-A3B reads a short prompt with its active 2.7 billion layer parameters."""
    time = prefill_time(worker("Qwen3-30B-A3B", coefficients=IDEAL))
    model = catalog.model("Qwen3-30B-A3B")
    assert time.per_token == pytest.approx(2 * (model.active_parameters - model.embedding_parameters) / 989e12)


def test_latent_attention_is_expanded_for_prompts():
    """DeepSeek-V3's 128 heads compare 128 + 64 dimensions and add up 128."""
    time = prefill_time(worker("DeepSeek-V3", "GB200", weights="fp8", coefficients=IDEAL, tensor=4))
    assert time.per_token_pair == pytest.approx(2 * 128 * (128 + 64 + 128) * 61 / 4 / 2500e12)


def test_linear_attention_is_linear():
    """Qwen3.5-27B: doubling a prompt doubles the work of its 48 linear layers; 16 full layers grow with the square."""
    time = prefill_time(worker("Qwen3.5-27B", coefficients=IDEAL))
    model = catalog.model("Qwen3.5-27B")
    matrices = 2 * (model.active_parameters - model.embedding_parameters)
    assert time.per_token == pytest.approx((matrices + 6 * 48 * 128**2 * 48) / 989e12)
    assert time.per_token_pair == pytest.approx(4 * 24 * 256 * 16 / 989e12)


def test_attention_runs_at_16_bits_whatever_the_weights():
    """FP8 weights halve the matrices of Qwen3.5-27B, not its attention, linear or full."""
    wide, narrow = (prefill_time(worker("Qwen3.5-27B", weights=w, coefficients=IDEAL)) for w in ("bf16", "fp8"))
    assert narrow.per_token_pair == wide.per_token_pair
    linear = 6 * 48 * 128**2 * 48 / 989e12
    assert (narrow.per_token - linear) / (wide.per_token - linear) == pytest.approx(989 / 1979)


def test_cross_attention_looks_at_every_image_position():
    """Llama 3.2 11B: each new token attends to 6404 positions in 8 layers, and to the text in the other 32."""
    time = prefill_time(worker("Llama-3.2-11B-Vision", coefficients=IDEAL))
    model = catalog.model("Llama-3.2-11B-Vision")
    matrices = 2 * (model.active_parameters - model.embedding_parameters)
    assert time.per_token == pytest.approx((matrices + 4 * 32 * 128 * 8 * 6404) / 989e12)
    assert time.per_token_pair == pytest.approx(4 * 32 * 128 * 32 / 989e12)


def test_cached_tokens_save_matrices_but_are_attended_to():
    """A prompt with a cached prefix costs less than the whole, more than its new tokens alone."""
    time = prefill_time(worker("Llama-3.1-8B"))
    assert busy(time, 1000) < busy(time, 1000, 7000) < busy(time, 8000)


def test_a_prompt_read_in_chunks_costs_what_it_costs_at_once():
    """Each chunk sees the ones before it as cached."""
    for name, weights in (("Llama-3.1-8B", "bf16"), ("gpt-oss-20b", "mxfp4")):
        time = prefill_time(worker(name, weights=weights))
        chunks = sum(busy(time, 512, 512.0 * index) for index in range(8))
        assert chunks == pytest.approx(busy(time, 4096), rel=1e-12)


def test_tensor_parallelism_divides_the_work_and_adds_collectives():
    """On an ideal link only the payload of the all-reduces is added."""
    one, four = (prefill_time(worker("Llama-3.1-8B", coefficients=IDEAL, tensor=t)) for t in (1, 4))
    sent = 64 * 4096 * 2 * 1.5 / 450e9
    assert four.per_token == pytest.approx(one.per_token / 4 + sent)
    assert four.per_token_pair == pytest.approx(one.per_token_pair / 4)


def test_a_lane_of_a_pipeline_reads_a_prompt_no_faster_than_one_stage():
    """Stages work one after the other on a prompt, so only hand-overs change."""
    one, piped = (prefill_time(worker("Llama-3.1-8B", coefficients=IDEAL, pipeline=p)) for p in (1, 4))
    assert piped.per_token == pytest.approx(one.per_token + 3 * 4096 * 2 / 450e9)
    assert piped.per_token_pair == one.per_token_pair


def test_one_prompt_uses_one_group_of_an_attention_data_parallel_worker():
    """On an ideal link a prompt alone takes eight times its share of attention and shared matrices, but experts are
    everybody's."""
    boundless = dataclasses.replace(catalog.device("H200-SXM"), scaleup_bandwidth=1e30, coefficients={"default": IDEAL})
    split, whole = (
        prefill_time(dataclasses.replace(base, device=boundless))
        for base in (
            worker("DeepSeek-V3", "H200-SXM", weights="fp8", attention_data=8, expert=8),
            worker("DeepSeek-V3", "H200-SXM", weights="fp8", tensor=8, expert=8),
        )
    )
    new = np.array([10.0, 1000.0, 50_000.0])
    assert split.busy_s(new) == pytest.approx(whole.busy_s(new))
    assert whole.own_s(new) == pytest.approx(whole.busy_s(new))
    active = 3 * 7168 * 2048 * 8 * 58
    rest = 37.55e9 - 2 * 129280 * 7168 - active
    assert split.latency_factor == pytest.approx((8 * rest + active) / (rest + active))
    pairs = split.per_token_pair * new**2 / 2
    alone = split.latency_factor * split.per_token * new + 8 * pairs
    assert split.own_s(new) == pytest.approx(alone)


def test_an_iteration_streams_the_weights_and_pays_the_overheads():
    """Llama 3.1 70B in FP8 over 8 H100: 68.5 GB of layers and 2.1 GB of head at 3350 GB/s, and 160 collectives."""
    built = worker("Llama-3.1-70B", weights="fp8", tensor=8)
    c = built.coefficients
    head = 128256 * 8192
    streamed = (70.55e9 - 2 * head + 2 * head) / 8 / (3350e9 * c.bandwidth_share)
    overheads = c.step_overhead_s + 80 * (c.layer_overhead_s + c.narrow_layer_overhead_s) + 160 * c.collective_latency_s
    assert prefill_time(built).per_chunk == pytest.approx(streamed + overheads)


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from(catalog.model_names()),
    sku=st.sampled_from(["H100-SXM", "GB200", "L40S", "MI300X", "RBLN-ATOM-Max-CA25", "TPU-v6e", "Groq-LPU-v1"]),
    tensor=st.sampled_from([1, 2, 4, 8, 16]),
    attention_data=st.sampled_from([1, 2, 8]),
    expert=st.sampled_from([1, 8, 16]),
    weights=st.sampled_from(["bf16", "fp8", "int8"]),
    new=st.floats(1, 100_000),
    cached=st.floats(0, 100_000),
)
def test_prompts_take_finite_time_that_grows_with_both_lengths(
    name, sku, tensor, attention_data, expert, weights, new, cached
):
    """Nothing is negative, more tokens take longer, and a prompt alone is never faster than its share of the device."""
    try:
        built = worker(name, sku, weights=weights, tensor=tensor, attention_data=attention_data, expert=expert)
    except (IllegalParallelism, UnsupportedPrecision):
        return
    time = prefill_time(built)
    assert time.latency_factor >= 1 - 1e-12
    assert time.attention_factor >= 1
    assert time.per_chunk > 0
    assert math.isfinite(time.per_chunk)
    assert 0 < busy(time, new, cached) < busy(time, new + 1, cached) < math.inf
    assert busy(time, new, cached) <= busy(time, new, cached + 100) * (1 + 1e-12)
    assert float(time.own_s(np.array([new]), cached)[0]) >= busy(time, new, cached) * (1 - 1e-12)


@pytest.mark.parametrize(
    ("sku", "engine", "tensor", "measured_ms"),
    [
        # Llama 3.1 70B in FP8, 8192 tokens in, 1024 out, concurrency 4: rows of silicon_sample.csv in the Apache-2.0
        # package aiconfigurator
        ("H100-SXM", "vllm", 2, 737.53),
        ("H100-SXM", "vllm", 4, 453.29),
        ("H100-SXM", "vllm", 8, 300.78),
        ("H200-SXM", "trtllm", 2, 678.3),
        ("H200-SXM", "vllm", 1, 1344.81),
        ("B200-SXM", "trtllm", 1, 590.26),
        ("B200-SXM", "vllm", 2, 350.17),
        ("B200-SXM", "trtllm", 4, 265.7),
    ],
)
def test_time_to_first_token_of_long_prompts_is_near_public_runs(sku, engine, tensor, measured_ms):
    """Eight thousand tokens at low load: within three tenths, waiting (a tenth to a fifth at concurrency 4) left out."""
    built = worker("Llama-3.1-70B", sku, weights="fp8", engine=engine, tensor=tensor)
    time = prefill_time(built)
    predicted = built.engine.request_overhead_s + time.per_chunk + float(time.own_s(np.array([8192.0]))[0])
    assert predicted * 1e3 == pytest.approx(measured_ms, rel=0.3)
