"""What is kept of the requests of a run."""

from __future__ import annotations

from typing import Any

import pytest

import epd_opt
from epd_opt.simulate import statistics
from support.fleets import plan_of


def test_of_very_many_requests_an_even_share_is_kept(monkeypatch: Any) -> None:
    """Kept 300 at most of some 1,300 and 700 requests: counts stay exact, means and shares come near."""
    whole = epd_opt.simulate(plan_of("integrated"), requests=2000)
    monkeypatch.setattr(statistics, "MOST_KEPT", 300)
    thinned = epd_opt.simulate(plan_of("integrated"), requests=2000)
    for label, (name, outcome) in enumerate(whole.classes.items()):
        times = thinned.runs[0].times[label]
        assert times.each > 1
        assert 150 <= len(times.ttft) <= 300
        assert thinned.classes[name].requests == outcome.requests
        assert thinned.classes[name].ttft_ms.mean == pytest.approx(outcome.ttft_ms.mean, rel=0.15)
        assert thinned.classes[name].attainment.both == pytest.approx(outcome.attainment.both, abs=0.02)
    assert thinned.spending.usd_per_served_request == whole.spending.usd_per_served_request
