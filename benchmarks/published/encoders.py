"""Vision encoders: forward passes, attention and matrix kernels by device; and where a first token's time goes."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from epd_models import catalog
from epd_models.device import Device
from epd_models.stages.encode import EncodeTime, encode_time
from epd_models.vision import image_load
from published.row import Row

_LAUNCHES = 27 * 15
"""Kernels that the overhead of an image stands for: 15 in each of 27 layers (an estimate)."""


def image(model: str, sku: str, width: int, height: int) -> EncodeTime:
    """Times of one image with vLLM."""
    tower = catalog.model(model).vision
    assert tower is not None
    return encode_time(
        tower,
        catalog.device(sku),
        catalog.engine("vllm"),
        load=image_load(tower, width, height),
        megapixels=width * height / 1e6,
    )


def forward_passes(folder: Path) -> list[Row]:
    """Passes of a whole tower."""
    rows = []
    for line in _lines(folder):
        if line["kind"] != "encoder_forward" or line["precision"] != "bf16":
            continue
        size = re.fullmatch(r"(\d+)x(\d+)", line["image_resolution"])
        height, width = (int(side) for side in size.groups()) if size else (1080, 1920)
        count = int(line["images_per_call"])
        each = image(line["model"], line["device"], width, height).device_s
        name = f"{line['model']} tower, {count} images of {width} x {height}, {line['n_devices']} {line['device']}"
        name += "" if size else " (size not stated)"
        measured = float(line["value"])
        rows.append(Row(case=name, measured=measured, predicted=1e3 * count * each, unit="ms", within=0.35))
    return rows


def kernels(folder: Path) -> list[Row]:
    """Median errors of attention and of matrix kernels on each device."""
    errors: dict[tuple[str, str], list[float]] = {}
    for line in _lines(folder):
        device = _device(line["device"])
        if device is None or line["precision"] != "bf16":
            continue
        c = device.coefficients_for("vllm")
        if line["kind"] == "attention_kernel":
            heads, width = (int(part) for part in re.findall(r"\d+", line["encoder"])[:2])
            positions = int(line["encoder_positions_per_image"])
            flops = 4.0 * int(line["images_per_call"]) * positions**2 * heads * width
            seconds = c.image_overhead_s / _LAUNCHES + flops / (device.peaks["bf16"] * c.encode_attention_share)
            measured = float(line["value"]) * (1e-6 if line["unit"] == "us" else 1e-3)
            errors.setdefault(("attention", device.sku), []).append(abs(seconds / measured - 1.0))
        elif line["kind"] == "gemm_kernel":
            rate = device.peaks["bf16"] * c.encode_share / 1e12
            errors.setdefault(("matrix", device.sku), []).append(abs(rate / float(line["value"]) - 1.0))
    return [
        Row(
            case=f"{what} kernels, {sku}: median error of {len(found)}",
            measured=math.nan,
            predicted=100.0 * median(found),
            unit="%",
            within=20.0,
        )
        for (what, sku), found in sorted(errors.items())
    ]


def first_token() -> list[Row]:
    """Four images of 2400 x 1080 to Qwen3-VL-30B-A3B on one H100, 0.4 requests/s."""
    time = image("Qwen3-VL-30B-A3B", "H100-SXM", 2400, 1080)
    whole = 4.0 * time.host_s
    return [
        Row(case="ViT, 4 images", measured=205.0, predicted=4e3 * time.device_s, unit="ms", within=0.35),
        Row(case="decoding, each image", measured=38.0, predicted=1e3 * time.decode_s, unit="ms", within=0.35),
        Row(
            case="image processing without decoding, 4 images (Dynamo)",
            measured=786.0,
            predicted=4e3 * time.process_s,
            unit="ms",
            within=0.35,
        ),
        Row(case="image processing, 4 images (vLLM)", measured=1012.0, predicted=1e3 * whole, unit="ms", within=0.35),
    ]


def _lines(folder: Path) -> list[Mapping[str, str]]:
    with (folder / "encoder_runs.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _device(name: str) -> Device | None:
    try:
        return catalog.device(name)
    except catalog.UnknownCard:
        return None
