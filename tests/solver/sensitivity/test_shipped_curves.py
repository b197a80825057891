"""Over a shipped instance costs rise where theory says so, and keeping today's fleet never pays more than planning anew."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import epd_opt

INSTANCES = Path(__file__).parents[3] / "instances"
RISING = {
    "workload.classes.*.rate_per_s": "x0.4:x1.2:5",
    "devices.big.price.usd_per_hour": "1:9:5",
    "devices.small.price.usd_per_hour": "0:8:5",
}
FALLING = {"devices.small.stock": "8:32:4"}


@pytest.mark.parametrize(("path", "values"), [*RISING.items(), *FALLING.items()])
def test_costs_are_monotone_and_regret_is_none_or_more(path: str, values: str) -> None:
    """Costs per hour rise with demand and with prices and fall with stock; at gap 0 today's fleet never costs less than the
    best plan, and a price that moves alone has a concave cost."""
    instance = epd_opt.read(INSTANCES / "measured-workers.yaml", overrides=["solver.gap=0", "solver.threads=1"])
    points = epd_opt.sensitivity(instance, {path: values}, switches=False).points
    costs = [point.cost.usd_per_hour for point in points if point.cost is not None]
    assert len(costs) >= 4
    assert costs == sorted(costs, reverse=path in FALLING)
    assert costs[0] != costs[-1]
    for point in points:
        assert point.regret_usd_per_hour is None or point.regret_usd_per_hour >= 0.0
    if ".price." in path:
        steps = [after - before for before, after in itertools.pairwise(costs)]
        assert all(later <= earlier + 1e-6 for earlier, later in itertools.pairwise(steps))
