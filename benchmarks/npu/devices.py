"""What one device does by itself, without queues: tokens read and written per second, per 1,000 dollars and per kW."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from epd_models import catalog
from epd_models.device import Device
from epd_models.parallelism import Parallelism
from epd_models.precision import Precision
from epd_models.serving import in_flight
from epd_models.stages.decode import decode_step
from epd_models.stages.prefill import prefill_time
from epd_models.worker import Worker
from npu.question import CARDS, DEGREES, FORMATS, MAX_SEQUENCES, USUAL_DEGREES, as_a_gpu

PROMPT, ANSWER, INTERVAL_S = 2000.0, 500.0, 0.045
"""The base case's mean lengths, and a mean interval below its target."""
SHAPES = tuple(range(1, MAX_SEQUENCES + 1))


def device(sku: str, *, as_gpu: bool = False) -> Device:
    """A device as the study takes it, with its card's coefficients or those fitted on Hopper GPUs."""
    card: dict[str, Any] = {**catalog.device_card(sku), **CARDS.get(sku, {})}
    if as_gpu:
        card |= as_a_gpu(sku)
    return catalog.device_from_card(card, source=sku)


def worker(sku: str, model: str, tensor: int, *, as_gpu: bool = False) -> Worker:
    """A replica over ``tensor`` logical devices under vLLM."""
    formats = FORMATS.get(sku, {"weights": "fp8", "kv_cache": "fp8"})
    return Worker.checked(
        model=catalog.model(model),
        device=device(sku, as_gpu=as_gpu),
        cut=Parallelism(tensor=tensor),
        precision=Precision(**formats),
        engine=replace(catalog.engine("vllm"), max_sequences=MAX_SEQUENCES),
    )


def rates(sku: str, model: str, *, as_gpu: bool = False) -> dict[str, float] | None:
    """The best tokens/s per sold unit over the study's tensor degrees, reading and writing; None where nothing fits.

    Written tokens: the largest batch that keeps the interval and for which the memory has room, at contexts of a prompt and
    half an answer. Compiled batch sizes are kept.
    """
    read = written = 0.0
    for tensor in DEGREES.get(sku, USUAL_DEGREES):
        try:
            built = worker(sku, model, tensor, as_gpu=as_gpu)
            room = in_flight(built, clients=float(MAX_SEQUENCES), prompt_tokens=PROMPT, output_tokens=ANSWER)
        except ValueError:
            continue
        if room < 1.0:
            continue
        units = float(built.units)
        read = max(read, PROMPT / float(prefill_time(built).busy_s(np.array([PROMPT]))[0]) / units)
        shapes = built.device.batch_shapes or SHAPES
        for batch in (float(shape) for shape in shapes if shape <= room):
            step = decode_step(built, sequences=batch).seconds(batch, PROMPT + ANSWER / 2.0)
            if step <= INTERVAL_S:
                written = max(written, batch / step / units)
    return {"read": read, "written": written} if read else None


def throughput(sku: str, model: str, prompt: float, answer: float) -> float:
    """Written tokens/s of one logical device whose batch is always as large as memory and engine allow."""
    built = worker(sku, model, 1)
    most = float(built.engine.max_sequences)
    batch = in_flight(built, clients=most, prompt_tokens=prompt, output_tokens=answer)
    step = decode_step(built, sequences=batch).seconds(batch, prompt + answer / 2.0)
    reading = float(prefill_time(built).busy_s(np.array([prompt]))[0])
    return batch / (step + batch * reading / answer)
