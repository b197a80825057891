"""PREFILL: seconds to read a prompt into the KV cache."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epd_models.precision import BYTES_PER_VALUE
from epd_models.stages.decode import collective_bytes_per_token
from epd_models.worker import Worker

_BF16 = BYTES_PER_VALUE["bf16"]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillTime:
    """Prefill of a prompt: ``per_token * new + attention terms`` seconds of device time.

    Attributes
    ----------
    per_token : float
        Matrix FLOPs and collective payload, seconds per new token.
    per_token_pair : float
        Attention, seconds per (new token x attended token).
    windows : tuple of (window, seconds per pair)
        The same for layers that attend at most ``window`` tokens back.
    per_chunk : float
        Overheads of one iteration that prefills, seconds; a loop that decodes anyway does not pay them again.
    latency_factor : float
        Own latency over device time: attention data parallelism prefills one prompt on one of its ranks.
    """

    per_token: float
    per_token_pair: float
    windows: tuple[tuple[int, float], ...]
    per_chunk: float
    latency_factor: float

    def busy_s(self, new: Floats, cached: float = 0.0) -> Floats:
        """Replica seconds taken by prompts of ``new`` tokens behind ``cached`` ones; shape of ``new``."""
        pairs = new * (cached + new / 2.0)
        seconds = self.per_token * new + self.per_token_pair * pairs
        for window, per_pair in self.windows:
            seconds = seconds + per_pair * np.minimum(pairs, new * window)
        return seconds

    def own_s(self, new: float, cached: float = 0.0) -> float:
        """Seconds until one prompt is read when nothing else runs, iteration overheads left out."""
        return self.latency_factor * float(self.busy_s(np.array([new]), cached)[0])


def prefill_time(worker: Worker) -> PrefillTime:
    """Prefill coefficients of a worker.

    FLOPs: two per active parameter and token (embedding left out, the output head runs once per prompt), four per head
    dimension and attended pair. Pipeline stages work on successive chunks, so they change neither the latency nor, per
    lane, the throughput.
    """
    model, cut, c = worker.model, worker.cut, worker.coefficients
    ranks = cut.tensor * cut.attention_data
    rate = worker.peak * c.prefill_share
    attention_rate = worker.device.peaks.get("bf16", worker.peak) * c.prefill_share
    experts = model.experts
    expert_active = 3.0 * model.hidden * experts.dim * experts.active * experts.layers if experts is not None else 0.0
    rest_active = model.active_parameters - model.embedding_parameters - expert_active
    linear_flops = 0.0
    pair, windows = 0.0, []
    for group in model.attention:
        if group.kind == "linear":
            linear_flops += 6.0 * group.linear_value_heads * group.linear_head_dim**2 * group.layers
        elif group.kind == "mla":
            pair += group.heads * (4.0 * group.head_dim + 128.0) * group.layers
        elif group.kind == "sliding":
            per_pair = 4.0 * group.heads * group.head_dim * group.layers / ranks / attention_rate
            windows.append((group.window or 0, per_pair))
        elif group.kind == "full":
            pair += 4.0 * group.heads * group.head_dim * group.layers
    per_token = (2.0 * (rest_active + expert_active) + linear_flops) / ranks / rate
    per_token += collective_bytes_per_token(worker) / worker.link
    collectives = 2 * model.layers if cut.tensor > 1 else 0
    one_rank = 2.0 * rest_active / cut.tensor / rate + 2.0 * expert_active / ranks / rate
    both = 2.0 * (rest_active + expert_active) / ranks / rate
    weights = model.parameters * BYTES_PER_VALUE[worker.precision.weights] / ranks
    return PrefillTime(
        per_token=per_token,
        per_token_pair=pair / ranks / attention_rate,
        windows=tuple(windows),
        per_chunk=c.step_overhead_s
        + model.layers * c.layer_overhead_s
        + collectives * c.collective_latency_s
        + weights / worker.bandwidth,
        latency_factor=one_rank / both,
    )
