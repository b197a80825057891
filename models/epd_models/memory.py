"""What must fit on one logical device: weights, activations, encoder, and the KV cache in what is left."""

from __future__ import annotations

import math
from dataclasses import dataclass

from epd_models.architecture import Architecture, AttentionGroup
from epd_models.engine import Engine
from epd_models.parallelism import Parallelism
from epd_models.precision import BYTES_PER_VALUE, Precision

_BF16 = BYTES_PER_VALUE["bf16"]
_KEY_VALUE_KINDS = ("full", "sliding", "cross")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWeights:
    """Bytes of all layers on one rank, added up over the pipeline stages; embedding and output head left out.

    Attributes
    ----------
    shared : float
        What every token passes through: attention, dense and shared feed-forward, routers.
    routed : float
        Routed experts.
    """

    shared: float
    routed: float


def layer_weights(model: Architecture, precision: Precision, cut: Parallelism) -> LayerWeights:
    """Bytes of the layers on one rank of a replica.

    Tensor parallelism divides the matrices, with three exceptions: key and value projections divide by at most the
    key/value heads; MLA down-projections and expert routers do not divide. Routed experts spread evenly over all ranks;
    attention data parallelism repeats everything else. Published MXFP4 mixtures of experts (gpt-oss) keep all but the
    experts in BF16.
    """
    per_value = BYTES_PER_VALUE[precision.weights]
    experts = model.experts
    whole = 0.0 if experts is None else float(model.hidden) * experts.routed * experts.layers
    heads = heads_cut = 0.0
    for group in model.attention:
        if group.kind == "mla":
            whole += float(model.hidden) * (group.latent_dim + group.query_latent_dim) * group.layers
        elif group.kind in _KEY_VALUE_KINDS:
            projections = 2.0 * model.hidden * group.kv_heads * group.head_dim * group.layers
            heads += projections
            heads_cut += projections / min(cut.tensor, group.kv_heads)
    rest = model.parameters - model.embedding_parameters - model.routed_expert_parameters - heads - whole
    wide = experts is not None and precision.weights == "mxfp4"
    return LayerWeights(
        shared=(rest / cut.tensor + heads_cut + whole) * (_BF16 if wide else per_value),
        routed=model.routed_expert_parameters * per_value / (cut.tensor * cut.attention_data),
    )


def stage_share(model: Architecture, cut: Parallelism) -> float:
    """Share of the layers on the fullest pipeline stage."""
    return math.ceil(model.layers / cut.pipeline) / model.layers


def language_weights_bytes(model: Architecture, precision: Precision, cut: Parallelism) -> float:
    """Bytes of the language model's weights on the fullest logical device.

    Embedding and output head stay in BF16 and are cut by the tensor degree only; a pipeline has one at each end, where
    tied ones are stored twice.
    """
    layers = layer_weights(model, precision, cut)
    ends = model.embedding_parameters if cut.pipeline == 1 else float(model.vocab) * model.hidden
    return ends * _BF16 / cut.tensor + (layers.shared + layers.routed) * stage_share(model, cut)


def encoder_weights_bytes(model: Architecture, precision: Precision) -> float:
    """Bytes of the vision tower and its projector; repeated on every rank (the encoder runs data-parallel)."""
    return 0.0 if model.vision is None else model.vision.parameters * BYTES_PER_VALUE[precision.encoder]


def activation_bytes(model: Architecture, engine: Engine, cut: Parallelism) -> float:
    """Peak activations of one iteration at the engine's token budget, plus logits of all sequences (estimate).

    Residual stream, attention inputs and outputs and the two halves of the feed-forward are alive together. Experts
    see each token ``active`` times, and their outputs stand side by side until they are added up; under attention data
    parallelism a rank's experts see the tokens of all ranks. Logits are gathered in FP32 over the whole vocabulary.
    """
    tokens = float(engine.max_batched_tokens)
    feed_forward = tokens * 2.0 * model.dense_intermediate / cut.tensor if model.dense_layers else 0.0
    experts = model.experts
    if experts is not None:
        copies = tokens * cut.attention_data * experts.active / cut.expert
        slices = cut.tensor * cut.attention_data / cut.expert
        routed = copies * (model.hidden + 2.0 * experts.dim / slices)
        feed_forward = max(feed_forward, routed + tokens * 2.0 * experts.shared_dim / cut.tensor)
    return (tokens * 6.0 * model.hidden + feed_forward) * _BF16 + engine.max_sequences * model.vocab * 4.0


def encoder_activation_bytes(model: Architecture, positions: float) -> float:
    """Activations of the vision tower for ``positions`` patches in flight (estimate: 12 values of its width and 2 of
    its feed-forward per position, reused from layer to layer)."""
    return 0.0 if model.vision is None else positions * (12.0 * model.vision.hidden + 2.0 * model.vision.mlp) * _BF16


def kv_bytes_per_token(group: AttentionGroup, precision: Precision, cut: Parallelism) -> float:
    """Bytes that one cached token takes on one logical device of all layers of a group, whatever the pipeline degree.

    GQA heads divide over at most ``kv_heads`` ranks; MLA latents do not divide at all; linear attention caches none.
    """
    kv_bytes = BYTES_PER_VALUE[precision.kv_cache]
    if group.kind == "mla":
        return group.latent_dim * kv_bytes * group.layers
    if group.kind in _KEY_VALUE_KINDS:
        shards = min(cut.tensor, group.kv_heads)
        return 2.0 * group.kv_heads * group.head_dim * kv_bytes * group.layers / shards
    return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KvShape:
    """KV memory of a sequence on one logical device, in bytes.

    Attributes
    ----------
    per_token : float
        Grows with every token of context.
    windows : tuple of (window, bytes per token)
        Grows up to the window.
    fixed : float
        Recurrent state per sequence.
    per_image_sequence : float
        Cross-attention cache of a sequence that carries images.
    """

    per_token: float
    windows: tuple[tuple[int, float], ...]
    fixed: float
    per_image_sequence: float

    def held(self, context: float, *, images: bool = False) -> float:
        """Bytes held by one sequence at ``context`` tokens."""
        windowed = sum(per_token * min(context, window) for window, per_token in self.windows)
        return self.fixed + self.per_token * context + windowed + (self.per_image_sequence if images else 0.0)


def kv_shape(model: Architecture, precision: Precision, cut: Parallelism) -> KvShape:
    """KV memory of a sequence on the fullest logical device under this cut; recurrent state divides by the tensor
    degree."""
    share = stage_share(model, cut)
    per_token, fixed, cross = 0.0, 0.0, 0.0
    windows: list[tuple[int, float]] = []
    for group in model.attention:
        size = kv_bytes_per_token(group, precision, cut) * share
        if group.kind in ("full", "mla"):
            per_token += size
        elif group.kind == "sliding":
            windows.append((group.window or 0, size))
        elif group.kind == "cross":
            cross += size * group.positions
        else:
            fixed += group.state_bytes / cut.tensor * share
    return KvShape(per_token=per_token, windows=tuple(windows), fixed=fixed, per_image_sequence=cross)
