"""Files of measurements made from the model's own times, multiplied."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from epd_models.measurements import REQUIRED
from epd_models.serving import Group, Run, closed_loop
from epd_models.stages.decode import decode_seconds
from epd_models.stages.encode import encode_time
from epd_models.stages.prefill import analytic_prefill
from epd_models.vision import image_load
from epd_models.worker import Worker

HEADER = "stage,model,sku,dtype,cut,batch,context_tokens,new_tokens,megapixels,part,time_ms"


def same(_: float) -> float:
    """The model's times as they are."""
    return 1.0


def stage_rows(
    worker: Worker,
    factor: Callable[[float], float] = same,
    *,
    stages: Sequence[str] = ("decode", "prefill", "encode"),
    batches: Sequence[float] = (1, 4, 16, 64, 256, 1024),
    contexts: Sequence[float] = (128, 1024, 8192),
    prompts: Sequence[float] = (128, 512, 2048, 8192),
    megapixels: Sequence[float] = (0.1, 1.0, 4.0),
) -> list[str]:
    """Rows of stage times; ``factor`` multiplies those of each batch, prompt or image size."""
    head = f"{worker.model.name},{worker.device.sku},{worker.precision.weights},{worker.cut.label}"
    rows = []
    if "decode" in stages:
        for context in contexts:
            for batch in batches:
                lane = batch / worker.cut.pipeline
                seconds = float(decode_seconds(worker, np.array([lane]), np.array([float(context)]))[0]) * factor(batch)
                rows.append(f"decode,{head},{batch},{context},,,,{seconds * 1e3!r}")
    if "prefill" in stages:
        time = analytic_prefill(worker)
        for new in prompts:
            chunks = -(-new // worker.engine.max_batched_tokens)
            seconds = float(time.own_s(np.array([float(new)]))[0]) - time.per_prompt + time.per_chunk * chunks
            rows.append(f"prefill,{head},,,{new},,,{seconds * factor(new) * 1e3!r}")
    if "encode" in stages and worker.model.vision is not None:
        for size in megapixels:
            side = round((size * 1e6) ** 0.5)
            load = image_load(worker.model.vision, side, side)
            one = encode_time(worker.model.vision, worker.device, worker.engine, load=load, megapixels=size)
            image = f"{worker.model.name},{worker.device.sku},bf16,{worker.cut.label}"
            rows.append(f"encode,{image},,,,{size},,{one.serial_s * factor(size) * 1e3!r}")
    return rows


def stage_file(*rows: str) -> str:
    """A file of stage times."""
    return "\n".join([HEADER, *rows]) + "\n"


def loop_file(worker: Worker, measured: Worker | None = None, *, sizes: Sequence[tuple[int, int, int]]) -> str:
    """A file of serving runs ``(prompt, output, concurrency)``, as ``measured`` would give them."""
    lines = [",".join(REQUIRED)]
    for prompt, output, concurrency in sizes:
        run = Run(
            decode=Group(worker=measured or worker, replicas=1),
            prompt_tokens=float(prompt),
            output_tokens=float(output),
            concurrency=float(concurrency),
        )
        times = closed_loop(run)
        cells = [worker.model.name, worker.precision.weights, worker.device.sku, worker.engine.name]
        numbers = [worker.cut.logical_devices, worker.cut.tensor, prompt, output, concurrency]
        lines.append(",".join(map(str, [*cells, *numbers, repr(times.ttft_s * 1e3), repr(times.itl_s * 1e3)])))
    return "\n".join(lines) + "\n"


def with_source(worker: Worker, source: object) -> Worker:
    """The worker with times of another source."""
    return dataclasses.replace(worker, source=source)  # type: ignore[arg-type]
