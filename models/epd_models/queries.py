"""Stage times by the million: arrays of batches, contexts, prompts and images in, seconds out.

The planner asks for times through straight lines (:func:`epd_models.stages.decode.decode_step`); a study, a simulator or a
router asks for single times, many of them. They come from the same formulas and the same sources, without any line.

Examples
--------
>>> from epd_models import catalog
>>> from epd_models.parallelism import Parallelism
>>> from epd_models.precision import Precision
>>> worker = Worker.checked(
...     model=catalog.model("Qwen3-VL-8B"),
...     device=catalog.device("H100-SXM"),
...     cut=Parallelism(),
...     precision=Precision(weights="bf16", kv_cache="bf16", encoder="bf16"),
...     engine=catalog.engine("vllm"),
... )
>>> times = StageTimes(worker)
>>> seconds = times.decode_s(np.array([1.0, 64.0]), np.array([1000.0, 1000.0]))
>>> bool(seconds[0] < seconds[1])
True
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epd_models.ratios import ImageRatios
from epd_models.stages.decode import decode_seconds
from epd_models.stages.encode import encode_time, received_megapixels
from epd_models.stages.prefill import prefill_time
from epd_models.vision import ImageLoad
from epd_models.worker import Worker

Floats = NDArray[np.float64]


class StageTimes:
    """Times of a worker's stages.

    Parameters
    ----------
    worker : Worker
        A checked worker, with its source.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._prefill = prefill_time(worker)

    def decode_s(self, batch: ArrayLike, context: ArrayLike) -> Floats:
        """Seconds of one iteration of a lane.

        Parameters
        ----------
        batch : array_like
            Sequences in it, above 0.
        context : array_like
            Tokens of context of each of them, at least 1; broadcasts with ``batch``.
        """
        return decode_seconds(self._worker, *_floats(batch, context))

    def prefill_s(self, new: ArrayLike, cached: ArrayLike = 0.0) -> Floats:
        """Seconds for which a prompt keeps a lane busy, the overheads of its iterations left out.

        Parameters
        ----------
        new : array_like
            Tokens to read, at least 1.
        cached : array_like
            Tokens before them that are in the KV cache; broadcasts with ``new``.
        """
        return self._prefill.busy_s(*_floats(new, cached))

    def first_token_s(self, new: ArrayLike, cached: ArrayLike = 0.0) -> Floats:
        """Seconds until a prompt that meets nobody is read, overheads included; parameters as of :meth:`prefill_s`."""
        tokens, before = _floats(new, cached)
        engine = self._worker.engine
        chunks = np.ceil(tokens / engine.max_batched_tokens)
        return self._prefill.own_s(tokens, before) + self._prefill.per_chunk * chunks + engine.request_overhead_s

    def encode_s(self, images: ArrayLike, positions: ArrayLike, megapixels: ArrayLike | None = None) -> Floats:
        """Seconds of one encoder process for the images of a request, host work included, one after the other.

        Distinct sizes are computed one by one and looked up.

        Parameters
        ----------
        images : array_like
            Images of the request.
        positions : array_like
            Positions that the vision transformer sees of each (:func:`epd_models.vision.image_load`), at least 1.
        megapixels : array_like, optional
            Megapixels of each as uploaded, which the host decodes; those that the model receives where absent.

        Raises
        ------
        ValueError
            The model has no vision tower.
        """
        worker = self._worker
        if worker.model.vision is None:
            raise ValueError(f"{worker.model.name} has no vision tower")
        count, at = _floats(images, positions)
        ratios = ImageRatios() if worker.source is None else worker.source.images(worker)

        def seconds(size: float, uploaded: float | None) -> float:
            assert worker.model.vision is not None
            load = ImageLoad(tokens=0, positions=round(size))
            received = received_megapixels(worker.model.vision, load)
            decoded = received if uploaded is None else uploaded
            time = encode_time(
                worker.model.vision,
                worker.device,
                worker.engine,
                load=load,
                megapixels=decoded,
                encoder_format=worker.precision.encoder,
            )
            corrected = time.corrected(ratios, received=received, uploaded=decoded)
            return corrected.host_s + corrected.device_s

        if megapixels is None:
            sizes, place = np.unique(at, return_inverse=True)
            each = np.array([seconds(size, None) for size in sizes.tolist()])
        else:
            pairs = at + 1j * np.broadcast_to(np.asarray(megapixels, dtype=float), at.shape)
            both, place = np.unique(pairs, return_inverse=True)
            each = np.array([seconds(pair.real, pair.imag) for pair in both.tolist()])
        return np.asarray(count * each[place.reshape(at.shape)])


def _floats(a: ArrayLike, b: ArrayLike) -> tuple[Floats, Floats]:
    first, second = np.broadcast_arrays(np.asarray(a, dtype=float), np.asarray(b, dtype=float))
    return first, second
