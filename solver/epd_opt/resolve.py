"""From an instance as written to values the models take: cards looked up, units converted, defaults made explicit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from epd_models import catalog
from epd_models.architecture import Architecture
from epd_models.candidate import Rejection
from epd_models.catalog import CardError, UnknownCard
from epd_models.device import Device
from epd_models.distribution import Distribution
from epd_models.engine import Engine, Speculative
from epd_models.entry import Entry
from epd_models.huggingface import architecture_from_config
from epd_models.measurements import MeasurementsError
from epd_models.parallelism import Parallelism
from epd_models.precision import Precision
from epd_models.provenance import Confidence
from epd_models.source import Source, SourceUnavailable, Subject
from epd_models.sources import SOURCES
from epd_models.tariff import Charge, CostRules
from epd_models.transfer import Network
from epd_models.workload import Images, RequestClass, Targets, Video
from epd_opt import instance as user
from epd_opt.address import format_path
from epd_opt.countable import uncountable
from epd_opt.errors import InvalidInput, Problem
from epd_opt.nodes import Nodes
from epd_opt.prices import Terms, stale, terms_of, usd
from epd_opt.problem import Demand, Limits, Offer

_GIB = 2.0**30
_DEFAULT_DEGREES = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """A number the plan rests on that the instance did not state."""

    text: str
    value: float | str
    unit: str
    source: str
    confidence: str


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """An instance with everything looked up.

    Attributes
    ----------
    model : Architecture or None
        None where only measured workers are planned with.
    requests : tuple of RequestClass
        Classes with a rate above zero, sorted by name, headroom included.
    entries : tuple of Entry
        Device entries that the performance models may use, sorted by name.
    offers : tuple of Offer
        Terms of every device entry that has them, sorted by name.
    rejections : tuple of Rejection
        Device entries that are not on offer, and why.
    cards : Mapping
        Raw cards used: ``{"devices": {entry name: card}, "model": card or None, "engine": card}``.
    """

    instance: user.Instance
    model: Architecture | None
    engine: Engine
    requests: tuple[RequestClass, ...]
    demands: tuple[Demand, ...]
    entries: tuple[Entry, ...]
    offers: tuple[Offer, ...]
    network: Network
    rules: CostRules
    limits: Limits
    spare_replicas: int
    zones: int
    lost_zones: int
    rejections: tuple[Rejection, ...]
    warnings: tuple[str, ...]
    assumptions: tuple[Assumption, ...]
    cards: Mapping[str, Any]

    def at(self, multiple: float) -> Resolved:
        """The same with so many times the rates, mean rates included."""
        return replace(
            self,
            requests=tuple(replace(r, rate=r.rate * multiple, mean_rate=r.mean_rate * multiple) for r in self.requests),
            demands=tuple(demand.at(multiple) for demand in self.demands),
        )


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
    model, model_card = _model(instance, cards.get("model")) if modelled else (None, None)
    engine, engine_card = _engine(instance.engine, cards.get("engine"))
    rules, assumptions = _cost_rules(instance)
    warnings: list[str] = []
    rejections: list[Rejection] = []
    entries: list[Entry] = []
    offers: list[Offer] = []
    device_cards: dict[str, Any] = {}
    named: dict[str, frozenset[str]] = {}
    measured = {worker.sku for worker in instance.workers}
    for entry in sorted(instance.devices, key=lambda e: e.name):
        needs_card = modelled and not (entry.card is None and {entry.name, entry.sku} & measured)
        device, card = _device(entry, cards.get("devices", {}).get(entry.name), required=needs_card)
        if card is not None:
            device_cards[entry.name] = card
        named[entry.name] = _names(entry, device)
        if forbidden := [one for one in instance.limits.forbid if one.casefold() in named[entry.name]]:
            text = f"{entry.name} is forbidden (limits.forbid: {', '.join(forbidden)})"
            rejections.append(Rejection(limit="forbid", device=entry.name, text=text))
            continue
        offer, refused = _offer(entry, device, instance, rules, warnings, assumptions)
        if offer is None:
            rejections.append(refused)
            continue
        if (too_much := _beyond_a_rack(offer, instance.limits.rack_kw)) is not None:
            rejections.append(too_much)
            warnings.append(f"{too_much.text}; it is left out")
            continue
        offers.append(offer)
        if entry.performance is not None and (device is None or model is None):
            text = "found, but only measured workers are planned with on this device"
            raise InvalidInput([Problem(path=format_path(["devices", entry.name, "performance"]), message=text)])
        if device is not None and model is not None:
            kept = cards.get("performance", {}).get(entry.name, {})
            entries.append(_entry(entry, device, model, engine, offer, instance, kept))
            warnings += [f"{entry.name}: {remark}" for remark in _remarks(entries[-1])]
            warnings += _untold(entry, engine.name)
            assumptions += _device_assumptions(entry.name, device, engine.name)
    kept = [request for request in instance.workload.classes if request.rate_per_s > 0]
    for request in instance.workload.classes:
        if request.rate_per_s == 0:
            warnings.append(nothing_asked(request.name))
    growth = 1.0 + instance.redundancy.headroom
    requests = tuple(sorted((_request(request, growth) for request in kept), key=lambda r: r.name))
    if problems := list(uncountable(instance.workers, requests)):
        raise InvalidInput(problems)
    if modelled:
        assumptions.append(
            Assumption(
                text=f"habits of engine {engine.name} (host image processing, overheads, limits)",
                value="card",
                unit="",
                source=engine.provenance.source,
                confidence=engine.provenance.confidence.label,
            )
        )
    return Resolved(
        instance=instance,
        model=model,
        engine=engine,
        requests=requests,
        demands=tuple(Demand(name=r.name, rate=r.rate, mean_rate=r.mean_rate) for r in requests),
        entries=tuple(entries),
        offers=tuple(offers),
        network=_network(instance.network),
        rules=rules,
        limits=Limits(
            usd_per_hour=instance.limits.usd_per_hour,
            power_w=None if instance.limits.power_kw is None else instance.limits.power_kw * 1e3,
            devices=instance.limits.devices,
            skus=instance.limits.skus,
            rack_w=None if instance.limits.rack_kw is None else instance.limits.rack_kw * 1e3,
            racks=instance.limits.racks,
            required=_required(instance, named, offers),
        ),
        spare_replicas=instance.redundancy.spare_replicas,
        zones=instance.redundancy.zones,
        lost_zones=instance.redundancy.survive_zones,
        rejections=tuple(rejections),
        warnings=(*warnings, *_stale_rates(instance), *instance.suspicions()),
        assumptions=tuple(assumptions),
        cards={"devices": device_cards, "model": model_card, "engine": engine_card},
    )


_KINDS = ("gpu", "npu", "tpu", "asic")


def _names(entry: user.DeviceEntry, device: Device | None) -> frozenset[str]:
    """What limits may call a device entry, in small letters: name, SKU, vendor and kind."""
    own = [entry.name, entry.sku, *([] if device is None else [device.vendor, device.kind])]
    return frozenset(name.casefold() for name in own)


def _required(
    instance: user.Instance, named: Mapping[str, frozenset[str]], offers: list[Offer]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What must be used, with the entries on offer that are meant.

    Raises
    ------
    InvalidInput
        A name in `limits.forbid` or `limits.require` fits no device entry, or nothing that is required is on offer.
    """
    known = sorted({name for names in named.values() for name in names})
    problems = []
    for key in ("forbid", "require"):
        for index, wanted in enumerate(getattr(instance.limits, key)):
            path = format_path(["limits", key, index])
            fits = [name for name, names in named.items() if wanted.casefold() in names]
            if not fits and not (key == "forbid" and wanted.casefold() in _KINDS):
                near = get_close_matches(wanted.casefold(), known, n=3, cutoff=0.5)
                hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known)}"
                message = f"{wanted!r} is no name, SKU, vendor or kind of any device entry"
                problems.append(Problem(path=path, message=message, hint=hint))
            elif key == "require" and not any(offer.name in fits for offer in offers):
                message = (
                    f"{wanted!r} is required, but {' and '.join(fits)} {'is' if len(fits) == 1 else 'are'} not on offer"
                )
                hint = "give a price, or look at limits.forbid and limits.rack_kw"
                problems.append(Problem(path=path, message=message, hint=hint))
    if problems:
        raise InvalidInput(problems)
    on_offer = {offer.name for offer in offers}
    return tuple(
        (wanted, tuple(sorted(name for name, names in named.items() if wanted.casefold() in names and name in on_offer)))
        for wanted in sorted(instance.limits.require)
    )


def nothing_asked(request_class: str) -> str:
    """The warning that a class has no requests."""
    return f"class {request_class!r} has rate 0: nothing is planned for it"


def _invalid(path: str, error: Exception) -> InvalidInput:
    hint = ""
    if isinstance(error, UnknownCard):
        hint = f"`epd-opt catalog {error.kind}s` lists them"
        if error.kind == "device":
            hint += "; a device of your own needs a complete `card:`"
    return InvalidInput([Problem(path=path, message=str(error), hint=hint)])


def _model(instance: user.Instance, card: Any) -> tuple[Architecture, Any]:
    wanted = instance.model if card is None else card
    try:
        if isinstance(wanted, str):
            return catalog.model(wanted), catalog.model_card(wanted)
        if wanted is None:
            raise InvalidInput(
                [Problem(path="model", message="the model is missing", hint="give a catalogue name or a mapping")]
            )
        if "huggingface_config" in wanted:
            name = str(wanted.get("name", "model"))
            return architecture_from_config(wanted["huggingface_config"], name), wanted
        return catalog.architecture_from_card(wanted), wanted
    except (UnknownCard, CardError) as error:
        raise _invalid("model", error) from None


def _engine(settings: user.EngineSettings, card: Any) -> tuple[Engine, Any]:
    card = catalog.engine_card(settings.name) if card is None else card
    try:
        engine = catalog.engine_from_card(card)
    except CardError as error:
        raise _invalid("engine", error) from None
    changes: dict[str, Any] = {
        key: value
        for key in ("max_sequences", "max_batched_tokens", "encoder_processes")
        if (value := getattr(settings, key)) is not None
    }
    if settings.encoder_processes is not None:
        changes["pool_processes"] = settings.encoder_processes
    if settings.memory_fraction is not None:
        changes["memory_fraction"] = settings.memory_fraction
        changes["shared_memory_fraction"] = min(settings.memory_fraction, engine.shared_memory_fraction)
    if settings.encoder_cache_gib is not None:
        changes["encoder_cache_bytes"] = settings.encoder_cache_gib * _GIB
    if settings.speculative is not None:
        changes["speculative"] = Speculative(
            draft_tokens=settings.speculative.draft_tokens, accepted_tokens=settings.speculative.accepted_tokens
        )
    return replace(engine, **changes), card


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        inner = result.get(key)
        if isinstance(inner, Mapping) and isinstance(value, Mapping):
            value = _merged(inner, value)
        result[key] = value
    return result


def _device(entry: user.DeviceEntry, card: Any, *, required: bool) -> tuple[Device | None, Any]:
    path = format_path(["devices", entry.name])
    try:
        if card is None:
            try:
                base = catalog.device_card(entry.sku)
            except UnknownCard:
                if entry.card is None and not required:
                    return None, None
                if entry.card is None:
                    raise
                base = {"sku": entry.sku}
            card = _merged(base, dict(entry.card or {}))
            if entry.coefficients is not None:
                card = {**card, "coefficients": _coefficients(card.get("coefficients"), entry, path)}
            if entry.host_cores is not None:
                units = card.get("server", {}).get("units", 1)
                card = _merged(card, {"server": {"host_cores_per_unit": max(1, entry.host_cores // units)}})
        return catalog.device_from_card(card, source=f"{path}.card"), card
    except (UnknownCard, CardError) as error:
        raise _invalid(path, error) from None


def _untold(entry: user.DeviceEntry, engine: str) -> list[str]:
    if entry.coefficients is None or {engine, "default"} & set(entry.coefficients):
        return []
    told = ", ".join(key for key, value in entry.coefficients.items() if isinstance(value, Mapping)) or "no engine"
    return [f"{entry.name}: its coefficients are of {told}; those of {engine} stay as shipped"]


def _coefficients(base: Any, entry: user.DeviceEntry, path: str) -> Any:
    """The entry's coefficients over those of its card, which must be of the same architecture."""
    stated = (entry.coefficients or {}).get("from")
    about = {"source": f"{path}.coefficients", "confidence": Confidence.USER.label}
    about |= {key: value for key, value in (entry.coefficients or {}).items() if not isinstance(value, Mapping)}
    about = {key: value for key, value in about.items() if key not in ("name", "from", "aliases")}
    given = {k: {**about, **value} for k, value in (entry.coefficients or {}).items() if isinstance(value, Mapping)}
    start = base if isinstance(base, str) else (base or {}).get("from")
    if stated is not None and start is not None and stated != start:
        hint = "a calibration holds for the architecture it was measured on"
        message = f"found coefficients that start from {stated!r}; those of {entry.sku} start from {start!r}"
        raise InvalidInput([Problem(path=f"{path}.coefficients.from", message=message, hint=hint)])
    if isinstance(base, Mapping):
        return _merged(base, given)
    return {**given, **({"from": start or stated} if start or stated else {})}


def _cost_rules(instance: user.Instance) -> tuple[CostRules, list[Assumption]]:
    """Ownership constants: the instance's, else the catalogue's typical ones, listed as assumptions where they act."""
    constants = catalog.tariff()
    accelerators = constants["accelerator_share_of_capex"]
    host = constants["host_cpu_memory_storage_share_of_capex"]
    network = constants["network_share_of_capex"]
    assert accelerators.typical
    assert host.typical
    assert network.typical
    defaults = {
        "life_years": (constants["depreciation_years"].typical, "years", constants["depreciation_years"]),
        "residual": (0.0, "share of the purchase price", None),
        "cost_of_capital": (constants["cost_of_capital"].typical, "per year", constants["cost_of_capital"]),
        "host_share": ((host.typical + network.typical) / accelerators.typical, "share of the purchase price", host),
        "hours_per_year": (8760.0, "h", None),
        "pue": (constants["pue"].typical, "ratio", constants["pue"]),
        "electricity_usd_per_kwh": (
            constants["electricity_industrial"].typical,
            "USD/kWh",
            constants["electricity_industrial"],
        ),
    }
    values: dict[str, float] = {}
    assumptions = []
    owns = any(e.owned or (e.price is not None and e.price.is_purchase) for e in instance.devices)
    reserves = any(e.price is not None and e.price.reserved is not None for e in instance.devices)
    for name, (default, unit, constant) in defaults.items():
        stated = getattr(instance.cost, name)
        assert default is not None
        values[name] = default if stated is None else usd(stated, instance)
        if stated is None and (owns or (reserves and name in ("cost_of_capital", "hours_per_year"))):
            assumptions.append(
                Assumption(
                    text=f"cost.{name}",
                    value=round(default, 6),
                    unit=unit,
                    source=constant.source if constant else "convention of this program",
                    confidence=constant.confidence.label if constant else "estimate",
                )
            )
    for code, rate in (instance.currencies or {}).items():
        dated = f", {rate.date}" if rate.date else ""
        assumptions.append(
            Assumption(
                text=format_path(["currencies", code]),
                value=rate.usd_per_unit,
                unit=f"USD/{code}",
                source=rate.source + dated,
                confidence=Confidence.USER.label,
            )
        )
    return CostRules(
        **values, colocation_usd_per_kw_month=usd(instance.cost.colocation_usd_per_kw_month or 0.0, instance)
    ), assumptions


def _stale_rates(instance: user.Instance) -> list[str]:
    rates = (instance.currencies or {}).items()
    return [text for code, rate in rates for text in stale(f"the rate of {code}", rate.date or "", instance)]


def _offer(
    entry: user.DeviceEntry,
    device: Device | None,
    instance: user.Instance,
    rules: CostRules,
    warnings: list[str],
    assumptions: list[Assumption],
) -> tuple[Offer | None, Rejection]:
    price = entry.price
    refused = Rejection(
        limit="no_price", device=entry.name, text=f"{entry.name} has no price; give devices.{entry.name}.price"
    )
    stock = entry.stock
    per = 1 if price is None else _units_per(entry, price, device)
    lot = 1 if price is None else per * math.ceil(price.pack / per)
    terms = None if price is None else terms_of(entry, device, instance, rules, units=per)
    if price is None or terms is None:
        missing = "has no price" if price is None else f"has no {price.catalog} price in the catalogue"
        if entry.owned == 0:
            warnings.append(f"{entry.name} {missing} and is left out; give devices.{entry.name}.price to offer it")
            return None, refused
        warnings.append(f"{entry.name} {missing}: only the {entry.owned} owned units are on offer")
        stock = entry.owned
    power_w, idle_w = _power(entry, device, warnings, limited=_limits_power(instance))
    if terms is not None and terms.amount == 0:
        warnings.append(f"{entry.name} is offered at price 0")
    if terms is not None:
        warnings += stale(f"{entry.name}: its price", terms.date, instance)
        assumptions += _price_assumptions(entry.name, price, terms)
    if entry.stock is None:
        warnings.append(f"{entry.name} has no stock limit: any number of units may be planned")
    own_site = terms is None or terms.basis == "purchase"
    space = rules.colocation_usd_per_hour(power_w)
    charge = Charge(usd_per_hour=0.0) if terms is None else terms.charge
    return Offer(
        name=entry.name,
        sku=entry.sku,
        stock=stock,
        owned=entry.owned,
        lot=lot,
        usd_per_hour=charge.usd_per_hour + (space if own_site and terms is not None else 0.0),
        used_usd_per_hour=rules.energy_usd_per_hour(idle_w) if own_site else 0.0,
        owned_usd_per_hour=space + (0.0 if own_site else rules.energy_usd_per_hour(power_w)),
        busy_usd_per_unit_second=(power_w - idle_w) * rules.energy_usd_per_joule() if own_site else 0.0,
        capex_usd=charge.capex_usd,
        power_w=power_w,
        for_sale=terms is not None,
        basis="purchase" if terms is None else terms.basis,
        amortised_usd_per_hour=charge.amortised_usd_per_hour,
        upfront_usd=charge.upfront_usd,
        interruption_allowance=0.0 if terms is None else terms.interruption_allowance,
        price=0.0 if terms is None else terms.amount,
        price_date="" if terms is None else terms.date,
        price_source="" if terms is None else terms.source,
        minimum=0 if price is None else price.minimum,
        nodes=None if device is None else _nodes(device, 1 if terms is None else lot),
    ), refused


def _beyond_a_rack(offer: Offer, rack_kw: float | None) -> Rejection | None:
    """Why an entry stands in no rack, if its units draw too much for one."""
    if rack_kw is None or Limits(rack_w=rack_kw * 1e3).units_per_rack(offer) != 0:
        return None
    power = offer.together * offer.power_w / 1e3
    what = f"a unit of {offer.name}" if offer.together == 1 else f"{offer.together} units of {offer.name}, bought whole,"
    return Rejection(
        limit="rack_kw",
        device=offer.name,
        wanted=rack_kw,
        best_reachable=power,
        text=f"{what} {'draws' if offer.together == 1 else 'draw'} {power:.6g} kW, limits.rack_kw is {rack_kw:g}",
    )


def _price_assumptions(name: str, price: user.Price | None, terms: Terms) -> list[Assumption]:
    """A price that the catalogue gives, and the allowance for interruptions."""
    found = []
    if price is not None and price.catalog is not None:
        unit = "USD" if terms.basis == "purchase" else "USD/h"
        source = f"{terms.source}; {terms.date}" if terms.date else terms.source
        found.append(
            Assumption(text=f"{name}: price", value=terms.amount, unit=unit, source=source, confidence=terms.confidence)
        )
    if terms.basis == "spot":
        found.append(
            Assumption(
                text=f"{name}: interruption allowance",
                value=terms.interruption_allowance,
                unit="units held per unit in use",
                source="the instance; that no more units are away at once is taken for granted",
                confidence=Confidence.USER.label,
            )
        )
    return found


def _nodes(device: Device, lot: int) -> Nodes:
    """Servers and racks: lots of whole racks or servers stand in them; other units are bought one by one."""
    unit, server = device.logical_per_unit, device.units_per_server
    domain = max(device.scaleup_domain, server * unit)
    if domain % (server * unit):
        domain = server * unit
    racks = lot % (domain // unit) == 0
    servers = lot % server == 0
    inner = device.scaleup_domain if server * unit % max(device.scaleup_domain, unit) == 0 else domain
    return Nodes(
        unit=unit,
        inner=max(inner, unit) if inner < server * unit else domain,
        domain=domain,
        chunk=server if servers and not racks else domain // unit,
        whole=racks or servers,
    )


def _units_per(entry: user.DeviceEntry, price: user.Price, device: Device | None) -> int:
    if price.per == "device":
        return 1
    path = format_path(["devices", entry.name, "price", "per"])
    if device is None:
        raise InvalidInput(
            [Problem(path=path, message=f"{price.per} prices need a card that says how many units a {price.per} holds")]
        )
    if price.per == "server":
        return device.units_per_server
    rack = device.scaleup_domain // device.logical_per_unit
    if rack <= device.units_per_server:
        raise InvalidInput(
            [
                Problem(
                    path=path,
                    message=f"{entry.sku} is not sold by the rack as far as its card says",
                    hint="give the price per device or server, with pack: UNITS",
                )
            ]
        )
    return rack


def _limits_power(instance: user.Instance) -> bool:
    return instance.limits.power_kw is not None or instance.limits.rack_kw is not None


def _power(entry: user.DeviceEntry, device: Device | None, warnings: list[str], *, limited: bool) -> tuple[float, float]:
    """Nameplate and idle watts of one unit with its share of the host; figures of the instance are taken as they are."""
    if device is None:
        if entry.power_w is None and (limited or entry.price is None or entry.price.is_purchase):
            warnings.append(f"{entry.name}: power is unknown and taken as 0; give devices.{entry.name}.power_w")
        power = entry.power_w or 0.0
        return power, power if entry.idle_power_w is None else entry.idle_power_w
    power = device.tdp_w * device.host_power_factor if entry.power_w is None else entry.power_w
    idle = device.idle_w * device.host_power_factor if entry.idle_power_w is None else entry.idle_power_w
    return power, min(idle, power)


def _cuts(model: Architecture, device: Device) -> tuple[Parallelism, ...]:
    """Degrees considered where the entry leaves them open: tensor degrees, and for expert models one group of attention
    data parallelism over a server."""
    server = max(device.scaleup_domain, device.units_per_server * device.logical_per_unit)
    cuts = [Parallelism(tensor=degree) for degree in _DEFAULT_DEGREES if degree <= server]
    if model.experts is not None and any(group.kind == "mla" for group in model.attention):
        cuts += [
            Parallelism(attention_data=ranks, expert=ranks)
            for ranks in (8, 16, 32)
            if ranks <= server and model.experts.routed % ranks == 0
        ]
    return tuple(cuts)


def _remarks(entry: Entry) -> tuple[str, ...]:
    return () if entry.source is None else entry.source.remarks()


def _source(performance: user.Performance | None, subject: Subject, embedded: Mapping[str, Any]) -> Source:
    """Where the times of a device entry come from.

    Raises
    ------
    InvalidInput
        A file of measurements makes no sense, or a source cannot answer.
    """
    if performance is None:
        return SOURCES["analytic"]({}, subject, embedded={})
    path = format_path(["devices", subject.entry, "performance"])
    try:
        return SOURCES[performance.source](performance.settings(), subject, embedded=embedded)
    except MeasurementsError as error:
        raise InvalidInput(
            Problem(file=error.file, line=one.line, column=1, path=one.column, message=one.message, hint=one.hint)
            for one in error.complaints
        ) from None
    except SourceUnavailable as error:
        raise InvalidInput([Problem(path=path, message=str(error))]) from None


def _entry(
    entry: user.DeviceEntry,
    device: Device,
    model: Architecture,
    engine: Engine,
    offer: Offer,
    instance: user.Instance,
    embedded: Mapping[str, Any],
) -> Entry:
    stated = [entry.precision, instance.precision]
    formats = {
        key: next((value for p in stated if p is not None and (value := getattr(p, key)) is not None), default)
        for key, default in (("weights", model.native_weights), ("kv_cache", "bf16"), ("encoder", "bf16"))
    }
    precision = Precision(**formats)
    subject = Subject(entry=entry.name, model=model, device=device, precision=precision, engine=engine)
    return Entry(
        name=entry.name,
        device=device,
        precision=precision,
        cuts=tuple(sorted(entry.parallelisms() or _cuts(model, device))),
        stages=entry.stages,
        power_w=offer.power_w,
        idle_w=_power(entry, device, [], limited=False)[1],
        stock=offer.stock,
        source=_source(entry.performance, subject, embedded),
    )


def _device_assumptions(name: str, device: Device, engine: str) -> list[Assumption]:
    """Figure groups of a card that rest on less than a datasheet or a measurement, the fitted shares among them; and shares
    that the user gave."""
    result = []
    shares = device.coefficients_for(engine).provenance
    groups = {**device.provenance, "achieved shares and overheads": shares}
    for group, provenance in sorted(groups.items()):
        measured = provenance is shares and provenance.confidence is Confidence.USER
        if group != "card" and (provenance.confidence < Confidence.DATASHEET or measured):
            result.append(
                Assumption(
                    text=f"{name}: {group}",
                    value="card",
                    unit="",
                    source=f"{provenance.source}, {provenance.date}" if measured and provenance.date else provenance.source,
                    confidence=provenance.confidence.label,
                )
            )
    return result


def _network(network: user.Network) -> Network:
    stated = network.gbit_per_s_per_device
    latency = {} if network.latency_us is None else {"latency_s": network.latency_us * 1e-6}
    return Network(
        bandwidth_per_unit=None if stated is None else stated * 1e9 / 8,
        conversion_factor=network.conversion_factor,
        forbidden_pairs=frozenset(frozenset(pair) for pair in network.forbidden_kv_pairs),
        **latency,
    )


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1e3


def _request(request: user.RequestClass, growth: float) -> RequestClass:
    slo = request.slo
    images, video = request.images, request.video
    return RequestClass(
        name=request.name,
        rate=request.rate_per_s * growth,
        mean_rate=request.rate_per_s if request.mean_rate_per_s is None else request.mean_rate_per_s,
        text_tokens=request.text_tokens.distribution(),
        output_tokens=request.output_tokens.distribution() if request.output_tokens else Distribution.constant(1),
        cached_tokens=request.cached_tokens,
        interarrival_scv=request.interarrival_scv,
        images=None
        if images is None or not request.has_images
        else Images(
            count=images.count.distribution(),
            width_px=images.width_px,
            height_px=images.height_px,
            max_tokens=images.max_tokens,
            tokens=images.tokens,
            source_megapixels=images.source_megapixels,
            cached_share=images.cached_share,
        ),
        video=None
        if video is None
        else Video(
            seconds=video.seconds,
            fps=video.fps,
            max_frames=video.max_frames,
            width_px=video.width_px,
            height_px=video.height_px,
            max_tokens_per_frame=video.max_tokens_per_frame,
        ),
        targets=Targets(
            ttft_s=_seconds(slo.planned_ttft_ms or slo.ttft_ms),
            ttft_probability=(slo.ttft_percentile or slo.percentile) / 100.0,
            itl_s=_seconds(slo.planned_itl_ms or slo.itl_ms),
            itl_probability=(slo.itl_percentile or slo.percentile) / 100.0,
            e2e_s=_seconds(slo.e2e_ms),
            e2e_probability=(slo.e2e_percentile or slo.percentile) / 100.0,
        ),
    )
