"""Demand by the hour: what is committed to, what is hired when, and what one way to pay alone would cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from epd_opt import document as doc
from epd_opt.accounting import total_usd_per_hour
from epd_opt.backends import OutOfTime, SolverFailed
from epd_opt.document import PlanDocument
from epd_opt.hours import hours_of
from epd_opt.infeasible import unservable
from epd_opt.instance import Instance
from epd_opt.problem import Aim, Offer, PlanningProblem, measured
from epd_opt.robust.money import held_in_each
from epd_opt.robust.scene import Scenes
from epd_opt.robust.search import FleetFound, NoFleet, best_fleet
from epd_opt.scenario_plan import hired_units, idle_units
from epd_opt.scenarios import hired_entries
from epd_opt.search.task import Means

_TIME_RAN_OUT = "Time ran out before all plans with one way to pay were compared."


def hours_result(
    instance: Instance, document: PlanDocument, problem: PlanningProblem, single_tariffs: Sequence[doc.SingleTariff]
) -> doc.HoursResult:
    """What the day looks like under a plan."""
    hired = hired_entries(instance)
    results = {result.name: result for result in document.scenarios or ()}
    hours = sorted(
        (
            doc.HourOfDay(
                hour=hour,
                scenario=group.name,
                hired=hired_units(results[group.name], hired),
                idle=idle_units(document, results[group.name], hired),
                usd_per_hour=results[group.name].usd_per_hour,
            )
            for group in hours_of(instance)
            for hour in group.hours
        ),
        key=lambda one: one.hour,
    )
    committed = [
        _committed(problem.offer(name), use, math.fsum(one.idle[name] for one in hours))
        for name, use in document.devices.items()
        if name not in hired
    ]
    return doc.HoursResult(committed=committed, hours=hours, single_tariffs=list(single_tariffs))


def _committed(offer: Offer, use: doc.DeviceUse, idle_hours: float) -> doc.Committed:
    charge = offer.usd_per_hour if use.bought else offer.owned_usd_per_hour
    each = charge + offer.used_usd_per_hour
    return doc.Committed(
        device=offer.name,
        basis=use.basis,
        units=use.bought + use.owned,
        idle_unit_usd_per_hour=each,
        idle_unit_hours_per_day=idle_hours,
        idle_usd_per_day=idle_hours * each,
    )


def beside_single_tariffs(scenes: Scenes, found: FleetFound, means: Means) -> tuple[FleetFound, list[doc.SingleTariff], str]:
    """The best of a plan and of those with one way to pay, what the latter cost, and what was left undone.

    A plan within its gap may be dearer than one of them; then that one is the plan, with what was proved for all.
    """
    offers = scenes.each[0].resolved.offers
    bases = sorted({offer.basis for offer in offers if offer.for_sale})
    if len(bases) < 2:
        return found, [], ""
    best, least = found, _mean(found)
    tariffs: list[doc.SingleTariff] = []
    note = ""
    for basis in bases:
        means.say(f"planning with {basis} alone")
        some = scenes.on({offer.name for offer in offers if offer.basis == basis or not offer.for_sale})
        try:
            other = _unserved(some) or best_fleet(some, Aim(), means, diagnose=False)
        except (OutOfTime, SolverFailed):
            note = _TIME_RAN_OUT
            tariffs.append(doc.SingleTariff(basis=basis, usd_per_hour=None, text="time ran out"))
            continue
        if isinstance(other, NoFleet):
            text = "time ran out" if other.why is None else "no such plan serves every hour within its targets and limits"
            note = _TIME_RAN_OUT if other.why is None else note
            tariffs.append(doc.SingleTariff(basis=basis, usd_per_hour=None, text=text))
            continue
        cost = _mean(other)
        tariffs.append(doc.SingleTariff(basis=basis, usd_per_hour=cost))
        if cost < least:
            best, least = replace(found, served=other.served, stands=other.stands, hired=other.hired), cost
    return best, tariffs, note


def _unserved(scenes: Scenes) -> NoFleet | None:
    for scene in scenes.each:
        why = unservable(scene.resolved, scene.offered)
        if why is not None:
            return NoFleet(why=why)
    return None


def _mean(found: FleetFound) -> float:
    """Hourly cost over the day."""
    each = held_in_each(found, Aim())
    pairs = zip(found.served, each, strict=True)
    return measured(Aim(), [(served.scene.case.weight, total_usd_per_hour(own)) for served, own in pairs])
