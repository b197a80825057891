"""Ratios pass through their points, hold still in between, and never promise more than the model beyond them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epd_models.ratios import Curve, Surface, safe_line
from support.workers import surface

LADDER = surface({1000.0: {1.0: 2.0, 100.0: 0.5}, 4000.0: {1.0: 4.0, 100.0: 1.0}})


def test_a_surface_passes_through_its_points_and_is_linear_in_logarithms_between_them():
    """Halfway in batch and context, the ratio is the geometric mean of the four corners."""
    batch, context = np.array([1.0, 100.0, 10.0, 10.0]), np.array([1000.0, 4000.0, 1000.0, 2000.0])
    assert LADDER(batch, context) == pytest.approx([2.0, 1.0, 1.0, 2.0**0.5])


def test_beyond_its_points_a_ratio_is_that_of_the_model_or_slower():
    """Above the batches measured, times measured as faster fall back to the model's and slower ones stay slower."""
    assert Curve(at=(10.0, 20.0), ratios=(0.5, 0.5))(np.array([5.0, 15.0, 40.0])) == pytest.approx([1.0, 0.5, 1.0])
    assert Curve(at=(10.0, 20.0), ratios=(2.0, 3.0))(np.array([5.0, 40.0])) == pytest.approx([2.0, 3.0])
    assert LADDER(np.array([1000.0]), np.array([1000.0])) == pytest.approx([1.0])
    assert LADDER(np.array([100.0]), np.array([100.0])) == pytest.approx([1.0])
    assert LADDER(np.array([1.0]), np.array([90000.0])) == pytest.approx([4.0])


def test_one_point_speaks_for_its_neighbourhood_only():
    """A single measurement holds at its size and a tenth around it."""
    curve = Curve(at=(100.0,), ratios=(0.5,))
    assert curve(np.array([91.0, 109.0, 80.0, 120.0])) == pytest.approx([0.5, 0.5, 1.0, 1.0])
    assert curve.covers(109.0)
    assert not curve.covers(120.0)


def test_a_surface_covers_what_the_curves_on_both_sides_cover():
    """A batch measured at short contexts alone is not covered between those and long ones."""
    ragged = surface({1000.0: {1.0: 1.0, 100.0: 1.0}, 8000.0: {1.0: 1.0, 16.0: 1.0}})
    assert ragged.covers(100.0, 1000.0)
    assert ragged.covers(16.0, 4000.0)
    assert not ragged.covers(100.0, 4000.0)
    assert not ragged.covers(4.0, 20000.0)
    assert ragged.batches == (1.0, 100.0)


@given(
    points=st.lists(st.tuples(st.floats(0.01, 100.0), st.floats(0.01, 100.0)), min_size=1, max_size=12),
    start=st.floats(0.01, 100.0),
    data=st.data(),
)
@settings(deadline=None)
def test_a_safe_line_lies_above_all_points_and_is_the_lowest_that_does(points, start, data):
    """No point lies above it, it never falls, and some point touches it on either side of where it is lowest."""
    varying = np.array([0.0] + [x for x, _ in points])
    seconds = np.array([start] + [y for _, y in points])
    at = data.draw(st.sampled_from(sorted(varying.tolist())))
    intercept, slope = safe_line(varying, seconds, at)
    line = intercept + slope * varying
    assert slope >= 0.0
    assert intercept >= start * (1 - 1e-9)
    assert (line >= seconds * (1 - 1e-9)).all()
    touching = varying[line <= seconds * (1 + 1e-9)]
    assert touching.size
    if slope > 0.0:
        assert touching.min() <= at * (1 + 1e-9)
        assert touching.max() >= at * (1 - 1e-9)


def test_a_single_context_is_a_surface():
    """With one curve, the batch decides and other contexts fall back."""
    one = Surface(contexts=(1000.0,), curves=(Curve(at=(1.0, 64.0), ratios=(0.8, 0.8)),))
    assert one(np.array([8.0, 8.0]), np.array([1000.0, 5000.0])) == pytest.approx([0.8, 1.0])
