"""A Hugging Face ``config.json`` -> :class:`Architecture`, so that a model without a card can be planned for.

A configuration is read by the keys that it holds, not by its ``model_type``: a family nobody heard of works as long as
its shapes are named as others name them. Vision towers differ too much for that and are read by type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from epd_models.architecture import Architecture, AttentionGroup, AttentionKind, Experts, VisionTower
from epd_models.catalog.counting import MLA_ROPE_DIM, language_model_parameters
from epd_models.catalog.errors import CardError
from epd_models.provenance import Confidence, Provenance
from epd_models.vision import block_parameters

Config = Mapping[str, Any]

_WIDTHS = ("intermediate_size", "ffn_hidden_size", "n_inner")
_TEXT = ("text_config", "llm_config", "language_config")
_STATE_BYTES_PER_ELEMENT = 2
_UNREADABLE = {
    "hybrid_override_pattern": "layers of a Mamba hybrid",
    "mamba_num_heads": "layers of a Mamba hybrid",
    "hybrid_layer_pattern": "attention groups with different heads",
    "block_configs": "layers of different shapes",
    "compress_ratios": "compressed attention",
    "linear_attn_config": "linear attention of the Kimi kind",
    "num_global_key_value_heads": "attention groups with different heads",
}


def architecture_from_config(config: Config, name: str) -> Architecture:
    """An architecture from the content of a ``config.json``.

    Parameters are counted from the shapes. A quantisation that stands in a file of its own (``hf_quant_config.json``)
    is not seen: copy it under ``quantization_config``. Recurrent state of linear attention counts two bytes per
    element, as in the catalogue. Where ``tie_word_embeddings`` is absent, embeddings are tied for Gemma and untied
    otherwise. Token limits that stand in ``preprocessor_config.json`` are those of the published checkpoints.

    Parameters
    ----------
    config : mapping
        The parsed JSON document; shapes may stand at the top or under ``text_config`` (``llm_config``).
    name : str
        The model's name, for messages and plans.

    Raises
    ------
    CardError
        A shape is missing (the message names the keys that were looked for), makes no sense, or the vision tower or
        the quantisation is of a kind not known here.

    Examples
    --------
    >>> llama = architecture_from_config({
    ...     "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    ...     "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 131072}, "my-llama")
    >>> round(llama.parameters / 1e9, 2)
    8.03
    """
    text = _Config(_text_part(config), name)
    unreadable = next((key for key in _UNREADABLE if text.get(key, default=None)), None)
    if unreadable is not None:
        raise CardError(text.path, f"{unreadable!r}: {_UNREADABLE[unreadable]} cannot be read; give a card instead")
    hidden = text.integer("hidden_size", "n_embd", "d_model")
    layers = text.integer("num_hidden_layers", "n_layer", "num_layers")
    vocab = text.integer("vocab_size", default=config.get("vocab_size"))
    attention = _attention(text, layers, hidden)
    experts = _experts(text, layers)
    dense_layers = layers - (experts.layers if experts else 0)
    dense_intermediate = 0
    if dense_layers:
        dense_intermediate = text.integer("intermediate_size_mlp", "dense_intermediate_size", *_WIDTHS)
    tied = text.get("tie_word_embeddings", default=config.get("tie_word_embeddings", "gemma" in _type(text)))
    total, active = language_model_parameters(
        hidden=hidden,
        vocab=vocab,
        tied_embeddings=bool(tied),
        attention=attention,
        dense_layers=dense_layers,
        dense_intermediate=dense_intermediate,
        experts=experts,
        output_gate=bool(text.get("attn_output_gate", default=_type(text).startswith(("qwen3_5", "qwen3_next")))),
    )
    return Architecture(
        name=name,
        parameters=total,
        active_parameters=active,
        layers=layers,
        hidden=hidden,
        vocab=vocab,
        tied_embeddings=bool(tied),
        dense_intermediate=dense_intermediate,
        dense_layers=dense_layers,
        attention=attention,
        experts=experts,
        vision=_vision(config, hidden, name),
        native_weights=_native_weights(config, name),
        context_length=text.get("max_position_embeddings", "seq_length", "n_positions", default=None),
        provenance=Provenance(source=f"config.json of {name}", confidence=Confidence.USER),
    )


class _Config:
    """Access to one level of a configuration by any of several names for the same thing."""

    def __init__(self, mapping: Config, name: str, where: str = "config.json") -> None:
        self.mapping = mapping
        self.path = f"{name}: {where}"

    def get(self, *keys: str, default: Any) -> Any:
        """The first of the keys that is present and not null."""
        return next((self.mapping[key] for key in keys if self.mapping.get(key) is not None), default)

    def integer(self, *keys: str, default: Any = None, minimum: int = 1) -> int:
        """A whole number under the first of the keys that is present."""
        value = self.get(*keys, default=default)
        if value is None:
            looked = " or ".join(repr(key) for key in keys)
            raise CardError(self.path, f"{looked} is missing; found {', '.join(self.mapping) or 'nothing'}")
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise CardError(self.path, f"{keys[0]!r}: expected a whole number of at least {minimum}, found {value!r}")
        return value


def _type(text: _Config) -> str:
    return str(text.get("model_type", default=""))


def _text_part(config: Config) -> Config:
    """The language model's part of a configuration, with what it leaves to the top level."""
    for key in _TEXT:
        if isinstance(config.get(key), Mapping):
            return {**{k: v for k, v in config.items() if not isinstance(v, Mapping)}, **config[key]}
    return config


def _attention(text: _Config, layers: int, hidden: int) -> tuple[AttentionGroup, ...]:
    heads = text.integer("num_attention_heads", "n_head")
    kinds = _layer_kinds(text, layers)
    if text.get("kv_lora_rank", default=None) is not None:
        rope = text.integer("qk_rope_head_dim", default=MLA_ROPE_DIM)
        latent = AttentionGroup(
            kind="mla",
            layers=layers,
            heads=heads,
            kv_heads=1,
            head_dim=text.integer("v_head_dim"),
            latent_dim=text.integer("kv_lora_rank") + rope,
            query_latent_dim=text.integer("q_lora_rank", default=0, minimum=0),
        )
        return (latent,)
    kv_heads = text.integer("num_key_value_heads", "num_kv_heads", default=heads)
    head_dim = text.integer("head_dim", default=hidden // heads)
    if heads % kv_heads:
        raise CardError(text.path, f"{heads} query heads cannot share {kv_heads} key heads")
    groups = []
    for kind in dict.fromkeys(kinds):
        count = kinds.count(kind)
        if kind == "linear":
            groups.append(_linear(text, count))
            continue
        window = text.integer("sliding_window", "attention_chunk_size") if kind == "sliding" else None
        positions = _cross_positions(text) if kind == "cross" else 0
        groups.append(
            AttentionGroup(
                kind=kind,
                layers=count,
                heads=heads,
                kv_heads=kv_heads,
                head_dim=head_dim,
                window=window,
                positions=positions,
            )
        )
    return tuple(sorted(groups, key=lambda group: group.kind != "full"))


def _layer_kinds(text: _Config, layers: int) -> list[AttentionKind]:
    """The kind of attention of every layer, from its list or from the interval that a family states."""
    named: dict[str, AttentionKind] = {
        "full_attention": "full",
        "attention": "full",
        "sliding_attention": "sliding",
        "chunked_attention": "sliding",
        "linear_attention": "linear",
    }
    listed = text.get("layer_types", default=None)
    if listed is not None:
        unknown = next((kind for kind in listed if kind not in named), None)
        if unknown is not None or len(listed) != layers:
            found = f"{unknown!r}" if unknown is not None else f"{len(listed)} entries for {layers} layers"
            raise CardError(text.path, f"'layer_types': expected one of {', '.join(named)} per layer, found {found}")
        return [named[kind] for kind in listed]
    crossing = text.get("cross_attention_layers", default=None)
    if crossing is not None:
        return ["cross" if i in crossing else "full" for i in range(layers)]
    other: AttentionKind = "sliding"
    interval = text.get("full_attention_interval", default=None)
    if interval is not None:
        other = "linear"
    elif text.get("attention_chunk_size", default=None) is not None:
        interval = text.get("no_rope_layer_interval", default=4)
    elif text.get("sliding_window", default=None) is not None and text.get("use_sliding_window", default=True):
        interval = text.get("sliding_window_pattern", default=2 if _type(text) == "gpt_oss" else None)
        interval = interval or (6 if _type(text).startswith("gemma3") else layers + 1)
    if interval is None:
        return ["full"] * layers
    return ["full" if (i + 1) % interval == 0 else other for i in range(layers)]


def _linear(text: _Config, layers: int) -> AttentionGroup:
    value_heads = text.integer("linear_num_value_heads")
    key_dim = text.integer("linear_key_head_dim")
    value_dim = text.integer("linear_value_head_dim", default=key_dim)
    return AttentionGroup(
        kind="linear",
        layers=layers,
        linear_key_heads=text.integer("linear_num_key_heads"),
        linear_value_heads=value_heads,
        linear_head_dim=value_dim,
        state_bytes=float(layers * value_heads * key_dim * value_dim * _STATE_BYTES_PER_ELEMENT),
    )


def _cross_positions(text: _Config) -> int:
    """Image positions that cross-attention keeps: four tiles of 560 px in the published Llama 3.2 checkpoints."""
    return text.integer("cross_attention_positions", default=6404)


def _experts(text: _Config, layers: int) -> Experts | None:
    routed = text.get("n_routed_experts", "num_local_experts", "num_experts", default=None)
    if not routed:
        return None
    dim = text.integer("moe_intermediate_size", "intermediate_size")
    shared, shared_dim = text.integer("n_shared_experts", default=0, minimum=0), dim
    if text.get("shared_expert_intermediate_size", default=None):
        shared, shared_dim = 1, text.integer("shared_expert_intermediate_size")
    elif _type(text).startswith("llama4"):
        shared = 1
    step = text.get("interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_freq", default=1)
    marks = step if isinstance(step, list) else [(i + 1) % step == 0 for i in range(layers)]
    dense = set(text.get("mlp_only_layers", default=())) | set(range(text.get("first_k_dense_replace", default=0)))
    return Experts(
        layers=sum(1 for i, sparse in enumerate(marks) if sparse and i not in dense),
        routed=routed,
        active=text.integer("num_experts_per_tok", "experts_per_token"),
        dim=dim,
        shared=shared,
        shared_dim=shared_dim if shared else 0,
    )


def _native_weights(config: Config, name: str) -> str:
    """Storage format of the checkpoint from its quantisation, or bf16."""
    nested = [config[key] for key in _TEXT if isinstance(config.get(key), Mapping)]
    for part in (config, *nested):
        quantisation = part.get("quantization_config") or part.get("compression_config")
        if isinstance(quantisation, Mapping):
            return _storage_format(quantisation, name)
    return "bf16"


def _storage_format(quantisation: Config, name: str) -> str:
    method = str(quantisation.get("quant_method", "")).lower()
    algorithm = str(quantisation.get("quant_algo", quantisation.get("quantization", {}).get("quant_algo", ""))).upper()
    groups = quantisation.get("config_groups") or {}
    weights: Config = next((group["weights"] for group in groups.values() if group.get("weights")), {})
    bits, number = weights.get("num_bits", quantisation.get("bits")), weights.get("type", "int")
    if method in ("fp8", "fbgemm_fp8") or algorithm.startswith("FP8"):
        return "fp8"
    if method in ("mxfp4", "nvfp4") or algorithm in ("NVFP4", "MXFP4"):
        return method if method in ("mxfp4", "nvfp4") else algorithm.lower()
    if bits in (4, 8):
        return {("int", 4): "int4", ("int", 8): "int8", ("float", 4): "nvfp4", ("float", 8): "fp8"}[number, bits]
    raise CardError(
        f"{name}: config.json",
        f"'quantization_config' of method {method or algorithm or 'unnamed'!r} is not known; known are fp8, mxfp4, "
        "nvfp4, modelopt, compressed-tensors, awq and gptq",
    )


def _vision(config: Config, hidden: int, name: str) -> VisionTower | None:
    tower = config.get("vision_config")
    if not isinstance(tower, Mapping) or not tower:
        return None
    kind = str(config.get("model_type", ""))
    own = str(tower.get("model_type", ""))
    reader = next((read for prefix, read in _TOWERS.items() if (own or kind).startswith(prefix)), None)
    reader = reader or next((read for prefix, read in _TOWERS.items() if kind.startswith(prefix)), None)
    if reader is None:
        raise CardError(
            f"{name}: config.json",
            f"vision towers of model_type {kind!r} are not known; known are {', '.join(_TOWERS)}. Without "
            "'vision_config' the language model is read alone",
        )
    return reader(_Config(tower, name, "config.json: vision_config"), config, hidden)


def _tower(
    vision: _Config,
    *,
    name: str,
    projector: float,
    rule: str,
    numbers: Mapping[str, float],
    video: Mapping[str, float],
    gated: bool = False,
    merge: int = 1,
    full_attention_layers: int | None = None,
    window_px: int | None = None,
    layers: int | None = None,
) -> VisionTower:
    depth = layers or vision.integer("depth", "num_hidden_layers", "vt_num_hidden_layers")
    width = vision.integer("hidden_size", "vt_hidden_size")
    shape = VisionTower(
        name=name,
        parameters=0.0,
        layers=depth,
        hidden=width,
        heads=vision.integer("num_heads", "num_attention_heads", "attention_heads", "vt_num_attention_heads"),
        mlp=vision.integer("intermediate_size", "vt_intermediate_size", default=4 * width),
        gated=gated,
        patch_px=vision.integer("patch_size"),
        merge=merge,
        full_attention_layers=depth if full_attention_layers is None else full_attention_layers,
        window_px=window_px,
        rule=rule,
        rule_parameters=numbers,
        video_rule_parameters=video,
    )
    return VisionTower(
        **{field: getattr(shape, field) for field in shape.__slots__ if field != "parameters"},
        parameters=block_parameters(shape) + projector,
    )


_QWEN_VIDEO = {
    "frames_per_step": 2,
    "min_frames": 4,
    "max_frames": 768,
    "min_tokens_per_step": 128,
    "max_tokens_per_step": 768,
    "max_tokens_per_clip": 115200,
}


def _merger(width: int, merge: int, hidden: int) -> float:
    """Weights of the two linear layers behind merging ``merge`` squared patches into one token."""
    wide = width * merge * merge
    return float(wide * wide + wide * hidden)


def _qwen(vision: _Config, config: Config, hidden: int) -> VisionTower:
    merge = vision.integer("spatial_merge_size", default=2)
    windowed = vision.get("fullatt_block_indexes", default=None) is not None
    deepstack = len(vision.get("deepstack_visual_indexes", default=()))
    mergers = _merger(vision.integer("hidden_size"), merge, hidden) * (1 + deepstack)
    return _tower(
        vision,
        name="Qwen ViT",
        projector=mergers,
        rule="native_resolution",
        numbers={"min_tokens": 4 if windowed else 64, "max_tokens": 16384},
        video=_QWEN_VIDEO,
        gated=windowed,
        merge=merge,
        full_attention_layers=len(vision.get("fullatt_block_indexes", default=())) if windowed else None,
        window_px=vision.integer("window_size", default=112) if windowed else None,
    )


def _internvl(vision: _Config, config: Config, hidden: int) -> VisionTower:
    width = vision.integer("hidden_size")
    size = config.get("force_image_size") or vision.get("image_size", default=448)
    side = int(size[0] if isinstance(size, list) else size)
    merge = round(1 / float(config.get("downsample_ratio", 0.5)))
    per_side = side // _patch(vision)
    return _tower(
        vision,
        name="InternViT",
        projector=float(width * merge**2 * hidden + hidden * hidden),
        rule="tiles",
        numbers={
            "tile_px": side,
            "max_tiles": int(config.get("max_dynamic_patch", 12)),
            "tokens_per_tile": (per_side // merge) ** 2,
            "positions_per_tile": per_side**2 + 1,
        },
        video={"tokens_per_frame": (per_side // merge) ** 2},
        merge=merge,
    )


def _llava(vision: _Config, config: Config, hidden: int) -> VisionTower:
    """CLIP or SigLIP at one size: every image alike, or tiles of it where the configuration lists canvases."""
    width, side = vision.integer("hidden_size"), vision.integer("image_size")
    tokens = (side // _patch(vision)) ** 2
    projector = float(width * hidden + hidden * hidden)
    canvases = config.get("image_grid_pinpoints")
    if canvases is None:
        numbers = {"tokens_per_tile": tokens, "positions_per_tile": tokens + 1}
        return _tower(vision, name="CLIP ViT", projector=projector, rule="fixed", numbers=numbers, video={})
    limit = str(config.get("vision_aspect_ratio", "anyres_max_9")).rpartition("_")[2]
    return _tower(
        vision,
        name="SigLIP",
        projector=projector,
        rule="anyres",
        numbers={
            "tile_px": side,
            "max_tiles": int(limit) if limit.isdigit() else 9,
            "max_tiles_per_side": max(max(pair) for pair in canvases) // side,
            "tokens_per_tile": tokens,
            "positions_per_tile": tokens,
        },
        video={"tokens_per_frame": math.ceil(math.isqrt(tokens) / 2) ** 2, "max_frames": 32},
    )


def _gemma(vision: _Config, config: Config, hidden: int) -> VisionTower:
    tokens = int(config.get("mm_tokens_per_image", 256))
    positions = (vision.integer("image_size") // _patch(vision)) ** 2
    return _tower(
        vision,
        name="SigLIP",
        projector=float(vision.integer("hidden_size") * hidden),
        rule="fixed",
        numbers={"tokens_per_tile": tokens, "positions_per_tile": positions},
        video={"tokens_per_frame": tokens},
        merge=math.isqrt(positions // tokens),
    )


def _llama4(vision: _Config, config: Config, hidden: int) -> VisionTower:
    merge = round(1 / float(vision.get("pixel_shuffle_ratio", default=0.5)))
    side = vision.integer("image_size")
    per_side = side // _patch(vision)
    wide = vision.integer("projector_input_dim", default=4096)
    out = vision.integer("vision_output_dim", default=4096)
    projector = vision.integer("hidden_size") * merge**2 * wide + wide * out + out * hidden
    return _tower(
        vision,
        name="Llama 4 vision",
        projector=float(projector),
        rule="canvas_tiles",
        numbers={
            "tile_px": side,
            "max_tiles": 16,
            "tokens_per_tile": (per_side // merge) ** 2,
            "positions_per_tile": per_side**2 + 1,
        },
        video={"frames_per_step": 1},
        merge=merge,
    )


def _mllama(vision: _Config, config: Config, hidden: int) -> VisionTower:
    per_tile = (vision.integer("image_size") // _patch(vision)) ** 2 + 1
    tiles = vision.integer("max_num_tiles", default=4)
    return _tower(
        vision,
        name="Llama 3.2 vision",
        projector=float(vision.integer("vision_output_dim", default=7680) * hidden),
        rule="cross_tiles",
        numbers={"max_tiles": tiles, "positions_per_tile": math.ceil(per_tile / 8) * 8},
        video={},
        layers=vision.integer("num_hidden_layers") + vision.integer("num_global_layers", default=0, minimum=0),
    )


def _pixtral(vision: _Config, config: Config, hidden: int) -> VisionTower:
    merge = int(config.get("spatial_merge_size", 1))
    if merge > 1:
        raise CardError(vision.path, "row marks of a tower that merges patches are not known; give a card instead")
    return _tower(
        vision,
        name="Pixtral ViT",
        projector=float(vision.integer("hidden_size") * hidden + hidden * hidden),
        rule="longest_side",
        numbers={"longest_side_px": vision.integer("image_size", default=1024)},
        video={"frames_per_step": 1},
        gated=True,
    )


def _moonvit(vision: _Config, config: Config, hidden: int) -> VisionTower:
    kernel = vision.get("merge_kernel_size", default=[2, 2])
    pooled = vision.get("init_pos_emb_time", default=1)
    patches = 4096 * pooled
    merge = int(kernel[0])
    video = {"frames_per_step": 1.0}
    if pooled > 1:
        video = {"frames_per_step": pooled, "temporal_patch_frames": 1, "max_tokens_per_step": 4096 // merge**2}
    return _tower(
        vision,
        name="MoonViT",
        projector=_merger(vision.integer("hidden_size", "vt_hidden_size"), merge, hidden),
        rule="padded_resolution",
        numbers={"max_tokens": patches // merge**2},
        video=video,
        merge=merge,
    )


def _patch(vision: _Config) -> int:
    return vision.integer("patch_size")


_TOWERS: Mapping[str, Callable[[_Config, Config, int], VisionTower]] = {
    "qwen2_5_vl": _qwen,
    "qwen3_vl": _qwen,
    "qwen3_5": _qwen,
    "internvl": _internvl,
    "llava": _llava,
    "gemma3": _gemma,
    "llama4": _llama4,
    "mllama": _mllama,
    "pixtral": _pixtral,
    "mistral3": _pixtral,
    "kimi": _moonvit,
}
