"""What a solver's bound proves about cost."""

from __future__ import annotations

import math
from fractions import Fraction

from epd_opt.backends import Outcome
from epd_opt.formulation import Formulation, OccasionsFormulation
from epd_opt.formulation.objective import OPEN_TIE, RANK_TIE, UNIT_TIE, UNIT_WEIGHT
from epd_opt.problem import Offer

_ROUNDING = 1e-6
"""Share of the common amount by which a solver's bound may stand too high from arithmetic alone."""


def counts_as_proved(outcome: Outcome, excess: float) -> bool:
    """Whether a solver's proof is one of cost: not where ties, which weigh as the dearest device on offer does, leave much
    more of a gap than they do where prices are of one size. ``excess`` is the gap beyond the one asked for."""
    return outcome.termination == "optimal" and excess <= _HIDDEN_BY_TIES


_HIDDEN_BY_TIES = 2e-3
"""Gap that ties may leave between a cost and its bound."""


def proved_bound(formulation: Formulation, outcome: Outcome, cost: float, *, whole: bool = True) -> tuple[float, float]:
    """Bound on the hourly cost of every plan, and the relative gap of this one.

    The solver bounds cost plus tie-breaks. No plan that costs less than this one carries more tie-breaks than the units
    it can pay for, so taking those off the bound leaves a bound on cost; where all costs are multiples of a common
    amount, it may be rounded up to the next one.

    Parameters
    ----------
    whole : bool
        Whether the formulation has all device entries that a better plan may use.

    Returns
    -------
    bound, gap : float
        US dollars per hour, at most ``cost``; relative to ``cost``.
    """
    if outcome.bound is None:
        return 0.0, 0.0 if cost == 0.0 else 1.0
    offers = formulation.sets.offers.values() if whole else formulation.sets.problem.offers
    grid = _common_grid(list(offers))
    return _bound(outcome.bound, largest_ties(formulation, cost), formulation.scale.factor, grid, cost)


def proved_over_occasions(formulation: OccasionsFormulation, outcome: Outcome, value: float) -> tuple[float, float]:
    """The same for what an aim makes of the costs of several occasions; ``value`` is that of the plan."""
    if outcome.bound is None:
        return 0.0, 0.0 if value == 0.0 else 1.0
    occasions = formulation.occasions
    alike = all(occasion.problem.offers == occasions[0].problem.offers for occasion in occasions)
    hires = any(own.sets.candidates for own in formulation.hired)
    grid = _common_grid(list(formulation.fleet.sets.offers.values())) if alike and not hires else None
    ties = largest_ties(formulation.fleet, value / min(occasion.weight for occasion in occasions))
    for occasion, own in zip(occasions, formulation.hired, strict=True):
        ties += largest_ties(own, value / occasion.weight) / len(occasions)
    return _bound(outcome.bound, ties, formulation.scale.factor, grid, value)


def _bound(found: float, ties: float, factor: float, grid: float | None, cost: float) -> tuple[float, float]:
    bound = (found - ties) / factor
    if grid is not None and bound > 0:
        bound = math.ceil(bound / grid - _ROUNDING) * grid
    bound = min(max(bound, 0.0), cost)
    return bound, 0.0 if cost == 0.0 else (cost - bound) / cost


def largest_ties(formulation: Formulation, cost: float) -> float:
    """Most tie-break that a plan of at most ``cost`` can carry, on the scale of the objective."""
    sets = formulation.sets
    units = 0.0
    dearest_share = 0.0
    for name, offer in sets.offers.items():
        most = sets.most_units[name]
        paid = offer.usd_per_hour + offer.used_usd_per_hour
        free = most if paid == 0.0 else min(most, offer.owned)
        units += free
        if paid > 0.0:
            dearest_share = max(dearest_share, min(most, cost / paid))
    smallest = min((float(candidate.units) for candidate in sets.candidates), default=1.0)
    units += dearest_share
    replicas = units / min(smallest, 1.0)
    return UNIT_WEIGHT * (UNIT_TIE * units + (OPEN_TIE + RANK_TIE) * replicas)


def _common_grid(offers: list[Offer]) -> float | None:
    """Amount that every possible hourly cost is a multiple of, or None."""
    if any(o.used_usd_per_hour or (o.owned and o.owned_usd_per_hour) or o.busy_usd_per_unit_second for o in offers):
        return None
    prices = {(offer.usd_per_hour, offer.lot) for offer in offers if offer.usd_per_hour}
    if not prices:
        return None
    if len(prices) == 1:
        return math.prod(prices.pop())
    exact = [Fraction(repr(price)) * lot for price, lot in prices]
    scale = math.lcm(*(price.denominator for price in exact))
    if scale > 10**6:
        return None
    return math.gcd(*(int(price * scale) for price in exact)) / scale
