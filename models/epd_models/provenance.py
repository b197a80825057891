"""Where a number comes from and how far to trust it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal


class Confidence(IntEnum):
    """Trust in a number, weakest first, so that ``min`` finds the weakest link."""

    ESTIMATE = 0
    RECALLED = 1
    THIRD_PARTY = 2
    DATASHEET = 3
    MEASURED = 4
    USER = 5

    @property
    def label(self) -> str:
        """As written in cards and plans."""
        return self.name.lower().replace("_", "-")

    @classmethod
    def parse(cls, text: str) -> Confidence:
        """From a card's ``confidence`` field.

        >>> Confidence.parse("third-party")
        <Confidence.THIRD_PARTY: 2>
        """
        return cls[text.strip().upper().replace("-", "_")]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedError:
    """How far times predicted with fitted figures were off on measurements.

    Attributes
    ----------
    quantity : {"itl", "ttft", "image"}
        What was compared: the interval between tokens, the time to first token, the encode of one image.
    median, p90 : float
        Absolute error over the measured value, at the median and the 90th percentile; 0.07 is 7 %. ``p90`` is None where
        nobody stated it.
    points : int
        Measurements compared.
    held_out : bool
        Whether the fit had not seen the measurements it was compared with.
    """

    quantity: Literal["itl", "ttft", "image"]
    median: float
    p90: float | None = None
    points: int
    held_out: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Source, date and confidence of a figure or a group of figures, and for fitted ones how far the fit is off."""

    source: str
    confidence: Confidence
    date: str | None = None
    note: str | None = None
    fitted_error: tuple[FittedError, ...] = ()

    def error_of(self, quantity: str) -> FittedError | None:
        """The fitted error of one quantity; None where nobody stated it."""
        return next((error for error in self.fitted_error if error.quantity == quantity), None)
