"""The catalogue: one YAML card per device, model, engine and tariff, and the readers that turn cards into values.

Cards are found by their name or an alias, whatever the case, and read when first asked for.

>>> device("h100-sxm").peaks["bf16"]
989000000000000.0
>>> model("Qwen/Qwen3.5-122B-A10B").name
'Qwen3.5-122B-A10B'
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from epd_models.architecture import Architecture
from epd_models.catalog import store
from epd_models.catalog.device_card import device_from_card
from epd_models.catalog.engine_card import engine_from_card
from epd_models.catalog.errors import CardError, UnknownCard
from epd_models.catalog.model_card import architecture_from_card
from epd_models.catalog.tariff_card import Constant, constants_from_card
from epd_models.device import Device
from epd_models.engine import Engine

__all__ = [
    "CardError",
    "Constant",
    "UnknownCard",
    "architecture_from_card",
    "as_of",
    "device",
    "device_card",
    "device_from_card",
    "device_names",
    "devices",
    "engine",
    "engine_card",
    "engine_from_card",
    "engine_names",
    "model",
    "model_card",
    "model_names",
    "models",
    "tariff",
]


def device_names() -> list[str]:
    """SKUs of all device cards."""
    return store.names("device")


def device_card(name: str) -> dict[str, Any]:
    """A device's card as plain data, a copy; raises :class:`UnknownCard`."""
    return store.card("device", name)


def device(name: str) -> Device:
    """A device by SKU or alias; raises :class:`UnknownCard`."""
    return _device(store.canonical_name("device", name))


def devices() -> dict[str, Device]:
    """All devices by SKU."""
    return {name: _device(name) for name in device_names()}


def model_names() -> list[str]:
    """Names of all model cards."""
    return store.names("model")


def model_card(name: str) -> dict[str, Any]:
    """A model's card as plain data, a copy; raises :class:`UnknownCard`."""
    return store.card("model", name)


def model(name: str) -> Architecture:
    """A model by name or alias; raises :class:`UnknownCard`."""
    return _model(store.canonical_name("model", name))


def models() -> dict[str, Architecture]:
    """All models by name."""
    return {name: _model(name) for name in model_names()}


def engine_names() -> list[str]:
    """Names of all engine cards."""
    return store.names("engine")


def engine_card(name: str) -> dict[str, Any]:
    """An engine's card as plain data, a copy; raises :class:`UnknownCard`."""
    return store.card("engine", name)


def engine(name: str) -> Engine:
    """An engine by name or alias; raises :class:`UnknownCard`."""
    return _engine(store.canonical_name("engine", name))


@cache
def tariff() -> Mapping[str, Constant]:
    """Constants of owning and powering hardware, by name."""
    return MappingProxyType(constants_from_card(store.card("tariff", "default"), source="tariffs/default"))


def as_of() -> str:
    """Day on which the catalogue's prices were last looked through, YYYY-MM-DD."""
    return str(store.card("tariff", "default")["as_of"])


@cache
def _device(name: str) -> Device:
    return device_from_card(store.card("device", name), source=name)


@cache
def _model(name: str) -> Architecture:
    return architecture_from_card(store.card("model", name), source=name)


@cache
def _engine(name: str) -> Engine:
    return engine_from_card(store.card("engine", name), source=name)
