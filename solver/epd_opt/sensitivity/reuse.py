"""Candidates found once for all points that differ in prices, stock and limits alone, which candidates do not depend on, and
for points that differ in rates and share what is made for some of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from epd_opt.offering import Offering, offering, planning_problem
from epd_opt.problem import PlanningProblem
from epd_opt.prune import prune
from epd_opt.resolve import Resolved
from epd_opt.sensitivity.rates import Rates, unrated

_MOST = 8
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


def line_key(resolved: Resolved, made_for: Sequence[Rates]) -> Any:
    """The same for instances whose candidates are made for some rates, whatever their own: those of a line."""
    kept, offers, requests, *others = performance_key(resolved)
    flowing = [replace(request, rate=1.0, mean_rate=1.0) for request in requests]
    return unrated(kept), offers, flowing, *others, tuple(made_for)


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

    def of(
        self,
        resolved: Resolved,
        made_for: Mapping[Rates, Callable[[], Resolved]] | None = None,
        *,
        each: Callable[[], None] = lambda: None,
    ) -> tuple[Offering, PlanningProblem]:
        """All that is on offer for an instance, and the same pruned.

        Parameters
        ----------
        made_for : mapping, optional
            Rates that operating points are made for in place of the instance's own, which are no higher than the highest of
            them, and the instance at those rates.
        each : callable
            Called again and again where the work has to be done; may raise to end it.
        """
        key = line_key(resolved, list(made_for)) if made_for else performance_key(resolved)
        metered = _metered(resolved)
        for known in self._known:
            if known.key == key:
                break
        else:
            made = [at() for at in made_for.values()] if made_for else [resolved]
            offered = _together([offering(one, each=each) for one in made])
            known = _Known(key, resolved, offered, metered, prune(offered.problem))
        offered = replace(
            known.offered,
            problem=planning_problem(resolved, known.offered.problem.candidates),
            rejections=(*resolved.rejections, *known.offered.rejections[len(known.resolved.rejections) :]),
        )
        if known.metered != metered:
            most = replace(offered.problem, demands=known.offered.problem.demands)
            known = _Known(key, resolved, replace(offered, problem=most), metered, prune(most))
        self._known = [known, *(other for other in self._known if other.key != key)][:_MOST]
        return offered, planning_problem(resolved, known.pruned.candidates)


def _together(offerings: Sequence[Offering]) -> Offering:
    """Everything that is on offer in some of them, at the highest rates of each class."""
    first, *others = offerings
    if not others:
        return first
    candidates = {candidate.key: candidate for one in reversed(offerings) for candidate in one.problem.candidates}
    behaviours = {key: behaviour for one in reversed(offerings) for key, behaviour in one.behaviours.items()}
    demands = zip(*(one.problem.demands for one in offerings), strict=True)
    problem = replace(
        first.problem,
        demands=tuple(max(each, key=lambda demand: demand.rate) for each in demands),
        candidates=tuple(sorted(candidates.values(), key=lambda candidate: candidate.key)),
    )
    return replace(first, problem=problem, behaviours=behaviours)


def _metered(resolved: Resolved) -> frozenset[str]:
    """Entries whose work costs energy, which pruning asks for."""
    return frozenset(offer.name for offer in resolved.offers if offer.busy_usd_per_unit_second)
