"""Where a number comes from and how far to trust it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


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
class Provenance:
    """Source, date and confidence of a figure or a group of figures."""

    source: str
    confidence: Confidence
    date: str | None = None
    note: str | None = None
