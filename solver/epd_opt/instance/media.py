"""What a request carries beside text: images and a clip."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ConfigDict, Field

from epd_opt.fields import Complaint, Part, Positive, PositiveCount, Share
from epd_opt.instance.quantity import Quantity


class Images(Part):
    """Images of one request: by pixels (the model's own rule gives tokens) or by tokens."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["tokens"]}, {"required": ["width_px", "height_px"]}]}
    )

    count: Quantity = Field(description="Images per request: a number, {mean, p95} or {values}; 0 = no images.")
    width_px: PositiveCount | None = Field(default=None, description="Width as the model receives it, pixels.")
    height_px: PositiveCount | None = Field(default=None, description="Height as the model receives it, pixels.")
    max_tokens: PositiveCount | None = Field(
        default=None, description="Most tokens per image; the image is scaled down to it."
    )
    tokens: Positive | None = Field(default=None, description="Tokens per image, in place of width_px and height_px.")
    source_megapixels: Positive | None = Field(
        default=None, description="Megapixels per image as uploaded, which the host decodes; default width x height."
    )
    cached_share: Share = Field(
        default=0.0, description="Share of images (0 to 1) whose embeddings are found in the encoder cache."
    )

    def complaints(self) -> Iterator[Complaint]:
        given = [key for key in ("width_px", "height_px", "max_tokens") if getattr(self, key) is not None]
        missing = [key for key in ("width_px", "height_px") if key not in given]
        hint = "give width_px and height_px, or tokens"
        if self.tokens is not None and given:
            yield Complaint(where=("tokens",), message=f"tokens and {', '.join(given)} are both given", hint=hint)
        if self.tokens is None and missing:
            yield Complaint(message=f"the size of an image is missing: no {' and no '.join(missing)}", hint=hint)


class Video(Part):
    """One clip per request, sampled at ``fps`` up to ``max_frames``."""

    seconds: Positive = Field(description="Length of the clip, seconds.")
    fps: Positive = Field(description="Sampled frames per second.")
    width_px: PositiveCount = Field(description="Width of a frame, pixels.")
    height_px: PositiveCount = Field(description="Height of a frame, pixels.")
    max_frames: PositiveCount | None = Field(default=None, description="Most frames sampled from a clip.")
    max_tokens_per_frame: PositiveCount | None = Field(default=None, description="Most tokens per frame.")
