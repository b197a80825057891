"""Sizes keep the mean, the spread and the quantiles that they were given."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epd_models.distribution import Distribution

Z95 = NormalDist().inv_cdf(0.95)
WIDEST = math.exp(Z95**2 / 2)


def lognormal(mean, p95):
    """mu and sigma of the lognormal with the smaller sigma."""
    sigma = Z95 - math.sqrt(Z95**2 - 2 * math.log(p95 / mean))
    return math.log(mean) - sigma**2 / 2, sigma


def test_values_are_merged_sorted_and_normalised():
    """Weights need not add up to one, values may repeat, weightless ones vanish."""
    sizes = Distribution.of_values([(2000, 3), (200, 5), (2000, 2), (7, 0)])
    assert sizes.values == (200.0, 2000.0)
    assert sizes.weights == pytest.approx((0.5, 0.5))
    assert sizes.varies
    assert not Distribution.constant(8).varies


def test_quantiles_of_values_are_values():
    """The smallest value that enough requests do not exceed."""
    sizes = Distribution.of_values([(1, 0.5), (2, 0.45), (3, 0.05)])
    assert [sizes.quantile(p) for p in (0.0, 0.5, 0.51, 0.95, 0.951, 1.0)] == [1, 1, 2, 2, 3, 3]


@settings(max_examples=200, deadline=None)
@given(mean=st.floats(1, 1e6), ratio=st.floats(1.0, WIDEST - 1e-9))
def test_a_lognormal_keeps_its_mean_and_its_order(mean, ratio):
    """Weights sum to one, values and upper edges ascend, no value exceeds its edge, and the mean is exact."""
    sizes = Distribution.lognormal(mean=mean, p95=mean * ratio)
    values, weights = sizes.arrays()
    assert sizes.mean == pytest.approx(mean, rel=1e-9)
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert (weights > 0).all()
    assert (np.diff(values) > 0).all()
    assert (np.diff(sizes.uppers) > 0).all()
    assert (np.array(sizes.uppers) >= values * (1 - 1e-12)).all()


@pytest.mark.parametrize("ratio", [1.1, 1.5, 2.0, 3.0, 3.5])
def test_a_lognormal_keeps_its_second_moment_and_harmonic_mean(ratio):
    """Queues live on the second moment, averaging on the harmonic mean: within one and two per cent."""
    _, sigma = lognormal(1.0, ratio)
    values, weights = Distribution.lognormal(mean=1.0, p95=ratio).arrays()
    assert values**2 @ weights == pytest.approx(math.exp(sigma**2), rel=0.01)
    assert 1 / (weights @ (1 / values)) == pytest.approx(math.exp(-(sigma**2)), rel=0.02)


@pytest.mark.parametrize("ratio", [1.2, 2.0, 3.5])
def test_quantiles_of_a_lognormal_err_upwards(ratio):
    """Never below the true quantile, exact at the percentiles that targets use."""
    mu, sigma = lognormal(800.0, 800.0 * ratio)
    sizes = Distribution.lognormal(mean=800.0, p95=800.0 * ratio)
    for probability in np.linspace(0.01, 0.9999, 300):
        true = math.exp(mu + sigma * NormalDist().inv_cdf(probability))
        assert sizes.quantile(probability) >= true * (1 - 1e-9)
    for probability in (0.9, 0.95, 0.99, 0.999):
        true = math.exp(mu + sigma * NormalDist().inv_cdf(probability))
        assert sizes.quantile(probability) == pytest.approx(true, rel=1e-9)
    assert sizes.quantile(0.95) == pytest.approx(800.0 * ratio)


def test_the_smaller_sigma_is_taken():
    """Mean 1000 and 95th percentile 2000 fit sigma 0.50 and 2.79."""
    values, weights = Distribution.lognormal(mean=1000, p95=2000).arrays()
    assert math.sqrt(math.log(values**2 @ weights / 1e6)) == pytest.approx(0.496, abs=0.01)


@pytest.mark.parametrize("p95", [999.0, 3900.0])
def test_what_no_lognormal_has_is_refused_with_the_range(p95):
    """A 95th percentile below the mean, or more than 3.868 times above it."""
    with pytest.raises(ValueError, match="p95 must lie between 1000 and 3868"):
        Distribution.lognormal(mean=1000, p95=p95)
