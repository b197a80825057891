"""Mixtures of experts."""

from __future__ import annotations

from epd_models.architecture import Experts
from epd_models.huggingface.config import Reader, type_of


def experts_of(text: Reader, layers: int) -> Experts | None:
    """The experts, or None for a dense model."""
    routed = text.get("n_routed_experts", "num_local_experts", "num_experts", default=None)
    if not routed:
        return None
    dim = text.integer("moe_intermediate_size", "intermediate_size")
    shared, shared_dim = text.integer("n_shared_experts", default=0, minimum=0), dim
    if text.get("shared_expert_intermediate_size", default=None):
        shared, shared_dim = 1, text.integer("shared_expert_intermediate_size")
    elif type_of(text).startswith("llama4"):
        shared = 1
    step = text.get("interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_freq", default=1)
    marks = step if isinstance(step, list) else [(i + 1) % step == 0 for i in range(layers)]
    dense = set(text.get("mlp_only_layers", default=())) | set(range(text.get("first_k_dense_replace", default=0)))
    return Experts(
        layers=sum(1 for i, sparse in enumerate(marks) if sparse and i not in dense),
        routed=routed,
        active=text.integer("num_experts_per_tok", "experts_per_token"),
        dim=dim,
        shared=shared,
        shared_dim=shared_dim if shared else 0,
    )
