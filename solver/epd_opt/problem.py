"""What the optimiser is given: classes, candidates and offers. No hardware, no file formats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from epd_models.candidate import Candidate
from epd_opt.nodes import Nodes

Basis = Literal["rent", "spot", "reserved", "purchase"]

_ROUNDING = 1e-9
"""Rounding of a share of units that is not taken for a part of a unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Requests of one class.

    Attributes
    ----------
    rate : float
        Requests/s to plan for, above zero.
    mean_rate : float
        Requests/s on average; what energy and cost per request are counted for.
    """

    name: str
    rate: float
    mean_rate: float

    def at(self, multiple: float) -> Demand:
        """So many times the demand."""
        return replace(self, rate=self.rate * multiple, mean_rate=self.mean_rate * multiple)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Terms on which sold units of one device entry are to be had.

    Attributes
    ----------
    stock : int or None
        Most units that may be in use, owned ones included; None means unlimited.
    owned : int
        Units at hand.
    lot : int
        Units are bought or rented in multiples of this.
    usd_per_hour : float
        Rent, or capital charge, of one bought unit.
    used_usd_per_hour : float
        Idle energy of one unit in use.
    owned_usd_per_hour : float
        What one owned unit in use costs on top.
    busy_usd_per_unit_second : float
        Load-dependent energy of one unit working for one second.
    capex_usd : float
        Purchase price of one bought unit with its share of the host; 0 when rented.
    power_w : float
        Nameplate IT power of one unit, host included.
    for_sale : bool
        Whether there are units to be had beside the owned ones.
    basis : str
        ``rent`` (by the hour), ``spot``, ``reserved`` or ``purchase``.
    amortised_usd_per_hour : float
        Of ``usd_per_hour``, the charge for what is paid at the start; no invoice of the hour shows it.
    upfront_usd : float
        Paid at the start of a reservation of one unit.
    interruption_allowance : float
        Units held on top of bought ones in use, as a share of those, because some may be taken away at any time.
    price : float
        As stated, of one unit: US dollars per hour or, of a purchase, US dollars.
    price_date, price_source : str
        As stated beside the price; empty where nothing is.
    minimum : int
        Fewest units that are bought, if any are.
    nodes : Nodes or None
        How units stand in servers and racks; None where nothing is known of that.
    """

    name: str
    sku: str
    stock: int | None
    owned: int
    lot: int
    usd_per_hour: float
    used_usd_per_hour: float
    owned_usd_per_hour: float
    busy_usd_per_unit_second: float
    capex_usd: float
    power_w: float
    for_sale: bool = True
    basis: Basis = "rent"
    amortised_usd_per_hour: float = 0.0
    upfront_usd: float = 0.0
    interruption_allowance: float = 0.0
    price: float = 0.0
    price_date: str = ""
    price_source: str = ""
    minimum: int = 0
    nodes: Nodes | None = None

    def lots_for(self, units: int) -> int:
        """Lots that keep so many bought units in use."""
        return math.ceil(units * (1.0 + self.interruption_allowance) / self.lot - _ROUNDING)

    @property
    def together(self) -> int:
        """Units that are never in two racks: a server or a rack where bought units come in whole ones."""
        return self.nodes.chunk if self.nodes is not None and self.nodes.whole else 1

    def kept_by(self, bought: int) -> int:
        """Units that so many bought ones keep in use."""
        return math.floor(bought / (1.0 + self.interruption_allowance) + _ROUNDING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits over the whole fleet; None means none.

    Attributes
    ----------
    skus : int or None
        Different SKUs in use.
    required : tuple of (str, tuple of str)
        What must serve something, and the device entries that are meant.
    rack_w : float or None
        Nameplate IT power that one rack may draw, W.
    racks : float or None
        Racks of that power, each filled with units of one entry; ``inf`` counts them and sets no limit.
    """

    usd_per_hour: float | None = None
    power_w: float | None = None
    devices: int | None = None
    skus: int | None = None
    required: tuple[tuple[str, tuple[str, ...]], ...] = ()
    rack_w: float | None = None
    racks: float | None = None

    def units_per_rack(self, offer: Offer) -> int | None:
        """Units of an entry that one rack powers, whole servers or racks where they are bought so; None where any number
        does: no power of racks is stated, or none of the entry."""
        if self.rack_w is None or offer.power_w <= 0.0:
            return None
        return math.floor(self.rack_w / (offer.together * offer.power_w) * (1.0 + _ROUNDING)) * offer.together

    def racks_of(self, offer: Offer, installed: int) -> int:
        """Racks that so many units of an entry take."""
        each = self.units_per_rack(offer)
        return -(-installed // each) if each else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningProblem:
    """One planning problem. Candidates, demands and offers are sorted by key and name.

    Attributes
    ----------
    zones, lost_zones : int
        Zones that replicas are spread over evenly, and those of them that may be lost.
    least_served : float
        Share of the demand, the same of every class, that must be served at least, in [0, 1].
    """

    demands: tuple[Demand, ...]
    candidates: tuple[Candidate, ...]
    offers: tuple[Offer, ...]
    limits: Limits
    spare_replicas: int
    least_served: float = 1.0
    zones: int = 1
    lost_zones: int = 0

    def standing_by(self, replicas: int) -> int:
        """Spare replicas of a physical pool that needs so many: for single failures, and for the loss of zones.

        Where N replicas stand evenly in Z zones, the loss of any f leaves n of them if N is n + f ceil(n / (Z - f)), and no
        smaller N does.
        """
        lost = self.lost_zones * -(-replicas // (self.zones - self.lost_zones))
        return max(self.spare_replicas, lost) if replicas else 0

    def at(self, multiple: float) -> PlanningProblem:
        """The same problem with so many times the demand."""
        return replace(self, demands=tuple(demand.at(multiple) for demand in self.demands))

    def offer(self, name: str) -> Offer:
        """The offer of a device entry."""
        return next(offer for offer in self.offers if offer.name == name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """One of several cases that one fleet stands for.

    Attributes
    ----------
    weight : float
        Its share of all occasions; those of a problem add up to 1.
    problem : PlanningProblem
        Its own demands and candidates, and the prices that hold there. Stock, lots, owned units, limits and spares are the
        fleet's, the same at every occasion.
    """

    name: str
    weight: float
    problem: PlanningProblem


Measure = Literal["expected_cost", "worst_cost", "cvar"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What a fleet for several occasions is to be best at.

    Attributes
    ----------
    minimise : Measure
        Of the hourly cost over the occasions: its mean by weight, its largest, or its mean over the dearest occasions.
    level : float
        With cvar: the share of weight, from 0 to below 1, that is cheaper than the occasions that count.
    held_share : float
        Least weight of the occasions at which all demand is served within its targets, in (0, 1].
    """

    minimise: Measure = "expected_cost"
    level: float = 0.0
    held_share: float = 1.0


def measured(aim: Aim, costs: Sequence[tuple[float, float]]) -> float:
    """What an aim makes of pairs (weight, hourly cost), weights adding up to 1.

    >>> measured(Aim(minimise="cvar", level=0.5), [(0.5, 10.0), (0.25, 20.0), (0.25, 40.0)])
    30.0
    """
    if aim.minimise == "worst_cost":
        return max(cost for _, cost in costs)
    if aim.minimise == "expected_cost":
        return math.fsum(weight * cost for weight, cost in costs)
    left, total = 1.0 - aim.level, 0.0
    for weight, cost in sorted(costs, key=lambda pair: -pair[1]):
        taken = min(weight, left)
        total, left = total + taken * cost, left - taken
    return total / (1.0 - aim.level)
