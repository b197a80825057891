"""Whether a plan is what was planned: its counts and costs hang together, and every device has a price or is owned."""

from __future__ import annotations

import math
from collections.abc import Iterator

from epd_opt._version import __version__
from epd_opt.document import HOURS_PER_MONTH, PlanDocument, Pool
from epd_opt.errors import InvalidInput, Problem
from epd_opt.instance import instance_sha256
from epd_opt.resolve import Resolved
from epd_opt.restore import stated_in
from epd_opt.scenarios import cases

_RELATIVE = 1e-6
_RENTS = ("rent", "spot", "reserved")
"""Ways to pay in which a unit costs the same whatever it does."""


def demand_consistent(document: PlanDocument, file: str = "") -> None:
    """Refuse a plan that was changed by hand and does not add up any more; one without a fleet has nothing to add up.

    Parameters
    ----------
    file : str
        Where it was read, for complaints.

    Raises
    ------
    InvalidInput
        With every count and cost that does not follow from the others.
    """
    if document.cost is None:
        return
    resolved = stated_in(document)
    found = [
        *_instance(document, resolved),
        *_counts(document, resolved),
        *_units(document, resolved),
        *_costs(document),
        *_rates(document, resolved),
    ]
    hint = "the plan was changed: solve its instance again"
    problems = [Problem(file=file, path=path, message=message, hint=hint) for path, message in found]
    if problems:
        raise InvalidInput(problems)


def _instance(document: PlanDocument, resolved: Resolved) -> Iterator[tuple[str, str]]:
    """The instance against the one that was planned, where this version would have written it alike."""
    made = document.provenance
    if made.epd_opt == __version__ and made.instance_sha256 != instance_sha256(resolved.instance):
        yield "instance_document", "is not the instance that was planned"


def _counts(document: PlanDocument, resolved: Resolved) -> Iterator[tuple[str, str]]:
    """Devices of pools against their replicas."""
    for index, pool in enumerate(document.pools):
        each = _units_each(pool, document, resolved)
        replicas = pool.replicas + pool.spare_replicas
        if each and not any(_close(pool.devices, replicas * units) for units in each):
            yield f"pools.{index}.devices", f"found {pool.devices:g} devices of {replicas} replicas of {each[0]:g}"


def _units_each(pool: Pool, document: PlanDocument, resolved: Resolved) -> list[float]:
    """Sold units that one replica may take; empty where nothing is known of it."""
    if pool.provenance == "measured":
        return sorted({float(w.devices) for w in resolved.instance.workers if w.sku in (pool.sku, pool.device)})
    card = document.cards.get("devices", {}).get(pool.device) or {}
    cut = pool.parallelism
    return [cut.tensor * cut.pipeline * cut.attention_data / float(card.get("logical_devices_per_unit") or 1)]


def _units(document: PlanDocument, resolved: Resolved) -> Iterator[tuple[str, str]]:
    """Units held against those that pools take, and against what is on offer."""
    offers = {offer.name: offer for offer in resolved.offers}
    for name, use in document.devices.items():
        taken = math.fsum(pool.devices for pool in document.pools if pool.device == name)
        if min(use.used, use.owned, use.bought) < 0 or use.used > use.owned + use.bought:
            yield f"devices.{name}", f"found {use.used} in use, {use.owned} of them owned, of {use.bought} bought or rented"
        elif document.hours is None and taken > use.used * (1 + _RELATIVE):
            yield f"devices.{name}.used", f"found {use.used}, the pools take {taken:g}"
        if name not in offers:
            yield f"devices.{name}", "the instance does not offer it"
        elif use.bought and not offers[name].for_sale:
            yield f"devices.{name}.bought", f"found {use.bought} units without a price"
        elif use.owned > offers[name].owned:
            yield f"devices.{name}.owned", f"found {use.owned}, the instance has {offers[name].owned}"
        elif document.scenarios is None and offers[name].basis in _RENTS:
            rent = use.bought * offers[name].usd_per_hour + use.owned * offers[name].owned_usd_per_hour
            if not _close(use.usd_per_hour, rent):
                yield f"devices.{name}.usd_per_hour", f"found {use.usd_per_hour:g}, its units cost {rent:g}"


def _costs(document: PlanDocument) -> Iterator[tuple[str, str]]:
    cost = document.cost
    assert cost is not None
    devices = math.fsum(use.usd_per_hour for use in document.devices.values())
    if not _close(cost.usd_per_hour, devices):
        yield "cost.usd_per_hour", f"found {cost.usd_per_hour:g}, the devices cost {devices:g}"
    if not _close(cost.usd_per_month, HOURS_PER_MONTH * cost.usd_per_hour):
        yield "cost.usd_per_month", f"found {cost.usd_per_month:g}, expected {HOURS_PER_MONTH:g} hours"


def _rates(document: PlanDocument, resolved: Resolved) -> Iterator[tuple[str, str]]:
    """Requests on the routes of classes against those that the instance sends; scenarios against the instance's."""
    if document.scenarios is not None or resolved.instance.scenarios or resolved.instance.workload.by_the_hour:
        planned = [result.name for result in document.scenarios or ()]
        stated = [case.name for case in cases(resolved.instance)]
        if sorted(planned) != sorted(stated):
            yield "scenarios", f"found {'; '.join(planned) or 'none'}, the instance has {'; '.join(stated) or 'none'}"
        return
    for request in resolved.at(document.multiple).requests:
        result = document.classes.get(request.name)
        routed = math.fsum(route.rate_per_s for route in result.routes) if result is not None else 0.0
        if not _close(routed, request.rate):
            yield f"classes.{request.name}.routes", f"found {routed:g} requests/s, the instance sends {request.rate:g}"


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=_RELATIVE, abs_tol=1e-9)
