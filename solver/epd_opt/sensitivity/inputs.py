"""The inputs of an instance that a tornado moves, and where each is moved to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from epd_opt.address import format_path
from epd_opt.instance import Instance, RequestClass
from epd_opt.paths import get, set_value
from epd_opt.resolve import Resolved
from epd_opt.scaling import is_number, scaled
from epd_opt.sensitivity.price_path import price_path
from epd_opt.sensitivity.shift import Dimension, dimension, shifted

_LIMITS = ("usd_per_hour", "power_kw", "devices", "skus", "rack_kw", "racks")
_TERMS = ("electricity_usd_per_kwh", "life_years", "cost_of_capital", "host_share", "pue")


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """An input.

    Attributes
    ----------
    value : Any
        What the instance states, or what holds where it leaves it out; None for several inputs that move together.
    whole : bool
        Whether it takes whole numbers alone.
    """

    path: str
    value: Any
    whole: bool = False

    def at(self, document: Mapping[str, Any], factor: float) -> tuple[Any, dict[str, Any]]:
        """The value at a factor, and the instance there; whole numbers move by 1 at least."""
        if self.value is None:
            return factor, shifted(document, [(Dimension(path=self.path, values=(factor,), scaled=True), factor)])
        value = scaled(self.value, factor)
        if self.whole:
            value = round(value)
            if value == self.value:
                value += 1 if factor > 1.0 else -1
        return value, shifted(
            set_value(document, self.path, self.value), [(Dimension(path=self.path, values=(value,)), value)]
        )


def inputs(instance: Instance, resolved: Resolved) -> list[Input]:
    """Rates, sizes, targets, prices, stock, measured rates, network, terms of ownership and limits: what the instance states
    of them and, where something is bought, terms that it leaves to the catalogue.

    Sizes, targets and the network are left out where only measured workers are planned with: they do not depend on them.
    """
    document = instance.document()
    found = list(_inputs(instance, document, resolved))
    return [
        Input(path=one.path, value=one.value, whole=_whole(document, one)) if one.value is not None else one for one in found
    ]


def named(document: Mapping[str, Any], path: str) -> Input:
    """An input by its path.

    Raises
    ------
    InvalidInput
        The path names nothing, or no factor applies to what it names.
    """
    moved = dimension(path, [1.0], document, scaled=True)
    values = [value for _, value in get(document, path)]
    if len(values) > 1:
        return Input(path=path, value=None)
    return Input(path=path, value=values[0], whole=moved.whole)


def _whole(document: Mapping[str, Any], one: Input) -> bool:
    if not isinstance(one.value, int):
        return False
    return dimension(one.path, [one.value], document).whole


def _inputs(instance: Instance, document: Mapping[str, Any], resolved: Resolved) -> Iterator[Input]:
    modelled = instance.candidates.modelled
    classes = [request for request in instance.workload.classes if request.rate_per_s > 0]
    if len(classes) > 1:
        yield Input(path="workload.classes.*.rate_per_s", value=None)
    for request in classes:
        yield from _stated(
            document, ["workload", "classes", request.name], _of_class(request) if modelled else [["rate_per_s"]]
        )
    for entry in document["devices"]:
        path = price_path(entry)
        if path is not None:
            yield Input(path=path, value=get(document, path)[0][1])
        yield from _stated(document, ["devices", entry["name"]], [["stock"]])
    for worker in document["workers"]:
        yield from _worker(worker)
    if modelled:
        yield from _stated(document, ["network"], [["gbit_per_s_per_device"], ["latency_us"]])
    if any(offer.basis == "purchase" for offer in resolved.offers):
        yield from (Input(path=f"cost.{term}", value=value) for term in _TERMS if (value := getattr(resolved.rules, term)))
    yield from _stated(document, ["limits"], [[name] for name in _LIMITS])
    yield from _stated(document, ["redundancy"], [["headroom"]])


def _of_class(request: RequestClass) -> Iterator[list[str]]:
    yield from (["rate_per_s"], ["text_tokens"], ["cached_tokens"], ["output_tokens"], ["interarrival_scv"])
    if request.has_images:
        yield from (["images", key] for key in ("count", "tokens", "max_tokens", "source_megapixels"))
        if request.images is not None and request.images.max_tokens is None:
            yield ["images", "width_px"]
    yield from (["video", key] for key in ("seconds", "fps"))
    yield from (["slo", key] for key in ("ttft_ms", "itl_ms", "e2e_ms"))


def _stated(document: Mapping[str, Any], owner: list[str], keys: Any) -> Iterator[Input]:
    """Those of an owner's values that are stated and not 0."""
    for key in keys:
        value: Any = document
        for part in [*owner, *key]:
            if isinstance(value, list):
                value = next(entry for entry in value if entry["name"] == part)
            else:
                value = value.get(part) if isinstance(value, Mapping) else None
        if value:
            yield Input(path=format_path([*owner, *key]), value=value)


def _worker(worker: Mapping[str, Any]) -> Iterator[Input]:
    """What a measured worker sustains, of each class that is stated."""
    rate, path = worker["max_rate_per_s"], ["workers", worker["name"], "max_rate_per_s"]
    if is_number(rate):
        yield Input(path=format_path(path), value=rate)
    else:
        yield from (Input(path=format_path([*path, name]), value=value) for name, value in rate.items() if value)
