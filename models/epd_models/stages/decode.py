"""DECODE: seconds of one engine iteration as a function of the sequences in it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from epd_models.memory import kv_shape
from epd_models.precision import BYTES_PER_VALUE
from epd_models.worker import Worker

_BF16 = BYTES_PER_VALUE["bf16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """One decode iteration: ``fixed + per_sequence * B + per_context * (sum of contexts)`` seconds.

    Attributes
    ----------
    fixed : float
        alpha: weights streamed, launch and collective overheads, seconds.
    per_sequence : float
        beta: matrix FLOPs, state traffic and collective payload of one sequence, seconds.
    per_context : float
        gamma: streaming and attending over one token of context, seconds.
    windows : tuple of (window, seconds per token)
        Extra per context token up to the window.
    tokens : float
        Tokens that one sequence gains per iteration (above 1 with speculative decoding).
    """

    fixed: float
    per_sequence: float
    per_context: float
    windows: tuple[tuple[int, float], ...]
    tokens: float

    def context_s(self, context: float) -> float:
        """Seconds that ``context`` tokens of one sequence add to an iteration."""
        return self.per_context * context + sum(t * min(context, window) for window, t in self.windows)

    def seconds(self, sequences: float, context: float) -> float:
        """Seconds of an iteration over ``sequences`` sequences of ``context`` tokens each."""
        return self.fixed + sequences * (self.per_sequence + self.context_s(context))


def _streamed_expert_share(worker: Worker, tokens: float) -> tuple[float, float]:
    """Expected share of the routed experts that a batch of ``tokens`` tokens touches, and its slope per token.

    Tokens choose experts independently and evenly: share = 1 - (1 - k/E)^tokens.
    """
    experts = worker.model.experts
    if experts is None:
        return 0.0, 0.0
    miss = 1.0 - experts.active / experts.routed
    if miss <= 0.0:
        return 1.0, 0.0
    untouched = miss**tokens
    return 1.0 - untouched, -math.log(miss) * untouched


def decode_step(worker: Worker, *, sequences: float) -> StepTime:
    """Iteration time of a worker, linearised at a batch of ``sequences``.

    Exact in the batch except for mixtures of experts, whose streamed weights are concave in it: there the tangent at
    ``sequences`` bounds the time from above for every batch.

    Parameters
    ----------
    sequences : float
        Sequences decoded together by the replica at the operating point.
    """
    model, cut, c = worker.model, worker.cut, worker.coefficients
    ranks = cut.tensor * cut.attention_data
    draft = worker.engine.speculative
    width = 1.0 + (draft.draft_tokens if draft else 0)
    emitted = 1.0 + (draft.accepted_tokens if draft else 0.0)

    per_value = BYTES_PER_VALUE[worker.precision.weights]
    head = float(model.vocab) * model.hidden
    experts = model.routed_expert_parameters
    rest = model.parameters - experts - model.embedding_parameters
    share, slope = _streamed_expert_share(worker, sequences * width)
    expert_stream_s = experts * per_value / ranks / worker.bandwidth
    dense_stream_s = (rest * per_value + head * _BF16) / cut.tensor / worker.bandwidth
    fixed = dense_stream_s + expert_stream_s * max(0.0, share - slope * sequences * width)
    per_sequence = expert_stream_s * slope * width

    flops = 2.0 * (model.active_parameters - model.embedding_parameters + head) * width
    per_sequence += flops / ranks / (worker.peak * c.decode_share)

    overheads = c.step_overhead_s + model.layers * c.layer_overhead_s
    collectives = (2 * model.layers if cut.tensor > 1 else 0) + (
        2 * model.experts.layers if model.experts and cut.attention_data * cut.expert > 1 else 0
    )
    overheads += collectives * c.collective_latency_s + (cut.pipeline - 1) * c.collective_latency_s
    if draft:
        overheads += draft.draft_tokens * (dense_stream_s / model.layers + c.step_overhead_s / 4 + c.layer_overhead_s)
    per_sequence += width * collective_bytes_per_token(worker) / worker.link

    kv = kv_shape(model, worker.precision, cut)
    stages = cut.pipeline
    peak = worker.device.peaks.get("bf16", worker.peak) * c.decode_share
    per_context = kv.per_token * stages / worker.bandwidth / cut.attention_data
    windows = tuple((w, size * stages / worker.bandwidth / cut.attention_data) for w, size in kv.windows)
    for group in model.attention:
        if group.kind == "mla":
            per_context += 4.0 * group.heads * group.latent_dim * group.layers * width / ranks / peak
    per_sequence += 2.0 * kv.fixed * stages / worker.bandwidth / cut.attention_data
    return StepTime(
        fixed=fixed + overheads,
        per_sequence=per_sequence,
        per_context=per_context,
        windows=windows,
        tokens=emitted,
    )


def collective_bytes_per_token(worker: Worker) -> float:
    """Bytes that one token sends over each rank's link in one pass through the model.

    Two all-reduces of the hidden state per layer under tensor parallelism (ring: 2 (t-1)/t of the payload); dispatch
    and combine of ``active`` copies per expert layer where experts are spread over ranks.
    """
    model, cut = worker.model, worker.cut
    total = 0.0
    if cut.tensor > 1:
        total += 2.0 * model.layers * model.hidden * _BF16 * 2.0 * (cut.tensor - 1) / cut.tensor / cut.attention_data
    if model.experts is not None and cut.attention_data > 1:
        ranks = cut.tensor * cut.attention_data
        payload = model.experts.active * model.hidden * _BF16 * 2.0 * model.experts.layers
        total += payload * (ranks - 1) / ranks / ranks
    return total + (cut.pipeline - 1) * model.hidden * _BF16 / cut.tensor
