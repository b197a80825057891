"""A Hugging Face configuration gives the same architecture as the catalogue's card of that model."""

import pytest

from epd_models import catalog
from epd_models.catalog import CardError
from epd_models.huggingface import architecture_from_config
from epd_models.provenance import Confidence

LLAMA_70B = {
    "model_type": "llama",
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "max_position_embeddings": 131072,
    "num_attention_heads": 64,
    "num_hidden_layers": 80,
    "num_key_value_heads": 8,
    "tie_word_embeddings": False,
    "vocab_size": 128256,
}
QWEN_VIT = {
    "depth": 27,
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_heads": 16,
    "patch_size": 16,
    "spatial_merge_size": 2,
}
CONFIGS = {
    "Llama-3.1-70B": LLAMA_70B,
    "Qwen3-VL-30B-A3B": {
        "model_type": "qwen3_vl_moe",
        "tie_word_embeddings": False,
        "text_config": {
            "decoder_sparse_step": 1,
            "head_dim": 128,
            "hidden_size": 2048,
            "intermediate_size": 6144,
            "max_position_embeddings": 262144,
            "mlp_only_layers": [],
            "moe_intermediate_size": 768,
            "num_attention_heads": 32,
            "num_experts": 128,
            "num_experts_per_tok": 8,
            "num_hidden_layers": 48,
            "num_key_value_heads": 4,
            "vocab_size": 151936,
        },
        "vision_config": QWEN_VIT | {"deepstack_visual_indexes": [8, 16, 24]},
    },
    "Qwen3.5-122B-A10B": {
        "model_type": "qwen3_5_moe",
        "tie_word_embeddings": False,
        "text_config": {
            "attn_output_gate": True,
            "full_attention_interval": 4,
            "head_dim": 256,
            "hidden_size": 3072,
            "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 12,
            "linear_key_head_dim": 128,
            "linear_num_key_heads": 16,
            "linear_num_value_heads": 64,
            "linear_value_head_dim": 128,
            "max_position_embeddings": 262144,
            "moe_intermediate_size": 1024,
            "num_attention_heads": 32,
            "num_experts": 256,
            "num_experts_per_tok": 8,
            "num_hidden_layers": 48,
            "num_key_value_heads": 2,
            "shared_expert_intermediate_size": 1024,
            "vocab_size": 248320,
        },
        "vision_config": QWEN_VIT | {"deepstack_visual_indexes": []},
    },
    "Qwen2.5-VL-7B": {
        "model_type": "qwen2_5_vl",
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "max_position_embeddings": 128000,
        "num_attention_heads": 28,
        "num_hidden_layers": 28,
        "num_key_value_heads": 4,
        "sliding_window": 32768,
        "use_sliding_window": False,
        "vocab_size": 152064,
        "vision_config": {
            "depth": 32,
            "hidden_size": 1280,
            "intermediate_size": 3420,
            "num_heads": 16,
            "patch_size": 14,
            "spatial_merge_size": 2,
            "window_size": 112,
            "fullatt_block_indexes": [7, 15, 23, 31],
        },
    },
    "Mixtral-8x7B": {
        "model_type": "mixtral",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "max_position_embeddings": 32768,
        "num_attention_heads": 32,
        "num_experts_per_tok": 2,
        "num_hidden_layers": 32,
        "num_key_value_heads": 8,
        "num_local_experts": 8,
        "sliding_window": None,
        "vocab_size": 32000,
    },
    "DeepSeek-V3": {
        "model_type": "deepseek_v3",
        "first_k_dense_replace": 3,
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "kv_lora_rank": 512,
        "max_position_embeddings": 163840,
        "moe_intermediate_size": 2048,
        "moe_layer_freq": 1,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_attention_heads": 128,
        "num_experts_per_tok": 8,
        "num_hidden_layers": 61,
        "num_key_value_heads": 128,
        "q_lora_rank": 1536,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "quantization_config": {"quant_method": "fp8", "fmt": "e4m3"},
        "v_head_dim": 128,
        "vocab_size": 129280,
    },
    "gpt-oss-20b": {
        "model_type": "gpt_oss",
        "head_dim": 64,
        "hidden_size": 2880,
        "intermediate_size": 2880,
        "layer_types": ["sliding_attention", "full_attention"] * 12,
        "max_position_embeddings": 131072,
        "num_attention_heads": 64,
        "num_experts_per_tok": 4,
        "num_hidden_layers": 24,
        "num_key_value_heads": 8,
        "num_local_experts": 32,
        "quantization_config": {"quant_method": "mxfp4"},
        "sliding_window": 128,
        "vocab_size": 201088,
    },
    "Gemma-3-27B": {
        "model_type": "gemma3",
        "mm_tokens_per_image": 256,
        "text_config": {
            "model_type": "gemma3_text",
            "head_dim": 128,
            "hidden_size": 5376,
            "intermediate_size": 21504,
            "max_position_embeddings": 131072,
            "num_attention_heads": 32,
            "num_hidden_layers": 62,
            "num_key_value_heads": 16,
            "sliding_window": 1024,
            "vocab_size": 262208,
        },
        "vision_config": {
            "hidden_size": 1152,
            "image_size": 896,
            "intermediate_size": 4304,
            "num_attention_heads": 16,
            "num_hidden_layers": 27,
            "patch_size": 14,
        },
    },
    "Llama-4-Maverick-17B-128E": {
        "model_type": "llama4",
        "text_config": {
            "model_type": "llama4_text",
            "attention_chunk_size": 8192,
            "head_dim": 128,
            "hidden_size": 5120,
            "interleave_moe_layer_step": 2,
            "intermediate_size": 8192,
            "intermediate_size_mlp": 16384,
            "max_position_embeddings": 1048576,
            "num_attention_heads": 40,
            "num_experts_per_tok": 1,
            "num_hidden_layers": 48,
            "num_key_value_heads": 8,
            "num_local_experts": 128,
            "vocab_size": 202048,
        },
        "vision_config": {
            "hidden_size": 1408,
            "image_size": 336,
            "intermediate_size": 5632,
            "num_attention_heads": 16,
            "num_hidden_layers": 34,
            "patch_size": 14,
            "pixel_shuffle_ratio": 0.5,
        },
    },
    "InternVL3-8B": {
        "model_type": "internvl_chat",
        "downsample_ratio": 0.5,
        "force_image_size": 448,
        "max_dynamic_patch": 12,
        "llm_config": {
            "hidden_size": 3584,
            "intermediate_size": 18944,
            "max_position_embeddings": 32768,
            "num_attention_heads": 28,
            "num_hidden_layers": 28,
            "num_key_value_heads": 4,
            "vocab_size": 151674,
        },
        "vision_config": {
            "hidden_size": 1024,
            "intermediate_size": 4096,
            "num_attention_heads": 16,
            "num_hidden_layers": 24,
            "patch_size": 14,
        },
    },
    "Llama-3.2-11B-Vision": {
        "model_type": "mllama",
        "text_config": {
            "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38],
            "hidden_size": 4096,
            "intermediate_size": 14336,
            "max_position_embeddings": 131072,
            "num_attention_heads": 32,
            "num_hidden_layers": 40,
            "num_key_value_heads": 8,
            "vocab_size": 128256,
        },
        "vision_config": {
            "attention_heads": 16,
            "hidden_size": 1280,
            "image_size": 560,
            "intermediate_size": 5120,
            "max_num_tiles": 4,
            "num_global_layers": 8,
            "num_hidden_layers": 32,
            "patch_size": 14,
            "vision_output_dim": 7680,
        },
    },
    "Pixtral-12B": {
        "model_type": "llava",
        "text_config": {
            "model_type": "mistral",
            "head_dim": 128,
            "hidden_size": 5120,
            "intermediate_size": 14336,
            "max_position_embeddings": 131072,
            "num_attention_heads": 32,
            "num_hidden_layers": 40,
            "num_key_value_heads": 8,
            "vocab_size": 131072,
        },
        "vision_config": {
            "model_type": "pixtral",
            "hidden_size": 1024,
            "image_size": 1024,
            "intermediate_size": 4096,
            "num_attention_heads": 16,
            "num_hidden_layers": 24,
            "patch_size": 16,
        },
    },
    "LLaVA-OneVision-7B": {
        "model_type": "llava_onevision",
        "image_grid_pinpoints": [[384 * r, 384 * c] for r in range(1, 7) for c in range(1, 7)],
        "vision_aspect_ratio": "anyres_max_9",
        "text_config": {
            "hidden_size": 3584,
            "intermediate_size": 18944,
            "max_position_embeddings": 32768,
            "num_attention_heads": 28,
            "num_hidden_layers": 28,
            "num_key_value_heads": 4,
            "vocab_size": 152000,
        },
        "vision_config": {
            "hidden_size": 1152,
            "image_size": 384,
            "intermediate_size": 4304,
            "num_attention_heads": 16,
            "num_hidden_layers": 27,
            "patch_size": 14,
        },
    },
    "Kimi-K2.5": {
        "model_type": "kimi_k25",
        "text_config": {
            "first_k_dense_replace": 1,
            "hidden_size": 7168,
            "intermediate_size": 18432,
            "kv_lora_rank": 512,
            "max_position_embeddings": 262144,
            "moe_intermediate_size": 2048,
            "n_routed_experts": 384,
            "n_shared_experts": 1,
            "num_attention_heads": 64,
            "num_experts_per_tok": 8,
            "num_hidden_layers": 61,
            "q_lora_rank": 1536,
            "qk_rope_head_dim": 64,
            "quantization_config": {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int"}}},
            },
            "v_head_dim": 128,
            "vocab_size": 163840,
        },
        "vision_config": {
            "init_pos_emb_time": 4,
            "merge_kernel_size": [2, 2],
            "patch_size": 14,
            "vt_hidden_size": 1152,
            "vt_intermediate_size": 4304,
            "vt_num_attention_heads": 16,
            "vt_num_hidden_layers": 27,
        },
    },
    "MiniMax-M2.5": {
        "model_type": "minimax_m2",
        "head_dim": 128,
        "hidden_size": 3072,
        "intermediate_size": 1536,
        "max_position_embeddings": 196608,
        "num_attention_heads": 48,
        "num_experts_per_tok": 8,
        "num_hidden_layers": 62,
        "num_key_value_heads": 8,
        "num_local_experts": 256,
        "quantization_config": {"quant_method": "fp8"},
        "shared_intermediate_size": 0,
        "vocab_size": 200064,
    },
}
SHAPES = (
    "layers",
    "hidden",
    "vocab",
    "tied_embeddings",
    "dense_layers",
    "dense_intermediate",
    "attention",
    "experts",
    "context_length",
    "native_weights",
)
VISION_SHAPES = ("layers", "hidden", "heads", "mlp", "gated", "patch_px", "merge", "window_px", "rule")


@pytest.mark.parametrize("name", CONFIGS)
def test_a_configuration_gives_the_catalogues_architecture(name):
    """Shapes equal the card's, parameters within two per cent."""
    read, card = architecture_from_config(CONFIGS[name], name), catalog.model(name)
    assert {key: getattr(read, key) for key in SHAPES} == {key: getattr(card, key) for key in SHAPES}
    assert read.parameters == pytest.approx(card.parameters, rel=0.02)
    assert read.active_parameters == pytest.approx(card.active_parameters, rel=0.02)
    assert read.provenance.confidence is Confidence.USER


@pytest.mark.parametrize("name", [name for name, config in CONFIGS.items() if "vision_config" in config])
def test_a_configuration_gives_the_catalogues_vision_tower(name):
    """Tower shapes and the token rule with its numbers equal the card's, its parameters within four per cent."""
    read, card = architecture_from_config(CONFIGS[name], name).vision, catalog.model(name).vision
    assert {key: getattr(read, key) for key in VISION_SHAPES} == {key: getattr(card, key) for key in VISION_SHAPES}
    assert read.full_attention_layers == card.full_attention_layers
    assert read.rule_parameters == card.rule_parameters
    assert read.video_rule_parameters == card.video_rule_parameters
    assert read.parameters == pytest.approx(card.parameters, rel=0.04)


@pytest.mark.parametrize("missing", ["hidden_size", "num_hidden_layers", "vocab_size", "intermediate_size"])
def test_a_missing_shape_is_named(missing):
    """The message names the key that was looked for and the model."""
    config = {key: value for key, value in LLAMA_70B.items() if key != missing}
    with pytest.raises(CardError, match=f"my-model: config.json: .*'{missing}'.* is missing"):
        architecture_from_config(config, "my-model")


def test_a_family_nobody_heard_of_is_read_by_its_shapes():
    """model_type decides nothing where the shapes are named as usual; head_dim and key heads have defaults."""
    config = {key: value for key, value in LLAMA_70B.items() if key != "num_key_value_heads"}
    read = architecture_from_config(config | {"model_type": "brand_new"}, "my-model")
    assert (read.attention[0].kv_heads, read.attention[0].head_dim) == (64, 128)


@pytest.mark.parametrize(
    ("quantisation", "weights"),
    [
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "awq", "bits": 4}, "int4"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "int"}}},
            },
            "int8",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}},
            },
            "fp8",
        ),
    ],
)
def test_quantisation_gives_the_storage_format(quantisation, weights):
    """The usual quantisers' own words become storage formats."""
    assert architecture_from_config(LLAMA_70B | {"quantization_config": quantisation}, "my-model").native_weights == weights


@pytest.mark.parametrize(
    ("extra", "complaint"),
    [
        ({"quantization_config": {"quant_method": "aqlm"}}, "'aqlm' is not known; known are fp8"),
        ({"hybrid_override_pattern": "M*M*"}, "layers of a Mamba hybrid cannot be read"),
        ({"layer_types": ["full_attention"]}, "1 entries for 80 layers"),
        ({"layer_types": ["mamba"] * 80}, "found 'mamba'"),
        ({"vision_config": {"hidden_size": 8}}, "vision towers of model_type 'llama' are not known"),
        ({"num_key_value_heads": 7}, "64 query heads cannot share 7"),
        ({"num_hidden_layers": "80"}, "expected a whole number of at least 1, found '80'"),
    ],
)
def test_what_cannot_be_read_is_refused(extra, complaint):
    """Nothing is guessed where a configuration says something that is not understood."""
    with pytest.raises(CardError, match=complaint):
        architecture_from_config(LLAMA_70B | extra, "my-model")


def test_intervals_stand_in_for_layer_lists():
    """Where a family states an interval instead of a list, every so-many-th layer attends in full."""
    gemma = architecture_from_config(CONFIGS["Gemma-3-27B"], "gemma").attention
    assert [(group.kind, group.layers) for group in gemma] == [("full", 10), ("sliding", 52)]
    listed = CONFIGS["Qwen3.5-122B-A10B"]["text_config"]
    by_interval = {key: value for key, value in listed.items() if key != "layer_types"}
    assert (
        architecture_from_config({"text_config": by_interval}, "a").attention
        == architecture_from_config({"text_config": listed}, "b").attention
    )
