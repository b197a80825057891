"""An instance with everything looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from epd_models.architecture import Architecture
from epd_models.candidate import Rejection
from epd_models.engine import Engine
from epd_models.entry import Entry
from epd_models.tariff import CostRules
from epd_models.transfer import Network
from epd_models.workload import RequestClass
from epd_opt.instance import Instance
from epd_opt.problem import Demand, Limits, Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """A number the plan rests on that the instance did not state."""

    text: str
    value: float | str
    unit: str
    source: str
    confidence: str


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """An instance with everything looked up.

    Attributes
    ----------
    model : Architecture or None
        None where only measured workers are planned with.
    requests : tuple of RequestClass
        Classes with a rate above zero, sorted by name, headroom included.
    entries : tuple of Entry
        Device entries that the performance models may use, sorted by name.
    offers : tuple of Offer
        Terms of every device entry that has them, sorted by name.
    rejections : tuple of Rejection
        Device entries that are not on offer, and why.
    cards : Mapping
        Raw cards used: ``{"devices": {entry name: card}, "model": card or None, "engine": card}``.
    """

    instance: Instance
    model: Architecture | None
    engine: Engine
    requests: tuple[RequestClass, ...]
    demands: tuple[Demand, ...]
    entries: tuple[Entry, ...]
    offers: tuple[Offer, ...]
    network: Network
    rules: CostRules
    limits: Limits
    spare_replicas: int
    zones: int
    lost_zones: int
    rejections: tuple[Rejection, ...]
    warnings: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    cards: Mapping[str, Any]

    def at(self, multiple: float) -> Resolved:
        """The same with so many times the rates, mean rates included."""
        return replace(
            self,
            requests=tuple(replace(r, rate=r.rate * multiple, mean_rate=r.mean_rate * multiple) for r in self.requests),
            demands=tuple(demand.at(multiple) for demand in self.demands),
        )
