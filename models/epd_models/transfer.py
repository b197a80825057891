"""Moving embeddings and KV caches between pools."""

from __future__ import annotations

import math
from dataclasses import dataclass

LINK_LOAD_LIMIT = 0.5
"""Pools are sized so that transfers take at most this share of a replica's network bandwidth; at that load a transfer
sharing the link takes 1/(1 - 0.5) = 2 times as long as alone (processor sharing), and that is the delay planned for."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Sender:
    """What the receiver must know of the pool that hands a request over.

    Attributes
    ----------
    bandwidth : float
        Bytes/s of one sending replica; infinite for measured workers, whose hand-over takes no time.
    kv_format : str
        Storage format of the KV cache handed over; empty for embeddings.
    vendor : str
        Maker of the sending device; empty for embeddings.
    names : tuple of str
        Entry name, SKU and vendor of the sending device where some pair of devices that names it may not exchange KV caches;
        empty otherwise.
    """

    bandwidth: float
    kv_format: str = ""
    vendor: str = ""
    names: tuple[str, ...] = ()

    @property
    def kind(self) -> tuple[str, str, tuple[str, ...]]:
        """What senders have in common that differ in bandwidth alone: what one of them hands over may always be taken as
        handed over by a slower one."""
        return self.kv_format, self.vendor, self.names


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The network between pools.

    Attributes
    ----------
    bandwidth_per_unit : float or None
        Bytes/s of each sold unit; None means each card's own NIC.
    latency_s : float
        Of one hand-over.
    conversion_factor : float
        Multiplies the bytes of a KV cache between devices of different vendors.
    forbidden_pairs : frozenset of frozenset
        Pairs of device entries, SKUs or vendors that cannot exchange KV caches.
    """

    bandwidth_per_unit: float | None = None
    latency_s: float = 20e-6
    conversion_factor: float = 1.0
    forbidden_pairs: frozenset[frozenset[str]] = frozenset()


def transfer_s(size: float, sender: float, receiver: float, latency_s: float) -> float:
    """Seconds to hand ``size`` bytes over between two replicas, with the link shared at its planned load.

    ``sender`` and ``receiver`` are bytes/s; the hand-over never ends where either has no network.
    """
    if size == 0.0 or math.isinf(sender):
        return 0.0
    slower = min(sender, receiver)
    return latency_s + size / (slower * (1.0 - LINK_LOAD_LIMIT)) if slower > 0.0 else math.inf
