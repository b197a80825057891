"""What a fleet costs as prices move: a straight line in every price."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from epd_opt.accounting import Holding, energy_usd_per_hour, total_usd_per_hour
from epd_opt.document import PlanDocument
from epd_opt.keeping.fleet import Kept
from epd_opt.problem import Offer, PlanningProblem

_PRICES = ("usd_per_hour", "used_usd_per_hour", "owned_usd_per_hour", "busy_usd_per_unit_second")
_BESIDE = ("amortised_usd_per_hour", "capex_usd", "upfront_usd", "price")
"""What moves with a price and adds nothing to the hourly cost."""
_SAME = 1e-9
"""Relative difference that arithmetic alone may make."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What a fleet is paid for.

    Attributes
    ----------
    held : Mapping
        By device entry: units in use, owned ones among them, and bought units.
    busy : Mapping
        By device entry: unit-seconds of work per second, at mean rates.
    """

    held: Mapping[str, tuple[int, int, int]]
    busy: Mapping[str, float]

    @classmethod
    def of(cls, document: PlanDocument, problem: PlanningProblem) -> Spending | None:
        """That of a plan among a problem's candidates; None where it does not add up to what the plan costs."""
        assert document.cost is not None
        candidates = {candidate.key: candidate for candidate in problem.candidates}
        means = {demand.name: demand.mean_rate / demand.rate for demand in problem.demands}
        busy = dict.fromkeys(document.devices, 0.0)
        for pool in document.pools:
            candidate = candidates[pool.key]
            busy[pool.device] += sum(
                rate * means[name] * candidate.busy_s[name] * float(candidate.units) for name, rate in pool.serves.items()
            )
        held = {name: (use.used, use.owned, use.bought) for name, use in document.devices.items()}
        found = cls(held=held, busy=busy)
        cost = document.cost.usd_per_hour
        return found if math.isclose(found.usd_per_hour(problem.offers), cost, rel_tol=_SAME, abs_tol=_SAME) else None

    @classmethod
    def read(cls, written: Mapping[str, Any] | None) -> Spending | None:
        """That of a line of JSON."""
        if written is None:
            return None
        held = {name: (used, owned, bought) for name, (used, owned, bought) in written["held"].items()}
        return cls(held=held, busy=written["busy"])

    @classmethod
    def of_kept(cls, kept: Kept) -> Spending | None:
        """That of a fleet that is kept; None where it does not serve."""
        if not kept.feasible:
            return None
        return cls(held={name: (h.used, h.owned, h.bought) for name, h in kept.held.items()}, busy=dict(kept.busy))

    def usd_per_hour(self, offers: Iterable[Offer]) -> float:
        """Hourly cost under some terms, holding the same units."""
        return total_usd_per_hour(self.holdings(offers))

    def holdings(self, offers: Iterable[Offer]) -> dict[str, Holding]:
        """The same units under some terms, with the energy of their work."""
        terms = {offer.name: offer for offer in offers}
        return {
            name: Holding(
                used=used,
                owned=owned,
                bought=bought,
                usd_per_hour=bought * terms[name].usd_per_hour
                + owned * terms[name].owned_usd_per_hour
                + energy_usd_per_hour(terms[name], used, self.busy[name]),
            )
            for name, (used, owned, bought) in self.held.items()
        }

    def same(self, other: Spending) -> bool:
        """Whether two fleets are paid for the same."""
        return self.held == other.held and all(
            math.isclose(work, other.busy[name], rel_tol=_SAME, abs_tol=_SAME) for name, work in self.busy.items()
        )


def straight(low: Sequence[Offer], middle: Sequence[Offer], high: Sequence[Offer], part: float) -> bool:
    """Whether terms at ``part`` of the way from ``low`` to ``high`` lie on the straight line between them, and nothing but
    prices moves at all."""
    if not [o.name for o in low] == [o.name for o in middle] == [o.name for o in high]:
        return False
    for one, between, other in zip(low, middle, high, strict=True):
        a, b, c = asdict(one), asdict(between), asdict(other)
        for name in a:
            if name in _BESIDE:
                continue
            if name not in _PRICES:
                if not a[name] == b[name] == c[name]:
                    return False
            elif not math.isclose(a[name] + part * (c[name] - a[name]), b[name], rel_tol=_SAME, abs_tol=1e-15):
                return False
    return True
