"""Whole servers and racks: groups that must stay within one, where counting units is not enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pulp

from epd_opt.formulation.sets import Packed, Sets
from epd_opt.formulation.variables import Variables, standing_by

Rows = Iterator[tuple[str, pulp.LpConstraint]]
Terms = list[tuple[pulp.LpVariable, float]]


def packing(sets: Sets, v: Variables) -> Rows:
    """``group_d_s``: groups of a size that does not fill chunks evenly stand in domains filled accordingly, or outside;
    ``room_d``: all others stand in what those leave; ``free_d``: no more of them in owned chunks than those leave there;
    ``node_d``: chunks in use are bought, or owned ones in the same
    racks; ``home_d``: no more owned ones than there are; ``loose_d``: no more stands outside than there are units
    outside; ``own_d``, ``old_d``: owned units in use are counted, where others are bought one by one at least those in
    chunks."""
    for d, name in enumerate(sets.offers):
        packed = sets.packed.get(name)
        if packed is not None:
            for row, terms, most in _rows(sets, v, name, packed):
                yield row.format(d=d), pulp.LpAffineExpression(terms) <= most


def _rows(sets: Sets, v: Variables, name: str, packed: Packed) -> Iterator[tuple[str, Terms, float]]:
    nodes, unit = packed.nodes, packed.nodes.unit
    new = [(m, way) for (owner, way, owned), m in v.nodes.items() if owner == name and not owned]
    old = [(m, way) for (owner, way, owned), m in v.nodes.items() if owner == name and owned]
    outside: Terms = [(one, (size or 1) / unit) for (owner, size), one in v.loose.items() if owner == name]
    kept: Terms = [(v.kept[name], 1.0)] if name in v.kept else []
    offer = sets.offers[name]
    lots: Terms = [(v.lots[name], -offer.lot / (1.0 + offer.interruption_allowance))]
    for size in packed.hard:
        there: Terms = [(m, -float(way.holds(size))) for m, way in [*new, *old] if way.holds(size)]
        there += [(v.loose[name, size], -1.0)] if (name, size) in v.loose else []
        yield f"group_{{d}}_{size}", [*_groups(sets, v, packed, {size: 1}), *there], 0.0
    if packed.soft:
        left: Terms = [(m, -float(way.free)) for m, way in new if way.free] + [(one, -1.0) for one, _ in kept]
        left += [(v.loose[name, 0], -1.0)] if (name, 0) in v.loose else []
        taken = _groups(sets, v, packed, {size: size for size in packed.soft})
        yield "room_{d}", [*taken, *left], 0.0
    if kept:
        yield "free_{d}", [*kept, *((m, -float(way.free)) for m, way in old if way.free)], 0.0
    if new:
        shared = float(packed.chunks * nodes.chunk) if nodes.parts else 0.0
        yield "node_{d}", [*((m, float(nodes.chunk * way.chunks)) for m, way in new), *lots], shared
    if old:
        yield "home_{d}", [(m, float(way.chunks)) for m, way in old], float(packed.chunks)
    if outside:
        yield "loose_{d}", [*outside, *([] if nodes.whole else lots)], float(packed.rest)
    own: Terms = [(m, nodes.chunk * way.chunks - way.free / unit) for m, way in old] + [(one, 1 / unit) for one, _ in kept]
    if own or packed.rest:
        more = [] if nodes.whole else lots
        yield "own_{d}", [*own, *outside, *more, (v.owned[name], -1.0)], 0.0
    if own and not nodes.whole:
        yield "old_{d}", [*own, (v.owned[name], -1.0)], 0.0


def _groups(sets: Sets, v: Variables, packed: Packed, weight: Mapping[int, int]) -> Terms:
    """Groups of an entry, spares among them, by a weight of their size."""
    weights = {k: float(sum(weight.get(size, 0) * n for size, n in taken.items())) for k, taken in packed.pieces.items()}
    terms = [(v.replicas[k], each) for k, each in weights.items() if each]
    for pool, members in sets.pools.items():
        each = weights.get(members[0], 0.0)
        terms += [(variable, count * each) for variable, count in standing_by(sets, v, pool) if each]
    return terms
