"""What all vision towers share."""

from __future__ import annotations

from collections.abc import Mapping

from epd_models.architecture import VisionTower
from epd_models.huggingface.config import Reader
from epd_models.vision import block_parameters


def tower_of(
    vision: Reader,
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
    """A tower of the shapes that the configuration gives and a projector of so many weights."""
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


def merger_weights(width: int, merge: int, hidden: int) -> float:
    """Weights of the two linear layers behind merging ``merge`` squared patches into one token."""
    wide = width * merge * merge
    return float(wide * wide + wide * hidden)


def patch_px(vision: Reader) -> int:
    """Side of a patch, pixels."""
    return vision.integer("patch_size")
