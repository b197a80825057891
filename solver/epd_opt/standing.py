"""Which replicas stand together in which servers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from epd_opt import document as doc
from epd_opt.accounting import Holding
from epd_opt.nodes import Nodes, pieces
from epd_opt.packing import Groups, stood
from epd_opt.problem import Offer


def nodes_in_use(offer: Offer, held: Holding, pools: Sequence[tuple[str, Fraction, int]]) -> list[doc.NodeUse]:
    """Servers of a device entry by what stands in them; empty where nothing is known of servers.

    Parameters
    ----------
    pools : sequence of (str, Fraction, int)
        Name, units per replica, and replicas with spares of each pool. A replica larger than a domain counts in
        each that it takes.
    """
    nodes = offer.nodes
    if nodes is None:
        return []
    groups: Counter[int] = Counter()
    waiting: dict[int, list[str]] = {}
    for name, units, replicas in pools:
        for size, times in pieces(nodes, int(units * nodes.unit)).items():
            groups[size] += times * replicas
            waiting.setdefault(size, []).extend([name] * (times * replicas))
    for names in waiting.values():
        names.reverse()
    found: Counter[tuple[int, bool, tuple[tuple[str, int], ...], float]] = Counter()
    for node in stood(nodes, dict(sorted(groups.items())), held.bought, offer.owned):
        sizes = [size for size in sorted(node.groups, reverse=True) for _ in range(node.groups[size])]
        held_here = Counter(waiting[size].pop() for size in sizes)
        found[node.units, node.owned, tuple(held_here.items()), _free(nodes, node.units, node.groups)] += 1
    return [
        doc.NodeUse(count=count, units=size, owned=owned, groups=dict(names), free=free)
        for (size, owned, names, free), count in found.items()
    ]


def _free(nodes: Nodes, units: int, groups: Groups) -> float:
    left = units - sum(size * count for size, count in groups.items()) / nodes.unit
    return int(left) if left == int(left) else left


def units_of_a_replica(pool: doc.Pool) -> Fraction:
    """Sold units of one replica; documents have them as decimals."""
    return Fraction(pool.devices).limit_denominator(1 << 20) / (pool.replicas + pool.spare_replicas)
