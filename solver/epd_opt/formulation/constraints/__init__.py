"""Constraint families: one function each, gathered in :data:`FAMILIES`. Every function yields (row name, constraint)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pulp

from epd_opt.formulation.constraints.capacity import capacity, linking, replica_bounds
from epd_opt.formulation.constraints.choice import minimum_order, requirement, sku_limit
from epd_opt.formulation.constraints.fleet import (
    budget,
    buying,
    device_limit,
    pool_opening,
    power,
    stock,
    units_used,
)
from epd_opt.formulation.constraints.flow import demand, hand_over
from epd_opt.formulation.constraints.packing import packing
from epd_opt.formulation.constraints.racks import rack_power
from epd_opt.formulation.constraints.zones import zone_loss
from epd_opt.formulation.sets import Sets
from epd_opt.formulation.variables import Variables

Rows = Iterator[tuple[str, pulp.LpConstraint]]
Family = Callable[[Sets, Variables], Rows]

FAMILIES: tuple[Family, ...] = (
    demand,
    hand_over,
    capacity,
    linking,
    replica_bounds,
    units_used,
    pool_opening,
    buying,
    stock,
    device_limit,
    budget,
    power,
    packing,
    zone_loss,
    minimum_order,
    sku_limit,
    requirement,
    rack_power,
)

LIMITLESS: tuple[Family, ...] = tuple(
    family
    for family in FAMILIES
    if family not in (linking, replica_bounds, pool_opening, packing, zone_loss, minimum_order, sku_limit, requirement)
)
"""Families that hold whatever the demand is: those that neither bound counts by it nor charge for being open."""

OCCASION_FAMILIES: tuple[Family, ...] = (
    demand,
    hand_over,
    capacity,
    linking,
    replica_bounds,
    pool_opening,
    budget,
    zone_loss,
    requirement,
)
"""Families that every occasion has for itself, where one fleet stands for several."""

FLEET_FAMILIES: tuple[Family, ...] = (
    units_used,
    buying,
    stock,
    device_limit,
    power,
    packing,
    minimum_order,
    sku_limit,
    rack_power,
)
"""Families of that fleet; its replicas are those that stand, spares among them."""

HIRED_FAMILIES: tuple[Family, ...] = (units_used, buying, stock, packing, minimum_order)
"""Families of the units that an occasion hires for itself."""

INSTALLED_FAMILIES: tuple[Family, ...] = (device_limit, power)
"""Families of all units at an occasion, where it hires some: the fleet's and its own."""
