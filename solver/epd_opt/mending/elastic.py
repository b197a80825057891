"""Which limits of the fleet must give way together, where none is enough alone."""

from __future__ import annotations

import dataclasses
import math

import pulp

from epd_opt.backends import Backend, Settings
from epd_opt.formulation import build
from epd_opt.infeasible import Relaxation, relaxations
from epd_opt.mending.ladder import on_rung, rung_above
from epd_opt.mending.trial import Change
from epd_opt.problem import PlanningProblem
from epd_opt.prune import prune

_GAP = 0.01
"""How near to the least relative excess is near enough."""


def raised(relaxed: Relaxation, value: float) -> Change:
    """A limit raised to a value that one would type: whole units, or rounded up."""
    units = relaxed.limit in _IN_UNITS
    to = float(math.ceil(value - 1e-6)) if units else on_rung(rung_above(value))
    return Change(path=relaxed.path, to=int(to) if to == int(to) else to, text=_raised(relaxed, to))


_IN_UNITS = ("stock", "minimum_order", "devices", "skus", "racks")


def _raised(relaxed: Relaxation, to: float) -> str:
    now, then = f"{relaxed.wanted:,.10g}", f"{to:,.10g}"
    if relaxed.device is not None:
        return f"{to - relaxed.wanted:,.10g} more {relaxed.device} (a stock of {then} in place of {now})"
    words = {
        "devices": f"{then} devices in all",
        "skus": f"{then} different SKUs",
        "usd_per_hour": f"a budget of {then} $/h",
        "power_kw": f"{then} kW",
        "racks": f"{then} racks",
    }
    return f"{words[relaxed.limit]} (now {now})"


def together(problem: PlanningProblem, solver: Backend, settings: Settings) -> list[Change]:
    """The limits to raise, and to what, so that their excess, each relative to its limit, adds up to the least; empty
    where no fleet serves the demand or the time did not suffice."""
    limits = relaxations(problem)
    free = problem
    while found := relaxations(free):
        free = found[0].problem
    formulation = build(prune(free))
    model = formulation.model
    excess = []
    for i, relaxed in enumerate(limits):
        terms = relaxed.least(formulation)
        room = max(1.0, relaxed.wanted)
        most = sum(c * (v.upBound if c > 0 else v.lowBound) for v, c in terms) / room
        over = model.add_variable(f"over_{i}", 0, max(0.0, most))
        model.addConstraint(
            pulp.LpAffineExpression([*((v, c / room) for v, c in terms), (over, -1.0)]) <= relaxed.wanted / room,
            f"elastic_{i}",
        )
        excess.append(over)
    model.setObjective(pulp.lpSum(excess))
    outcome = solver.solve(model, dataclasses.replace(settings, gap=max(settings.gap, _GAP)))
    if outcome.values is None:
        return []
    changes = []
    for relaxed, over in zip(limits, excess, strict=True):
        if outcome.values[over.name] > 1e-6:
            used = sum(outcome.values[v.name] * c for v, c in relaxed.least(formulation))
            changes.append(raised(relaxed, used))
    return changes
