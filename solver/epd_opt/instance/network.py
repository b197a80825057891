"""The network between pools."""

from __future__ import annotations

from pydantic import Field

from epd_opt.fields import Name, NonNegative, Part, Positive


class Network(Part):
    """The network between pools; what is absent follows the cards' NICs."""

    gbit_per_s_per_device: Positive | None = Field(default=None, description="Gbit/s per sold unit and direction.")
    latency_us: NonNegative | None = Field(default=None, description="Latency of one transfer, microseconds.")
    conversion_factor: Positive = Field(
        default=1.0, description="Multiplies the KV bytes moved between devices of different vendors."
    )
    forbidden_kv_pairs: tuple[tuple[Name, Name], ...] = Field(
        default=(), description="Pairs [from, to] of device names, SKUs or vendors between which no KV cache may move."
    )
