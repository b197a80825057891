"""Decision variables. Names are neutral (indices); :mod:`docs/maths.md` says what they mean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import pulp

from epd_models.candidate import Arc
from epd_opt.formulation.sets import Sets

Units: TypeAlias = dict[str, pulp.LpVariable]


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
    used : dict
        Units in use per device entry, integer.
    lots : dict
        Lots bought or rented per device entry, integer.
    owned : dict
        Owned units in use per device entry.
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
    unserved: pulp.LpVariable | None = None


def leaving_source(v: Variables, request_class: str) -> list[pulp.LpVariable]:
    """Shares of a class on the arcs that leave its source."""
    return [x for (_, arc), x in v.share.items() if arc.request_class == request_class and arc.start.sender is None]


def add_variables(problem: pulp.LpProblem, sets: Sets) -> Variables:
    """Create all variables with their bounds."""
    serving = _serving(problem, sets)
    used, lots, owned = _units(problem, sets)
    spared = 1.0 - sets.problem.least_served
    unserved = problem.add_variable("left", 0, spared) if spared > 0.0 else None
    return replace(serving, used=used, lots=lots, owned=owned, unserved=unserved)


def add_fleet_variables(problem: pulp.LpProblem, sets: Sets) -> Variables:
    """Create the variables of a fleet that stands for several occasions: whole replicas of physical pools, and units."""
    replicas = [
        problem.add_variable(f"stands_{k}", 0, most, cat=pulp.LpInteger) for k, most in enumerate(sets.most_replicas)
    ]
    used, lots, owned = _units(problem, sets)
    return Variables(share={}, replicas=replicas, open=[], pool_open={}, used=used, lots=lots, owned=owned)


def add_occasion_variables(
    problem: pulp.LpProblem, sets: Sets, fleet: Variables, prefix: str, *, may_fail: bool
) -> Variables:
    """Create the variables of one occasion; its units are the fleet's. With ``may_fail`` it may go unserved as a whole."""
    serving = _serving(problem, sets, prefix)
    unserved = problem.add_variable(f"{prefix}left", 0, 1, cat=pulp.LpInteger) if may_fail else None
    return replace(serving, used=fleet.used, lots=fleet.lots, owned=fleet.owned, unserved=unserved)


def _serving(problem: pulp.LpProblem, sets: Sets, prefix: str = "") -> Variables:
    """Create the variables of flows and candidates, those of units left out."""

    def whole(name: str, most: int) -> pulp.LpVariable:
        return problem.add_variable(f"{prefix}{name}", 0, most, cat=pulp.LpInteger)

    share = {
        (k, arc): problem.add_variable(f"{prefix}x_{k}_{a}", 0, 1)
        for k, candidate in enumerate(sets.candidates)
        for a, arc in enumerate(candidate.arcs)
    }
    replicas = [whole(f"n_{k}", most) for k, most in enumerate(sets.most_replicas)]
    opened = [whole(f"y_{k}", 1) for k in range(len(sets.candidates))]
    spared = sets.problem.spare_replicas > 0
    pool_open = {pool: whole(f"w_{p}", 1) for p, pool in enumerate(sets.pools)} if spared else {}
    return Variables(share=share, replicas=replicas, open=opened, pool_open=pool_open, used={}, lots={}, owned={})


def _units(problem: pulp.LpProblem, sets: Sets, prefix: str = "") -> tuple[Units, Units, Units]:
    """Create the variables of units in use, of lots and of owned units, by device entry."""
    used, lots, owned = {}, {}, {}
    for d, (name, offer) in enumerate(sets.offers.items()):
        most = sets.most_units[name]
        used[name] = problem.add_variable(f"{prefix}u_{d}", 0, most, cat=pulp.LpInteger)
        lots[name] = problem.add_variable(f"{prefix}b_{d}", 0, offer.lots_for(most), cat=pulp.LpInteger)
        owned[name] = problem.add_variable(f"{prefix}o_{d}", 0, offer.owned)
    return used, lots, owned


def add_hired_variables(problem: pulp.LpProblem, sets: Sets, serving: Variables, prefix: str) -> Variables:
    """Create the units that an occasion hires for itself; ``sets`` is over candidates on entries by the hour alone, and
    ``serving`` has the occasion's variables of those."""
    used, lots, owned = _units(problem, sets, prefix)
    return replace(serving, used=used, lots=lots, owned=owned)


def add_limitless_variables(problem: pulp.LpProblem, sets: Sets) -> Variables:
    """Create variables of which nothing follows from the demand: no upper bounds, nothing whole, no charge for being
    open, and a share of the demand that may exceed all of it."""
    return Variables(
        share={
            (k, arc): problem.add_variable(f"x_{k}_{a}", 0)
            for k, candidate in enumerate(sets.candidates)
            for a, arc in enumerate(candidate.arcs)
        },
        replicas=[problem.add_variable(f"n_{k}", 0) for k in range(len(sets.candidates))],
        open=[problem.add_variable(f"y_{k}", 0, 0) for k in range(len(sets.candidates))],
        pool_open={pool: problem.add_variable(f"w_{p}", 0, 0) for p, pool in enumerate(sets.pools)},
        used={name: problem.add_variable(f"u_{d}", 0) for d, name in enumerate(sets.offers)},
        lots={name: problem.add_variable(f"b_{d}", 0) for d, name in enumerate(sets.offers)},
        owned={name: problem.add_variable(f"o_{d}", 0, offer.owned) for d, (name, offer) in enumerate(sets.offers.items())},
        unserved=problem.add_variable("left", None, 1.0 - sets.problem.least_served),
    )
