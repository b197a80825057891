"""Where a time comes from: one file per source, one line each in :data:`SOURCES`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from epd_models.source import Source, Subject
from epd_models.sources import analytic, profile, silicon

__all__ = ["SOURCES", "Build"]


class Build(Protocol):
    """How a source is made for a device entry."""

    def __call__(self, settings: Mapping[str, Any], subject: Subject, *, embedded: Mapping[str, Any]) -> Source:
        """The source.

        Parameters
        ----------
        settings : mapping
            What the instance says about it.
        embedded : mapping
            What :meth:`epd_models.source.Source.embedded` of an earlier plan gave; empty where there is none.
        """


SOURCES: Mapping[str, Build] = {
    "analytic": analytic.build,
    "profile": profile.build,
    "silicon": silicon.build,
}
"""Sources by the name that a device entry gives under ``performance``."""
