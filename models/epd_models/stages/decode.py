"""DECODE: seconds of one engine iteration as a function of the sequences in it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from epd_models.architecture import AttentionGroup
from epd_models.memory import kv_bytes_per_token, layer_weights
from epd_models.precision import BYTES_PER_VALUE
from epd_models.ratios import Surface, safe_line
from epd_models.worker import Worker

_BF16 = BYTES_PER_VALUE["bf16"]
Floats = NDArray[np.float64]


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

    def contexts_s(self, contexts: Floats) -> Floats:
        """:meth:`context_s` of many contexts; shape of ``contexts``."""
        return self.per_context * contexts + sum(t * np.minimum(contexts, window) for window, t in self.windows)

    def slower(self, factor: float) -> StepTime:
        """The same iteration, ``factor`` times as long."""
        return StepTime(
            fixed=self.fixed * factor,
            per_sequence=self.per_sequence * factor,
            per_context=self.per_context * factor,
            windows=tuple((window, seconds * factor) for window, seconds in self.windows),
            tokens=self.tokens,
        )

    def seconds(self, sequences: float, context: float) -> float:
        """Seconds of an iteration over ``sequences`` sequences of ``context`` tokens each."""
        return self.fixed + sequences * (self.per_sequence + self.context_s(context))


def _expert_share(worker: Worker, tokens: float) -> tuple[float, float]:
    """Share of its routed experts that the busiest rank streams for a batch of ``tokens`` tokens, as the intercept and
    the slope per token of its tangent.

    Tokens choose experts independently and evenly, so an expert is hit with probability ``s = 1 - (1 - k/E)^tokens``.
    Of e groups of m experts, the busiest is hit by about ``s + z sqrt(s (1 - s) / m)`` of its experts, at most by all;
    z is the expected maximum of e standard normal variables (Blom's approximation). Both are concave in the batch and
    never fall, so the tangent lies above everywhere.
    """
    experts = worker.model.experts
    if experts is None:
        return 0.0, 0.0
    if experts.active == experts.routed:
        return 1.0, 0.0
    log_miss = math.log1p(-experts.active / experts.routed)
    missed = math.exp(log_miss * tokens)
    hit = -math.expm1(log_miss * tokens)
    spread = _busiest_spread(worker)
    deviation = math.sqrt(hit * missed)
    busiest = hit + spread * deviation
    if busiest >= 1.0:
        return 1.0, 0.0
    slope = (1.0 + spread * (missed - hit) / (2.0 * deviation)) * -log_miss * missed
    return max(0.0, busiest - slope * tokens), slope


def _experts_hit(worker: Worker, tokens: Floats) -> Floats:
    """The share that :func:`_expert_share` is the tangent of, at each number of tokens; shape of ``tokens``."""
    experts = worker.model.experts
    assert experts is not None
    if experts.active == experts.routed:
        return np.ones_like(tokens)
    log_missed = math.log1p(-experts.active / experts.routed) * tokens
    missed, hit = np.exp(log_missed), -np.expm1(log_missed)
    return np.asarray(np.minimum(1.0, hit + _busiest_spread(worker) * np.sqrt(hit * missed)))


def _busiest_spread(worker: Worker) -> float:
    """Standard deviations by which the busiest of the ranks that hold different experts exceeds their mean, over the square
    root of the experts of each."""
    experts = worker.model.experts
    assert experts is not None
    groups = worker.cut.expert
    return NormalDist().inv_cdf((groups - 0.375) / (groups + 0.25)) * math.sqrt(groups / experts.routed)


def _attention_s(worker: Worker, group: AttentionGroup, width: float) -> float:
    """Seconds that one cached token of one sequence adds to an iteration, over all layers of a group.

    The cache is streamed while the heads compute on it, so the longer of the two counts. FLOPs per query: four per
    head and dimension; MLA heads attend in the latent, whose values are a little narrower than the keys counted here.
    """
    if group.kind == "linear":
        return 0.0
    cut, c = worker.cut, worker.coefficients
    streaming = kv_bytes_per_token(group, worker.precision, cut) / worker.kv_bandwidth
    dimension = group.latent_dim if group.kind == "mla" else group.head_dim
    flops = 4.0 * group.heads * dimension * group.layers * width / cut.tensor
    computing = flops / (worker.device.peaks["bf16"] * c.attention_share)
    return max(streaming, computing) / cut.attention_data


def decode_step(worker: Worker, *, sequences: float, contexts: tuple[float, float] | None = None) -> StepTime:
    """Iteration time of one lane of a worker, linearised at a batch of ``sequences``.

    Where the worker's source has ratios, the line is the lowest at ``sequences`` that lies above all times of batches up
    to twice as large with ``contexts`` tokens of context each: it is safe, and exact where the ratio is the same for all.
    Otherwise it is the analytic one (:func:`analytic_step`).

    Parameters
    ----------
    sequences : float
        Sequences decoded together by one lane of the replica at the operating point, above 0.
    contexts : tuple of (float, float), optional
        Shortest and longest context of a sequence that the line is for; all that were measured where absent.

    Raises
    ------
    ValueError
        ``sequences`` is not above 0.
    """
    return DecodeTime(worker, contexts=contexts).at(sequences)


class DecodeTime:
    """Iteration times of one lane of a worker, linearised wherever they are asked for (see :func:`decode_step`)."""

    def __init__(self, worker: Worker, *, contexts: tuple[float, float] | None = None) -> None:
        self._worker, self._contexts = worker, contexts
        self._analytic = _AnalyticDecode(worker)
        self._ratios = worker.ratios.decode

    def at(self, sequences: float) -> StepTime:
        """The line at a batch of ``sequences``."""
        step = self._analytic.at(sequences)
        if self._ratios is None:
            return step
        return _measured_step(self._worker, step, self._ratios, sequences, self._contexts)


_COVERED = 2.0
"""How far beyond its own batch a line over measured times is kept above them: a loop is sized for batches that fill four
fifths of its level, and batches fluctuate."""
_GRID = (25, 5)
"""Batches and contexts at which it is held against them, the measured ones besides."""


def _measured_step(
    worker: Worker, step: StepTime, ratios: Surface, sequences: float, contexts: tuple[float, float] | None
) -> StepTime:
    low, high = (ratios.contexts[0], ratios.contexts[-1]) if contexts is None else contexts
    low, high = max(1.0, low), max(1.0, low, high)
    most = max(1.0, _COVERED * sequences)
    least = min(1.0, sequences)
    knots = {at for curve in ratios.curves for at in curve.at if least < at < most}
    batch = np.array(sorted({sequences, *np.geomspace(least, most, _GRID[0]).tolist(), *knots}))
    context = np.array(
        sorted({*np.geomspace(low, high, _GRID[1]).tolist(), *(c for c in ratios.contexts if low < c < high)})
    )
    grid, along = (a.ravel() for a in np.meshgrid(batch, context, indexing="ij"))
    ratio = ratios(grid, along)
    if float(ratio.min()) == float(ratio.max()):
        return _scaled(step, step.fixed * float(ratio[0]), float(ratio[0]))
    seconds = ratio * _analytic_seconds(worker, grid, along)
    varying = grid * (step.per_sequence + step.contexts_s(along))
    empty = step.fixed * float(ratio[: len(context)].max())
    at = sequences * float(step.per_sequence + step.context_s(math.sqrt(low * high)))
    fixed, slope = safe_line(np.append(varying, 0.0), np.append(seconds, empty), at)
    return _scaled(step, fixed, slope)


def _scaled(step: StepTime, fixed: float, slope: float) -> StepTime:
    return replace(
        step,
        fixed=fixed,
        per_sequence=step.per_sequence * slope,
        per_context=step.per_context * slope,
        windows=tuple((window, seconds * slope) for window, seconds in step.windows),
    )


def decode_seconds(worker: Worker, sequences: Floats, context: Floats) -> Floats:
    """Seconds of iterations of one lane over ``sequences`` sequences of ``context`` tokens each, without any
    linearisation; shapes broadcast.
    """
    ratios = worker.ratios.decode
    seconds = _analytic_seconds(worker, sequences, context)
    return seconds if ratios is None else seconds * ratios(sequences, context)


_EVERY_EXPERT = 1e12
"""Sequences that hit every expert."""


def _analytic_seconds(worker: Worker, sequences: Floats, context: Floats) -> Floats:
    step = analytic_step(worker, sequences=_EVERY_EXPERT)
    fixed: float | Floats = step.fixed
    if worker.model.experts is not None:
        speculative = worker.engine.speculative
        drafts = float(speculative.draft_tokens) if speculative else 0.0
        routed_s = layer_weights(worker.model, worker.precision, worker.cut).routed / worker.expert_bandwidth
        fixed = fixed - routed_s * (1.0 - _experts_hit(worker, sequences * (1.0 + drafts)))
        if drafts:
            fixed = fixed - drafts * routed_s / worker.model.experts.layers * (1.0 - _experts_hit(worker, sequences))
    return np.asarray(fixed + sequences * (step.per_sequence + step.contexts_s(context)))


def analytic_step(worker: Worker, *, sequences: float) -> StepTime:
    """The analytic model's iteration time of one lane of a worker, linearised at a batch of ``sequences``.

    A pipeline of p stages runs p lanes side by side; a lane's iteration passes all stages one after the other, so it
    takes as long as on one stage of the tensor degree alone, plus the hand-overs. Sequences spread evenly over the
    ranks of attention data parallelism; of the ranks that hold different experts, the busiest sets the pace. Weights,
    caches and FLOPs add up as if nothing overlapped, except inside attention.

    Exact in the batch except for mixtures of experts, whose streamed weights are concave in it: there the tangent at
    ``sequences`` bounds the time from above for every batch. Cross-attention counts as if every sequence carried its
    images.

    With speculative decoding an iteration verifies ``1 + draft_tokens`` positions per sequence, after as many passes
    through a draft of one layer and the output head (an estimate) as there are draft tokens.

    Parameters
    ----------
    sequences : float
        Sequences decoded together by one lane of the replica at the operating point, above 0.

    Raises
    ------
    ValueError
        ``sequences`` is not above 0.
    """
    return _AnalyticDecode(worker).at(sequences)


class _AnalyticDecode:
    """:func:`analytic_step` at any batch: all but the experts hit is the same for every batch."""

    def __init__(self, worker: Worker) -> None:
        model, cut, c = worker.model, worker.cut, worker.coefficients
        ranks = cut.tensor * cut.attention_data
        speculative = worker.engine.speculative
        drafts = float(speculative.draft_tokens) if speculative else 0.0
        width = 1.0 + drafts

        head = float(model.vocab) * model.hidden
        weights = layer_weights(model, worker.precision, cut)
        head_s = head * _BF16 / cut.tensor / worker.bandwidth
        shared_s = weights.shared / worker.bandwidth
        self._routed_s = weights.routed / worker.expert_bandwidth
        fixed = shared_s + head_s + drafts * (shared_s / model.layers + head_s)

        routed_flops = worker.expert_flops_per_token
        dense_flops = 2.0 * (model.active_parameters - model.embedding_parameters) - routed_flops
        dense = (dense_flops + 2.0 * head) * width + (dense_flops / model.layers + 2.0 * head) * drafts
        routed = routed_flops * (width + drafts / model.layers)
        per_sequence = dense / ranks / (worker.dense_peak * c.decode_share)
        per_sequence += routed / ranks / (worker.expert_peak * c.expert_share)
        per_sequence += c.sequence_overhead_s / cut.attention_data

        fixed += c.step_overhead_s * (1.0 + drafts / 4.0) + layers_overhead_s(worker) * (1.0 + drafts / model.layers)
        fixed += collectives(worker) * c.collective_latency_s
        per_sequence += width * collective_s_per_token(worker)

        per_context = 0.0
        windows = []
        for group in model.attention:
            seconds = _attention_s(worker, group, width)
            if group.kind == "linear":
                per_sequence += 2.0 * group.state_bytes / ranks / worker.kv_bandwidth
            elif group.kind == "sliding":
                windows.append((group.window or 0, seconds))
            elif group.kind == "cross":
                per_sequence += seconds * group.positions
            else:
                per_context += seconds
        self._worker, self._drafts = worker, drafts
        self._dense = StepTime(
            fixed=fixed,
            per_sequence=per_sequence,
            per_context=per_context,
            windows=tuple(windows),
            tokens=1.0 + (speculative.accepted_tokens if speculative else 0.0),
        )

    def at(self, sequences: float) -> StepTime:
        """The line at a batch of ``sequences``."""
        if sequences <= 0.0:
            raise ValueError(f"an operating point needs sequences to decode, found {sequences:g}")
        experts, dense = self._worker.model.experts, self._dense
        if experts is None:
            return dense
        width = 1.0 + self._drafts
        touched, per_token = _expert_share(self._worker, sequences * width)
        drafted, per_draft = _expert_share(self._worker, sequences) if self._drafts else (0.0, 0.0)
        draft_s = self._drafts * self._routed_s / experts.layers
        return StepTime(
            fixed=dense.fixed + self._routed_s * touched + draft_s * drafted,
            per_sequence=dense.per_sequence + self._routed_s * per_token * width + draft_s * per_draft,
            per_context=dense.per_context,
            windows=dense.windows,
            tokens=dense.tokens,
        )


def layers_overhead_s(worker: Worker) -> float:
    """Seconds of launching all layers once, whatever the batch."""
    model, c = worker.model, worker.coefficients
    seconds = model.layers * c.layer_overhead_s
    if worker.peak > worker.device.peaks["bf16"] and not worker.wide_dense:
        seconds += model.layers * c.narrow_layer_overhead_s
    seconds += sum(group.layers for group in model.attention if group.kind == "mla") * c.latent_layer_overhead_s
    if model.experts is not None:
        seconds += model.experts.layers * c.expert_layer_overhead_s
    return seconds


def _all_reduces(worker: Worker) -> int:
    """All-reduces inside the tensor group in one pass: after attention, and after the feed-forward unless attention data
    parallelism exchanges experts there."""
    model, cut = worker.model, worker.cut
    if cut.tensor == 1:
        return 0
    exchanged = model.experts.layers if model.experts is not None and cut.attention_data > 1 else 0
    return 2 * model.layers - exchanged


def collectives(worker: Worker) -> int:
    """Collective operations in one pass through the model: all-reduces, dispatch and combine of experts under attention
    data parallelism, hand-overs between pipeline stages."""
    model, cut = worker.model, worker.cut
    exchanges = 2 * model.experts.layers if model.experts is not None and cut.attention_data > 1 else 0
    return _all_reduces(worker) + exchanges + cut.pipeline - 1


def collective_bytes_per_token(worker: Worker) -> float:
    """Bytes that one token sends over each rank's link in one pass through the model, on average over the ranks.

    All-reduces of the hidden state (ring: 2 (t-1)/t of the payload). Dispatch and combine send a copy to every rank
    that holds a slice of one of the token's experts: ``active`` ranks where each expert is whole, all of them where
    experts are cut.
    """
    model, cut = worker.model, worker.cut
    ranks = cut.tensor * cut.attention_data
    payload = model.hidden * _BF16
    total = _all_reduces(worker) * payload * 2.0 * (cut.tensor - 1) / cut.tensor / cut.attention_data
    if model.experts is not None and cut.attention_data > 1:
        copies = min(model.experts.active * (ranks // cut.expert), ranks)
        total += 2.0 * model.experts.layers * copies * payload * (ranks - 1) / ranks / ranks
    return total + (cut.pipeline - 1) * payload / ranks


def collective_s_per_token(worker: Worker) -> float:
    """Seconds on the links that one token adds to a pass through the model; none where nothing is sent."""
    sent = collective_bytes_per_token(worker)
    return sent / worker.link if sent > 0.0 else 0.0
