"""A requirement that a pool's size must meet, affine in the flows through it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace


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

    def only(self, names: Collection[str]) -> Row:
        """The row for some classes only."""
        return replace(self, load=tuple(item for item in self.load if item[0] in names))

    def implied_by(self, others: Iterable[Row], rates: Mapping[str, float]) -> bool:
        """Whether the row holds whenever the pool has a replica, ``others`` hold and no class exceeds its rate.

        With one replica at least, ``setup + load x <= n`` follows from ``load' x <= n`` where
        ``load <= (1 - setup) load'`` for every class, and in any case where all rates together need no more than one.
        """
        if self.need(rates) <= 1.0:
            return True
        for other in others:
            loads = dict(other.load)
            if self.setup <= 1.0 and all(load <= (1.0 - self.setup) * loads.get(name, 0.0) for name, load in self.load):
                return True
        return False
