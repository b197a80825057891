"""Times from the analytic model: datasheets and fitted shares, for any card and any model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from epd_models.candidate import Stage
from epd_models.provenance import Confidence, Provenance
from epd_models.ratios import ImageRatios, LanguageRatios
from epd_models.source import SourceName, Subject, TimeOrigin
from epd_models.worker import Worker

_COMPARED: Mapping[Stage, Literal["itl", "ttft", "image"]] = {"encode": "image", "prefill": "ttft", "decode": "itl"}
"""What a fit was compared in that says most about a stage."""


@dataclass(frozen=True, slots=True)
class Analytic:
    """The model itself: it multiplies nothing, and covers everything."""

    @property
    def name(self) -> SourceName:
        """As in plans."""
        return "analytic"

    def language(self, worker: Worker) -> LanguageRatios:
        """None."""
        return LanguageRatios()

    def images(self, worker: Worker) -> ImageRatios:
        """None."""
        return ImageRatios()

    def check(self, worker: Worker, stage: Stage) -> None:
        """Nothing is refused."""

    def origin(self, worker: Worker, stage: Stage) -> TimeOrigin:
        """Coefficients of the device under the engine, with the weakest confidence among all figures of the worker that the
        stage rests on."""
        fit = worker.coefficients.provenance
        about = {"the coefficients": fit, f"the card of {worker.model.name}": worker.model.provenance}
        about |= {
            f"{part} of {worker.device.sku}": found for part in _FIGURES if (found := worker.device.provenance.get(part))
        }
        if stage != "decode":
            about[f"habits of engine {worker.engine.name}"] = worker.engine.provenance
        weakest = min(about, key=lambda name: about[name].confidence)
        return TimeOrigin(
            stage=stage,
            source="analytic",
            confidence=about[weakest].confidence,
            fitted_error=fit.error_of(_COMPARED[stage]),
            note=f"{_measured(fit)}weakest figures: {weakest} ({about[weakest].source})",
        )

    def remarks(self) -> tuple[str, ...]:
        """None."""
        return ()

    def embedded(self) -> Mapping[str, Any]:
        """Nothing beyond the cards."""
        return {}


def _measured(fit: Provenance) -> str:
    if fit.confidence is not Confidence.USER:
        return ""
    return f"coefficients {fit.source}{f', {fit.date}' if fit.date else ''}; "


def build(settings: Mapping[str, Any], subject: Subject, *, embedded: Mapping[str, Any]) -> Analytic:
    """The model, whatever the entry."""
    return Analytic()


_FIGURES = ("compute", "memory", "link")
"""Groups of a device's figures that times rest on."""
