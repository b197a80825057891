"""Groups into nodes: which units a fleet takes at least, and where its groups stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

import pulp

from epd_opt.backends import HIGHS, Settings
from epd_opt.nodes import Filling, Nodes, fillings, fits, fluid, pieces

_EXACT = Settings(gap=0.0, time_limit_s=None, threads=1)

Groups = Mapping[int, int]
"""Numbers of groups by their size in logical devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Sold units of one domain, and the groups in them by size.

    Attributes
    ----------
    owned : bool
        Whether it is of owned units alone.
    """

    units: int
    owned: bool
    groups: Groups


def groups_of(nodes: Nodes, replicas: Iterable[tuple[Fraction, int]]) -> Groups:
    """Groups of replicas of so many units, in ascending order of size."""
    found: Counter[int] = Counter()
    for units, count in replicas:
        for size, times in pieces(nodes, int(units * nodes.unit)).items():
            found[size] += times * count
    return dict(sorted((size, count) for size, count in found.items() if count))


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What counts of the terms of a device entry when units are held.

    Attributes
    ----------
    most : int or None
        Most units that may be bought.
    kept_share : float
        Share of the bought units that may be counted on.
    minimum : int
        Fewest units that are bought, if any are.
    usd, owned_usd : float
        What a bought and an owned unit weigh.
    """

    lot: int
    owned: int
    stock: int | None
    most: int | None
    kept_share: float
    minimum: int
    usd: float
    owned_usd: float


def least(nodes: Nodes, groups: Groups, terms: Terms) -> tuple[int, int] | None:
    """Units bought and owned units in use in which groups stand and which weigh least together, of equals the fewest; None
    where stock and owned units do not suffice."""
    found = _packed(nodes, tuple(groups.items()), terms)
    return None if found is None else (found.bought, found.owned)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Packed:
    """Domains of new and of owned chunks by their filling; groups outside chunks, and logical devices of soft sizes there;
    units bought and owned units in use."""

    new: Mapping[Filling, int] = field(default_factory=dict)
    old: Mapping[Filling, int] = field(default_factory=dict)
    outside: Groups = field(default_factory=dict)
    bought: int
    owned: int


@cache
def _packed(nodes: Nodes, groups: tuple[tuple[int, int], ...], terms: Terms) -> _Packed | None:
    """As :func:`least`. Where chunks are parts of a domain, bought and owned ones share domains."""
    counts, total = dict(groups), sum(size * count for size, count in groups)
    chunks, rest = divmod(terms.owned, nodes.chunk)
    ways, soft = fillings(nodes, frozenset(counts), owned=chunks > 0), fluid(nodes, counts)
    model = pulp.LpProblem("packing", pulp.LpMinimize)

    def whole(name: str, most: int) -> pulp.LpVariable:
        return model.add_variable(name, 0, most, cat=pulp.LpInteger)

    def summed(parts: Iterable[tuple[pulp.LpVariable, float]]) -> pulp.LpAffineExpression:
        return pulp.LpAffineExpression(list(parts))

    new = {way: whole(f"b_{p}", total if nodes.whole else 0) for p, way in enumerate(ways)}
    old = {way: whole(f"o_{p}", 0 if nodes.parts else chunks) for p, way in enumerate(ways)}
    outside = {size: whole(f"l_{size}", count if rest or not nodes.whole else 0) for size, count in counts.items()}
    kept, lots, owned = whole("kept", total), whole("lots", total * nodes.chunk + terms.minimum), whole("owned", terms.owned)
    loose = summed((variable, size / nodes.unit) for size, variable in outside.items())
    bought, counted_on = summed([(lots, float(terms.lot))]), summed([(lots, terms.lot * terms.kept_share)])
    for size, count in groups:
        if size not in soft:
            inside = [(m, float(way.holds(size))) for side in (new, old) for way, m in side.items()]
            model.addConstraint(summed([*inside, (outside[size], 1.0)]) >= count, f"group_{size}")
    left = summed([*((m, float(w.free)) for w, m in new.items()), (kept, 1.0), *((outside[s], float(s)) for s in soft)])
    model.addConstraint(left >= sum(size * counts[size] for size in soft), "room")
    model.addConstraint(summed([*((m, -float(w.free)) for w, m in old.items()), (kept, 1.0)]) <= 0, "free")
    model.addConstraint(summed((m, float(w.chunks)) for w, m in old.items()) <= chunks, "home")
    used = summed([*((m, w.chunks * nodes.chunk - w.free / nodes.unit) for w, m in old.items()), (kept, 1.0 / nodes.unit)])
    taken = summed((m, float(w.chunks * nodes.chunk)) for w, m in new.items())
    model.addConstraint(taken <= counted_on + (chunks * nodes.chunk if nodes.parts else 0), "node")
    model.addConstraint(loose <= (rest if nodes.whole else rest + counted_on), "loose")
    model.addConstraint((used + loose if nodes.whole else used) <= owned, "own")
    model.addConstraint(counted_on + owned >= -(-total // nodes.unit), "buy")
    if not nodes.whole:
        model.addConstraint(used + loose <= owned + counted_on, "beside")
    if terms.stock is not None:
        model.addConstraint(bought + owned <= terms.stock, "stock")
    if terms.minimum > terms.lot:
        ordered = whole("ordered", 1)
        model.addConstraint(bought >= terms.minimum * ordered, "order")
        model.addConstraint(lots <= (total * nodes.chunk + terms.minimum) * ordered, "ordered")
    if terms.most is not None:
        model.addConstraint(bought <= terms.most, "most")
    dearest = max(terms.usd, terms.owned_usd) or 1.0
    few = bought * (terms.usd / dearest + _FEWER) + owned * (terms.owned_usd / dearest + _FEWER)
    model.setObjective(few)
    outcome = HIGHS.solve(model, _EXACT)
    if outcome.values is None:
        return None
    values = {name: round(value) for name, value in outcome.values.items()}
    return _Packed(
        new={way: n for way, m in new.items() if (n := values[m.name])},
        old={way: n for way, m in old.items() if (n := values[m.name])},
        outside={size: n for size, variable in outside.items() if (n := values[variable.name])},
        bought=values[lots.name] * terms.lot,
        owned=values[owned.name],
    )


_FEWER = 1e-5
"""What a unit weighs on top, as a share of the dearest one: of ways that cost the same, the one with the fewest."""


def stood(nodes: Nodes, groups: Groups, bought: int, owned: int) -> list[Node]:
    """Where groups stand among bought and owned units, largest domains first.

    Parameters
    ----------
    owned : int
        Units at hand, whether or not all are in use: as few of them as can be are used here.
    """
    if not nodes.whole and owned < nodes.chunk:
        found: _Packed | None = _Packed(outside=groups, bought=bought, owned=owned)
    else:
        lot = nodes.chunk if nodes.whole else 1
        terms = Terms(lot=lot, owned=owned, stock=None, most=bought, kept_share=1.0, minimum=0, usd=0.0, owned_usd=1.0)
        found = _packed(nodes, tuple(groups.items()), terms)
    if found is None:
        raise ValueError("the groups do not stand in the units that there are")
    soft = fluid(nodes, groups)
    left = {size: groups[size] - found.outside.get(size, 0) for size in groups}
    result = []
    for side, is_owned in ((found.new, False), (found.old, True)):
        for way, count in sorted(side.items(), reverse=True):
            for _ in range(count):
                held = {size: min(count, left[size]) for size, count in way.groups}
                room = way.free
                for size in sorted(soft, reverse=True):
                    held[size] = min(left[size], room // size)
                    room -= held[size] * size
                for size, count in held.items():
                    left[size] -= count
                result.append(Node(units=way.chunks * nodes.chunk, owned=is_owned, groups=_present(held)))
    result += _apart(nodes, found.outside, owned=nodes.whole or not bought)
    return sorted(
        (node for node in result if node.groups),
        key=lambda node: (node.owned, -node.units, sorted(node.groups.items(), reverse=True)),
    )


def _apart(nodes: Nodes, groups: Groups, *, owned: bool) -> list[Node]:
    """Groups in as few domains as first fit needs, each as large as what it holds. A domain without room for a size has none
    for it later."""
    domains: list[Counter[int]] = []
    for size in sorted(groups, reverse=True):
        first = 0
        for _ in range(groups[size]):
            while first < len(domains) and not fits(nodes, {**domains[first], size: domains[first][size] + 1}, nodes.domain):
                first += 1
            if first == len(domains):
                domains.append(Counter())
            domains[first][size] += 1
    return [Node(units=_units(nodes, held), owned=owned, groups=_present(held)) for held in domains]


def _units(nodes: Nodes, held: Groups) -> int:
    units = -(-sum(size * count for size, count in held.items()) // nodes.unit)
    while not fits(nodes, held, units * nodes.unit):
        units += 1
    return units


def _present(held: Groups) -> Groups:
    return dict(sorted((size, count) for size, count in held.items() if count))
