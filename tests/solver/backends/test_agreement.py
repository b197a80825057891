"""Back-ends that are usable here agree: on small shipped instances, on ties, on free devices, on what is infeasible."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

import epd_opt
from epd_opt.backends import BACKENDS

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
