"""Whether groups stand in servers, by trying every way: another packer than the one under test, and slower."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from functools import cache

from epd_models.candidate import Candidate
from epd_opt.problem import Offer


def cheapest_standing(offer: Offer, groups: Sequence[int]) -> float | None:
    """Least hourly cost of units of an entry in which groups of so many units stand; None where stock does not suffice.

    Whole servers of ``offer.nodes.chunk`` units are bought, or single units that stand wherever they are wanted; owned units
    stand in servers of that size and one with the rest. Every server is a domain.
    """
    nodes = offer.nodes
    assert nodes is not None
    assert nodes.unit == 1
    assert nodes.chunk == nodes.domain == nodes.inner
    owned = [nodes.chunk] * (offer.owned // nodes.chunk) + [offer.owned % nodes.chunk]
    best: float | None = None
    for lots in range(-(-len(groups) * nodes.chunk // offer.lot) + 1):
        bought = lots * offer.lot
        if nodes.whole:
            used = fewest_owned(tuple(sorted(groups)), tuple(owned), (nodes.chunk,) * (bought // nodes.chunk))
        else:
            used = _beside(groups, owned, bought)
        if used is None or (offer.stock is not None and bought + used > offer.stock):
            continue
        cost = bought * offer.usd_per_hour + used * offer.owned_usd_per_hour
        best = cost if best is None else min(best, cost)
    return best


@cache
def fewest_owned(groups: tuple[int, ...], owned: tuple[int, ...], new: tuple[int, ...]) -> int | None:
    """Fewest units of groups that stand in owned servers; None where they do not all find room."""
    if not groups:
        return 0
    first, rest = groups[-1], groups[:-1]
    found = []
    for servers, price in ((owned, first), (new, 0)):
        for room in set(servers):
            if room >= first:
                left = list(servers)
                left[left.index(room)] -= first
                after = tuple(sorted(left))
                tail = fewest_owned(rest, after, new) if price else fewest_owned(rest, owned, after)
                if tail is not None:
                    found.append(price + tail)
    return min(found, default=None)


def _beside(groups: Sequence[int], owned: Sequence[int], bought: int) -> int | None:
    """The same where bought units stand anywhere, and the rest of the owned ones joins them."""
    *whole, rest = owned
    found = []
    counts = Counter(groups)
    for inner in itertools.product(*(range(count + 1) for count in counts.values())):
        inside = tuple(sorted(size for size, count in zip(counts, inner, strict=True) for _ in range(count)))
        outside = sum(groups) - sum(inside)
        if outside <= bought + rest and fewest_owned(inside, tuple(whole), ()) is not None:
            found.append(sum(inside) + max(0, outside - bought))
    return min(found, default=None)


def taken(candidates: Sequence[Candidate], counts: Sequence[int]) -> list[int]:
    """Groups of a fleet, units each; a replica larger than a server is not meant."""
    return [int(one.units) for one, count in zip(candidates, counts, strict=True) for _ in range(count)]


def least_replicas(candidate: Candidate, rate: float) -> int:
    """Replicas that carry a rate of the only class alone."""
    (load,) = (load for row in candidate.rows for _, load in row.load)
    return math.ceil(load * rate - 1e-9)
