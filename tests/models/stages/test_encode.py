"""Encoding an image takes host time by its pixels and device time by the transformer's FLOPs, as published ones do."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epd_models import catalog
from epd_models.precision import UnsupportedPrecision, compute_format
from epd_models.stages.encode import encode_time
from epd_models.vision import ImageLoad, attention_flops, image_load

VLLM = catalog.engine("vllm")


def seconds(name, sku, width, height, **more):
    """Encode time of one image of a catalogue model."""
    tower = catalog.model(name).vision
    load = image_load(tower, width, height)
    return encode_time(tower, catalog.device(sku), VLLM, load=load, megapixels=width * height / 1e6, **more)


@pytest.mark.parametrize(
    ("name", "size", "tflop"),
    [
        # encoder TFLOP counted from the public configurations and image processors
        ("Qwen2.5-VL-7B", (1024, 1024), 7.686),
        ("Qwen3-VL-8B", (1920, 1080), 15.648),
        ("Qwen3.5-122B-A10B", (448, 448), 0.735),
        ("InternVL3-38B", (1024, 1024), 119.879),
        ("LLaVA-1.5-7B", (448, 448), 0.405),
        ("Llama-3.2-11B-Vision", (448, 448), 19.399),
    ],
)
def test_device_time_is_the_published_work_at_the_achieved_shares_of_the_peak(name, size, tflop):
    """On an H100 in BF16, after the fixed overhead of an image; the FLOPs agree within two per cent."""
    c = catalog.device("H100-SXM").coefficients_for("vllm")
    tower = catalog.model(name).vision
    load = image_load(tower, *size)
    attention = attention_flops(tower, load.positions, load.sequences)
    working = seconds(name, "H100-SXM", *size).device_s - c.image_overhead_s
    matrices = (working - attention / (989e12 * c.encode_attention_share)) * 989e12 * c.encode_share
    assert matrices + attention == pytest.approx(tflop * 1e12, rel=0.02)


def test_host_time_counts_images_source_pixels_and_resized_pixels():
    """Decoding grows with the source's pixels, resizing and cutting with those that enter the transformer."""
    tower = catalog.model("Qwen3-VL-8B").vision

    def one(positions, megapixels):
        load = ImageLoad(tokens=positions // 4, positions=positions)
        return encode_time(tower, catalog.device("H100-SXM"), VLLM, load=load, megapixels=megapixels)

    small, large, wide = one(1024, 1.0), one(1024, 12.0), one(4096, 1.0)
    assert small.decode_s == pytest.approx(VLLM.host_megapixel_s)
    assert large.host_s - small.host_s == pytest.approx(11 * VLLM.host_megapixel_s)
    assert (large.process_s, large.device_s) == (small.process_s, small.device_s)
    assert small.process_s == pytest.approx(VLLM.host_image_s + 1024 * 256e-6 * VLLM.host_resized_megapixel_s)
    assert wide.process_s - small.process_s == pytest.approx(3072 * 256e-6 * VLLM.host_resized_megapixel_s)
    assert small.serial_s == small.process_s + small.device_s


def test_narrow_weights_compute_at_the_next_peak_that_the_device_has():
    """FP8 halves the matrices on a device with an FP8 peak, and changes nothing on one without."""
    c, tower = catalog.device("H100-SXM").coefficients_for("vllm"), catalog.model("Qwen3-VL-8B").vision
    load = image_load(tower, 1024, 1024)
    fixed = c.image_overhead_s + attention_flops(tower, load.positions) / (989e12 * c.encode_attention_share)
    wide, narrow = (
        seconds("Qwen3-VL-8B", "H100-SXM", 1024, 1024, encoder_format=f).device_s - fixed for f in ("bf16", "fp8")
    )
    assert wide / narrow == pytest.approx(1979 / 989)
    a100 = [seconds("Qwen3-VL-8B", "A100-80-SXM", 1024, 1024, encoder_format=f).device_s for f in ("bf16", "fp8")]
    assert a100[0] == a100[1]


@pytest.mark.parametrize(
    ("width", "height", "call_ms"), [(1280, 720, 31.77), (1920, 1080, 57.99), (2560, 1440, 131.83), (3840, 2160, 543.44)]
)
def test_public_forward_passes_are_met(width, height, call_ms):
    """Qwen3-VL-30B-A3B's tower on one GB200 in BF16, three images per call (vLLM pull request 38065): within a fifth."""
    one = seconds("Qwen3-VL-30B-A3B", "GB200", width, height).device_s
    assert 3 * one * 1e3 == pytest.approx(call_ms, rel=0.2)


@pytest.mark.parametrize(
    ("sku", "positions", "images", "milliseconds"),
    [
        ("B200-SXM", 16384, 1, 1.6209),
        ("B200-SXM", 4096, 8, 0.8259),
        ("B300-SXM", 16384, 1, 1.3325),
        ("B300-SXM", 4096, 8, 0.6595),
    ],
)
def test_public_attention_kernels_are_met(sku, positions, images, milliseconds):
    """16 heads of 72 in vLLM 0.24 (aiconfigurator encoder_attention tables @095f58a): large kernels within a fifth."""
    device = catalog.device(sku)
    flops = 4.0 * images * positions**2 * 16 * 72
    share = device.coefficients_for("vllm").encode_attention_share
    assert flops / (device.peaks["bf16"] * share) * 1e3 == pytest.approx(milliseconds, rel=0.2)


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from([n for n in catalog.model_names() if catalog.model(n).vision]),
    sku=st.sampled_from(catalog.device_names()),
    width=st.integers(28, 4000),
    height=st.integers(28, 4000),
    encoder_format=st.sampled_from(["bf16", "fp8", "int8"]),
)
def test_every_tower_takes_time_on_every_device(name, sku, width, height, encoder_format):
    """Both parts are positive and a slower device is slower: half the peak, twice the work's time."""
    device, tower = catalog.device(sku), catalog.model(name).vision
    load = image_load(tower, width, height)
    try:
        compute_format(encoder_format, device.peaks)
    except UnsupportedPrecision:
        return
    half = dataclasses.replace(device, peaks={f: peak / 2 for f, peak in device.peaks.items()})
    whole, slow = (
        encode_time(tower, d, VLLM, load=load, megapixels=1.0, encoder_format=encoder_format) for d in (device, half)
    )
    overhead = device.coefficients_for("vllm").image_overhead_s
    assert whole.host_s > 0
    assert whole.device_s > overhead
    assert slow.device_s - overhead == pytest.approx(2 * (whole.device_s - overhead))
