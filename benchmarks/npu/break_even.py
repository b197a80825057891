"""The price, or the tariff, at which two ways of serving cost the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from npu.question import Question, rules

Answer = Callable[[Question], dict[str, Any]]
_CLOSE = 0.003
"""Relative difference of two costs at which they count as the same, somewhat above the solver's gap."""
_TRIES = 12


def price(answer: Answer, asked: Question, target_usd_per_hour: float, start: float) -> float | None:
    """Price of the NPU at which the fleet of ``asked`` costs ``target_usd_per_hour``; None if not even a free one does,
    and infinity if the fleet does not need it.

    For a given price the best fleet's cost is a minimum over fleets of lines that rise with the price, so it is concave.
    Newton's method with the slope of the fleet found therefore never overshoots from below, and comes below in one step.

    Parameters
    ----------
    answer : callable
        Gives the figures of a question's plan.
    start : float
        A price to begin with, US dollars (per hour where devices are rented).
    """
    per_dollar = 1.0 if asked.rented else rules(asked.tariff).capital_usd_per_hour(1.0)
    at = start
    for _ in range(_TRIES):
        found = answer(replace(asked, npu_price=at))
        if "usd_per_hour" not in found:
            return None
        missing = target_usd_per_hour - found["usd_per_hour"]
        if abs(missing) <= _CLOSE * target_usd_per_hour:
            return at
        units = found["devices"].get(asked.npu, 0)
        if units == 0:
            return math.inf
        step = at + missing / (units * per_dollar)
        if step <= 0.0 and at == 0.0:
            return None
        at = max(0.0, step)
    return at


def tariff(answer: Answer, one: Question, other: Question, low: float, high: float) -> float | None:
    """US dollars per kWh at which two ways cost the same, to half a cent; None if one is cheaper from ``low`` to ``high``.

    Costs are nearly straight lines over the tariff, so a few steps of the secant between the ends suffice.
    """

    def gain(at: float) -> float:
        return float(answer(replace(one, tariff=at))["usd_per_hour"] - answer(replace(other, tariff=at))["usd_per_hour"])

    below, above = gain(low), gain(high)
    if (below > 0.0) == (above > 0.0):
        return None
    for _ in range(_TRIES):
        at = low + (high - low) * below / (below - above)
        value = gain(at)
        if (value > 0.0) == (below > 0.0):
            moved, low, below = at - low, at, value
        else:
            moved, high, above = high - at, at, value
        if moved < 0.005:
            break
    return at
