"""Back-ends that are usable here agree: on small shipped instances, on ties, on free devices, on what is infeasible."""

from __future__ import annotations

import copy
import itertools
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import epd_opt
from epd_opt.backends import BACKENDS
from support.documents import modelled
from support.ties import shuffled, tied_document

CASES = sorted((Path(__file__).parents[4] / "shared" / "validation" / "gpu_mix").glob("*.json"))
INSTANCES = Path(__file__).parents[3] / "instances"
USABLE = [name for name, solver in BACKENDS.items() if solver.availability().usable]
solvers = pytest.mark.parametrize("name", USABLE)


def published(path: Path, name: str) -> tuple[dict[str, Any], float]:
    """A published mix of GPU types as an instance for this solver, and its optimum in USD/h."""
    case = json.loads(path.read_text(encoding="utf-8"))
    given = case["input"]
    demand = [share * given["total_request_rate"] for row in given["workload_distribution"] for share in row]
    names = [f"bucket-{b:02d}" for b in range(len(demand))]
    instance = {
        "schema": "epd-opt/instance/v1",
        "candidates": {"modelled": False},
        "workload": {"classes": [{"name": name, "rate_per_s": rate} for name, rate in zip(names, demand, strict=True)]},
        "devices": [{"sku": sku, "price": {"usd_per_hour": gpu["cost"]}} for sku, gpu in given["gpu_info"].items()],
        "workers": [
            {
                "name": f"worker-{sku}",
                "sku": sku,
                "devices": 1,
                "stages": ["prefill", "decode"],
                "max_rate_per_s": dict(zip(names, itertools.chain(*gpu["tputs"]), strict=True)),
            }
            for sku, gpu in given["gpu_info"].items()
        ],
        "solver": {"name": name, "gap": 0.0},
    }
    return instance, case["expected"]["rate_split_milp_optimum"]["cost"]


@solvers
@pytest.mark.skipif(not CASES, reason="the published cases do not ship with the project")
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_published_mixes_reach_their_optimum(name: str, path: Path) -> None:
    """The published optimum, to the cent, proved."""
    instance, optimum = published(path, name)
    plan = epd_opt.solve(instance)
    assert plan.status == "optimal"
    assert plan.cost.usd_per_hour == pytest.approx(optimum, rel=1e-9)
    assert plan.cost.bound_usd_per_hour == pytest.approx(optimum, rel=1e-9)


def two_types(prices: tuple[float, float], rates: tuple[float, float], **more: Any) -> dict[str, Any]:
    """Two device types with one measured worker each, for one class of 10 requests/s."""
    return {
        "schema": "epd-opt/instance/v1",
        "candidates": {"modelled": False},
        "workload": {"classes": [{"name": "chat", "rate_per_s": 10.0}]},
        "devices": [{"sku": sku, "price": {"usd_per_hour": price}} for sku, price in zip("AB", prices, strict=True)],
        "workers": [
            {"name": f"w{sku}", "sku": sku, "devices": 1, "stages": ["prefill", "decode"], "max_rate_per_s": rate}
            for sku, rate in zip("AB", rates, strict=True)
        ],
        **more,
    }


@solvers
@pytest.mark.parametrize("stem", ["measured-workers", "long-output"])
def test_shipped_instances_cost_the_same(name: str, stem: str) -> None:
    """The cost of each is HiGHS's, within the gap of the instance, and no bound is above the other's cost."""
    path = INSTANCES / f"{stem}.yaml"
    if not path.exists():
        pytest.skip("the instances do not ship with this copy")
    ours, theirs = (epd_opt.solve(epd_opt.read(path, overrides=[f"solver.name={s}"])) for s in ("highs", name))
    gap = epd_opt.read(path).solver.gap
    assert theirs.status == "optimal"
    assert theirs.cost.usd_per_hour == pytest.approx(ours.cost.usd_per_hour, rel=gap)
    assert theirs.cost.bound_usd_per_hour <= ours.cost.usd_per_hour * (1 + 1e-9)
    assert ours.cost.bound_usd_per_hour <= theirs.cost.usd_per_hour * (1 + 1e-9)
    assert theirs.document.provenance.solver.startswith(name)


TIED = [2, 5, 8, 13, 15, 34]
"""Seeds, two of which CBC gets wrong where it asks a better solution to be better by more than ties are."""


def fleet(document: dict[str, Any], name: str, threads: int) -> Any:
    """The status, cost, counts and routing that a back-end gives."""
    plan = epd_opt.solve({**document, "solver": {"name": name, "gap": 0.0, "threads": threads}}, mends=False)
    pools = [(pool.key, pool.replicas, pool.spare_replicas, pool.serves) for pool in plan.pools]
    return plan.status, pools, {name: result.routes for name, result in plan.classes.items()}


@cache
def reference(seed: int) -> tuple[dict[str, Any], Any]:
    """A document full of ties, and what HiGHS makes of it on one thread."""
    document = tied_document(seed, skus=5, workers=12, classes=4, rates=(1.0, 1.5, 2.0, 3.0))
    return document, fleet(document, "highs", 1)


@solvers
@pytest.mark.parametrize("seed", TIED)
def test_counts_and_routes_are_the_same_without_a_gap(name: str, seed: int) -> None:
    """Among many plans of equal cost the same one, with every solver, on two threads, whatever the order of the file."""
    document, expected = reference(seed)
    assert expected[0] == "optimal"
    assert fleet(shuffled(copy.deepcopy(document), random.Random(seed)), name, 2) == expected


@solvers
def test_modelled_counts_are_the_same_without_a_gap(name: str) -> None:
    """The same over pools that the performance models offer."""
    assert fleet(modelled(), name, 1) == modelled_reference()


@cache
def modelled_reference() -> Any:
    return fleet(modelled(), "highs", 2)


@solvers
def test_a_plan_within_a_gap_is_the_same_every_time(name: str) -> None:
    """The same solver on the same threads gives the same plan again, proved to a gap or not."""
    document = tied_document(34, skus=5, workers=12, classes=4) | {"solver": {"name": name, "gap": 0.1, "threads": 2}}
    first, again = epd_opt.solve(document), epd_opt.solve(document)
    assert [(pool.key, pool.replicas) for pool in first.pools] == [(pool.key, pool.replicas) for pool in again.pools]
    best = epd_opt.solve({**document, "solver": {"gap": 0.0}}).cost.usd_per_hour
    assert best <= first.cost.usd_per_hour <= best * 1.1 * (1 + 1e-9)


@solvers
@pytest.mark.parametrize("threads", [1, 2])
def test_equal_types_are_counted_alike_without_a_gap(name: str, threads: int) -> None:
    """Two equal types: four units of the first, with every solver and with one thread or two."""
    plan = epd_opt.solve(two_types((2.0, 2.0), (2.5, 2.5), solver={"name": name, "gap": 0.0, "threads": threads}))
    assert plan.status == "optimal"
    assert [(pool.device, pool.replicas) for pool in plan.pools] == [("A", 4)]


@solvers
def test_free_devices_are_not_wasted(name: str) -> None:
    """At prices of zero the plan costs nothing and still uses no more devices than it must: two of the faster type."""
    plan = epd_opt.solve(two_types((0.0, 0.0), (1.0, 5.0), solver={"name": name, "gap": 0.0}))
    assert (plan.status, plan.cost.usd_per_hour) == ("optimal", 0.0)
    assert [(pool.device, pool.replicas) for pool in plan.pools] == [("B", 2)]


@solvers
def test_infeasible_instances_are_infeasible_for_all(name: str) -> None:
    """A budget of 5 USD/h for at least 6: infeasible by the budget, with every solver."""
    limited = two_types((2.0, 3.0), (2.5, 5.0), limits={"usd_per_hour": 5.0}, solver={"name": name, "gap": 0.0})
    plan = epd_opt.solve(limited)
    assert plan.status == "infeasible"
    assert plan.document.infeasibility is not None
    assert [(r.limit, r.best_reachable) for r in plan.document.infeasibility.reasons] == [
        ("usd_per_hour", pytest.approx(6.0))
    ]
