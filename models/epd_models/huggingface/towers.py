"""Vision towers, read by the type that the configuration names."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from epd_models.architecture import VisionTower
from epd_models.catalog.errors import CardError
from epd_models.huggingface.config import Config, Reader
from epd_models.huggingface.shape import merger_weights, patch_px, tower_of


def vision_of(config: Config, hidden: int, name: str) -> VisionTower | None:
    """The vision tower, or None for a language model alone."""
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
    return reader(Reader(tower, name, "config.json: vision_config"), config, hidden)


_QWEN_VIDEO = {
    "frames_per_step": 2,
    "min_frames": 4,
    "max_frames": 768,
    "min_tokens_per_step": 128,
    "max_tokens_per_step": 768,
    "max_tokens_per_clip": 115200,
}


def _qwen(vision: Reader, config: Config, hidden: int) -> VisionTower:
    merge = vision.integer("spatial_merge_size", default=2)
    windowed = vision.get("fullatt_block_indexes", default=None) is not None
    deepstack = len(vision.get("deepstack_visual_indexes", default=()))
    mergers = merger_weights(vision.integer("hidden_size"), merge, hidden) * (1 + deepstack)
    return tower_of(
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


def _internvl(vision: Reader, config: Config, hidden: int) -> VisionTower:
    width = vision.integer("hidden_size")
    size = config.get("force_image_size") or vision.get("image_size", default=448)
    side = int(size[0] if isinstance(size, list) else size)
    merge = round(1 / float(config.get("downsample_ratio", 0.5)))
    per_side = side // patch_px(vision)
    return tower_of(
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


def _llava(vision: Reader, config: Config, hidden: int) -> VisionTower:
    """CLIP or SigLIP at one size: every image alike, or tiles of it where the configuration lists canvases."""
    width, side = vision.integer("hidden_size"), vision.integer("image_size")
    tokens = (side // patch_px(vision)) ** 2
    projector = float(width * hidden + hidden * hidden)
    canvases = config.get("image_grid_pinpoints")
    if canvases is None:
        numbers = {"tokens_per_tile": tokens, "positions_per_tile": tokens + 1}
        return tower_of(vision, name="CLIP ViT", projector=projector, rule="fixed", numbers=numbers, video={})
    limit = str(config.get("vision_aspect_ratio", "anyres_max_9")).rpartition("_")[2]
    return tower_of(
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


def _gemma(vision: Reader, config: Config, hidden: int) -> VisionTower:
    tokens = int(config.get("mm_tokens_per_image", 256))
    positions = (vision.integer("image_size") // patch_px(vision)) ** 2
    return tower_of(
        vision,
        name="SigLIP",
        projector=float(vision.integer("hidden_size") * hidden),
        rule="fixed",
        numbers={"tokens_per_tile": tokens, "positions_per_tile": positions},
        video={"tokens_per_frame": tokens},
        merge=math.isqrt(positions // tokens),
    )


def _llama4(vision: Reader, config: Config, hidden: int) -> VisionTower:
    merge = round(1 / float(vision.get("pixel_shuffle_ratio", default=0.5)))
    side = vision.integer("image_size")
    per_side = side // patch_px(vision)
    wide = vision.integer("projector_input_dim", default=4096)
    out = vision.integer("vision_output_dim", default=4096)
    projector = vision.integer("hidden_size") * merge**2 * wide + wide * out + out * hidden
    return tower_of(
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


def _mllama(vision: Reader, config: Config, hidden: int) -> VisionTower:
    per_tile = (vision.integer("image_size") // patch_px(vision)) ** 2 + 1
    tiles = vision.integer("max_num_tiles", default=4)
    return tower_of(
        vision,
        name="Llama 3.2 vision",
        projector=float(vision.integer("vision_output_dim", default=7680) * hidden),
        rule="cross_tiles",
        numbers={"max_tiles": tiles, "positions_per_tile": math.ceil(per_tile / 8) * 8},
        video={},
        layers=vision.integer("num_hidden_layers") + vision.integer("num_global_layers", default=0, minimum=0),
    )


def _pixtral(vision: Reader, config: Config, hidden: int) -> VisionTower:
    merge = int(config.get("spatial_merge_size", 1))
    if merge > 1:
        raise CardError(vision.path, "row marks of a tower that merges patches are not known; give a card instead")
    return tower_of(
        vision,
        name="Pixtral ViT",
        projector=float(vision.integer("hidden_size") * hidden + hidden * hidden),
        rule="longest_side",
        numbers={"longest_side_px": vision.integer("image_size", default=1024)},
        video={"frames_per_step": 1},
        gated=True,
    )


def _moonvit(vision: Reader, config: Config, hidden: int) -> VisionTower:
    kernel = vision.get("merge_kernel_size", default=[2, 2])
    pooled = vision.get("init_pos_emb_time", default=1)
    patches = 4096 * pooled
    merge = int(kernel[0])
    video = {"frames_per_step": 1.0}
    if pooled > 1:
        video = {"frames_per_step": pooled, "temporal_patch_frames": 1, "max_tokens_per_step": 4096 // merge**2}
    return tower_of(
        vision,
        name="MoonViT",
        projector=merger_weights(vision.integer("hidden_size", "vt_hidden_size"), merge, hidden),
        rule="padded_resolution",
        numbers={"max_tokens": patches // merge**2},
        video=video,
        merge=merge,
    )


_TOWERS: Mapping[str, Callable[[Reader, Config, int], VisionTower]] = {
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
