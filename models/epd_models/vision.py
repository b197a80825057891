"""From pixels to tokens and encoder work: the rule by which each vision tower cuts and resizes images and video.

``tokens`` are positions in the language model, ``positions`` are patches inside the vision transformer. A rule is a
plain function named in :data:`IMAGE_RULES`; a tower's card names its rule and holds the numbers. The rules follow the
image processors that ship with the models; marks around images (start, end, separators) are left out unless stated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from epd_models.architecture import VisionTower


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageLoad:
    """Work of one image.

    Attributes
    ----------
    tokens : int
        Tokens that the language model reads.
    positions : int
        Patches (class tokens included) that pass through the vision transformer.
    sequences : int
        Attention sequences (tiles, slices) that the positions form; patches of different ones never meet.
    """

    tokens: int
    positions: int
    sequences: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoLoad:
    """Work of one clip.

    Attributes
    ----------
    frames : int
        Frames that are used.
    tokens, positions : int
        Of the whole clip.
    sequences : int
        Attention sequences (frame groups, frames or tiles) that the positions form.
    """

    frames: int
    tokens: int
    positions: int
    sequences: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRule:
    """A token rule: its function and the ``rule_parameters`` that it needs."""

    load: Callable[[VisionTower, int, int, int | None], ImageLoad]
    parameters: tuple[str, ...]


def image_load(tower: VisionTower, width_px: int, height_px: int, max_tokens: int | None = None) -> ImageLoad:
    """Tokens and positions of one image.

    Parameters
    ----------
    max_tokens : int or None
        The user's cap on tokens per image. Native-resolution towers shrink the image until it fits, tiling towers take
        fewer tiles. Where the smallest image of a tower already exceeds it, the cap is refused.

    Raises
    ------
    ValueError
        A side is not positive, or the cap cannot be honoured.

    Examples
    --------
    >>> from epd_models import catalog
    >>> image_load(catalog.model("Qwen3-VL-8B").vision, 1920, 1080).tokens
    2040
    """
    if width_px < 1 or height_px < 1:
        raise ValueError(f"an image of {width_px} x {height_px} px has no pixels")
    load = IMAGE_RULES[tower.rule].load(tower, width_px, height_px, max_tokens)
    if max_tokens is not None and load.tokens > max_tokens:
        raise ValueError(
            f"{tower.name} cannot keep an image of {width_px} x {height_px} px within {max_tokens} tokens: "
            f"its rule ({tower.rule}) gives at least {load.tokens}"
        )
    return load


def image_load_from_tokens(tower: VisionTower, tokens: float) -> ImageLoad:
    """Tokens and positions of an image known by its tokens alone: the nearest whole number of tiles, or one sequence.

    Examples
    --------
    >>> from epd_models import catalog
    >>> image_load_from_tokens(catalog.model("Qwen3.5-122B-A10B").vision, 256).positions
    1024
    """
    if tokens <= 0:
        raise ValueError(f"an image needs tokens, found {tokens:g}")
    numbers = tower.rule_parameters
    whole = math.ceil(tokens)
    if tower.rule == "cross_tiles":
        return ImageLoad(tokens=whole, positions=int(numbers["max_tiles"] * numbers["positions_per_tile"]))
    if "positions_per_tile" in numbers:
        tiles = max(1, round(tokens / numbers["tokens_per_tile"]))
        return ImageLoad(tokens=whole, positions=tiles * int(numbers["positions_per_tile"]), sequences=tiles)
    if tower.rule == "longest_side":
        return ImageLoad(tokens=whole, positions=round(((math.sqrt(1 + 4 * tokens) - 1) / 2) ** 2))
    return ImageLoad(tokens=whole, positions=math.ceil(tokens * tower.merge**2))


def video_load(
    tower: VisionTower,
    seconds: float,
    fps: float,
    width_px: int,
    height_px: int,
    *,
    max_frames: int | None = None,
    max_tokens_per_frame: int | None = None,
) -> VideoLoad:
    """Frames, tokens and positions of one clip, sampled at ``fps`` frames per second.

    Towers that pool ``frames_per_step`` frames into one grid of tokens attend over one such group at a time; the
    others see every frame as an image. The user's ``max_frames`` and the tower's own both hold, the smaller one counts.
    ``max_tokens_per_frame`` caps the tokens of one frame as :func:`image_load` does (of one frame's share of a group).

    Raises
    ------
    ValueError
        The model takes no video, or a cap cannot be honoured.
    """
    numbers = tower.video_rule_parameters
    if not numbers:
        raise ValueError(f"{tower.name} takes no video: its card has no video rule")
    if seconds <= 0 or fps <= 0:
        raise ValueError(f"a clip of {seconds:g} s at {fps:g} frames per second has no frames")
    frames = _frames(numbers, seconds * fps, max_frames)
    if "tokens_per_frame" in numbers:
        return _fixed_frames(tower, numbers, frames, max_tokens_per_frame)
    group = int(numbers.get("frames_per_step", 1))
    if group == 1:
        frame = image_load(tower, width_px, height_px, max_tokens_per_frame)
        return VideoLoad(
            frames=frames,
            tokens=frames * frame.tokens,
            positions=frames * frame.positions,
            sequences=frames * frame.sequences,
        )
    steps = math.ceil(frames / group)
    patches = int(numbers.get("temporal_patch_frames", group))
    most = min(
        numbers.get("max_tokens_per_step", math.inf),
        numbers.get("max_tokens_per_clip", math.inf) / steps,
        math.inf if max_tokens_per_frame is None else max_tokens_per_frame * group,
    )
    least = min(numbers.get("min_tokens_per_step", 1.0), most)
    side = tower.patch_px * tower.merge
    columns, rows = _fit(width_px, height_px, side, least, most)
    tokens = columns * rows
    return VideoLoad(
        frames=frames,
        tokens=steps * tokens,
        positions=steps * tokens * tower.merge**2 * (group // patches),
        sequences=steps,
    )


def encode_flops(tower: VisionTower, positions: float, sequences: float = 1) -> float:
    """Floating-point operations of the vision transformer and its projector.

    Two per weight and position, plus ``4 * length**2 * hidden`` per attention sequence and layer that attends over the
    whole of it; windowed layers see at most a window. The projector (everything in ``parameters`` beyond the
    transformer's blocks) runs once per merged position.

    Parameters
    ----------
    positions : float
        Positions in all.
    sequences : float
        Attention sequences that they form, taken as equally long.
    """
    blocks = block_parameters(tower)
    projector = max(0.0, tower.parameters - blocks)
    matrices = 2.0 * (blocks * positions + projector * positions / tower.merge**2)
    return matrices + attention_flops(tower, positions, sequences)


def attention_flops(tower: VisionTower, positions: float, sequences: float = 1) -> float:
    """The part of :func:`encode_flops` in which positions attend to each other."""
    length = positions / sequences
    window = length if tower.window_px is None else min(length, (tower.window_px // tower.patch_px) ** 2)
    windowed = tower.layers - tower.full_attention_layers
    seen = tower.full_attention_layers * length + windowed * window
    return 4.0 * positions * seen * tower.hidden


def block_parameters(tower: VisionTower) -> float:
    """Weights of the transformer's blocks: four attention projections, two or three MLP matrices per layer."""
    matrices = 3 if tower.gated else 2
    return float(tower.layers) * tower.hidden * (4 * tower.hidden + matrices * tower.mlp)


def _native_resolution(tower: VisionTower, width: int, height: int, max_tokens: int | None) -> ImageLoad:
    """Round each side to the nearest multiple of a merged patch, within the smallest and largest token count.

    ``smart_resize`` of Qwen2.5-VL and Qwen3-VL.
    """
    numbers = tower.rule_parameters
    most = numbers["max_tokens"] if max_tokens is None else min(numbers["max_tokens"], max_tokens)
    columns, rows = _fit(width, height, tower.patch_px * tower.merge, min(numbers["min_tokens"], most), most)
    return ImageLoad(tokens=columns * rows, positions=columns * rows * tower.merge**2)


def _padded_resolution(tower: VisionTower, width: int, height: int, max_tokens: int | None) -> ImageLoad:
    """Shrink to a patch budget, then pad each side up to a multiple of a merged patch (MoonViT)."""
    budget = tower.rule_parameters["max_tokens"]
    scale, side = 1.0, tower.patch_px * tower.merge
    patches = (width // tower.patch_px) * (height // tower.patch_px)
    if patches > budget * tower.merge**2:
        scale = math.sqrt(budget * tower.merge**2 / patches)
    while True:
        columns = max(1, math.ceil(int(width * scale) / side))
        rows = max(1, math.ceil(int(height * scale) / side))
        if max_tokens is None or columns * rows <= max_tokens or columns * rows == 1:
            return ImageLoad(tokens=columns * rows, positions=columns * rows * tower.merge**2)
        scale *= min(0.99, math.sqrt(max_tokens / (columns * rows)))


def _longest_side(tower: VisionTower, width: int, height: int, max_tokens: int | None) -> ImageLoad:
    """Shrink until the longest side fits, round up to patches; one more token ends each row (Pixtral)."""
    longest = tower.rule_parameters["longest_side_px"]
    while True:
        ratio = max(1.0, width / longest, height / longest)
        columns = max(1, math.ceil(math.floor(width / ratio) / tower.patch_px))
        rows = max(1, math.ceil(math.floor(height / ratio) / tower.patch_px))
        tokens = rows * (columns + 1)
        if max_tokens is None or tokens <= max_tokens or longest <= tower.patch_px:
            return ImageLoad(tokens=tokens, positions=columns * rows)
        longest = (max(columns, rows) - 1) * tower.patch_px


def _tiles(tower: VisionTower, width: int, height: int, max_tokens: int | None) -> ImageLoad:
    """Cut into a grid of tiles of nearly the image's shape, plus a thumbnail if there is more than one (InternVL).

    Of the grids with the closest aspect ratio, the largest that the image fills by half wins.
    """
    numbers = tower.rule_parameters
    most = _tile_budget(numbers, max_tokens)
    shape, best, grid = width / height, math.inf, (1, 1)
    grids = [(c, r) for c in range(1, most + 1) for r in range(1, most + 1) if c * r <= most]
    for columns, rows in sorted(grids, key=lambda g: g[0] * g[1]):
        distance = abs(shape - columns / rows)
        half_filled = width * height > 0.5 * numbers["tile_px"] ** 2 * columns * rows
        if distance < best or (distance == best and half_filled):
            best, grid = distance, (columns, rows)
    return _tiled(numbers, grid[0] * grid[1])


def _canvas_tiles(tower: VisionTower, width: int, height: int, max_tokens: int | None) -> ImageLoad:
    """Fit the image on a canvas of tiles, enlarging it least, else shrinking it least; plus a global view (Llama 4)."""
    numbers = tower.rule_parameters
    most, side = _tile_budget(numbers, max_tokens), numbers["tile_px"]
    grids = [(c, r) for c in range(1, most + 1) for r in range(1, most + 1) if c * r <= most]
    scales = {g: min(g[0] * side / width, g[1] * side / height) for g in grids}
    enlarging = [scale for scale in scales.values() if scale >= 1.0]
    scale = min(enlarging) if enlarging else max(scales.values())
    return _tiled(numbers, min(c * r for (c, r), s in scales.items() if s == scale))


def _slices(tower: VisionTower, width: int, height: int, max_tokens: int | None) -> ImageLoad:
    """Cut into as many slices as the area asks for, of the grid nearest in shape, plus an overview (MiniCPM-V)."""
    numbers = tower.rule_parameters
    most = _tile_budget(numbers, max_tokens)
    wanted = min(math.ceil(width * height / numbers["tile_px"] ** 2), most)
    if wanted <= 1:
        return _tiled(numbers, 1)
    counts = [n for n in (wanted - 1, wanted, wanted + 1) if 1 < n <= most]
    grids = [(c, n // c) for n in counts for c in range(1, n + 1) if n % c == 0]
    shape = math.log(width / height)
    columns, rows = min(grids, key=lambda g: abs(shape - math.log(g[0] / g[1])))
    return _tiled(numbers, columns * rows)


def _fixed(tower: VisionTower, width: int, height: int, max_tokens: int | None) -> ImageLoad:
    """Resize every image to one square (LLaVA-1.5, Gemma 3)."""
    numbers = tower.rule_parameters
    return ImageLoad(tokens=int(numbers["tokens_per_tile"]), positions=int(numbers["positions_per_tile"]))


def _anyres(tower: VisionTower, width: int, height: int, max_tokens: int | None) -> ImageLoad:
    """Tiles of the canvas that keeps most pixels, padding cut off, shrunk to a token limit, plus a base view.

    LLaVA-OneVision (``anyres_max_9``): each row of features ends with one more token.
    """
    numbers = tower.rule_parameters
    side, most = int(numbers["tile_px"]), int(numbers["max_tiles_per_side"])
    grids = [(c, r) for c in range(1, most + 1) for r in range(1, most + 1)]

    def kept_and_wasted(grid: tuple[int, int]) -> tuple[float, float]:
        scale = min(grid[0] * side / width, grid[1] * side / height)
        kept = min(int(width * scale) * int(height * scale), width * height)
        return kept, kept - grid[0] * grid[1] * side**2

    columns, rows = max(grids, key=kept_and_wasted)
    per_side = math.isqrt(int(numbers["tokens_per_tile"]))
    wide, high = columns * per_side, rows * per_side
    if width / height > wide / high:
        high -= 2 * ((high - int(round(height * wide / width, 7))) // 2)
    else:
        wide -= 2 * ((wide - int(round(width * high / height, 7))) // 2)
    shrink = math.sqrt(wide * high / (numbers["max_tiles"] * per_side**2))
    if shrink > 1.1:
        wide, high = int(wide / shrink), int(high / shrink)
    tiles = columns * rows + 1
    return ImageLoad(
        tokens=high * (wide + 1) + per_side**2,
        positions=tiles * int(numbers["positions_per_tile"]),
        sequences=tiles,
    )


def _cross_tiles(tower: VisionTower, width: int, height: int, max_tokens: int | None) -> ImageLoad:
    """Pad to all tiles whatever the size; the language model reads one image token and attends across (Llama 3.2)."""
    numbers = tower.rule_parameters
    return ImageLoad(tokens=1, positions=int(numbers["max_tiles"] * numbers["positions_per_tile"]))


IMAGE_RULES: Mapping[str, ImageRule] = {
    "native_resolution": ImageRule(load=_native_resolution, parameters=("min_tokens", "max_tokens")),
    "padded_resolution": ImageRule(load=_padded_resolution, parameters=("max_tokens",)),
    "longest_side": ImageRule(load=_longest_side, parameters=("longest_side_px",)),
    "tiles": ImageRule(load=_tiles, parameters=("tile_px", "max_tiles", "tokens_per_tile", "positions_per_tile")),
    "canvas_tiles": ImageRule(
        load=_canvas_tiles, parameters=("tile_px", "max_tiles", "tokens_per_tile", "positions_per_tile")
    ),
    "slices": ImageRule(load=_slices, parameters=("tile_px", "max_tiles", "tokens_per_tile", "positions_per_tile")),
    "fixed": ImageRule(load=_fixed, parameters=("tokens_per_tile", "positions_per_tile")),
    "anyres": ImageRule(
        load=_anyres,
        parameters=("tile_px", "max_tiles", "max_tiles_per_side", "tokens_per_tile", "positions_per_tile"),
    ),
    "cross_tiles": ImageRule(load=_cross_tiles, parameters=("max_tiles", "positions_per_tile")),
}


def _fit(width: int, height: int, side: int, least: float, most: float) -> tuple[int, int]:
    """Columns and rows of ``side`` px, nearest to the image, with ``least`` to ``most`` cells."""
    columns, rows = max(1, round(width / side)), max(1, round(height / side))
    if columns * rows > most:
        shrink = math.sqrt(width * height / (most * side**2))
        columns = max(1, math.floor(width / shrink / side))
        rows = max(1, math.floor(height / shrink / side))
    elif columns * rows < least:
        grow = math.sqrt(least * side**2 / (width * height))
        columns, rows = math.ceil(width * grow / side), math.ceil(height * grow / side)
    return columns, rows


def _tile_budget(numbers: Mapping[str, float], max_tokens: int | None) -> int:
    """Tiles of the grid at the most: the model's own limit, or what the cap leaves beside the overview."""
    most = int(numbers["max_tiles"])
    if max_tokens is None:
        return most
    return max(1, min(most, int(max_tokens // numbers["tokens_per_tile"]) - 1))


def _tiled(numbers: Mapping[str, float], tiles: int) -> ImageLoad:
    """Load of a grid of tiles and, where there is more than one, the view of the whole image."""
    count = tiles + 1 if tiles > 1 else 1
    return ImageLoad(
        tokens=count * int(numbers["tokens_per_tile"]),
        positions=count * int(numbers["positions_per_tile"]),
        sequences=count,
    )


def _frames(numbers: Mapping[str, float], sampled: float, max_frames: int | None) -> int:
    group = int(numbers.get("frames_per_step", 1))
    most = min(numbers.get("max_frames", math.inf), math.inf if max_frames is None else max_frames)
    frames = min(max(sampled, numbers.get("min_frames", 1)), most)
    return max(group, int(frames + 1e-9) // group * group)


def _fixed_frames(tower: VisionTower, numbers: Mapping[str, float], frames: int, max_tokens: int | None) -> VideoLoad:
    tokens = int(numbers["tokens_per_frame"])
    if max_tokens is not None and tokens > max_tokens:
        raise ValueError(f"{tower.name} gives {tokens} tokens per frame and cannot keep within {max_tokens}")
    return VideoLoad(
        frames=frames,
        tokens=frames * tokens,
        positions=frames * int(tower.rule_parameters["positions_per_tile"]),
        sequences=frames,
    )
