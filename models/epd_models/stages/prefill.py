"""PREFILL: seconds to read a prompt into the KV cache."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from epd_models.memory import layer_weights
from epd_models.precision import BYTES_PER_VALUE
from epd_models.ratios import Curve
from epd_models.stages.decode import collective_s_per_token, collectives, layers_overhead_s
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
        Own latency over device time of the matrix part: attention data parallelism prefills one prompt on one of its
        tensor groups, whose experts alone are spread over all ranks.
    attention_factor : float
        The same for attention, which stays on that group.
    per_prompt : float
        Latency of a first token beyond the device's work, seconds; takes no device time.
    ratios : Curve or None
        What multiplies device times of prompts, over their new tokens.
    """

    per_token: float
    per_token_pair: float
    windows: tuple[tuple[int, float], ...]
    per_chunk: float
    latency_factor: float
    attention_factor: float
    per_prompt: float
    ratios: Curve | None = None

    def busy_s(self, new: Floats, cached: Floats | float = 0.0) -> Floats:
        """Lane seconds taken by prompts of ``new`` tokens behind ``cached`` ones; shape of ``new``."""
        return self._corrected(self.per_token * new + self._attention_s(new, cached), new)

    def own_s(self, new: Floats, cached: Floats | float = 0.0) -> Floats:
        """Seconds until a prompt is read when nothing else runs, iteration overheads left out; shape of ``new``."""
        device = self.latency_factor * self.per_token * new + self.attention_factor * self._attention_s(new, cached)
        return self.per_prompt + self._corrected(device, new)

    def _corrected(self, seconds: Floats, new: Floats) -> Floats:
        return seconds if self.ratios is None else seconds * self.ratios(new)

    def _attention_s(self, new: Floats, cached: Floats | float) -> Floats:
        seconds = self.per_token_pair * new * (cached + new / 2.0)
        for window, per_pair in self.windows:
            growing = np.clip(window - cached, 0.0, new)
            seconds = seconds + per_pair * (growing * (cached + growing / 2.0) + (new - growing) * window)
        return seconds


def prefill_time(worker: Worker) -> PrefillTime:
    """Prefill times of one lane of a worker: those of the analytic model with the ratios of the worker's source."""
    time, ratios = analytic_prefill(worker), worker.ratios
    if ratios.prefill is None:
        return time
    return replace(time, ratios=ratios.prefill, per_chunk=time.per_chunk * ratios.per_chunk)


def analytic_prefill(worker: Worker) -> PrefillTime:
    """The analytic model's prefill coefficients of one lane of a worker (see
    :func:`epd_models.stages.decode.analytic_step`).

    FLOPs: two per active parameter and token (embedding left out, the output head runs once per prompt), four per head
    dimension and attended pair (MLA keys carry a rotary part of 64 besides), six per state element and token in linear
    attention. Cross-attention counts as if every prompt carried its images. Every layer moves the hidden state of a token
    through memory a number of times, and among experts that of each copy of it; ranks of a tensor group repeat the
    former, ranks that hold slices of the same experts the latter. An iteration streams all weights once.
    """
    model, cut, c = worker.model, worker.cut, worker.coefficients
    ranks = cut.tensor * cut.attention_data
    rate = worker.dense_peak * c.prefill_share
    attention_rate = worker.device.peaks["bf16"] * c.attention_share
    experts = model.experts
    routed_flops = worker.expert_flops_per_token
    dense_flops = 2.0 * (model.active_parameters - model.embedding_parameters) - routed_flops
    move_s = c.activation_passes * model.hidden * _BF16 / worker.device.bandwidth
    narrow = 0.0
    pair, windows = 0.0, []
    for group in model.attention:
        per_pair = 4.0 * group.heads * group.head_dim * group.layers
        if group.kind == "linear":
            narrow += 6.0 * group.linear_value_heads * group.linear_head_dim**2 * group.layers
        elif group.kind == "cross":
            narrow += per_pair * group.positions
        elif group.kind == "sliding":
            windows.append((group.window or 0, per_pair / ranks / attention_rate))
        elif group.kind == "mla":
            pair += per_pair + 2.0 * 64 * group.heads * group.layers
        else:
            pair += per_pair
    on_group = dense_flops / rate + narrow / attention_rate + move_s * model.layers * cut.tensor
    on_all = routed_flops / (worker.expert_peak * c.expert_share)
    if experts is not None:
        on_all += move_s * experts.layers * experts.active * (ranks / cut.expert)
    weights = layer_weights(model, worker.precision, cut)
    streamed_s = (weights.shared + float(model.vocab) * model.hidden * _BF16 / cut.tensor) / worker.bandwidth
    streamed_s += weights.routed / worker.expert_bandwidth
    sending = collective_s_per_token(worker)
    per_token = (on_group + on_all) / ranks + sending
    alone = on_group / cut.tensor + on_all / ranks + sending * cut.attention_data
    return PrefillTime(
        per_token=per_token,
        per_token_pair=pair / ranks / attention_rate,
        windows=tuple(windows),
        per_chunk=c.step_overhead_s + layers_overhead_s(worker) + collectives(worker) * c.collective_latency_s + streamed_s,
        latency_factor=alone / per_token,
        attention_factor=float(cut.attention_data),
        per_prompt=c.prompt_overhead_s,
    )
