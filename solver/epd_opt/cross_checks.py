"""Sense checks that look at several parts of an instance at once.

They read the raw document and skip whatever is malformed, so that they can report beside the complaints about single
fields instead of after them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel

from epd_models import catalog
from epd_opt.address import name_of
from epd_opt.fields import Complaint, Location, shown

Raw = Mapping[str, Any]


def cross_checks(document: Raw) -> Iterator[Complaint]:
    """Every complaint about the document that no single part could raise."""
    plain = _plain(document)
    for check in _CHECKS:
        yield from check(plain)


def _plain(value: Any) -> Any:
    """Mappings and lists in place of parts that were built in Python."""
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True, exclude_none=True)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _mapping(value: object) -> Raw:
    return value if isinstance(value, Mapping) else {}


def _entries(document: Raw, *keys: str) -> list[tuple[Location, Raw]]:
    value: object = document
    for key in keys:
        value = _mapping(value).get(key)
    if not isinstance(value, list):
        return []
    return [((*keys, index), entry) for index, entry in enumerate(value) if isinstance(entry, Mapping)]


def _modelled(document: Raw) -> bool:
    return _mapping(document.get("candidates")).get("modelled") is not False


def _is_zero(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and value == 0)


def unique_names(document: Raw) -> Iterator[Complaint]:
    """Classes, devices, workers and scenarios are addressed by name."""
    lists = {
        ("workload", "classes"): "classes",
        ("devices",): "devices",
        ("workers",): "workers",
        ("scenarios",): "scenarios",
    }
    for keys, what in lists.items():
        first: dict[str, Location] = {}
        for location, entry in _entries(document, *keys):
            name = name_of(entry)
            if name is None:
                continue
            if name in first:
                hint = "give the second offer of a SKU a name of its own" if what == "devices" else "names are unique"
                yield Complaint(
                    where=(*location, "name" if "name" in entry else "sku"),
                    message=f"two {what} are called {shown(name)}",
                    hint=hint,
                )
            first.setdefault(name, location)


def modelled_classes(document: Raw) -> Iterator[Complaint]:
    """The performance models need sizes and targets of every class."""
    if not _modelled(document):
        return
    for location, entry in _entries(document, "workload", "classes"):
        output = entry.get("output_tokens")
        if output is None:
            yield Complaint(
                where=(*location, "output_tokens"), message="missing", hint="tokens generated per request, at least 1"
            )
        slo = _mapping(entry.get("slo"))
        if entry.get("slo") is not None and not isinstance(entry["slo"], Mapping):
            continue
        if slo.get("ttft_ms") is None:
            yield Complaint(where=(*location, "slo", "ttft_ms"), message="missing", hint="target in milliseconds")
        if slo.get("itl_ms") is None and output != 1 and output is not None:
            yield Complaint(where=(*location, "slo", "itl_ms"), message="missing", hint="target in milliseconds")
        images = _mapping(entry.get("images"))
        malformed = any(entry.get(key) is not None and not isinstance(entry[key], Mapping) for key in ("images", "video"))
        without_vision = not malformed and _is_zero(images.get("count")) and entry.get("video") is None
        if _is_zero(entry.get("text_tokens")) and without_vision:
            yield Complaint(
                where=(*location, "text_tokens"),
                message="the class has no tokens: no text, no images, no video",
                hint="give text_tokens, the tokens of the prompt",
            )


def something_to_plan_with(document: Raw) -> Iterator[Complaint]:
    """A model and devices where workers are modelled, measured workers where they are not."""
    if not _modelled(document):
        if document.get("workers") in (None, []):
            yield Complaint(where=("workers",), message="missing", hint="with candidates.modelled: false only these remain")
        return
    if document.get("model") is None:
        yield Complaint(
            where=("model",),
            message="missing",
            hint="a catalogue name (epd-opt catalog models), the path to a config.json, or an inline mapping",
        )
    if document.get("devices") in (None, []):
        yield Complaint(
            where=("devices",),
            message="missing",
            hint="the SKUs on offer, as in - {sku: L4, price: {usd_per_hour: 0.7}}",
        )


def known_classes_in_rates(document: Raw) -> Iterator[Complaint]:
    """A measured rate names a class of the workload."""
    names = [name for _, entry in _entries(document, "workload", "classes") if (name := name_of(entry))]
    for location, worker in _entries(document, "workers"):
        for key in _mapping(worker.get("max_rate_per_s")):
            if key != "default" and key not in names:
                yield Complaint(
                    where=(*location, "max_rate_per_s", key),
                    message=f"no class is called {shown(key)}",
                    hint=_nearest(str(key), [*names, "default"]),
                    about_key=True,
                )


def known_devices_in_pairs(document: Raw) -> Iterator[Complaint]:
    """A forbidden pair names devices or vendors of the instance."""
    devices = [entry for _, entry in _entries(document, "devices")]
    workers = [entry for _, entry in _entries(document, "workers")]
    names = [*(entry.get("name") for entry in devices), *(entry.get("sku") for entry in [*devices, *workers])]
    known = [name for name in [*names, *_vendors(devices)] if isinstance(name, str)]
    pairs = _mapping(document.get("network")).get("forbidden_kv_pairs")
    for index, pair in enumerate(pairs if isinstance(pairs, list) else []):
        for side, name in enumerate(pair if isinstance(pair, list) else []):
            if isinstance(name, str) and name not in known:
                yield Complaint(
                    where=("network", "forbidden_kv_pairs", index, side),
                    message=f"no device or vendor is called {shown(name)}",
                    hint=_nearest(name, known),
                )


def known_profiles(document: Raw) -> Iterator[Complaint]:
    """A class by the hour names a profile of the workload, and the objective has hours."""
    known = [str(name) for name in _mapping(_mapping(document.get("workload")).get("profiles"))]
    hourly = False
    for location, entry in _entries(document, "workload", "classes"):
        name = entry.get("hourly")
        hourly = hourly or name is not None
        if isinstance(name, str) and name not in known:
            hint = _nearest(name, known) if known else "give 24 factors, or workload.profiles: {NAME: [24 factors]}"
            yield Complaint(where=(*location, "hourly"), message=f"no profile is called {shown(name)}", hint=hint)
    if hourly and document.get("scenarios") is not None:
        hint = "set the rates of each scenario instead"
        yield Complaint(where=("scenarios",), message="scenarios and demand by the hour are both given", hint=hint)
    limits = _mapping(document.get("limits"))
    if hourly and limits.get("racks") is not None:
        hint = "leave it out, or limit power_kw; rack_kw alone counts racks"
        message = "with demand by the hour, racks are not limited: hours differ in what stands in them"
        yield Complaint(where=("limits", "racks"), message=message, hint=hint)
    objective = document.get("objective")
    if hourly and objective not in (None, "cost_per_request"):
        yield Complaint(
            where=("objective",),
            message="demand by the hour is planned for at its stated rates",
            hint="leave objective out, or hourly",
        )


def _vendors(devices: list[Raw]) -> Iterator[object]:
    """Vendors on the cards of device entries, as far as they are known."""
    for entry in devices:
        yield _mapping(entry.get("card")).get("vendor")
        with contextlib.suppress(catalog.UnknownCard):
            yield catalog.device_card(str(entry.get("sku"))).get("vendor")


def known_currencies(document: Raw) -> Iterator[Complaint]:
    """An amount in another currency has a stated rate."""
    stated = _mapping(document.get("currencies"))
    for location, amounts in _amounts(document):
        for code in _mapping(amounts):
            if code not in stated and isinstance(code, str):
                yield Complaint(
                    where=(*location, code),
                    message=f"no rate is stated for {shown(code)}",
                    hint=f"currencies: {{{code}: {{usd_per_unit: ..., source: ...}}}}; bare numbers are US dollars",
                    about_key=True,
                )


def _amounts(document: Raw) -> Iterator[tuple[Location, object]]:
    """Every value that may be stated in another currency."""
    for location, entry in _entries(document, "devices"):
        price = _mapping(entry.get("price"))
        for part, key in (
            ("", "usd_per_hour"),
            ("", "purchase_usd"),
            ("reserved", "usd_per_hour"),
            ("reserved", "upfront_usd"),
            ("spot", "usd_per_hour"),
        ):
            place, parent = ((part,), _mapping(price.get(part))) if part else ((), price)
            yield (*location, "price", *place, key), parent.get(key)
    cost = _mapping(document.get("cost"))
    for key in ("electricity_usd_per_kwh", "colocation_usd_per_kw_month"):
        yield ("cost", key), cost.get(key)


def robust_scenarios(document: Raw) -> Iterator[Complaint]:
    """What is asked over scenarios needs some, and rates that are fixed in each."""
    if document.get("scenarios") is None:
        if document.get("robust") is not None:
            hint = "list them, as in scenarios: [{name: usual}, {name: peak, set: {workload.classes.*.rate_per_s: x1.5}}]"
            yield Complaint(where=("robust",), message="there are no scenarios to be robust over", hint=hint)
        return
    if document.get("objective") not in (None, "cost_per_request"):
        yield Complaint(
            where=("objective",),
            message="with scenarios, rates are those of each scenario and no multiple of them is looked for",
            hint="leave the objective out; robust.minimise says what is minimised",
        )


def _nearest(found: str, known: list[str]) -> str:
    names = list(dict.fromkeys(known))
    close = get_close_matches(found, names, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?" if close else f"known are {', '.join(names)}"


_CHECKS: tuple[Callable[[Raw], Iterator[Complaint]], ...] = (
    unique_names,
    modelled_classes,
    something_to_plan_with,
    known_classes_in_rates,
    known_devices_in_pairs,
    known_currencies,
    robust_scenarios,
    known_profiles,
)
