"""Closing the loop: a plan is simulated, and planned again where the formulas said too much or too little."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from epd_opt.document import PlanDocument, Simulated, SimulatedRound
from epd_opt.instance import Instance
from epd_opt.pipeline import solve
from epd_opt.plan import Plan
from epd_opt.reading import complaining_in_place, read
from epd_opt.render import view_text
from epd_opt.restore import resolved_plan
from epd_opt.scenarios import demand_one_case
from epd_opt.simulate import Simulation, simulate
from epd_opt.simulate.fleet import stated_targets
from epd_opt.simulate.table import simulation_view
from epd_opt.tables import ruled
from epd_opt.wording import printable, significant

REQUESTS, SEEDS = 20_000, 2
_MOST_ROUNDS = 5
_LEAST, _MOST = 0.5, 2.0
"""Limits of a planned target, as shares of the stated one."""
_CAREFUL = 0.98
"""Share of what prediction and simulation together allow that is planned for: another fleet is off a little otherwise."""
_STRICTER = 0.97
"""Where a target was missed, the next one planned for is at most this share of the last one."""


@dataclass(frozen=True, kw_only=True)
class Closed:
    """A plan that simulation has judged.

    Attributes
    ----------
    plan : Plan
        The cheapest found that meets every stated target in simulation; else the last one tried.
    simulation : Simulation or None
        Of that plan; None where there is no fleet.
    """

    plan: Plan
    simulation: Simulation | None


@dataclass(frozen=True, kw_only=True)
class _Judged:
    instance: Instance
    plan: Plan
    simulation: Simulation
    idle: list[str]

    @property
    def met(self) -> bool:
        return bool(self.simulation.document.target_met)

    @property
    def cost(self) -> float:
        cost = self.plan.document.cost
        return math.inf if cost is None else cost.usd_per_hour


@complaining_in_place()
def solve_and_simulate(
    instance: Instance | Mapping[str, Any] | str,
    *,
    requests: int | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Closed:
    """Plan, simulate, and plan again for targets that make up for what the formulas are off.

    Where a class got a time s at its percentile and p was predicted, the next plan is made for its stated target times
    p / s: more strictly where the prediction was too short, more loosely where it was too long. Looser targets are tried
    only where some pool could lose a replica with all targets met. The search ends when a fleet comes back, nothing is
    idle, or a looser plan misses.

    Parameters
    ----------
    requests : int
        Requests that count in each of two runs per round; `REQUESTS` where not stated.

    Raises
    ------
    InvalidInput, SolverFailed, VerificationError
        As :func:`epd_opt.solve`.
    """
    requests = REQUESTS if requests is None else requests
    stated = instance if isinstance(instance, Instance) else read(instance)
    demand_one_case(stated, "planning with simulation")
    rounds: list[_Judged] = []
    best: int | None = None
    current = stated
    while len(rounds) < _MOST_ROUNDS:
        plan = solve(current, progress=progress)
        if not plan.document.pools:
            if not rounds:
                return Closed(plan=plan, simulation=None)
            break
        if any(_fleet(plan) == _fleet(known.plan) for known in rounds):
            break
        judged = _judged(current, plan, requests, progress)
        rounds.append(judged)
        last = len(rounds) - 1
        if judged.met and (best is None or judged.cost < rounds[best].cost * (1 - 1e-9)):
            best = last
        elif best is not None:
            break
        if judged.met and not judged.idle:
            break
        current = _adjusted(stated, judged)
    chosen = len(rounds) - 1 if best is None else best
    kept = rounds[chosen]
    counted = sum(outcome.requests for outcome in kept.simulation.document.classes.values())
    said = Simulated(
        rounds=[_round(each) for each in rounds],
        chosen=chosen,
        requests=counted,
        certificate=_certificate(kept, counted),
    )
    document = kept.plan.document.model_copy(update={"simulated": said})
    return Closed(plan=Plan(document), simulation=kept.simulation)


def _judged(instance: Instance, plan: Plan, requests: int, progress: Callable[[str], None]) -> _Judged:
    progress(f"simulating {SEEDS} x {requests:,} requests")
    found = simulate(plan, requests=requests, seeds=SEEDS)
    idle = []
    if found.document.target_met:
        for i, pool in enumerate(plan.document.pools):
            if pool.replicas > 1:
                progress(f"simulating {pool.name} with one replica less")
                if simulate(_with_one_less(plan, i), requests=requests).document.target_met:
                    idle.append(pool.name)
    return _Judged(instance=instance, plan=plan, simulation=found, idle=idle)


def _with_one_less(plan: Plan, index: int) -> Plan:
    pools = list(plan.document.pools)
    pools[index] = pools[index].model_copy(update={"replicas": pools[index].replicas - 1})
    return Plan(plan.document.model_copy(update={"pools": pools}))


def _fleet(plan: Plan) -> list[tuple[str, int, tuple[tuple[str, float], ...]]]:
    return [(pool.key, pool.replicas, tuple(pool.serves.items())) for pool in plan.document.pools]


def _adjusted(stated: Instance, judged: _Judged) -> Instance:
    """The instance with targets to plan for that prediction and simulation together suggest."""
    document = stated.document()
    resolved = resolved_plan(judged.plan.document)
    targets = stated_targets(resolved)
    for request in document["workload"]["classes"]:
        target = targets.get(request["name"])
        if target is None:
            continue
        label = [each.name for each in resolved.requests].index(request["name"])
        predicted = judged.plan.document.classes[request["name"]]
        planned = resolved.requests[label].targets
        for key, said_ms, stated_s, before_s, probability in (
            ("ttft", predicted.ttft_ms, target.ttft_s, planned.ttft_s, target.ttft_probability),
            ("itl", predicted.itl_ms, target.itl_s, planned.itl_s, target.itl_probability),
        ):
            found_s = _quantile(judged.simulation, label, key, probability)
            if said_ms is None or stated_s is None or before_s is None or found_s is None:
                continue
            share = said_ms / 1e3 / found_s * _CAREFUL if found_s > 0 else 1.0
            wanted = stated_s * min(max(share, _LEAST), _MOST)
            if found_s > stated_s:
                wanted = min(wanted, before_s * _STRICTER)
            elif not judged.met:
                wanted = min(wanted, before_s)
            request["slo"][f"planned_{key}_ms"] = float(f"{wanted * 1e3:.4g}")
    return Instance(**document)


def _quantile(simulation: Simulation, label: int, key: str, probability: float) -> float | None:
    seconds = np.concatenate([getattr(run.times[label], key) for run in simulation.runs])
    seconds = seconds[~np.isnan(seconds)]
    return float(np.quantile(seconds, probability, method="higher")) if len(seconds) else None


def _round(judged: _Judged) -> SimulatedRound:
    resolved = resolved_plan(judged.plan.document)
    planned = {
        request.name: {
            key: seconds * 1e3
            for key, seconds in (("ttft", request.targets.ttft_s), ("itl", request.targets.itl_s))
            if seconds is not None
        }
        for request in resolved.requests
    }
    return SimulatedRound(
        planned_ms=planned,
        usd_per_hour=judged.cost,
        replicas={pool.name: pool.replicas for pool in judged.plan.document.pools},
        attainment={name: outcome.attainment.model_dump() for name, outcome in judged.simulation.document.classes.items()},
        target_met=judged.met,
        idle=judged.idle,
    )


def _certificate(kept: _Judged, requests: int) -> str:
    """What is proved and what is simulated."""
    document: PlanDocument = kept.plan.document
    slos = [request.slo for request in kept.instance.workload.classes]
    changed = any(slo.planned_ttft_ms is not None or slo.planned_itl_ms is not None for slo in slos)
    aim = "the targets planned for, which are not the stated ones" if changed else "the stated targets"
    proved = "proved optimal within the gap" if document.status == "optimal" else "not proved"
    proof = f"The cost is {proved} for {aim}, as far as the formulas go."
    untimed = kept.simulation.untimed
    if len(untimed) == len(document.pools):
        within = "come within" if kept.met else "exceed"
        return (
            f"{proof} {requests:,} simulated requests {within} the rates of its workers; none is timed, they are measured."
        )
    verdict = "all stated targets are met" if kept.met else "a stated target is missed"
    shown = f"{requests:,} simulated requests show, with 95 % confidence and the models' own times"
    unknown = f" Nothing about {', '.join(untimed)} is timed: measured workers are taken at their word." if untimed else ""
    return f"{proof} That {verdict} is what {shown}.{unknown}"


def _judgement(met: bool, simulation: Simulation) -> str:
    if len(simulation.untimed) == len(simulation.pools):
        return "within rates" if met else "over rates"
    return "met" if met else "missed"


def closing_text(document: PlanDocument, simulation: Simulation, *, color: bool, width: int) -> str:
    """The simulation of the chosen plan, the rounds before it and the certificate, as text."""
    said = document.simulated
    assert said is not None
    table = ruled("round", ">$/h", "replicas", "planned for, ms", "simulated", "could lose a replica")
    for i, each in enumerate(said.rounds):
        planned = [
            f"{printable(name)} " + ", ".join(f"{key.upper()} {significant(value)}" for key, value in targets.items())
            for name, targets in each.planned_ms.items()
        ]
        table.add_row(
            f"{i + 1}{' kept' if i == said.chosen else ''}",
            f"{each.usd_per_hour:,.2f}",
            " + ".join(str(count) for count in each.replicas.values()),
            "\n".join(planned),
            _judgement(each.target_met, simulation),
            "\n".join(map(printable, each.idle)) or "-",
        )
    view = Group(simulation_view(simulation.document), Padding(table, (1, 0, 1, 0), expand=False), Text(said.certificate))
    return view_text(view, color=color, width=width)
