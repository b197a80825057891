"""What cannot be counted, or is not known, is said before anything is solved."""

from __future__ import annotations

from typing import Any

import pytest

import epd_opt
from epd_opt.errors import InvalidInput


def instance(rates: Any, **changes: Any) -> dict[str, Any]:
    """One worker for two classes."""
    return {
        "schema": "epd-opt/instance/v1",
        "candidates": {"modelled": False},
        "workload": {"classes": [{"name": "chat", "rate_per_s": 1}, {"name": "mail", "rate_per_s": 5}]},
        "devices": [{"sku": "A", "price": {"usd_per_hour": 1}}],
        "workers": [{"name": "w", "sku": "A", "devices": 1, "stages": ["prefill", "decode"], "max_rate_per_s": rates}],
        "solver": {"gap": 0, "threads": 1},
        **changes,
    }


@pytest.mark.parametrize(
    ("rates", "path"),
    [
        (2e-7, "workers.w.max_rate_per_s: found 2e-07: the 5 requests/s of class 'mail'"),
        ({"chat": 1, "mail": 1e-12}, "workers.w.max_rate_per_s.mail: found 1e-12"),
        ({"chat": 1, "default": 1e-9}, "workers.w.max_rate_per_s.default: found 1e-09"),
    ],
)
def test_a_rate_that_takes_too_many_replicas_to_count_is_refused(rates: Any, path: str) -> None:
    """Beyond ten million replicas of a worker for a class, worker, class and number are named."""
    with pytest.raises(InvalidInput) as caught:
        epd_opt.solve(instance(rates))
    assert path in str(caught.value)
    assert "replicas of 'w', expected at most 1e+07" in str(caught.value)


def test_a_million_replicas_are_counted_exactly() -> None:
    """Small rates are served as long as the replicas for them can be counted."""
    assert epd_opt.solve(instance(5e-6)).pools[0].replicas == 1_200_000


def test_a_limit_of_power_says_which_power_is_not_known() -> None:
    """A rented device without a card counts as nothing against the limit, and the plan warns of that."""
    limited = epd_opt.solve(instance(1, limits={"power_kw": 1}))
    assert any("A: power is unknown and taken as 0; give devices.A.power_w" in warning for warning in limited.warnings)
    assert not any("power" in warning for warning in epd_opt.solve(instance(1)).warnings)
