"""What must fit on one logical device: weights, activations, encoder, and the KV cache in what is left."""

from __future__ import annotations

from dataclasses import dataclass

from epd_models.architecture import Architecture, AttentionGroup
from epd_models.engine import Engine
from epd_models.parallelism import Parallelism
from epd_models.precision import BYTES_PER_VALUE, Precision

_BF16 = BYTES_PER_VALUE["bf16"]


def language_weights_bytes(model: Architecture, precision: Precision, cut: Parallelism) -> float:
    """Bytes of the language model's weights on one logical device.

    Embedding and output head stay in BF16 and are cut by the tensor degree only; routed experts are spread over all
    ranks of a pipeline stage; attention data parallelism repeats everything else.
    """
    per_value = BYTES_PER_VALUE[precision.weights]
    experts = model.routed_expert_parameters
    rest = model.parameters - experts - model.embedding_parameters
    ranks = cut.tensor * cut.attention_data
    return (
        model.embedding_parameters * _BF16 / cut.tensor
        + rest * per_value / (cut.tensor * cut.pipeline)
        + experts * per_value / (ranks * cut.pipeline)
    )


def encoder_weights_bytes(model: Architecture, precision: Precision) -> float:
    """Bytes of the vision tower and its projector; repeated on every rank (the encoder runs data-parallel)."""
    return 0.0 if model.vision is None else model.vision.parameters * BYTES_PER_VALUE[precision.encoder]


def activation_bytes(model: Architecture, engine: Engine, cut: Parallelism) -> float:
    """Peak activations of one iteration at the engine's token budget, plus logits of all sequences (estimate).

    Residual stream, attention inputs and outputs and the two halves of the feed-forward are alive together; experts
    see each token ``active`` times.
    """
    width = model.dense_intermediate if model.dense_layers else 0
    if model.experts is not None:
        width = max(width, model.experts.dim * model.experts.active + model.experts.shared_dim)
    tokens = engine.max_batched_tokens
    return (
        tokens * (6.0 * model.hidden + 2.0 * width / cut.tensor) * _BF16
        + engine.max_sequences * model.vocab * 4.0 / cut.tensor
    )


def encoder_activation_bytes(model: Architecture, positions: float) -> float:
    """Activations of the vision tower for ``positions`` patches in flight (estimate: 16 values per position, layer-wise
    reuse)."""
    return 0.0 if model.vision is None else positions * (12.0 * model.vision.hidden + 2.0 * model.vision.mlp) * _BF16


def _group_bytes_per_token(group: AttentionGroup, kv_bytes: float, cut: Parallelism) -> float:
    if group.kind == "mla":
        return group.latent_dim * kv_bytes * group.layers / cut.pipeline
    if group.kind in ("full", "sliding", "cross"):
        shards = min(cut.tensor, group.kv_heads)
        return 2.0 * group.kv_heads * group.head_dim * kv_bytes * group.layers / (shards * cut.pipeline)
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
    """KV memory of a sequence on one logical device under this cut.

    GQA heads divide over at most ``kv_heads`` ranks; MLA latents do not divide at all; recurrent state divides by the
    tensor degree.
    """
    kv_bytes = BYTES_PER_VALUE[precision.kv_cache]
    per_token, fixed, cross = 0.0, 0.0, 0.0
    windows: list[tuple[int, float]] = []
    for group in model.attention:
        size = _group_bytes_per_token(group, kv_bytes, cut)
        if group.kind in ("full", "mla"):
            per_token += size
        elif group.kind == "sliding":
            windows.append((group.window or 0, size))
        elif group.kind == "cross":
            cross += size * group.positions
        else:
            fixed += group.state_bytes / (cut.tensor * cut.pipeline)
    return KvShape(per_token=per_token, windows=tuple(windows), fixed=fixed, per_image_sequence=cross)
