"""Coefficients: one card per accelerator architecture, a default and what differs by engine; a device may override."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from epd_models.catalog import store
from epd_models.catalog.errors import CardError
from epd_models.catalog.fields import Fields
from epd_models.device import Coefficients
from epd_models.provenance import Confidence, FittedError, Provenance

_SHARES = (
    "bandwidth_share",
    "expert_bandwidth_share",
    "kv_bandwidth_share",
    "prefill_share",
    "decode_share",
    "encode_share",
    "encode_attention_share",
    "expert_share",
    "attention_share",
    "narrow_share",
    "link_share",
)
_COUNTS = ("activation_passes", "expert_half_width", "opening_share")
_TIMES = {
    "step_overhead_ms": ("step_overhead_s", 1e3),
    "layer_overhead_us": ("layer_overhead_s", 1e6),
    "narrow_layer_overhead_us": ("narrow_layer_overhead_s", 1e6),
    "latent_layer_overhead_us": ("latent_layer_overhead_s", 1e6),
    "expert_layer_overhead_us": ("expert_layer_overhead_s", 1e6),
    "sequence_overhead_us": ("sequence_overhead_s", 1e6),
    "collective_latency_us": ("collective_latency_s", 1e6),
    "prompt_overhead_ms": ("prompt_overhead_s", 1e3),
    "image_overhead_ms": ("image_overhead_s", 1e3),
}
_QUANTITIES: tuple[Literal["itl", "ttft", "image"], ...] = ("itl", "ttft", "image")
_ABOUT = ("source", "confidence", "date", "note")
_NOT_ENGINES = ("name", "aliases", "from", *_ABOUT)
_USUAL = {
    "encode_attention_share": ("encode_share", 1.0),
    "expert_bandwidth_share": ("bandwidth_share", 0.8),
    "kv_bandwidth_share": ("bandwidth_share", 0.85),
    "expert_share": ("prefill_share", 0.5),
    "attention_share": ("prefill_share", 1.0),
    "narrow_share": (None, 0.9),
    "expert_half_width": (None, 40.0),
    "narrow_layer_overhead_s": ("layer_overhead_s", 0.5),
    "latent_layer_overhead_s": ("layer_overhead_s", 1.0),
    "expert_layer_overhead_s": ("layer_overhead_s", 0.7),
    "sequence_overhead_s": (None, 1e-5),
    "activation_passes": (None, 7.0),
    "prompt_overhead_s": (None, 0.02),
    "opening_share": (None, 0.09),
}
"""What stands in for figures that a card leaves out: a figure and a factor on it, or a constant; usual among the fitted
cards."""

Layer = tuple[Mapping[str, Any], Provenance]


def coefficients_from_card(
    card: str | Mapping[str, Any], *, path: str, source: str, confidence: Confidence
) -> dict[str, Coefficients]:
    """Coefficients by engine, with at least the entry ``default``.

    An engine's figures are those of the architecture's card (``default``, then the engine's own), overridden by those
    of the device's card (``default``, then the engine's own).

    Parameters
    ----------
    card : str or mapping
        The name of a coefficients card, or a mapping of engine names to figures: shares of a peak in (0, 1], overheads
        in the milliseconds and microseconds that the keys name. With the key ``from``, a mapping starts from a
        coefficients card and holds only what differs. An engine's ``fitted_error`` says how far the fit is off:
        ``{itl: {median, p90, points, held_out}}``, and the same for ``ttft`` and ``image``.
    path, source, confidence
        For messages, and for the provenance of figures that state none.

    Raises
    ------
    CardError
        A figure is missing, unknown, out of range or not a number.
    UnknownCard
        No coefficients card is called so.
    """
    mappings: list[tuple[Mapping[str, Any], str]] = []
    start = card if isinstance(card, str) else Fields(card, path).text("from", None)
    if start is not None:
        name = store.canonical_name("coefficients", start)
        mappings.append((store.card("coefficients", name), f"coefficients/{name}"))
    if not isinstance(card, str):
        mappings.append((card, path))
    layers = [layer for mapping, where in mappings for layer in _layers(mapping, where, source, confidence)]
    engines = dict.fromkeys(["default", *(engine for engine, _ in layers)])
    return {
        engine: _one([layer for owner, layer in layers if owner in ("default", engine)], engine, path) for engine in engines
    }


def named_card(card: str | Mapping[str, Any]) -> str | None:
    """Name of the coefficients card that a device's coefficients are or start from; None where they stand alone."""
    start = card if isinstance(card, str) else card.get("from")
    return None if start is None else store.canonical_name("coefficients", start)


def card_coefficients(name: str) -> dict[str, Coefficients]:
    """Coefficients of a card of the catalogue by engine, with at least the entry ``default``."""
    return coefficients_from_card(name, path=name, source=name, confidence=Confidence.ESTIMATE)


def _layers(card: Mapping[str, Any], path: str, source: str, confidence: Confidence) -> list[tuple[str, Layer]]:
    fields = Fields(card, path)
    about = fields.provenance(source, confidence)
    layers: list[tuple[str, Layer]] = []
    for engine in sorted((key for key in fields if key not in _NOT_ENGINES), key=lambda key: key != "default"):
        entry = fields.child(engine)
        stated = replace(entry.provenance(about.source, about.confidence), fitted_error=_fitted_error(entry))
        layers.append((engine, (_figures(entry), stated)))
    return layers


def _fitted_error(entry: Fields) -> tuple[FittedError, ...]:
    """Errors of the fit behind an engine's figures; figures that override them state errors of their own."""
    fields = entry.child("fitted_error", {})
    found = []
    for quantity in _QUANTITIES:
        if quantity in fields:
            error = fields.child(quantity)
            found.append(
                FittedError(
                    quantity=quantity,
                    median=error.number("median"),
                    p90=error.number("p90", None),
                    points=error.integer("points", minimum=1),
                    held_out=error.flag("held_out", True),
                )
            )
            error.close()
    fields.close()
    return tuple(found)


def _figures(entry: Fields) -> dict[str, float]:
    figures = {}
    for key in _SHARES:
        if key in entry:
            figures[key] = entry.number(key, above=0.0)
            if figures[key] > 1.0:
                raise entry.error(key, f"expected a share of at most 1, found {figures[key]:g}")
    for key in _COUNTS:
        if key in entry:
            figures[key] = entry.number(key)
    for key, (attribute, per_second) in _TIMES.items():
        if key in entry:
            figures[attribute] = entry.number(key) / per_second
    entry.close()
    return figures


def _one(layers: list[Layer], engine: str, path: str) -> Coefficients:
    figures: dict[str, float] = {}
    for layer, _ in layers:
        figures.update(layer)
    for key, (base, factor) in _USUAL.items():
        if key not in figures and (base is None or base in figures):
            figures[key] = factor if base is None else factor * figures[base]
    missing = [key for key in _SHARES if key not in figures and key not in _USUAL]
    missing += [key for key, (attribute, _) in _TIMES.items() if attribute not in figures and attribute not in _USUAL]
    if missing:
        raise CardError(path, f"coefficients of {engine!r} lack {', '.join(missing)}; `from` starts at a card")
    return Coefficients(provenance=layers[-1][1], **figures)
