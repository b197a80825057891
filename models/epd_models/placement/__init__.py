"""Placements: which stages sit together on a worker. One file each, one line each in :data:`PLACEMENTS`."""

from __future__ import annotations

from epd_models.placement.context import Context, NotBuildable
from epd_models.placement.generate import LAST_LEVEL, Behaviour, Choice, Modelled, modelled_candidates
from epd_models.placement.table import PLACEMENTS, Placement

__all__ = [
    "LAST_LEVEL",
    "PLACEMENTS",
    "Behaviour",
    "Choice",
    "Context",
    "Modelled",
    "NotBuildable",
    "Placement",
    "modelled_candidates",
]
