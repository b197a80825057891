"""From an instance as written to values the models take, part by part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epd_models.engine import Engine
from epd_opt import instance as user
from epd_opt.countable import uncountable
from epd_opt.errors import InvalidInput
from epd_opt.problem import Demand, Limits
from epd_opt.resolve.cards import engine_of, model_of
from epd_opt.resolve.cost import cost_rules, stale_rates
from epd_opt.resolve.devices import look_up
from epd_opt.resolve.names import required, without_device
from epd_opt.resolve.requests import network_of, request_of
from epd_opt.resolve.resolved import Assumption, Resolved


def resolve(instance: user.Instance, *, cards: Mapping[str, Any] | None = None) -> Resolved:
    """Look everything up.

    Parameters
    ----------
    cards : mapping, optional
        Cards of an earlier plan, used in place of the catalogue's.

    Raises
    ------
    InvalidInput
        A name that no card has, or a card that makes no sense.
    """
    modelled = instance.candidates.modelled
    cards = cards or {}
    model, model_card = model_of(instance, cards.get("model")) if modelled else (None, None)
    engine, engine_card = engine_of(instance.engine, cards.get("engine"))
    rules, of_cost = cost_rules(instance)
    devices = look_up(instance, model, engine, rules, cards)
    growth = 1.0 + instance.redundancy.headroom
    asked = [request for request in instance.workload.classes if request.rate_per_s > 0]
    requests = tuple(sorted((request_of(request, growth) for request in asked), key=lambda r: r.name))
    if problems := [*without_device(instance), *uncountable(instance.workers, requests)]:
        raise InvalidInput(problems)
    resting = [nothing_asked(request.name) for request in instance.workload.classes if request.rate_per_s == 0]
    return Resolved(
        instance=instance,
        model=model,
        engine=engine,
        requests=requests,
        demands=tuple(Demand(name=r.name, rate=r.rate, mean_rate=r.mean_rate) for r in requests),
        entries=tuple(devices.entries),
        offers=tuple(devices.offers),
        network=network_of(instance.network),
        rules=rules,
        limits=Limits(
            usd_per_hour=instance.limits.usd_per_hour,
            power_w=None if instance.limits.power_kw is None else instance.limits.power_kw * 1e3,
            devices=instance.limits.devices,
            skus=instance.limits.skus,
            rack_w=None if instance.limits.rack_kw is None else instance.limits.rack_kw * 1e3,
            racks=instance.limits.racks,
            required=required(instance, devices.names, devices.offers),
        ),
        spare_replicas=instance.redundancy.spare_replicas,
        zones=instance.redundancy.zones,
        lost_zones=instance.redundancy.survive_zones,
        rejections=tuple(devices.rejections),
        warnings=(*devices.warnings, *resting, *stale_rates(instance), *instance.suspicions()),
        assumptions=(*of_cost, *devices.assumptions, *([_habits(engine)] if modelled else [])),
        cards={"devices": devices.cards, "model": model_card, "engine": engine_card},
    )


def _habits(engine: Engine) -> Assumption:
    """That the engine behaves as its card says."""
    return Assumption(
        text=f"habits of engine {engine.name} (host image processing, overheads, limits)",
        value="card",
        unit="",
        source=engine.provenance.source,
        confidence=engine.provenance.confidence.label,
    )


def nothing_asked(request_class: str) -> str:
    """The warning that a class has no requests."""
    return f"class {request_class!r} has rate 0: nothing is planned for it"
