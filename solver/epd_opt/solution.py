"""Reading a solved model: whole counts, a canonical routing for them, and routes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pulp

from epd_models.candidate import STATES, Arc, Candidate, Node
from epd_opt.backends import EXACTNESS, Backend, Outcome, Settings
from epd_opt.formulation import Formulation
from epd_opt.problem import PlanningProblem

_NOISE = 2e-7
_GOLDEN = 0.6180339887498949


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSolution:
    """An open candidate: replicas, and requests/s on each of its arcs."""

    candidate: Candidate
    replicas: int
    flows: Mapping[Arc, float]

    def serves(self) -> dict[str, float]:
        """Requests/s of each class."""
        result: dict[str, float] = {}
        for arc, rate in self.flows.items():
            result[arc.request_class] = result.get(arc.request_class, 0.0) + rate
        return dict(sorted(result.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A route of a class: the arcs it takes, as (pool index, arc), and its rate in requests/s."""

    steps: tuple[tuple[int, Arc], ...]
    rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """A fleet and its routing."""

    pools: tuple[PoolSolution, ...]
    ways: Mapping[str, tuple[Way, ...]]


def replica_counts(formulation: Formulation, outcome: Outcome) -> dict[int, int]:
    """Whole replicas of every open candidate of an incumbent."""
    assert outcome.values is not None
    counts = {}
    for k, variable in enumerate(formulation.variables.replicas):
        count = round(outcome.values[variable.name])
        if count > 0:
            counts[k] = count
    return counts


def route(formulation: Formulation, counts: Mapping[int, int], backend: Backend, settings: Settings) -> Solution | None:
    """The canonical routing over a fixed fleet: least energy, then fixed weights that no two arcs share. Replicas that
    it does not need are left out.

    Rows hold to a ten-millionth of a replica; where that is too much to ask, as of very large fleets, to what an answer of a
    solver may be out by.

    Returns
    -------
    Solution or None
        None where the fleet cannot serve the demand.
    """
    exact = _routed(formulation, counts, backend, settings, relative=0.0)
    return exact or _routed(formulation, counts, backend, settings, relative=EXACTNESS)


def _routed(
    formulation: Formulation, counts: Mapping[int, int], backend: Backend, settings: Settings, *, relative: float
) -> Solution | None:
    """As :func:`route`, with rows that hold to a share of their fixed part; hand-overs, which have none, add up."""
    sets, v = formulation.sets, formulation.variables
    fixed = {v.replicas[k]: float(counts.get(k, 0)) for k in range(len(sets.candidates))}
    fixed |= {v.open[k]: float(k in counts) for k in range(len(sets.candidates))}
    model = pulp.LpProblem("routing", pulp.LpMinimize)
    kept = [(k, arc) for (k, arc) in v.share if k in counts]
    flows = {key: model.add_variable(f"f_{i}", 0, 1) for i, key in enumerate(kept)}
    slowed = {arc: model.add_variable(f"t_{i}", 0) for i, arc in enumerate(v.slowed)}
    weights = [(flows[key], _weight(formulation, key, i)) for i, key in enumerate(kept)]
    weights += [(variable, _tie(len(kept) + i)) for i, variable in enumerate(slowed.values())]
    model.setObjective(pulp.LpAffineExpression(weights))
    renamed = {v.share[key]: flows[key] for key in kept} | {v.slowed[arc]: slowed[arc] for arc in slowed}
    dropped = {variable for key, variable in v.share.items() if key not in flows}
    for row in formulation.model.constraints():
        terms = {variable: coefficient for variable, coefficient in row.items() if variable not in dropped}
        if not any(variable in renamed for variable in terms):
            continue
        if any(variable not in renamed and variable not in fixed for variable in terms):
            continue
        constant = row.constant + sum(c * fixed[variable] for variable, c in terms.items() if variable in fixed)
        left = [(renamed[variable], c) for variable, c in terms.items() if variable in renamed]
        sized = row.sense != pulp.LpConstraintEQ and any(variable in fixed for variable in terms)
        tolerance = max(1e-7, relative * abs(constant)) if sized else 0.0
        model.addConstraint(pulp.LpConstraint(pulp.LpAffineExpression(left), row.sense, row.name, -constant + tolerance))
    outcome = backend.solve(model, settings)
    if outcome.values is None or outcome.termination != "optimal":
        return None
    pools = []
    for k, replicas in sorted(counts.items()):
        candidate = sets.candidates[k]
        rates = {arc: outcome.values[flows[k, arc].name] * sets.demands[arc.request_class].rate for arc in candidate.arcs}
        used = {arc: rate for arc, rate in rates.items() if rate > _NOISE * sets.demands[arc.request_class].rate}
        if used:
            pools.append(_trimmed(PoolSolution(candidate=candidate, replicas=replicas, flows=used)))
    passed = {arc: outcome.values[variable.name] * sets.demands[arc.request_class].rate for arc, variable in slowed.items()}
    return Solution(pools=tuple(pools), ways=_ways(sets.problem, pools, passed))


def _trimmed(pool: PoolSolution) -> PoolSolution:
    """A pool without the replicas that its flows do not need; a plan that is not optimal to the last may have some."""
    serves = pool.serves()
    need = max((row.need(serves) for row in pool.candidate.rows), default=1.0)
    return replace(pool, replicas=min(pool.replicas, max(1, math.ceil(need * (1 - _NOISE)))))


def _weight(formulation: Formulation, key: tuple[int, Arc], index: int) -> float:
    """Energy cost of sending a class through an arc, on the scale of the objective, plus a tie-break below it."""
    energy = formulation.model.objective.get(formulation.variables.share[key], 0.0)
    return float(energy) + _tie(index)


def _tie(index: int) -> float:
    return 1e-3 * (1.0 + (index * _GOLDEN) % 1.0)


def _ways(problem: PlanningProblem, pools: list[PoolSolution], slowed: Mapping[Arc, float]) -> dict[str, tuple[Way, ...]]:
    """Flow decomposition: at every hand-over, the fastest sender first, what must have arrived earliest takes what arrived
    earliest.

    Parameters
    ----------
    slowed : Mapping[Arc, float]
        Requests/s that are taken as handed over by a slower sender.
    """
    steps = [((p, arc), rate) for p, pool in enumerate(pools) for arc, rate in pool.flows.items()]
    steps += [((_NOBODY, arc), rate) for arc, rate in slowed.items() if rate > 0.0]
    result = {}
    for demand in problem.demands:
        own = sorted(((step, rate) for step, rate in steps if step[1].request_class == demand.name), key=_order)
        ways = [Way(steps=(step,), rate=rate) for step, rate in own if step[1].start.sender is None]
        places = {step[1].start.all_levels for step, _ in own if step[1].start.sender is not None}
        for place in sorted(places, key=lambda node: (STATES.index(node.state), _fastest_first(node))):
            here = [way for way in ways if way.steps[-1][1].end.all_levels == place]
            ways = [way for way in ways if way.steps[-1][1].end.all_levels != place]
            ways += _continue(here, [(s, rate) for s, rate in own if s[1].start.all_levels == place])
        taken = [replace(way, steps=tuple(step for step in way.steps if step[0] != _NOBODY)) for way in ways]
        result[demand.name] = tuple(sorted(taken, key=lambda way: (way.steps, way.rate)))
    return result


_NOBODY = -1
"""In place of a pool, at a step that takes a request as handed over by a slower sender."""


def _fastest_first(node: Node) -> tuple[float, Node]:
    return (0.0 if node.sender is None else -node.sender.bandwidth), node


def _order(item: tuple[tuple[int, Arc], float]) -> tuple[int, int, Arc]:
    (pool, arc), _ = item
    return arc.start.level, pool, arc


def _continue(here: list[Way], leaving: list[tuple[tuple[int, Arc], float]]) -> list[Way]:
    """Match arrivals at a hand-over with the arcs that leave it, level by level."""
    result: list[Way] = []
    waiting = sorted(here, key=lambda way: (way.steps[-1][1].end.level, way.steps))
    rates = [way.rate for way in waiting]
    for (p, arc), rate in leaving:
        for i, way in enumerate(waiting):
            if rates[i] <= 0.0 or rate <= 0.0:
                continue
            share = min(rate, rates[i])
            rates[i] -= share
            rate -= share
            if share > _NOISE * way.rate:
                result.append(Way(steps=(*way.steps, (p, arc)), rate=share))
    return result
