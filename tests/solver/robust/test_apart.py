"""Shows that scenarios planned one by one, each paying shares of the fleet, bound every fleet and lead to the best one."""

from __future__ import annotations

import pytest

import epd_opt
from solver.robust.test_planning import BUSY, mixed, texts


@pytest.mark.parametrize(("seed", "minimise"), [(1, "expected_cost"), (6, "worst_cost"), (4, "cvar")])
def test_scenario_by_scenario_is_as_good_as_all_at_once(seed: int, minimise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where work is metered, prices differ and units are owned: the bound lies below the optimum, the plan meets it."""
    document = mixed(seed, robust={"minimise": minimise})
    best = epd_opt.solve(document).robust.objective_usd_per_hour
    monkeypatch.setattr("epd_opt.robust.search.FEW", 0)
    found = epd_opt.solve(document).robust
    assert found.bound_usd_per_hour <= best * (1 + 1e-9)
    assert found.objective_usd_per_hour == pytest.approx(best, rel=1e-6)


def test_outlines_of_pools_left_out_count_in_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pools are screened, what is proved scenario by scenario holds for those left out as well."""
    document = {**texts(), "scenarios": [{"name": "usual"}, {"name": "busy", "set": BUSY}]}
    document["devices"].append({"sku": "L40S", "price": {"usd_per_hour": 50}, "tensor_parallel": [1]})
    best = epd_opt.solve(document).robust.objective_usd_per_hour
    for place in ("epd_opt.shortlist.ENOUGH", "epd_opt.robust.scene.FEW"):
        monkeypatch.setattr(place, 4)
    monkeypatch.setattr("epd_opt.robust.search.FEW", 0)
    found = epd_opt.solve(document).robust
    assert "left out" in found.note
    assert 0.5 * best <= found.bound_usd_per_hour <= best * (1 + 1e-9)
    assert found.objective_usd_per_hour >= best * (1 - 1e-9)
