"""Models, engines and devices, from their cards and what the instance says in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from epd_models import catalog
from epd_models.architecture import Architecture
from epd_models.catalog import CardError, UnknownCard
from epd_models.device import Device
from epd_models.engine import Engine, Speculative
from epd_models.huggingface import architecture_from_config
from epd_models.provenance import Confidence
from epd_opt import instance as user
from epd_opt.address import format_path
from epd_opt.errors import InvalidInput, Problem

_GIB = 2.0**30


def model_of(instance: user.Instance, card: Any) -> tuple[Architecture, Any]:
    wanted = instance.model if card is None else card
    try:
        if isinstance(wanted, str):
            return catalog.model(wanted), catalog.model_card(wanted)
        if wanted is None:
            raise InvalidInput(
                [Problem(path="model", message="the model is missing", hint="give a catalogue name or a mapping")]
            )
        if "huggingface_config" in wanted:
            return _from_config(wanted), wanted
        return catalog.architecture_from_card(wanted), wanted
    except UnknownCard as error:
        raise _unknown("model", error) from None
    except CardError as error:
        raise _malformed("model", error, str(_name(wanted)), "inline card") from None


def _name(card: Any) -> Any:
    return card.get("name") if isinstance(card, Mapping) else card


def _from_config(wanted: Mapping[str, Any]) -> Architecture:
    try:
        return architecture_from_config(wanted["huggingface_config"], str(wanted.get("name", "model")))
    except CardError as error:
        raise InvalidInput([Problem(path="model", message=str(error))]) from None


def engine_of(settings: user.EngineSettings, card: Any) -> tuple[Engine, Any]:
    card = catalog.engine_card(settings.name) if card is None else card
    try:
        engine = catalog.engine_from_card(card)
    except CardError as error:
        raise _malformed("engine", error) from None
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


def device_of(entry: user.DeviceEntry, card: Any, *, required: bool) -> tuple[Device | None, Any]:
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
    except UnknownCard as error:
        key = "sku" if error.kind == "device" else _stating(entry, ("coefficients", "from"))
        raise _unknown(f"{path}.{key}", error) from None
    except CardError as error:
        raise _malformed_device(entry, path, error) from None


def _malformed_device(entry: user.DeviceEntry, path: str, error: CardError) -> InvalidInput:
    card = f"{path}.card"
    sku = (entry.card or {}).get("sku", entry.sku)
    found = _malformed(card, error, f"{card} ({sku})", card, str(sku))
    (problem,) = found.problems
    keys = problem.path.removeprefix(f"{card}.").split(".")
    return InvalidInput([replace(problem, path=f"{path}.{_stating(entry, keys)}")]) if problem.path != card else found


def _stating(entry: user.DeviceEntry, keys: Sequence[str]) -> str:
    """Where an entry states a value of its card: under ``coefficients``, or under ``card``."""
    own: Any = {"coefficients": entry.coefficients}
    for key in keys:
        own = own.get(key) if isinstance(own, Mapping) else None
    return ".".join(keys if own is not None else ["card", *keys])


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


def untold(entry: user.DeviceEntry, engine: str) -> list[str]:
    if entry.coefficients is None or {engine, "default"} & set(entry.coefficients):
        return []
    told = ", ".join(key for key, value in entry.coefficients.items() if isinstance(value, Mapping)) or "no engine"
    return [f"{entry.name}: its coefficients are of {told}; those of {engine} stay as shipped"]


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        inner = result.get(key)
        if isinstance(inner, Mapping) and isinstance(value, Mapping):
            value = _merged(inner, value)
        result[key] = value
    return result


_LISTED = ("device", "model")
"""Kinds of cards that `epd-opt catalog` lists."""


def _unknown(path: str, error: UnknownCard) -> InvalidInput:
    hint = f"`epd-opt catalog {error.kind}s` lists them" if error.kind in _LISTED else ""
    if error.kind == "device":
        hint += "; a device of your own needs a complete `card:`"
    return InvalidInput([Problem(path=path, message=str(error), hint=hint)])


def _malformed(path: str, error: CardError, *labels: str) -> InvalidInput:
    """A complaint about a card at a path; the complaint names the card by one of the labels."""
    keys = next((error.path.removeprefix(f"{label}: ") for label in labels if error.path.startswith(f"{label}: ")), "")
    return InvalidInput(
        [Problem(path=".".join(filter(None, [path, keys.replace(": ", "."), error.key])), message=error.message)]
    )
