"""Attention groups: which layers attend how."""

from __future__ import annotations

from epd_models.architecture import AttentionGroup, AttentionKind
from epd_models.catalog.counting import MLA_ROPE_DIM
from epd_models.catalog.errors import CardError
from epd_models.huggingface.config import Reader, type_of

_STATE_BYTES_PER_ELEMENT = 2


def attention_of(text: Reader, layers: int, hidden: int) -> tuple[AttentionGroup, ...]:
    """The layers by kind of attention, full attention first."""
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


def _layer_kinds(text: Reader, layers: int) -> list[AttentionKind]:
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
        interval = text.get("sliding_window_pattern", default=2 if type_of(text) == "gpt_oss" else None)
        interval = interval or (6 if type_of(text).startswith("gemma3") else layers + 1)
    if interval is None:
        return ["full"] * layers
    return ["full" if (i + 1) % interval == 0 else other for i in range(layers)]


def _linear(text: Reader, layers: int) -> AttentionGroup:
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


def _cross_positions(text: Reader) -> int:
    """Image positions that cross-attention keeps: four tiles of 560 px in the published Llama 3.2 checkpoints."""
    return text.integer("cross_attention_positions", default=6404)
