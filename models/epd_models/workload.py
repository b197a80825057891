"""What is asked of the fleet: classes of requests and their targets. SI units; fixed per study."""

from __future__ import annotations

from dataclasses import dataclass

from epd_models.distribution import Distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Latency targets of a class, each at its own percentile (a probability in (0, 1)) over requests.

    ``ttft_s`` and ``itl_s`` are None only where measured workers alone serve the class.
    """

    ttft_s: float | None
    ttft_probability: float
    itl_s: float | None
    itl_probability: float
    e2e_s: float | None = None
    e2e_probability: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """Images of one request: by pixels (each model's own rule gives tokens) or by tokens."""

    count: Distribution
    width_px: int | None = None
    height_px: int | None = None
    max_tokens: int | None = None
    tokens: float | None = None
    source_megapixels: float | None = None
    cached_share: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Video:
    """One clip per request, sampled at ``fps`` frames per second up to ``max_frames``."""

    seconds: float
    fps: float
    width_px: int
    height_px: int
    max_frames: int | None = None
    max_tokens_per_frame: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestClass:
    """One class of requests.

    Attributes
    ----------
    rate : float
        Requests per second to plan for (headroom included).
    mean_rate : float
        Requests per second that the cost is divided by.
    text_tokens, output_tokens : Distribution
        Tokens per request; text excludes image tokens.
    cached_tokens : float
        Prompt tokens found in the prefix cache: no prefill work, but KV memory.
    interarrival_scv : float
        Squared coefficient of variation of the gaps between arrivals; 1 is Poisson.
    """

    name: str
    rate: float
    mean_rate: float
    text_tokens: Distribution
    output_tokens: Distribution
    targets: Targets
    cached_tokens: float = 0.0
    images: Images | None = None
    video: Video | None = None
    interarrival_scv: float = 1.0

    @property
    def has_vision(self) -> bool:
        """Whether requests of this class start at the encode stage."""
        return self.images is not None or self.video is not None
