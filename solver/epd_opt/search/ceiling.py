"""How much demand could be served at most: a bound from linear programmes, and what is missing where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from epd_opt.address import format_path
from epd_opt.backends import Clock, relaxed
from epd_opt.errors import InvalidInput, Problem
from epd_opt.formulation import build, build_limitless
from epd_opt.formulation.objective import UNIT_WEIGHT, served_objective
from epd_opt.problem import Limits, Offer, PlanningProblem

_ENOUGH = 0.97
"""A bound that another round lowers by less than this factor is left as it is."""
_ROUNDS = 6
_SLACK = 1e-7
"""Relative addition to bounds for the tolerances of linear programming."""


def ceiling(problem: PlanningProblem, clock: Clock) -> float:
    """A multiple of the problem's demand that no fleet within the limits exceeds.

    The first bound leaves setups and whole numbers out. With a bound, shares of it are tied to open pools with their
    setups, which lowers the bound, and so on.

    Raises
    ------
    InvalidInput
        Nothing limits the multiple; the message says what would.
    OutOfTime
        See :func:`epd_opt.backends.relaxed`.
    """
    problem = replace(problem, least_served=0.0)
    limitless = build_limitless(problem)
    limitless.model.setObjective(served_objective(limitless.sets, limitless.variables))
    outcome = relaxed(limitless.model, clock)
    if outcome.termination == "unbounded":
        raise InvalidInput([_unlimited(problem, clock)])
    assert outcome.objective is not None
    bound = -outcome.objective / UNIT_WEIGHT * (1.0 + _SLACK)
    for _ in range(_ROUNDS):
        if bound <= 0.0:
            return 0.0
        formulation = build(problem.at(bound))
        formulation.model.setObjective(served_objective(formulation.sets, formulation.variables))
        outcome = relaxed(formulation.model, clock)
        if outcome.objective is None:
            return bound
        share = min(1.0, -outcome.objective / UNIT_WEIGHT * (1.0 + _SLACK))
        bound *= share
        if share > _ENOUGH:
            break
    return bound


def _unlimited(problem: PlanningProblem, clock: Clock) -> Problem:
    """What is missing: device entries without stock that together serve any demand, and limits that would do instead."""
    growing = _growth(problem)
    entries = set[str]()
    while (found := _grown(growing, entries, clock)) is not None and found - entries:
        entries |= found
    needed = sorted(entries)
    for name in sorted(entries):
        fewer = set(needed) - {name}
        if _grown(growing, fewer, clock) is None:
            needed = sorted(fewer)
    limits = [name for name, limited in _limited(growing) if _grown(limited, set(), clock) is None]
    enough = [", ".join(format_path(["devices", name, "stock"]) for name in needed)] if needed else []
    if _grown(growing, entries, clock) is not None:
        enough = []
    enough += [f"limits.{name}" for name in limits]
    what = f"any number of units of {' and '.join(needed)} may be planned" if needed else "some ways take no capacity"
    return Problem(
        path="objective",
        message=f"nothing limits the multiple of the demand: {what}",
        hint=f"give {', or '.join(enough)}" if enough else "",
    )


def _growth(problem: PlanningProblem) -> PlanningProblem:
    """What remains of a problem when demand and fleet grow beyond all bounds: what is limited counts for nothing."""
    limits = problem.limits
    return replace(
        problem,
        offers=tuple(replace(o, owned=0, stock=None if o.stock is None else 0) for o in problem.offers),
        limits=Limits(
            usd_per_hour=None if limits.usd_per_hour is None else 0.0,
            power_w=None if limits.power_w is None else 0.0,
            devices=None if limits.devices is None else 0,
            rack_w=limits.rack_w,
            racks=None if limits.racks is None else 0,
        ),
        least_served=1.0,
    )


def _grown(growing: PlanningProblem, without: set[str], clock: Clock) -> set[str] | None:
    """Device entries, none of ``without``, whose units serve any demand; None where there are none that do."""

    def terms(offer: Offer) -> Offer:
        return replace(offer, stock=0) if offer.name in without else offer

    formulation = build_limitless(replace(growing, offers=tuple(terms(offer) for offer in growing.offers)))
    formulation.model.setObjective(sum(formulation.variables.used.values()))
    values = relaxed(formulation.model, clock).values
    if values is None:
        return None
    return {name for name, lots in formulation.variables.lots.items() if values[lots.name] > 0.0}


def _limited(growing: PlanningProblem) -> Iterator[tuple[str, PlanningProblem]]:
    """The problem with each limit that it does not have yet."""
    limits = growing.limits
    if limits.usd_per_hour is None:
        yield "usd_per_hour", replace(growing, limits=replace(limits, usd_per_hour=0.0))
    if limits.power_w is None:
        yield "power_kw", replace(growing, limits=replace(limits, power_w=0.0))
    if limits.devices is None:
        yield "devices", replace(growing, limits=replace(limits, devices=0))
    if limits.rack_w is not None and limits.racks is None:
        yield "racks", replace(growing, limits=replace(limits, racks=0))
