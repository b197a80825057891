"""Where the times of a worker come from: one interface for the model, measurements and kernel tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from epd_models.provenance import Confidence, FittedError

if TYPE_CHECKING:
    from epd_models.architecture import Architecture
    from epd_models.device import Device
    from epd_models.engine import Engine
    from epd_models.precision import Precision
    from epd_models.ratios import ImageRatios, LanguageRatios
    from epd_models.worker import Worker

SourceName = Literal["analytic", "profile", "silicon", "measured"]
WEAKEST_FIRST: tuple[SourceName, ...] = ("analytic", "silicon", "profile", "measured")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeOrigin:
    """Where the times of one stage come from and how far to trust them.

    Attributes
    ----------
    stage : {"encode", "prefill", "decode"}
        The stage.
    source : SourceName
        What gave the times; where measurements cover a part of what is asked, still their source.
    fitted_error : FittedError or None
        How far the times were off on measurements; None where nobody compared them.
    note : str
        One sentence on what stands behind them.
    warning : str
        What the plan must say about them; empty where nothing is amiss.
    """

    stage: Literal["encode", "prefill", "decode"]
    source: SourceName
    confidence: Confidence
    fitted_error: FittedError | None = None
    note: str = ""
    warning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a source is asked about: one device entry with the model and engine of an instance.

    Attributes
    ----------
    entry : str
        Name of the device entry.
    """

    entry: str
    model: Architecture
    device: Device
    precision: Precision
    engine: Engine


class Uncovered(ValueError):
    """Times that a source does not have, where nothing else may stand in; the message says why."""


class SourceUnavailable(ValueError):
    """A source that cannot answer at all: a package that is not installed, a model or device it does not know."""


class Source(Protocol):
    """A source of stage times. The analytic model gives every time; a source gives what multiplies it."""

    @property
    def name(self) -> SourceName:
        """As in plans."""

    def language(self, worker: Worker) -> LanguageRatios:
        """Ratios of a worker's prefill and decode; None of them where the source has none."""

    def images(self, worker: Worker) -> ImageRatios:
        """Ratios of a device's encode, whatever the worker's parallel degrees."""

    def check(self, worker: Worker, stage: Literal["encode", "prefill", "decode"]) -> None:
        """Refuse a stage that the source has no times of and that the model may not stand in for.

        Raises
        ------
        Uncovered
            With the reason.
        """

    def origin(self, worker: Worker, stage: Literal["encode", "prefill", "decode"]) -> TimeOrigin:
        """Where the times of a stage come from, as far as the source covers it."""

    def remarks(self) -> tuple[str, ...]:
        """What a user should know of the source before any plan is made, one sentence each."""

    def embedded(self) -> Mapping[str, Any]:
        """What a plan must keep, as plain data, for the same answers without the source's own files or packages."""
