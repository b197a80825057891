"""A model as the performance formulas see it: layers, heads, experts, vision tower. No device, no engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from epd_models.provenance import Provenance

AttentionKind = Literal["full", "sliding", "linear", "mla", "cross"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionGroup:
    """Layers that share one kind of attention.

    Attributes
    ----------
    kind : {"full", "sliding", "linear", "mla", "cross"}
        ``full`` grows with the context, ``sliding`` up to ``window`` tokens, ``mla`` keeps one latent per token shared
        by all heads, ``linear`` a fixed state per sequence, ``cross`` attends to the image features only
        (its cache is fixed per image: ``positions`` of them per request at the most).
    layers : int
        Number of layers of this kind.
    heads, kv_heads, head_dim : int
        Query heads, key/value heads, width of a head. For ``mla`` head_dim is the width of a value head.
    window : int or None
        Tokens kept by a sliding layer.
    latent_dim : int
        MLA: width of the cached latent per token and layer (kv_lora_rank + rope dimension).
    query_latent_dim : int
        MLA: rank of the compressed query (0: not compressed).
    state_bytes : float
        Linear: recurrent and convolution state per sequence, over all layers of the group, in bytes.
    linear_key_heads, linear_value_heads, linear_head_dim : int
        Shapes of linear attention (gated DeltaNet).
    positions : int
        Cross: cached image positions per request at the most.
    """

    kind: AttentionKind
    layers: int
    heads: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    window: int | None = None
    latent_dim: int = 0
    query_latent_dim: int = 0
    state_bytes: float = 0.0
    linear_key_heads: int = 0
    linear_value_heads: int = 0
    linear_head_dim: int = 0
    positions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Mixture-of-experts feed-forward layers."""

    layers: int
    routed: int
    active: int
    dim: int
    shared: int = 0
    shared_dim: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionTower:
    """The encoder: a vision transformer, its token rule and its projector.

    Attributes
    ----------
    parameters : float
        Parameters of tower and projector together.
    layers, hidden, heads, mlp : int
        Shape of the transformer; ``gated`` marks a gated MLP (three matrices).
    patch_px, merge : int
        Pixels per patch side; patches merged per side into one language-model token.
    full_attention_layers : int
        Layers that attend over the whole image; the others attend inside ``window_px`` squares.
    rule : str
        Name of the token rule in :mod:`epd_models.vision` ("native_resolution", "tiles", "slices", "fixed", "anyres",
        "longest_side", "cross_tiles").
    rule_parameters : Mapping[str, float]
        Numbers of the rule (tile_px, max_tiles, tokens_per_tile, max_tokens ...).
    video_rule_parameters : Mapping[str, float]
        Numbers of the video rule (frames_per_step, min_tokens_per_step, max_tokens_per_step, max_frames ...).
    """

    name: str
    parameters: float
    layers: int
    hidden: int
    heads: int
    mlp: int
    gated: bool
    patch_px: int
    merge: int
    full_attention_layers: int
    window_px: int | None
    rule: str
    rule_parameters: Mapping[str, float] = field(default_factory=dict)
    video_rule_parameters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A language model, with or without a vision tower.

    Attributes
    ----------
    parameters, active_parameters : float
        Of the language model without the vision tower; ``active`` counts what one token passes through.
    dense_intermediate : int
        Width of the feed-forward layers that are not mixtures of experts.
    native_weights : str
        Storage format of the published checkpoint ("bf16", "fp8", "mxfp4" ...).
    context_length : int or None
        Longest sequence the model accepts; None where unknown.
    """

    name: str
    aliases: tuple[str, ...] = ()
    parameters: float
    active_parameters: float
    layers: int
    hidden: int
    vocab: int
    tied_embeddings: bool
    dense_intermediate: int
    dense_layers: int
    gated_mlp: bool = True
    attention: tuple[AttentionGroup, ...]
    experts: Experts | None = None
    vision: VisionTower | None = None
    native_weights: str = "bf16"
    context_length: int | None = None
    provenance: Provenance

    @property
    def embedding_parameters(self) -> float:
        """Parameters of the token embedding and, unless tied, of the output head."""
        return float(self.vocab) * self.hidden * (1 if self.tied_embeddings else 2)

    @property
    def routed_expert_parameters(self) -> float:
        """Parameters of all routed experts."""
        if self.experts is None:
            return 0.0
        return 3.0 * self.hidden * self.experts.dim * self.experts.routed * self.experts.layers
