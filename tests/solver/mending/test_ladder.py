"""The search for the nearest number that works, on numbers that people would type."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epd_opt.mending.ladder import nearest, on_rung, rung_above, rung_below

VALUES = st.floats(min_value=1e-3, max_value=1e7)


@given(VALUES)
def test_rungs_enclose(value: float) -> None:
    """The rungs below and above a value enclose it within a twentieth, and have three digits, the last one 0 or 5."""
    low, high = on_rung(rung_below(value)), on_rung(rung_above(value))
    assert low <= value * (1 + 1e-11)
    assert high >= value * (1 - 1e-11)
    assert high <= low * 1.05 * (1 + 1e-9)
    digits = high / 10.0 ** math.floor(math.log10(high * (1 + 1e-12))) * 20.0
    assert digits == pytest.approx(round(digits))


@given(VALUES, st.floats(min_value=1.0001, max_value=500.0), st.booleans(), st.floats(min_value=0.5, max_value=1.0))
def test_nearest_rung_that_works(now: float, factor: float, up: bool, early: float) -> None:
    """The rung found works and the one nearer does not, with a good guess, an early one, or none, and in few trials."""
    limit = now * factor if up else now / factor
    tried: list[float] = []

    def works(value: float) -> bool:
        tried.append(value)
        return value >= limit * (1 - 1e-12) if up else value <= limit * (1 + 1e-12)

    expected = on_rung(rung_above(limit)) if up else on_rung(rung_below(limit))
    for guess in (None, limit, now + early * (limit - now)):
        tried.clear()
        found = nearest(now, works, up=up, guess=guess)
        assert found == pytest.approx(expected) or found == pytest.approx(on_rung(rung_above(limit) + 1))
        assert len(tried) <= 22
    found = nearest(now, works, up=up, loosest=limit * 2 if up else limit / 2, within=1.1)
    assert found is not None
    assert works(found)
    assert max(found / limit, limit / found) <= 1.1 * 1.06


def test_nothing_works() -> None:
    """Within three decades, or up to the loosest value, nothing works; the loosest value is tried first."""
    assert nearest(100.0, lambda value: False, up=True) is None
    tried: list[float] = []
    assert nearest(100.0, lambda value: bool(tried.append(value)), up=True, loosest=1000.0) is None
    assert tried == [1000.0]
    assert nearest(100.0, lambda value: value <= 20.0, up=False, loosest=10.0) == 20.0
