"""A device entry of an instance: a SKU on offer, with what it may do."""

from __future__ import annotations

from dataclasses import dataclass

from epd_models.candidate import Stage
from epd_models.device import Device
from epd_models.parallelism import Parallelism
from epd_models.precision import Precision
from epd_models.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One device entry.

    Attributes
    ----------
    cuts : tuple of Parallelism
        Degrees to consider for language-model workers; encoder pools always use one logical device per replica.
    power_w, idle_w : float
        Nameplate and idle IT power of one sold unit, its share of the host included.
    stock : int or None
        Most sold units in use.
    source : Source or None
        Where the times of its workers come from; None is the analytic model.
    """

    name: str
    device: Device
    precision: Precision
    cuts: tuple[Parallelism, ...]
    stages: tuple[Stage, ...]
    power_w: float
    idle_w: float
    stock: int | None
    source: Source | None = None
