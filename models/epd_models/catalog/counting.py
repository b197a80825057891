"""Parameters counted from shapes: what a checkpoint holds and what one token passes through."""

from __future__ import annotations

from collections.abc import Iterable

from epd_models.architecture import AttentionGroup, Experts

MLA_ROPE_DIM = 64
CONVOLUTION_TAPS = 4


def attention_parameters(group: AttentionGroup, hidden: int, *, output_gate: bool = False) -> float:
    """Weights of the projections of all layers of a group; biases and norms are left out.

    ``output_gate`` doubles the query projection (Qwen3.5). The rotary part of an MLA key has 64 dimensions in every
    published configuration.
    """
    width = group.heads * group.head_dim
    if group.kind == "mla":
        rank = group.latent_dim - MLA_ROPE_DIM
        query_width = group.heads * (group.head_dim + MLA_ROPE_DIM)
        query = (hidden + query_width) * group.query_latent_dim or hidden * query_width
        layer = query + hidden * group.latent_dim + 2 * rank * width + width * hidden
    elif group.kind == "linear":
        keys = group.linear_key_heads * group.linear_head_dim
        values = group.linear_value_heads * group.linear_head_dim
        mixed = 2 * keys + values
        layer = hidden * (mixed + 2 * values + 2 * group.linear_value_heads) + CONVOLUTION_TAPS * mixed
    else:
        key_values = 2 * hidden * group.kv_heads * group.head_dim
        layer = (3 if output_gate else 2) * hidden * width + key_values
    return float(layer) * group.layers


def language_model_parameters(
    *,
    hidden: int,
    vocab: int,
    tied_embeddings: bool,
    attention: Iterable[AttentionGroup],
    dense_layers: int,
    dense_intermediate: int,
    experts: Experts | None,
    gated_mlp: bool = True,
    output_gate: bool = False,
) -> tuple[float, float]:
    """All parameters of a language model, and those that one token passes through; embeddings count in both.

    Examples
    --------
    >>> layers = AttentionGroup(kind="full", layers=80, heads=64, kv_heads=8, head_dim=128)
    >>> total, active = language_model_parameters(
    ...     hidden=8192, vocab=128256, tied_embeddings=False, attention=[layers],
    ...     dense_layers=80, dense_intermediate=28672, experts=None)
    >>> round(total / 1e9, 2)
    70.55
    """
    matrices = 3 if gated_mlp else 2
    total = float(vocab) * hidden * (1 if tied_embeddings else 2)
    total += sum(attention_parameters(group, hidden, output_gate=output_gate) for group in attention)
    total += float(dense_layers) * matrices * hidden * dense_intermediate
    if experts is None:
        return total, total
    total += float(experts.layers) * hidden * (experts.routed + 3.0 * experts.shared * experts.shared_dim)
    one = 3.0 * hidden * experts.dim * experts.layers
    return total + one * experts.routed, total + one * experts.active
