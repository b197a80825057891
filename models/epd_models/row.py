"""A requirement that a pool's size must meet, affine in the flows through it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """``sum_c load_c * x_c + setup * y <= n``.

    n counts replicas, x_c is the flow of class c through the pool (requests/s), y is 1 where the pool is open.

    Attributes
    ----------
    kind : str
        What asks for the replicas: "work", "burst", "peak", "minimum", "time", "kv_memory", "sequences", "interval" ...
    load : tuple of (str, float)
        Replicas per request/s of each class, >= 0; classes that do not appear load nothing.
    setup : float
        Replicas that an open pool needs at any flow, >= 0.

    Examples
    --------
    >>> Row(kind="work", load=(("chat", 0.5), ("album", 2.0)), setup=1.5).need({"chat": 4.0})
    3.5
    """

    kind: str
    load: tuple[tuple[str, float], ...]
    setup: float = 0.0

    def need(self, flows: Mapping[str, float]) -> float:
        """Left-hand side for an open pool, in replicas; classes absent from ``flows`` do not flow."""
        return sum((load * flows.get(name, 0.0) for name, load in self.load), self.setup)
