"""How fleets that are kept serve, found once for all points that differ in what does not matter for it: prices of units,
stock and limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from epd_opt.keeping.fleet import Fleet, Kept
from epd_opt.resolve import Resolved
from epd_opt.sensitivity.reuse import performance_key
from epd_opt.solution import Solution

_MOST = 4
"""Answers that are remembered, the last ones used."""


class Servings:
    """A short memory of how fleets serve. Threads may share it."""

    def __init__(self) -> None:
        self._known: list[tuple[Any, Solution]] = []

    def of(
        self, fleet: Fleet, resolved: Resolved, made_for: Any, otherwise: Callable[[], Solution | Kept]
    ) -> Solution | Kept:
        """How a fleet serves an instance with operating points made for some rates; ``otherwise`` finds it out. Fleets that
        do not serve are not remembered: why they do not may be told by stock and limits."""
        energy = [(offer.name, offer.busy_usd_per_unit_second) for offer in resolved.offers]
        key = fleet, performance_key(resolved), made_for, energy, resolved.instance.solver
        known = next((solution for one, solution in self._known if one == key), None)
        found = otherwise() if known is None else known
        if isinstance(found, Solution):
            self._known = [(key, found), *(pair for pair in self._known if pair[0] != key)][:_MOST]
        return found
