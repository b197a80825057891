"""Weights and KV caches per device agree with published checkpoints and add up to the whole over a replica's devices."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epd_models import catalog
from epd_models.memory import (
    activation_bytes,
    encoder_activation_bytes,
    encoder_weights_bytes,
    kv_shape,
    language_weights_bytes,
    layer_weights,
    stage_share,
)
from epd_models.parallelism import IllegalParallelism, Parallelism, check_legal
from epd_models.precision import BYTES_PER_VALUE, Precision

GIB = 2.0**30
ONE = Parallelism()
BF16 = Precision(weights="bf16", kv_cache="bf16")
FP8 = Precision(weights="fp8", kv_cache="fp8")


def cuts(**most):
    """Cuts up to some degrees."""
    powers = [1, 2, 4, 8, 16]
    return st.builds(
        Parallelism, **{name: st.sampled_from([p for p in powers if p <= limit]) for name, limit in most.items()}
    )


@pytest.mark.parametrize(
    ("name", "weights", "published_gib", "tolerance"),
    [
        # checkpoint sizes printed in OpenAI's gpt-oss model card: 60.8 and 12.8 GiB
        ("gpt-oss-120b", "mxfp4", 60.8, 0.01),
        ("gpt-oss-20b", "mxfp4", 12.8, 0.01),
        # two bytes for each of 70.55 billion parameters
        ("Llama-3.1-70B", "bf16", 131.4, 0.005),
        # 671 billion parameters in FP8, embedding and head in BF16
        ("DeepSeek-V3", "fp8", 626.7, 0.01),
    ],
)
def test_one_device_holds_the_published_checkpoint(name, weights, published_gib, tolerance):
    """Uncut, the weights take what the checkpoint takes."""
    size = language_weights_bytes(catalog.model(name), dataclasses.replace(BF16, weights=weights), ONE)
    assert size / GIB == pytest.approx(published_gib, rel=tolerance)


def test_a_dense_model_divides_by_its_tensor_degree():
    """Llama 3.1 70B in BF16 over 8 ranks: an eighth each."""
    model = catalog.model("Llama-3.1-70B")
    whole = language_weights_bytes(model, BF16, ONE)
    assert language_weights_bytes(model, BF16, Parallelism(tensor=8)) == pytest.approx(whole / 8)


def test_key_value_projections_divide_by_at_most_the_key_value_heads():
    """At degree 16 two ranks share each of the 8 key/value heads, so each repeats half of a projection."""
    model = catalog.model("Llama-3.1-70B")
    projections = 2.0 * 8192 * 8 * 128 * 80 * 2.0
    excess = 16 * layer_weights(model, BF16, Parallelism(tensor=16)).shared - layer_weights(model, BF16, ONE).shared
    assert excess == pytest.approx(projections)


def test_latent_projections_and_routers_are_repeated_on_every_rank():
    """DeepSeek-V3: 61 layers of 7168 x (576 + 1536), and 58 routers of 7168 x 256."""
    model = catalog.model("DeepSeek-V3")
    whole = 61 * 7168 * (576 + 1536) + 58 * 7168 * 256
    excess = 8 * layer_weights(model, FP8, Parallelism(tensor=8)).shared - layer_weights(model, FP8, ONE).shared
    assert excess == pytest.approx(7 * whole)


def test_attention_data_parallelism_repeats_all_but_the_experts():
    """Each of 8 ranks holds an eighth of the experts and everything else."""
    model = catalog.model("DeepSeek-V3")
    one, eight = (layer_weights(model, FP8, Parallelism(attention_data=d, expert=d)) for d in (1, 8))
    assert eight.shared == one.shared
    assert eight.routed == pytest.approx(model.routed_expert_parameters / 8)


def test_the_expert_degree_moves_no_bytes():
    """Whole experts on few ranks or slices of all experts: the same bytes."""
    model = catalog.model("Qwen3-235B-A22B")
    sliced, whole = (language_weights_bytes(model, FP8, Parallelism(tensor=8, expert=e)) for e in (1, 8))
    assert sliced == whole


def test_a_pipeline_has_the_embedding_at_one_end_and_the_head_at_the_other():
    """Tied embeddings are stored at both ends; a stage that takes the odd layer is the one that must fit."""
    tied, untied = catalog.model("Qwen3-VL-4B"), catalog.model("Llama-3.1-8B")
    for model in (tied, untied):
        end = model.vocab * model.hidden * 2.0
        layers = layer_weights(model, BF16, ONE).shared
        assert language_weights_bytes(model, BF16, Parallelism(pipeline=2)) == pytest.approx(end + layers / 2)
    assert stage_share(untied, Parallelism(pipeline=5)) == pytest.approx(7 / 32)


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(catalog.model_names()),
    cut=cuts(tensor=16, pipeline=8, attention_data=8, expert=16),
    weights=st.sampled_from(["bf16", "fp8", "nvfp4", "mxfp4", "int4"]),
    kv_cache=st.sampled_from(["bf16", "fp8"]),
    context=st.floats(1, 200_000),
)
def test_devices_hold_the_whole_model_and_cache_together_and_none_more_than_all(name, cut, weights, kv_cache, context):
    """Sums over a replica's devices reach the whole; a single device never holds more than the whole."""
    model, precision = catalog.model(name), Precision(weights=weights, kv_cache=kv_cache)
    try:
        check_legal(cut, model, catalog.device("GB200"))
    except IllegalParallelism:
        return
    whole, mine = (language_weights_bytes(model, precision, c) for c in (ONE, cut))
    assert 0 < mine <= whole * (1 + 1e-9)
    if model.tied_embeddings or cut.pipeline == 1:
        assert mine * cut.logical_devices >= whole * (1 - 1e-9)
    parts = layer_weights(model, precision, cut)
    assert parts.shared > 0
    assert parts.routed >= 0
    held, share = (kv_shape(model, precision, c).held(context, images=True) for c in (ONE, cut))
    assert 0 < share <= held * (1 + 1e-9)
    assert share * cut.tensor * cut.pipeline >= held * (1 - 1e-9)


def test_grouped_heads_divide_over_at_most_their_number():
    """Eight key/value heads: degree 8 holds an eighth of the cache, degree 16 still an eighth."""
    model = catalog.model("Llama-3.1-70B")
    assert kv_shape(model, FP8, ONE).per_token == 2 * 8 * 128 * 80
    for degree, part in ((4, 4), (8, 8), (16, 8)):
        assert kv_shape(model, FP8, Parallelism(tensor=degree)).per_token == pytest.approx(2 * 8 * 128 * 80 / part)


def test_latents_do_not_divide():
    """DeepSeek-V3 keeps 576 values per token and layer on each rank, whatever the degree."""
    for cut in (ONE, Parallelism(tensor=8), Parallelism(attention_data=8, expert=8)):
        assert kv_shape(catalog.model("DeepSeek-V3"), BF16, cut).per_token == 576 * 61 * 2


def test_sliding_windows_fill_up():
    """gpt-oss-120b: 18 layers grow, 18 layers keep 128 tokens of 2 x 8 x 64 values."""
    shape = kv_shape(catalog.model("gpt-oss-120b"), BF16, ONE)
    layer = 2 * 8 * 64 * 2
    assert shape.held(100) == pytest.approx(36 * layer * 100)
    assert shape.held(10_000) == pytest.approx(18 * layer * (10_000 + 128))


def test_recurrent_state_is_fixed_and_divides_by_the_tensor_degree():
    """Qwen3.5-122B-A10B holds 75 MB of state per sequence whatever the cache's format, and 12 layers that grow."""
    model = catalog.model("Qwen3.5-122B-A10B")
    shape = kv_shape(model, FP8, ONE)
    assert shape.fixed == pytest.approx(75.5e6, rel=0.001)
    assert shape.held(1000) - shape.fixed == pytest.approx(1000 * 12 * 2 * 2 * 256)
    assert kv_shape(model, BF16, Parallelism(tensor=4)).fixed == pytest.approx(shape.fixed / 4)


def test_cross_attention_caches_images_only():
    """Llama 3.2 11B: 8 layers of 6404 positions for a request with images, none for text."""
    shape = kv_shape(catalog.model("Llama-3.2-11B-Vision"), BF16, ONE)
    assert shape.held(10, images=True) - shape.held(10) == pytest.approx(8 * 6404 * 2 * 8 * 128 * 2)


def test_vision_weights_are_those_of_the_tower():
    """A language model without a tower has none."""
    assert encoder_weights_bytes(catalog.model("Llama-3.1-8B"), BF16) == 0.0
    tower = catalog.model("Qwen3-VL-4B").vision
    assert encoder_weights_bytes(catalog.model("Qwen3-VL-4B"), BF16) == tower.parameters * BYTES_PER_VALUE["bf16"]


def test_activations_stay_a_few_gigabytes_and_grow_with_the_token_budget():
    """The residual stream alone is 8192 x 8192 values; mixtures keep one more copy of it per active expert."""
    engine = catalog.engine("vllm")
    dense = activation_bytes(catalog.model("Llama-3.1-70B"), engine, Parallelism(tensor=8))
    assert 8192 * 8192 * 2 < dense < 2 * GIB
    experts = catalog.model("DeepSeek-V3")
    size = activation_bytes(experts, engine, Parallelism(tensor=8))
    assert size >= 8192 * 8 * experts.hidden * 2
    assert activation_bytes(experts, dataclasses.replace(engine, max_batched_tokens=2048), ONE) < size
    assert encoder_activation_bytes(catalog.model("Llama-3.1-8B"), 1000) == 0.0
    assert encoder_activation_bytes(catalog.model("Qwen3-VL-4B"), 1000) == 1000 * (12 * 1024 + 2 * 4096) * 2
