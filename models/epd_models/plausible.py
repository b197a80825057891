"""Measured runs that contradict themselves: what was written down of them cannot all be so, whatever the coefficients."""

from __future__ import annotations

import dataclasses

import numpy as np

from epd_models.device import Coefficients
from epd_models.serving import Prediction, Run, closed_loop
from epd_models.stages.decode import decode_step
from epd_models.stages.prefill import prefill_time
from epd_models.worker import Worker

WAIT_FACTOR = 20.0
"""Times the predicted first token beyond which a wait has another cause than the prompts and the cache."""


def contradiction(run: Run, *, ttft_s: float | None, itl_s: float | None) -> str:
    """Why a run on aggregated workers cannot have been as it is written down; empty where it can.

    Two checks, on what a closed loop must obey. In one cycle (first token and all others) every client gets one answer,
    so a replica reads all clients' prompts and makes an iteration per token; that cannot be done in less than the
    device's peak FLOP/s and bandwidth allow. And a first token cannot wait many times as long as prompts and room in the
    cache explain, unless the engine decodes fewer sequences than there are clients.

    Parameters
    ----------
    ttft_s, itl_s : float or None
        As measured, seconds.
    """
    if itl_s is None or ttft_s is None or run.prefill is not None:
        return ""
    cycle = ttft_s + run.output_tokens * itl_s
    least = _least_cycle_s(run)
    if least > cycle:
        return (
            f"the times mean that all clients are answered in {cycle:.3g} s, but the device takes {least:.3g} s at its "
            "peaks: prompts were cached or read elsewhere, or concurrency counts other devices too"
        )
    expected = closed_loop(run).ttft_s
    if ttft_s > WAIT_FACTOR * expected:
        return (
            f"a first token waits {ttft_s:.3g} s where prompts and cache explain {expected:.2g} s: the engine was told to "
            "decode fewer sequences than there are clients (give max_sequences), or was warming up"
        )
    return ""


def remarked(prediction: Prediction) -> Prediction:
    """The prediction with a remark where what was measured of its row contradicts itself."""
    if prediction.run is None:
        return prediction
    row = prediction.row
    found = contradiction(prediction.run, ttft_s=row.ttft_s, itl_s=row.itl_s)
    return dataclasses.replace(prediction, reason="; ".join(text for text in (prediction.reason, found) if text))


def _least_cycle_s(run: Run) -> float:
    """Seconds in which a replica answers all its clients once if every kernel reached its peak."""
    worker, clients = _ideal(run.decode.worker), run.concurrency / run.decode.replicas
    context = run.prompt_tokens + run.output_tokens / 2.0
    lane = clients / worker.cut.pipeline
    step = decode_step(worker, sequences=lane)
    prompt = float(prefill_time(worker).busy_s(np.array([run.prompt_tokens]))[0])
    return clients * prompt + run.output_tokens * step.seconds(lane, context) / step.tokens


def _ideal(worker: Worker) -> Worker:
    values = {
        field.name: (1.0 if field.name.endswith("_share") else 0.0)
        for field in dataclasses.fields(Coefficients)
        if field.name != "provenance"
    }
    coefficients = Coefficients(**values, provenance=worker.coefficients.provenance)
    device = dataclasses.replace(worker.device, coefficients={"default": coefficients})
    return dataclasses.replace(worker, device=device)
