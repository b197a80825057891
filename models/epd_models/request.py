"""A request class seen by one model: tokens to prefill, images to encode, tokens to decode, and their spread."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from epd_models.architecture import Architecture, VisionTower
from epd_models.vision import ImageLoad, image_load, image_load_from_tokens, video_load
from epd_models.workload import Images, RequestClass

Floats = NDArray[np.float64]

PEAK_PROBABILITY = 0.999
"""Requests larger than this quantile of their class may be preempted or refused by the engine; memory is planned for it."""


class ContextExceeded(ValueError):
    """Requests of a class are longer than the model's context."""

    def __init__(self, text: str, *, wanted: float, most: float) -> None:
        super().__init__(text)
        self.wanted = wanted
        self.most = most


@dataclass(frozen=True, kw_only=True)
class RequestLoad:
    """One class of requests in units of work for one model.

    Attributes
    ----------
    image : ImageLoad or None
        One image, or one step of a clip; None for text.
    images : tuple of (float, float)
        Images (or clip steps) per request, with their probabilities.
    megapixels : float
        Source megapixels of one image or step that the host decodes and resizes.
    """

    request: RequestClass
    model: Architecture
    image: ImageLoad | None
    images: tuple[tuple[float, float], ...]
    megapixels: float

    @property
    def name(self) -> str:
        """Name of the class."""
        return self.request.name

    @property
    def has_vision(self) -> bool:
        """Whether requests start at the encode stage."""
        return self.image is not None

    @cached_property
    def _joint(self) -> tuple[Floats, Floats, Floats, Floats]:
        text, text_weights = self.request.text_tokens.arrays()
        upper = np.array(self.request.text_tokens.uppers)
        counts = np.array([c for c, _ in self.images])
        count_weights = np.array([w for _, w in self.images])
        return (
            np.repeat(text, len(counts)),
            np.repeat(upper, len(counts)),
            np.tile(counts, len(text)),
            np.outer(text_weights, count_weights).ravel(),
        )

    @property
    def weights(self) -> Floats:
        """Probability of each size, shape (sizes,)."""
        return self._joint[3]

    @property
    def image_counts(self) -> Floats:
        """Images (or clip steps) of each size, shape (sizes,)."""
        return self._joint[2]

    @cached_property
    def prompt_tokens(self) -> Floats:
        """Prompt tokens, text and images together, of each size, shape (sizes,)."""
        return self._joint[0] + self._joint[2] * self.tokens_per_image

    @cached_property
    def prompt_uppers(self) -> Floats:
        """Upper edges of the bins that :attr:`prompt_tokens` stands for, shape (sizes,)."""
        return self._joint[1] + self._joint[2] * self.tokens_per_image

    @property
    def new_tokens(self) -> Floats:
        """Prompt tokens that are not in the prefix cache, shape (sizes,); at least one."""
        return np.maximum(self.prompt_tokens - self.request.cached_tokens, 1.0)

    @property
    def tokens_per_image(self) -> float:
        """Language-model tokens of one image or step."""
        return 0.0 if self.image is None else float(self.image.tokens)

    @cached_property
    def mean_prompt(self) -> float:
        """Mean prompt tokens."""
        return float(self.prompt_tokens @ self.weights)

    @cached_property
    def mean_images(self) -> float:
        """Mean images (or clip steps)."""
        return float(self.image_counts @ self.weights)

    @property
    def encoded_share(self) -> float:
        """Share of the images that are not found in the encoder cache."""
        images = self.request.images
        return 1.0 - (images.cached_share if images is not None else 0.0)

    def quantile(self, values: Floats, probability: float) -> float:
        """Quantile of a quantity given for each size, read upwards; ``values`` of shape (sizes,)."""
        return float(values[self.quantile_size(values, probability)])

    def quantile_size(self, values: Floats, probability: float) -> int:
        """Index of the size at which a quantity given for each size reaches its quantile."""
        order = np.argsort(values, kind="stable")
        cumulative = np.cumsum(self.weights[order])
        index = int(np.searchsorted(cumulative, probability - 1e-12))
        return int(order[min(index, len(order) - 1)])

    def exceeds(self, values: Floats, quantile: float) -> float:
        """Probability that a quantity given for each size lies above ``quantile``."""
        return float(self.weights[values > quantile * (1 + 1e-12)].sum())

    @cached_property
    def peak_context(self) -> float:
        """Tokens of a very long request (the 99.9 % quantiles of prompt and output together)."""
        prompt = self.quantile(self.prompt_uppers, PEAK_PROBABILITY)
        return prompt + self.request.output_tokens.quantile(PEAK_PROBABILITY)

    @cached_property
    def decoded(self) -> tuple[float, float]:
        """Mean decode steps (tokens after the first) and mean sum of contexts over them, without speculation."""
        output, weights = self.request.output_tokens.arrays()
        steps = np.maximum(output - 1.0, 0.0)
        mean_steps = float(steps @ weights)
        growth = float((steps * (output / 2.0)) @ weights)
        return mean_steps, mean_steps * self.mean_prompt + growth

    @cached_property
    def final_context_sum(self) -> float:
        """As the mean sum of contexts in :attr:`decoded`, every step at the request's last context."""
        output, weights = self.request.output_tokens.arrays()
        steps = np.maximum(output - 1.0, 0.0)
        return float(steps @ weights) * self.mean_prompt + float((steps * output) @ weights)

    def windowed_context_sum(self, window: int, context_sum: float | None = None) -> float:
        """Mean over requests of the sum over decode steps of min(context, window); errs upwards (Jensen). ``context_sum``
        in place of that of :attr:`decoded`."""
        mean_steps, growing = self.decoded
        if mean_steps == 0.0:
            return 0.0
        mean_growth = (growing if context_sum is None else context_sum) / mean_steps - self.mean_prompt
        return mean_steps * float(np.minimum(self.prompt_tokens + mean_growth, window) @ self.weights)

    @cached_property
    def averaging_steps(self) -> float:
        """Steps over which a request averages its intervals: the harmonic mean of output tokens - 1."""
        output, weights = self.request.output_tokens.arrays()
        steps = output - 1.0
        some = steps > 0
        if not some.any():
            return 0.0
        return float(weights[some].sum() / (weights[some] / steps[some]).sum())


def request_load(request: RequestClass, model: Architecture) -> RequestLoad:
    """A class as work for ``model``.

    Raises
    ------
    ContextExceeded
        Its requests exceed the model's context.
    ValueError
        The model cannot take its images or video.
    """
    image: ImageLoad | None = None
    images: tuple[tuple[float, float], ...] = ((0.0, 1.0),)
    megapixels = 0.0
    if request.has_vision and model.vision is None:
        raise ValueError(f"{model.name} has no vision tower")
    if request.images is not None and model.vision is not None:
        image, megapixels = _one_image(request.images, model.vision)
        images = tuple(zip(request.images.count.values, request.images.count.weights, strict=True))
    elif request.video is not None and model.vision is not None:
        clip = request.video
        load = video_load(
            model.vision,
            clip.seconds,
            clip.fps,
            clip.width_px,
            clip.height_px,
            max_frames=clip.max_frames,
            max_tokens_per_frame=clip.max_tokens_per_frame,
        )
        steps = load.sequences
        image = ImageLoad(tokens=-(-load.tokens // steps), positions=-(-load.positions // steps))
        images = ((float(steps), 1.0),)
        megapixels = load.frames / steps * clip.width_px * clip.height_px / 1e6
    result = RequestLoad(request=request, model=model, image=image, images=images, megapixels=megapixels)
    if model.context_length is not None and result.peak_context > model.context_length:
        raise ContextExceeded(
            f"class {request.name!r} reaches {result.peak_context:.0f} tokens of context; "
            f"{model.name} takes {model.context_length} at the most",
            wanted=result.peak_context,
            most=float(model.context_length),
        )
    return result


def _one_image(spec: Images, tower: VisionTower) -> tuple[ImageLoad, float]:
    """One image's load, and the source megapixels that the host decodes."""
    if spec.tokens is not None:
        load = image_load_from_tokens(tower, spec.tokens)
        received = load.positions * tower.patch_px**2 / 1e6
    else:
        assert spec.width_px is not None
        assert spec.height_px is not None
        load = image_load(tower, spec.width_px, spec.height_px, max_tokens=spec.max_tokens)
        received = spec.width_px * spec.height_px / 1e6
    return load, received if spec.source_megapixels is None else spec.source_megapixels
