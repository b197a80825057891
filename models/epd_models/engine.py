"""Limits and habits of a serving engine."""

from __future__ import annotations

from dataclasses import dataclass

from epd_models.provenance import Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculative:
    """Speculative decoding: a step drafts ``draft_tokens`` and, on average, ``accepted_tokens`` of them stand.

    A step therefore emits ``1 + accepted_tokens`` tokens.
    """

    draft_tokens: int
    accepted_tokens: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """What an engine imposes on a replica.

    Attributes
    ----------
    max_sequences : int
        Sequences decoded together per replica at the most.
    max_batched_tokens : int
        Token budget of one iteration: the prefill chunk.
    memory_fraction, shared_memory_fraction : float
        Share of a device's memory the engine may use; the second where encoder processes live beside it.
    encoder_cache_bytes : float
        Room kept for image embeddings on a worker that takes images.
    runtime_bytes : float
        Context, graphs and communication buffers per logical device.
    encoder_processes, pool_processes : int
        Encoder processes per device beside a language model, and on devices of their own (at the most: as many as the
        device holds).
    reserves_output : bool
        Whether a sequence is admitted only with room for its whole output in the KV cache, rather than growing into it.
    request_overhead_s : float
        Tokenisation, scheduling and streaming of the first token.
    host_megapixel_s : float
        CPU seconds per source megapixel, on one core, of decoding; the images of a request are decoded side by side,
        outside the process that encodes.
    host_image_s, host_resized_megapixel_s : float
        CPU seconds per image, and per megapixel that enters the transformer, of resizing, normalising, cutting into
        patches and handing over: in the process that encodes, one image after the other.
    shared_stall, shared_slowdown, shared_drag : float
        Shared placement: part of an encode's device time that stalls the loop (kappa), slowdown of the encode itself
        (kappa'), and by how much iterations last longer beside encoder processes whatever these do.
    """

    name: str
    max_sequences: int
    max_batched_tokens: int
    memory_fraction: float
    shared_memory_fraction: float
    encoder_cache_bytes: float
    runtime_bytes: float
    encoder_processes: int
    pool_processes: int
    request_overhead_s: float
    host_image_s: float
    host_megapixel_s: float
    host_resized_megapixel_s: float
    shared_stall: float
    shared_slowdown: float
    shared_drag: float
    reserves_output: bool = False
    speculative: Speculative | None = None
    provenance: Provenance
