"""Candidates found once for all points that differ in prices, stock and limits alone, which candidates do not depend on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from epd_opt.offering import Offering, offering, planning_problem
from epd_opt.problem import PlanningProblem
from epd_opt.prune import prune
from epd_opt.resolve import Resolved

_MOST = 4
"""Offerings that are remembered, the last ones used."""
_FREE = ("name", "cost", "limits", "objective", "solver")
_FREE_OF_DEVICES = ("price", "stock", "owned")


def performance_key(resolved: Resolved) -> Any:
    """What the candidates of an instance depend on: instances with equal keys have the same candidates."""
    stated = resolved.instance.document()
    kept = {key: value for key, value in stated.items() if key not in _FREE}
    kept["devices"] = [
        {key: value for key, value in entry.items() if key not in _FREE_OF_DEVICES} for entry in stated["devices"]
    ]
    embedded = [(e.name, dict(e.source.embedded())) for e in resolved.entries if e.source is not None]
    return kept, [offer.name for offer in resolved.offers], resolved.requests, resolved.cards, embedded


def same_candidates(one: Resolved, other: Resolved) -> bool:
    """Whether two instances have the same candidates."""
    return bool(performance_key(one) == performance_key(other))


@dataclass(frozen=True, slots=True)
class _Known:
    key: Any
    resolved: Resolved
    offered: Offering
    metered: frozenset[str]
    pruned: PlanningProblem


class Candidates:
    """A short memory of offerings and what pruning left of them. Threads may share it."""

    def __init__(self) -> None:
        self._known: list[_Known] = []

    def of(self, resolved: Resolved, *, each: Callable[[], None] = lambda: None) -> tuple[Offering, PlanningProblem]:
        """All that is on offer for an instance, and the same pruned.

        Parameters
        ----------
        each : callable
            Called again and again where the work has to be done; may raise to end it.
        """
        key, metered = performance_key(resolved), _metered(resolved)
        for known in self._known:
            if known.key == key:
                break
        else:
            offered = offering(resolved, each=each)
            known = _Known(key, resolved, offered, metered, prune(offered.problem))
        offered = replace(
            known.offered,
            problem=planning_problem(resolved, known.offered.problem.candidates),
            rejections=(*resolved.rejections, *known.offered.rejections[len(known.resolved.rejections) :]),
        )
        if known.metered != metered:
            known = _Known(key, resolved, offered, metered, prune(offered.problem))
        self._known = [known, *(other for other in self._known if other.key != key)][:_MOST]
        return offered, planning_problem(resolved, known.pruned.candidates)


def _metered(resolved: Resolved) -> frozenset[str]:
    """Entries whose work costs energy, which pruning asks for."""
    return frozenset(offer.name for offer in resolved.offers if offer.busy_usd_per_unit_second)
