"""Token rules give the tokens, positions and FLOPs that the models' own image processors and shapes imply."""

import dataclasses

import pytest

from epd_models import catalog
from epd_models.vision import (
    IMAGE_RULES,
    encode_flops,
    image_load,
    image_load_from_tokens,
    video_load,
)

SIZES = [(448, 448), (1024, 1024), (1920, 1080)]

# tokens (None: not published), encoder positions, encoder TFLOP at each of SIZES
PUBLISHED = {
    "Qwen2.5-VL-7B": [(256, 1024, 1.344), (1369, 5476, 7.686), (2691, 10764, 16.273)],
    "Qwen2.5-VL-72B": [(256, 1024, 1.365), (1369, 5476, 7.799), (2691, 10764, 16.496)],
    "Qwen3-VL-8B": [(196, 784, 0.784), (1024, 4096, 5.783), (2040, 8160, 15.648)],
    "Qwen3-VL-32B": [(196, 784, 0.791), (1024, 4096, 5.822), (2040, 8160, 15.725)],
    "Qwen3-VL-30B-A3B": [(196, 784, 0.769), (1024, 4096, 5.706), (2040, 8160, 15.494)],
    "Qwen3-VL-235B-A22B": [(196, 784, 0.784), (1024, 4096, 5.783), (2040, 8160, 15.648)],
    "Qwen3.5-27B": [(196, 784, 0.739), (1024, 4096, 5.547), (2040, 8160, 15.176)],
    "Qwen3.5-35B-A3B": [(196, 784, 0.733), (1024, 4096, 5.518), (2040, 8160, 15.118)],
    "Qwen3.5-122B-A10B": [(196, 784, 0.735), (1024, 4096, 5.527), (2040, 8160, 15.137)],
    "Qwen3.5-397B-A17B": [(196, 784, 0.737), (1024, 4096, 5.537), (2040, 8160, 15.157)],
    "InternVL3-8B": [(256, 1025, 0.736), (2560, 10250, 7.365), (2304, 9225, 6.628)],
    "InternVL3-38B": [(256, 1025, 11.988), (2560, 10250, 119.879), (2304, 9225, 107.891)],
    "InternVL3-78B": [(256, 1025, 12.029), (2560, 10250, 120.29), (2304, 9225, 108.261)],
    "InternVL2-8B": [(256, 1025, 0.74), (2560, 10250, 7.396), (2304, 9225, 6.656)],
    "InternVL2-26B": [(256, 1025, 12.0), (2560, 10250, 120.005), (2304, 9225, 108.004)],
    "MiniCPM-V-2.6": [(64, 1024, 1.086), (448, 7168, 7.602), (576, 9216, 9.774)],
    "LLaVA-1.5-7B": [(576, 577, 0.405), (576, 577, 0.405), (576, 577, 0.405)],
    "LLaVA-OneVision-7B": [(None, 3645, 3.451), (7371, 7290, 6.902), (7269, 11664, 11.043)],
    "LLaVA-OneVision-72B": [(None, 3645, 3.885), (7371, 7290, 7.771), (7269, 11664, 12.433)],
    "Llama-3.2-11B-Vision": [(1, 6432, 19.399), (1, 6432, 19.399), (1, 6432, 19.399)],
    "Llama-3.2-90B-Vision": [(1, 6432, 19.399), (1, 6432, 19.399), (1, 6432, 19.399)],
    "Llama-4-Scout-17B-16E": [(720, 2885, 5.074), (2448, 9809, 17.25), (2304, 9232, 16.235)],
    "Llama-4-Maverick-17B-128E": [(720, 2885, 5.074), (2448, 9809, 17.25), (2304, 9232, 16.235)],
    "Gemma-3-27B": [(256, 4096, 5.458), (256, 4096, 5.458), (256, 4096, 5.458)],
    "Pixtral-12B": [(812, 784, 0.741), (4160, 4096, 5.206), (2340, 2304, 2.522)],
    "Pixtral-Large-124B": [(812, 784, 2.323), (4160, 4096, 14.302), (2340, 2304, 7.385)],
}


def tower(name):
    """The vision tower of a catalogue model."""
    return catalog.model(name).vision


@pytest.mark.parametrize("name", PUBLISHED)
def test_tokens_positions_and_flops_of_published_sizes(name):
    """Tokens and positions are exact, FLOPs within two per cent."""
    for (width, height), (tokens, positions, tflop) in zip(SIZES, PUBLISHED[name], strict=True):
        load = image_load(tower(name), width, height)
        assert load.tokens == (tokens or load.tokens)
        assert load.positions == positions
        assert encode_flops(tower(name), load.positions, load.sequences) / 1e12 == pytest.approx(tflop, rel=0.02)


def test_every_rule_is_met_by_a_model():
    """No token rule is there without a model that uses it, and every multimodal model has one."""
    used = {model.vision.rule for model in catalog.models().values() if model.vision}
    assert used == set(IMAGE_RULES)


@pytest.mark.parametrize("name", [n for n in catalog.model_names() if tower(n)])
@pytest.mark.parametrize("size", [(640, 640), (1280, 720), (300, 2000)])
def test_a_cap_holds_or_is_refused(name, size):
    """A cap on tokens never gives more than it allows; a tower that cannot honour it says so."""
    free = image_load(tower(name), *size)
    for cap in (64, 256, 300, 1000):
        try:
            load = image_load(tower(name), *size, cap)
        except ValueError:
            with pytest.raises(ValueError, match=f"within {cap} tokens"):
                image_load(tower(name), *size, cap)
            continue
        assert load.tokens <= min(cap, free.tokens)
        assert load.positions <= free.positions


def test_caps_where_they_can_be_honoured():
    """Native resolution shrinks the image, tiles get fewer, one fixed size cannot."""
    assert image_load(tower("Qwen3.5-122B-A10B"), 1280, 720, 256).tokens == 21 * 12
    assert image_load(tower("InternVL3-8B"), 1920, 1080, 1000).tokens == 768
    assert image_load(tower("MiniCPM-V-2.6"), 1920, 1080, 64).tokens == 64
    assert image_load(tower("Pixtral-12B"), 1024, 1024, 256).tokens <= 256
    with pytest.raises(ValueError, match="gives at least 576"):
        image_load(tower("LLaVA-1.5-7B"), 640, 640, 256)


def test_small_and_large_images_meet_the_native_limits():
    """A tiny image grows to the smallest count, a huge one shrinks to the largest; the shape stays."""
    assert image_load(tower("Qwen3-VL-8B"), 32, 32).tokens == 64
    huge = image_load(tower("Qwen3-VL-8B"), 16000, 8000)
    assert 16000 < huge.tokens <= 16384
    with pytest.raises(ValueError, match="no pixels"):
        image_load(tower("Qwen3-VL-8B"), 0, 32)


def test_moonvit_pads_up():
    """MoonViT pads each side up to a merged patch and shrinks above its patch limit."""
    assert image_load(tower("Kimi-VL-A3B"), 560, 561).tokens == 20 * 21
    assert image_load(tower("Kimi-VL-A3B"), 4000, 4000).tokens <= 1089


def test_images_known_by_tokens():
    """Positions follow from the merge factor, the tiles or the row marks."""
    assert image_load_from_tokens(tower("Qwen3.5-122B-A10B"), 256).positions == 1024
    assert image_load_from_tokens(tower("Qwen2.5-VL-7B"), 100.5).tokens == 101
    tiled = image_load_from_tokens(tower("InternVL3-8B"), 2560)
    assert (tiled.positions, tiled.sequences) == (10250, 10)
    assert image_load_from_tokens(tower("Pixtral-12B"), 4160).positions == 4096
    assert image_load_from_tokens(tower("Llama-3.2-11B-Vision"), 1).positions == 6432
    with pytest.raises(ValueError, match="needs tokens"):
        image_load_from_tokens(tower("Qwen2.5-VL-7B"), 0)


def test_windows_make_attention_linear():
    """With only windowed layers, twice the positions cost twice the FLOPs; with full ones, more."""
    qwen = tower("Qwen2.5-VL-7B")
    windowed = dataclasses.replace(qwen, full_attention_layers=0)
    assert encode_flops(windowed, 8192) == pytest.approx(2 * encode_flops(windowed, 4096))
    assert encode_flops(qwen, 8192) > 2.05 * encode_flops(qwen, 4096)
    assert encode_flops(qwen, 8192, 2) == pytest.approx(2 * encode_flops(qwen, 4096))


def test_a_clip_of_frame_pairs():
    """30 s at 2 frames per second are 60 frames in 30 pairs of 20 x 11 tokens each."""
    clip = video_load(tower("Qwen3-VL-8B"), 30, 2, 640, 360)
    assert (clip.frames, clip.sequences) == (60, 30)
    assert clip.tokens == 30 * 20 * 11
    assert clip.positions == 4 * clip.tokens


def test_frames_are_limited_by_the_user_and_the_model():
    """The smaller limit counts, frames come in whole groups, and very short clips get the fewest."""
    assert video_load(tower("Qwen3-VL-8B"), 30, 2, 640, 360, max_frames=13).frames == 12
    assert video_load(tower("Qwen3-VL-8B"), 7200, 2, 640, 360).frames == 768
    assert video_load(tower("Qwen3-VL-8B"), 0.5, 2, 640, 360).frames == 4
    assert video_load(tower("LLaVA-OneVision-7B"), 100, 2, 640, 360).frames == 32


def test_long_clips_share_a_token_budget():
    """Frame pairs shrink when a clip would exceed its budget, and a user's cap shrinks them further."""
    long = video_load(tower("Qwen3-VL-8B"), 7200, 2, 1920, 1080)
    assert long.tokens <= 115200
    capped = video_load(tower("Qwen3-VL-8B"), 30, 2, 1920, 1080, max_tokens_per_frame=64)
    assert capped.tokens <= 30 * 128


def test_pooled_frames_cost_positions_but_no_tokens():
    """Four frames of Kimi-K2.5 share one grid of tokens and attend together."""
    clip = video_load(tower("Kimi-K2.5"), 8, 1, 560, 280)
    assert (clip.sequences, clip.tokens, clip.positions) == (2, 2 * 200, 2 * 200 * 4 * 4)


def test_frames_as_images():
    """Towers without a video rule of their own see each frame as an image or a fixed number of tokens."""
    pixtral = video_load(tower("Pixtral-12B"), 10, 1, 448, 448)
    assert (pixtral.frames, pixtral.tokens) == (10, 8120)
    intern = video_load(tower("InternVL3-8B"), 10, 1, 1920, 1080)
    assert (intern.tokens, intern.positions, intern.sequences) == (2560, 10250, 10)
    with pytest.raises(ValueError, match="takes no video"):
        video_load(tower("LLaVA-1.5-7B"), 10, 1, 448, 448)
    with pytest.raises(ValueError, match="256 tokens per frame"):
        video_load(tower("InternVL3-8B"), 10, 1, 448, 448, max_tokens_per_frame=100)
    with pytest.raises(ValueError, match="no frames"):
        video_load(tower("InternVL3-8B"), 10, 0, 448, 448)
