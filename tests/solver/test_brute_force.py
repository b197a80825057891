"""Over small problems, the optimum equals the best of all fleets, enumerated and routed by other means."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from epd_models.candidate import STATES, State
from epd_models.row import Row
from epd_models.transfer import Sender
from epd_opt import solve
from epd_opt.problem import Demand, Limits, Offer, PlanningProblem
from support.enumeration import cheapest
from support.problems import arc, candidate, offer, planning_problem, random_problem
from support.solving import solved

ENERGY_TIES = 3e-6
"""Ties may move energy costs by about a millionth of the dearest unit-hour for each passage."""


@pytest.mark.parametrize("seed", range(60))
def test_the_optimum_is_that_of_enumeration(seed: int) -> None:
    """Same least cost as over all fleets, or neither finds any; the proved bound is that cost."""
    problem = random_problem(seed)
    best, found = cheapest(problem), solved(problem)
    if best is None:
        assert found is None
        return
    assert found is not None
    assert found.usd_per_hour == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert found.bound <= best * (1 + 1e-9)
    assert found.bound >= best * (1 - 1e-4)


@pytest.mark.parametrize("seed", range(1000, 1030))
def test_the_optimum_with_energy_is_that_of_enumeration(seed: int) -> None:
    """Where work costs energy, the routing is part of the optimum too."""
    problem = random_problem(seed, energy=True)
    best, found = cheapest(problem), solved(problem)
    if best is None:
        assert found is None
        return
    assert found is not None
    dearest = max(
        o.usd_per_hour + o.used_usd_per_hour + o.owned_usd_per_hour + 3600.0 * o.busy_usd_per_unit_second
        for o in problem.offers
    )
    assert found.usd_per_hour == pytest.approx(best, rel=1e-9, abs=ENERGY_TIES * dearest + 1e-9)


def test_the_random_problems_are_of_both_kinds() -> None:
    """Neither feasible nor infeasible problems are rare among those compared."""
    feasible = sum(solved(random_problem(seed)) is not None for seed in range(60))
    assert 20 <= feasible <= 50


CLASSES = ("album", "chat", "clip")


def random_document(seed: int) -> dict[str, Any]:
    """A small instance with measured workers: whole and split stages, rents and purchases, lots, stock, spares."""
    dice = random.Random(seed)
    names = list(CLASSES[: dice.randint(1, 3)])
    classes = []
    for name in names:
        stated: dict[str, Any] = {"name": name, "rate_per_s": round(dice.uniform(0.5, 6.0), 2)}
        if dice.random() < 0.5:
            stated["images"] = {"count": 1, "tokens": 256}
        if dice.random() < 0.3:
            stated["mean_rate_per_s"] = round(stated["rate_per_s"] * 0.5, 3)
        classes.append(stated)
    devices = []
    for sku in ["A", "B"][: dice.randint(1, 2)]:
        entry: dict[str, Any] = {"sku": sku, "price": {"usd_per_hour": dice.choice([0.5, 1.0, 2.25, 4.0])}}
        if dice.random() < 0.3:
            entry["price"] = {"purchase_usd": dice.choice([8760.0, 35040.0])}
            entry |= {"power_w": 700.0, "idle_power_w": 100.0}
        if dice.random() < 0.3:
            entry["price"]["pack"] = dice.choice([2, 4])
        if dice.random() < 0.5:
            entry["stock"] = dice.choice([2, 4, 8])
        if dice.random() < 0.3:
            entry["owned"] = dice.randint(1, 2)
        devices.append(entry)
    chains = dice.choice(
        [
            [["encode", "prefill", "decode"], ["prefill", "decode"]],
            [["encode"], ["prefill", "decode"]],
            [["encode", "prefill"], ["decode"]],
            [["encode"], ["prefill"], ["decode"]],
        ]
    )
    workers = []
    for w, stages in enumerate([*chains, dice.choice(chains)]):
        rates = {name: round(dice.uniform(0.8, 4.0), 2) for name in names if dice.random() < 0.9}
        if dice.random() < 0.3:
            rates["default"] = 1.5
        workers.append(
            {
                "name": f"w{w}",
                "sku": dice.choice(devices)["sku"],
                "devices": dice.choice([1, 1, 2]),
                "stages": stages,
                "max_rate_per_s": rates or 2.0,
            }
        )
    document: dict[str, Any] = {
        "schema": "epd-opt/instance/v1",
        "candidates": {"modelled": False},
        "workload": {"classes": classes},
        "devices": devices,
        "workers": workers,
        "cost": {
            "life_years": 4,
            "residual": 0.0,
            "cost_of_capital": 0.0,
            "host_share": 0.25,
            "hours_per_year": 8760,
            "pue": 1.25,
            "electricity_usd_per_kwh": 0.12,
        },
        "redundancy": {"spare_replicas": dice.choice([0, 0, 1]), "headroom": dice.choice([0.0, 0.1])},
        "solver": {"gap": 0.0},
    }
    if dice.random() < 0.3:
        document["limits"] = {"devices": dice.choice([4, 8])}
    return document


def as_problem(document: Mapping[str, Any]) -> PlanningProblem:
    """What the document means, written down once more."""
    growth = 1.0 + document["redundancy"]["headroom"]
    classes = {c["name"]: c for c in document["workload"]["classes"]}
    handed = Sender(bandwidth=1.0)
    candidates = []
    for worker in document["workers"]:
        first, last = STATES[_index(worker["stages"][0])], STATES[_index(worker["stages"][-1]) + 1]
        rates = worker["max_rate_per_s"]
        rates = rates if isinstance(rates, dict) else {"default": rates}
        arcs, load = [], []
        for name, stated in classes.items():
            rate = rates.get(name, rates.get("default"))
            begins: State = "raw" if "images" in stated else "encoded"
            start: State = begins if STATES.index(first) < STATES.index(begins) else first
            if rate is None or start == last:
                continue
            given = None if start == begins else (handed, 0)
            arcs.append(arc(name, start, last, given=given, to=None if last == "done" else (handed, 0)))
            load.append((name, 1.0 / rate))
        if arcs:
            rows = [Row(kind="rate", load=tuple(load))]
            candidates.append(
                candidate(worker["name"], arcs, rows, device=worker["sku"], units=worker["devices"], busy_s=dict(load))
            )
    problem = planning_problem(
        {name: c["rate_per_s"] * growth for name, c in classes.items()},
        candidates,
        [_terms(entry) for entry in document["devices"]],
        limits=Limits(devices=document.get("limits", {}).get("devices")),
        spare_replicas=document["redundancy"]["spare_replicas"],
    )
    means = {name: c.get("mean_rate_per_s", c["rate_per_s"]) for name, c in classes.items()}
    return replace(
        problem,
        demands=tuple(Demand(name=d.name, rate=d.rate, mean_rate=means[d.name]) for d in problem.demands),
    )


def _index(stage: str) -> int:
    return ["encode", "prefill", "decode"].index(stage)


def _terms(entry: Mapping[str, Any]) -> Offer:
    usd_per_kilowatt_hour = 1.25 * 0.12
    common = {
        "stock": entry.get("stock"),
        "owned": entry.get("owned", 0),
        "lot": entry["price"].get("pack", 1),
    }
    if "purchase_usd" in entry["price"]:
        capital = entry["price"]["purchase_usd"] * 1.25 / (4 * 8760)
        idle, busy = 0.1 * usd_per_kilowatt_hour, 0.6 * usd_per_kilowatt_hour / 3600.0
        return offer(entry["sku"], capital, used_usd_per_hour=idle, busy_usd_per_unit_second=busy, **common)
    return offer(entry["sku"], entry["price"]["usd_per_hour"], **common)


def documents(seeds: range) -> list[tuple[int, dict[str, Any]]]:
    """Documents whose owned units do not exceed their stock, which would be refused."""
    made = [(seed, random_document(seed)) for seed in seeds]
    return [(s, d) for s, d in made if all(e.get("owned", 0) <= e.get("stock", 99) for e in d["devices"])]


@pytest.mark.parametrize(("seed", "document"), documents(range(40)), ids=str)
def test_instances_reach_the_optimum_of_enumeration(seed: int, document: dict[str, Any]) -> None:
    """From document to plan, measured workers give the least cost over all fleets, or both find none."""
    best, plan = cheapest(as_problem(document)), solve(document)
    if best is None:
        assert plan.status == "infeasible"
        assert plan.infeasibility.reasons
        return
    assert plan.status == "optimal"
    assert plan.cost.usd_per_hour == pytest.approx(best, rel=1e-9, abs=1e-5)
    assert plan.cost.bound_usd_per_hour <= best * (1 + 1e-9)
