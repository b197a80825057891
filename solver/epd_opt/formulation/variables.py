"""Decision variables. Names are neutral (indices); :mod:`docs/maths.md` says what they mean."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pulp

from epd_models.candidate import Arc
from epd_opt.formulation.sets import Sets
from epd_opt.nodes import Filling


@dataclass(frozen=True, kw_only=True)
class Variables:
    """Variables of the programme.

    Attributes
    ----------
    share : dict
        Share of a class's rate on (candidate, arc), in [0, 1].
    replicas : list
        Replicas of each candidate, integer.
    open : list
        Whether each candidate is used, binary.
    pool_open : dict
        Whether each physical pool is used, binary; only where spares are wanted.
    standby : dict
        Spare replicas of each physical pool, integer; only where zones may be lost.
    zone : dict
        Replicas of each physical pool that every zone left must hold, integer; only there.
    used : dict
        Units in use per device entry, integer.
    lots : dict
        Lots bought or rented per device entry, integer.
    owned : dict
        Owned units in use per device entry.
    ordered : dict
        Whether units of a device entry are bought, binary; only where orders have a minimum.
    sku : dict
        Whether a SKU is used, binary; only where their number is limited.
    racks : dict
        Racks that hold units of a device entry, integer; only where their number is limited and the entry draws power.
    nodes : dict
        Domains of bought and of owned (True) units by their filling, integer; only for device entries whose groups must be
        packed.
    loose : dict
        Groups of each hard size that stand outside chunks, integer, and under size 0 logical devices of the other sizes;
        only for those entries, and where anything can.
    kept : dict
        Logical devices of the other sizes in owned chunks; only for those entries.
    slowed : dict
        Share of a class's rate on each arc of :attr:`Sets.slowing`.
    unserved : pulp.LpVariable or None
        Share of the demand, the same of every class, that is not served; None where all of it must be.
    """

    share: dict[tuple[int, Arc], pulp.LpVariable]
    replicas: list[pulp.LpVariable]
    open: list[pulp.LpVariable]
    pool_open: dict[tuple[str, str], pulp.LpVariable]
    used: dict[str, pulp.LpVariable]
    lots: dict[str, pulp.LpVariable]
    owned: dict[str, pulp.LpVariable]
    standby: dict[tuple[str, str], pulp.LpVariable] = field(default_factory=dict)
    zone: dict[tuple[str, str], pulp.LpVariable] = field(default_factory=dict)
    ordered: dict[str, pulp.LpVariable] = field(default_factory=dict)
    sku: dict[str, pulp.LpVariable] = field(default_factory=dict)
    racks: dict[str, pulp.LpVariable] = field(default_factory=dict)
    nodes: dict[tuple[str, Filling, bool], pulp.LpVariable] = field(default_factory=dict)
    loose: dict[tuple[str, int], pulp.LpVariable] = field(default_factory=dict)
    kept: dict[str, pulp.LpVariable] = field(default_factory=dict)
    slowed: dict[Arc, pulp.LpVariable] = field(default_factory=dict)
    unserved: pulp.LpVariable | None = None


def standing_by(sets: Sets, v: Variables, pool: tuple[str, str]) -> list[tuple[pulp.LpVariable, float]]:
    """Terms of the spare replicas of a physical pool."""
    if pool in v.standby:
        return [(v.standby[pool], 1.0)]
    return [(v.pool_open[pool], float(sets.problem.spare_replicas))] if pool in v.pool_open else []


def leaving_source(v: Variables, request_class: str) -> list[pulp.LpVariable]:
    """Shares of a class on the arcs that leave its source."""
    return [x for (_, arc), x in v.share.items() if arc.request_class == request_class and arc.start.sender is None]


def add_variables(problem: pulp.LpProblem, sets: Sets) -> Variables:
    """Create all variables with their bounds."""
    serving = _serving(problem, sets)
    serving = _with_units(problem, sets, serving)
    spared = 1.0 - sets.problem.least_served
    return replace(serving, unserved=problem.add_variable("left", 0, spared) if spared > 0.0 else None)


def add_fleet_variables(problem: pulp.LpProblem, sets: Sets) -> Variables:
    """Create the variables of a fleet that stands for several occasions: whole replicas of physical pools, and units."""
    replicas = [
        problem.add_variable(f"stands_{k}", 0, most, cat=pulp.LpInteger) for k, most in enumerate(sets.most_replicas)
    ]
    standing = Variables(share={}, replicas=replicas, open=[], pool_open={}, used={}, lots={}, owned={})
    return _with_units(problem, sets, standing)


def add_occasion_variables(
    problem: pulp.LpProblem, sets: Sets, fleet: Variables, prefix: str, *, may_fail: bool
) -> Variables:
    """Create the variables of one occasion; its units are the fleet's. With ``may_fail`` it may go unserved as a whole."""
    serving = _serving(problem, sets, prefix)
    unserved = problem.add_variable(f"{prefix}left", 0, 1, cat=pulp.LpInteger) if may_fail else None
    return replace(serving, used=fleet.used, lots=fleet.lots, owned=fleet.owned, unserved=unserved)


_NEVER = 2.0
"""Bound on the share of a class that is taken as handed over by a slower sender. It is 1 at most, so the bound never has a
price, and prices of requests fall from fast senders to slow ones."""


def _serving(problem: pulp.LpProblem, sets: Sets, prefix: str = "") -> Variables:
    """Create the variables of flows and candidates, those of units left out."""

    def whole(name: str, most: int) -> pulp.LpVariable:
        return problem.add_variable(f"{prefix}{name}", 0, most, cat=pulp.LpInteger)

    share = {
        (k, arc): problem.add_variable(f"{prefix}x_{k}_{a}", 0, 1)
        for k, candidate in enumerate(sets.candidates)
        for a, arc in enumerate(candidate.arcs)
    }
    slowed = {arc: problem.add_variable(f"{prefix}t_{t}", 0, _NEVER) for t, arc in enumerate(sets.slowing)}
    replicas = [whole(f"n_{k}", most) for k, most in enumerate(sets.most_replicas)]
    opened = [whole(f"y_{k}", 1) for k in range(len(sets.candidates))]
    spared = sets.problem.spare_replicas > 0
    pool_open = {pool: whole(f"w_{p}", 1) for p, pool in enumerate(sets.pools)} if spared else {}
    standby, zone = {}, {}
    for p, (pool, members) in enumerate(sets.pools.items()) if sets.problem.lost_zones else ():
        most = sum(sets.most_replicas[k] for k in members)
        standby[pool], zone[pool] = whole(f"r_{p}", sets.problem.standing_by(most)), whole(f"e_{p}", most)
    return Variables(
        share=share,
        slowed=slowed,
        replicas=replicas,
        open=opened,
        pool_open=pool_open,
        standby=standby,
        zone=zone,
        used={},
        lots={},
        owned={},
    )


def _with_units(problem: pulp.LpProblem, sets: Sets, serving: Variables, prefix: str = "") -> Variables:
    """Create the variables of units in use, of lots and of owned units, by device entry, and of where groups stand."""

    def whole(name: str, most: int) -> pulp.LpVariable:
        return problem.add_variable(f"{prefix}{name}", 0, most, cat=pulp.LpInteger)

    used, lots, owned, kept, ordered, racks = {}, {}, {}, {}, {}, {}
    limits = sets.problem.limits
    skus = sorted({offer.sku for offer in sets.offers.values()}) if sets.problem.limits.skus is not None else []
    sku = {name: whole(f"c_{s}", 1) for s, name in enumerate(skus)}
    nodes: dict[tuple[str, Filling, bool], pulp.LpVariable] = {}
    loose: dict[tuple[str, int], pulp.LpVariable] = {}
    for d, (name, offer) in enumerate(sets.offers.items()):
        most = sets.most_units[name]
        used[name] = whole(f"u_{d}", most)
        lots[name] = whole(f"b_{d}", sets.most_lots[name])
        owned[name] = problem.add_variable(f"{prefix}o_{d}", 0, offer.owned)
        if offer.minimum > offer.lot:
            ordered[name] = whole(f"a_{d}", 1)
        if limits.racks is not None and limits.units_per_rack(offer) is not None:
            racks[name] = whole(f"q_{d}", limits.racks_of(offer, sets.most_lots[name] * offer.lot + offer.owned))
        packed = sets.packed.get(name)
        if packed is None:
            continue
        own = packed.chunks and not packed.nodes.parts
        for p, filling in enumerate(packed.fillings):
            if packed.nodes.whole:
                nodes[name, filling, False] = whole(f"m_{d}_{p}", most)
            if own:
                nodes[name, filling, True] = whole(f"h_{d}_{p}", packed.chunks)
        for size in (*([0] if packed.soft else []), *packed.hard) if packed.rest or not packed.nodes.whole else ():
            loose[name, size] = whole(f"l_{d}_{size}", most * packed.nodes.unit)
        if own and packed.soft:
            kept[name] = problem.add_variable(f"{prefix}k_{d}", 0, packed.chunks * packed.nodes.step)
    return replace(
        serving,
        used=used,
        lots=lots,
        owned=owned,
        ordered=ordered,
        sku=sku,
        racks=racks,
        nodes=nodes,
        loose=loose,
        kept=kept,
    )


def add_hired_variables(problem: pulp.LpProblem, sets: Sets, serving: Variables, prefix: str) -> Variables:
    """Create the units that an occasion hires for itself; ``sets`` is over candidates on entries by the hour alone, and
    ``serving`` has the occasion's variables of those."""
    return _with_units(problem, sets, serving, prefix)


def add_limitless_variables(problem: pulp.LpProblem, sets: Sets) -> Variables:
    """Create variables of which nothing follows from the demand: no upper bounds, nothing whole, no charge for being
    open, and a share of the demand that may exceed all of it."""
    limits = sets.problem.limits
    return Variables(
        share={
            (k, arc): problem.add_variable(f"x_{k}_{a}", 0)
            for k, candidate in enumerate(sets.candidates)
            for a, arc in enumerate(candidate.arcs)
        },
        slowed={arc: problem.add_variable(f"t_{t}", 0) for t, arc in enumerate(sets.slowing)},
        replicas=[problem.add_variable(f"n_{k}", 0) for k in range(len(sets.candidates))],
        open=[problem.add_variable(f"y_{k}", 0, 0) for k in range(len(sets.candidates))],
        pool_open={pool: problem.add_variable(f"w_{p}", 0, 0) for p, pool in enumerate(sets.pools)},
        used={name: problem.add_variable(f"u_{d}", 0) for d, name in enumerate(sets.offers)},
        lots={name: problem.add_variable(f"b_{d}", 0) for d, name in enumerate(sets.offers)},
        owned={name: problem.add_variable(f"o_{d}", 0, offer.owned) for d, (name, offer) in enumerate(sets.offers.items())},
        racks={
            name: problem.add_variable(f"q_{d}", 0)
            for d, (name, offer) in enumerate(sets.offers.items())
            if limits.racks is not None and limits.units_per_rack(offer) is not None
        },
        unserved=problem.add_variable("left", None, 1.0 - sets.problem.least_served),
    )
