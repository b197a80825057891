"""Trying changes of an instance: whether they give a class a way, and whether they give a plan."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from epd_opt.backends import Clock
from epd_opt.document import PlanDocument, Reason
from epd_opt.errors import InvalidInput
from epd_opt.infeasible import unservable, without_way
from epd_opt.instance import Instance
from epd_opt.offering import Offering, offering
from epd_opt.paths import set_value
from epd_opt.resolve import Resolved, resolve

Attempt = Callable[[Resolved, Offering], PlanDocument]
"""Solves a resolved instance among what is on offer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A value to change, and to what; in words too."""

    path: str
    to: Any
    text: str


Changes = tuple[Change, ...]


class Trials:
    """Changes of one instance, tried within a clock; what was tried is remembered.

    Parameters
    ----------
    cards : mapping, optional
        Cards of an earlier plan, used in place of the catalogue's.

    Attributes
    ----------
    undecided : bool
        Whether some change was given up before it was clear whether it gives a plan.
    """

    def __init__(self, resolved: Resolved, offered: Offering, attempt: Attempt, clock: Clock, cards: Any = None) -> None:
        self.resolved, self.offered = resolved, offered
        self.clock = clock
        self._attempt, self._cards = attempt, cards
        self._document = resolved.instance.document()
        self._offers: dict[Any, tuple[Resolved, Offering] | None] = {}
        self._plans: dict[Any, PlanDocument | None] = {}
        self.undecided = False

    def offer(self, changes: Sequence[Change], *, fresh: bool = True) -> tuple[Resolved, Offering] | None:
        """The changed instance and what it may choose from; None where it makes no sense.

        Parameters
        ----------
        fresh : bool
            Whether operating points are made anew where nothing but rates has changed: those at hand hold at any rate, but
            others may be better.

        Raises
        ------
        OutOfTime
            The clock has run down.
        """
        self.clock.check()
        key = _key(changes), fresh
        if key not in self._offers:
            self._offers[key] = self._offered(changes, fresh)
        return self._offers[key]

    def _offered(self, changes: Sequence[Change], fresh: bool) -> tuple[Resolved, Offering] | None:
        document = self._document
        try:
            for change in changes:
                document = set_value(document, change.path, change.to)
            resolved = resolve(Instance(**document), cards=self._cards)
            if _same_pools(resolved, self.resolved, rates=fresh):
                problem = replace(
                    self.offered.problem, demands=resolved.demands, offers=resolved.offers, limits=resolved.limits
                )
                return resolved, replace(self.offered, problem=problem)
            return resolved, offering(resolved, each=self.clock.check)
        except InvalidInput:
            return None

    def has_way(self, changes: Sequence[Change], name: str) -> bool:
        """Whether some pools together serve a class after the changes, whatever the limits of the fleet."""
        found = self.offer(changes)
        return found is not None and name not in without_way(*found)

    def reason(self, changes: Sequence[Change], name: str) -> Reason | None:
        """Why no pools together serve a class after the changes; None where some do, or the changes make no sense."""
        found = self.offer(changes)
        why = None if found is None else unservable(*found)
        return next((r for r in why.reasons if r.request_class == name), None) if why is not None else None

    def plan(self, changes: Sequence[Change], *, fresh: bool = True) -> PlanDocument | None:
        """The plan of the changed instance, or the document that says there is none; None where it makes no sense."""
        key = _key(changes), fresh
        if key not in self._plans:
            found = self.offer(changes, fresh=fresh)
            plan = None
            if found is not None:
                with contextlib.suppress(InvalidInput):
                    plan = self._attempt(*found)
            self._plans[key] = plan
            self.undecided |= plan is not None and plan.status == "stopped"
        return self._plans[key]

    def serves(self, changes: Sequence[Change]) -> bool:
        """Whether the changed instance has a plan, as far as the operating points at hand tell."""
        plan = self.plan(changes, fresh=False)
        return plan is not None and plan.cost is not None


def _key(changes: Sequence[Change]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((change.path, repr(change.to)) for change in changes))


def _same_pools(one: Resolved, other: Resolved, *, rates: bool) -> bool:
    """Whether the same pools are on offer: all but the terms and limits of the fleet, and ``rates`` if they count, is
    equal."""

    def of(resolved: Resolved) -> tuple[Any, ...]:
        instance = resolved.instance
        sold = tuple(offer.name for offer in resolved.offers)
        return (
            resolved.model,
            resolved.engine,
            resolved.requests if rates else tuple(replace(r, rate=1.0, mean_rate=1.0) for r in resolved.requests),
            resolved.entries,
            resolved.network,
            resolved.spare_replicas,
            (resolved.zones, resolved.lost_zones),
            instance.placements,
            instance.workers,
            sold,
        )

    return of(one) == of(other)
