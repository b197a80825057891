"""From an arrival to the work it brings."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from epd_models.architecture import VisionTower
from epd_models.request import RequestLoad
from epd_models.vision import ImageLoad, image_load, image_load_from_tokens
from epd_models.workload import RequestClass
from epd_opt.errors import InvalidInput, Problem
from epd_opt.simulate.arrivals import Arrival
from epd_opt.simulate.assign import Classifier
from epd_opt.simulate.job import Job

_MOST_REMEMBERED = 10_000


class Sizing:
    """Turns arrivals into requests of the plan's classes."""

    def __init__(self, requests: Sequence[RequestClass], loads: Mapping[str, RequestLoad], seed: int) -> None:
        self._labels = {request.name: i for i, request in enumerate(requests)}
        self._requests = requests
        self._loads = [loads.get(request.name) for request in requests]
        self._classifier = Classifier(requests)
        self._chance = random.Random(seed)
        self._known: dict[tuple[float | int | None, ...], ImageLoad] = {}

    def job(self, arrival: Arrival, *, measured: bool) -> Job:
        """The request.

        Raises
        ------
        InvalidInput
            A trace names a class that the plan does not serve, or none of the plan's classes has images like it.
        """
        label = self._nearest(arrival) if arrival.class_name is None else self._labels.get(arrival.class_name, -1)
        if label < 0:
            known = ", ".join(repr(name) for name in self._labels)
            raise InvalidInput(
                [
                    Problem(
                        path="trace", message=f"class {arrival.class_name!r} is not in the plan", hint=f"it serves {known}"
                    )
                ]
            )
        request, load = self._requests[label], self._loads[label]
        cached = request.cached_tokens if arrival.cached_tokens is None else arrival.cached_tokens
        job = Job(
            label=label,
            arrival_s=arrival.time_s,
            prompt=arrival.text_tokens,
            cached=cached,
            output=arrival.output_tokens,
            measured=measured,
        )
        if arrival.image_count and load is not None and load.image is not None:
            self._with_images(job, arrival, load)
        return job

    def _with_images(self, job: Job, arrival: Arrival, load: RequestLoad) -> None:
        count, image, tokens = arrival.image_count, load.image, arrival.image_count * load.tokens_per_image
        megapixels = load.megapixels
        tower = load.model.vision
        assert tower is not None
        if arrival.image_sizes:
            cap = load.request.images.max_tokens if load.request.images is not None else None
            found = [self._of_pixels(tower, width, height, cap) for width, height in arrival.image_sizes]
            tokens = float(sum(one.tokens for one in found))
            image = ImageLoad(
                tokens=round(tokens / len(found)),
                positions=round(sum(one.positions for one in found) / len(found)),
                sequences=max(1, round(sum(one.sequences for one in found) / len(found))),
            )
            megapixels = sum(width * height for width, height in arrival.image_sizes) / len(found) / 1e6
        elif arrival.image_tokens is not None and arrival.image_tokens > 0:
            tokens = arrival.image_tokens
            image = self._of_tokens(tower, round(tokens / count, 1))
            megapixels = image.positions * tower.patch_px**2 / 1e6
        job.prompt += tokens
        job.embedded = tokens
        job.image, job.megapixels = image, megapixels
        if load.encoded_share == 1.0 or self._chance.random() < load.encoded_share:
            job.images = count

    def _of_tokens(self, tower: VisionTower, tokens: float) -> ImageLoad:
        return self._remembered((tokens,)) or self._remember((tokens,), image_load_from_tokens(tower, tokens))

    def _of_pixels(self, tower: VisionTower, width: int, height: int, cap: int | None) -> ImageLoad:
        key = (width, height, cap)
        return self._remembered(key) or self._remember(key, image_load(tower, width, height, max_tokens=cap))

    def _remembered(self, key: tuple[float | int | None, ...]) -> ImageLoad | None:
        return self._known.get(key)

    def _remember(self, key: tuple[float | int | None, ...], load: ImageLoad) -> ImageLoad:
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        self._known[key] = load
        return load

    def _nearest(self, arrival: Arrival) -> int:
        """The class under which the request is most likely."""
        name = self._classifier.assign(arrival)
        if name is not None:
            return self._labels[name]
        kind = "images" if arrival.image_count else "text alone"
        raise InvalidInput(
            [
                Problem(
                    path="trace",
                    message=f"a request at {arrival.time_s:g} s has {kind}, and so has no class of the plan",
                    hint="add such a class to the instance; `epd-opt fit-workload` makes one of a trace",
                )
            ]
        )
