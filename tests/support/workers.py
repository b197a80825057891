"""Workers of the catalogue, and a source that multiplies the model's times by what it is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from epd_models import catalog
from epd_models.parallelism import Parallelism
from epd_models.precision import Precision
from epd_models.ratios import Curve, ImageRatios, LanguageRatios, Surface
from epd_models.source import Source
from epd_models.sources.analytic import Analytic
from epd_models.worker import Worker


def worker(
    model: str = "Qwen3-VL-8B",
    sku: str = "H100-SXM",
    *,
    weights: str = "bf16",
    kv_cache: str = "bf16",
    engine: Any = "vllm",
    source: Source | None = None,
    **degrees: int,
) -> Worker:
    """A worker of the catalogue."""
    return Worker.checked(
        model=catalog.model(model),
        device=catalog.device(sku),
        cut=Parallelism(**degrees),
        precision=Precision(weights=weights, kv_cache=kv_cache, encoder="bf16"),
        engine=catalog.engine(engine) if isinstance(engine, str) else engine,
        source=source,
    )


_ORDINARY_IMAGES = ImageRatios()


@dataclass(frozen=True)
class Told(Analytic):
    """The analytic model times given ratios."""

    language_ratios: LanguageRatios
    image_ratios: ImageRatios = _ORDINARY_IMAGES

    def language(self, worker: Worker) -> LanguageRatios:
        """What it was told."""
        return self.language_ratios

    def images(self, worker: Worker) -> ImageRatios:
        """What it was told."""
        return self.image_ratios


def surface(rows: dict[float, dict[float, float]]) -> Surface:
    """A surface from ``{context: {batch: ratio}}``."""
    return Surface(
        contexts=tuple(sorted(rows)),
        curves=tuple(
            Curve(at=tuple(sorted(rows[c])), ratios=tuple(rows[c][b] for b in sorted(rows[c]))) for c in sorted(rows)
        ),
    )


def constant(ratio: float) -> LanguageRatios:
    """The same ratio for every iteration and prompt of any size met in practice."""
    everywhere = surface({1.0: {0.5: ratio, 1e6: ratio}, 1e7: {0.5: ratio, 1e6: ratio}})
    return LanguageRatios(decode=everywhere, prefill=Curve(at=(1.0, 1e7), ratios=(ratio, ratio)), per_chunk=ratio)
