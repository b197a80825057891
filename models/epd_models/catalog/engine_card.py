"""An engine's card -> :class:`Engine`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epd_models.catalog.fields import Fields
from epd_models.engine import Engine
from epd_models.provenance import Confidence

_GIB = 2.0**30
_MS = 1e-3


def engine_from_card(card: Mapping[str, Any], *, source: str = "inline card") -> Engine:
    """An engine from the content of a card.

    Raises
    ------
    CardError
        A key is unknown or missing, a value of the wrong type or out of range.
    """
    fields = Fields(card, source)
    fields.texts("aliases", ())
    fractions = {key: fields.number(key, above=0.0) for key in ("memory_fraction", "shared_memory_fraction")}
    for key, value in fractions.items():
        if value > 1.0:
            raise fields.error(key, f"expected a share of at most 1, found {value:g}")
    engine = Engine(
        name=fields.text("name"),
        max_sequences=fields.integer("max_sequences", minimum=1),
        max_batched_tokens=fields.integer("max_batched_tokens", minimum=1),
        encoder_cache_bytes=fields.number("encoder_cache_gib") * _GIB,
        runtime_bytes=fields.number("runtime_gib") * _GIB,
        encoder_processes=fields.integer("encoder_processes", minimum=1),
        reserves_output=fields.flag("reserves_output", False),
        pool_processes=fields.integer("pool_processes", minimum=1),
        request_overhead_s=fields.number("request_overhead_ms") * _MS,
        host_image_s=fields.number("host_ms_per_image") * _MS,
        host_megapixel_s=fields.number("host_ms_per_megapixel") * _MS,
        host_resized_megapixel_s=fields.number("host_ms_per_resized_megapixel") * _MS,
        shared_stall=fields.number("shared_stall"),
        shared_slowdown=fields.number("shared_slowdown"),
        shared_drag=fields.number("shared_drag"),
        provenance=fields.provenance(source, Confidence.USER),
        **fractions,
    )
    fields.close()
    return engine
