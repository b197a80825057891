"""Published mixes of GPU types over buckets of requests: measured workers reach the optimum when rates may be split."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from epd_opt import solve

PUBLISHED = Path(__file__).parents[3] / "shared" / "validation" / "gpu_mix"
CASES = sorted(PUBLISHED.glob("*.json"))


def instance(prices: dict[str, float], rates: dict[str, list[float]], demand: list[float]) -> dict[str, Any]:
    """Buckets as classes, GPU types as measured workers on one unit each; a bucket of rate 0 stays a class."""
    names = [f"bucket-{b:02d}" for b in range(len(demand))]
    return {
        "schema": "epd-opt/instance/v1",
        "candidates": {"modelled": False},
        "workload": {"classes": [{"name": name, "rate_per_s": rate} for name, rate in zip(names, demand, strict=True)]},
        "devices": [{"sku": sku, "price": {"usd_per_hour": price}} for sku, price in prices.items()],
        "workers": [
            {
                "name": f"worker-{sku}",
                "sku": sku,
                "devices": 1,
                "stages": ["prefill", "decode"],
                "max_rate_per_s": dict(zip(names, rates[sku], strict=True)),
            }
            for sku in prices
        ],
        "solver": {"gap": 0.0},
    }


@pytest.mark.skipif(not CASES, reason="the published cases do not ship with the project")
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_published_cases_reach_their_optimum(path: Path) -> None:
    """The cost of every published case is that of its exact optimum with freely split rates."""
    case = json.loads(path.read_text(encoding="utf-8"))
    given = case["input"]
    gpus = given["gpu_info"]
    demand = [share * given["total_request_rate"] for row in given["workload_distribution"] for share in row]
    plan = solve(
        instance(
            {sku: gpu["cost"] for sku, gpu in gpus.items()},
            {sku: list(itertools.chain(*gpu["tputs"])) for sku, gpu in gpus.items()},
            demand,
        )
    )
    assert plan.status == "optimal"
    assert plan.cost.usd_per_hour == pytest.approx(case["expected"]["rate_split_milp_optimum"]["cost"], rel=1e-9)
    assert plan.cost.bound_usd_per_hour == pytest.approx(plan.cost.usd_per_hour, rel=1e-9)


def test_two_equal_types_tie() -> None:
    """Two identical types at 2 USD/h share 12 and 8 requests/s at 4 and 2 per unit: seven units, in one pool."""
    plan = solve(instance({"X": 2.0, "Y": 2.0}, {"X": [4.0, 2.0], "Y": [4.0, 2.0]}, [12.0, 8.0]))
    assert plan.cost.usd_per_hour == pytest.approx(14.0, rel=1e-9)
    assert [pool.replicas for pool in plan.pools] == [7]


def test_one_type_is_rounded_up() -> None:
    """A load of 2.5 x (1/3 + 2/3 + 1/2 + 1) = 6.25 units takes seven at 1.5 USD/h."""
    plan = solve(instance({"X": 1.5}, {"X": [3.0, 1.5, 2.0, 1.0]}, [2.5, 2.5, 2.5, 2.5]))
    assert plan.cost.usd_per_hour == pytest.approx(10.5, rel=1e-9)
    assert plan.pools[0].utilisation["rate"] == pytest.approx(6.25 / 7)


def test_empty_buckets_cost_nothing_and_are_reported() -> None:
    """A class of rate 0 stays in the plan with no route and no cost, a warning names it, and the others do not notice."""
    prices, rates = {"X": 1.5, "Y": 4.0}, {"X": [3.0, 1.5, 2.0, 1.0], "Y": [9.0, 5.0, 6.0, 3.5]}
    plan = solve(instance(prices, rates, [0.0, 8.4, 3.6, 0.0]))
    assert plan.cost.usd_per_hour == pytest.approx(9.5, rel=1e-9)
    empty = plan.classes["bucket-00"]
    assert (empty.rate_per_s, empty.routes, empty.usd_per_request, empty.slo_met) == (0.0, [], None, True)
    assert sum("has rate 0" in warning for warning in plan.warnings) == 2
    without = {sku: kept[1:3] for sku, kept in rates.items()}
    assert solve(instance(prices, without, [8.4, 3.6])).cost.usd_per_hour == plan.cost.usd_per_hour
