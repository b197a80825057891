"""Hourly costs agree with sums worked by hand and with discounted cash flows."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epd_models.tariff import CostRules


def rules(**changed):
    """Three years, no residual, no cost of capital, PUE 1.4, 0.12 USD/kWh."""
    values = {
        "life_years": 3,
        "residual": 0.0,
        "cost_of_capital": 0.0,
        "host_share": 0.0,
        "hours_per_year": 8760,
        "pue": 1.4,
        "electricity_usd_per_kwh": 0.12,
    }
    return CostRules(**(values | changed))


@pytest.mark.parametrize(("residual", "usd_per_hour"), [(0.0, 1.2592), (0.25, 0.9738)])
def test_an_always_on_device_worked_by_hand(residual, usd_per_hour):
    """30,000 USD over 26,280 hours, and 0.7 kW at PUE 1.4 and 0.12 USD/kWh."""
    owned = rules(residual=residual)
    total = owned.capital_usd_per_hour(30_000) + owned.energy_usd_per_hour(700)
    assert total == pytest.approx(usd_per_hour, abs=5e-5)


def test_the_host_is_bought_with_the_device():
    """A host share of 0.3 raises the charge by three tenths."""
    assert rules(host_share=0.3).capital_usd_per_hour(10_000) == pytest.approx(1.3 * rules().capital_usd_per_hour(10_000))


def test_a_year_of_fewer_hours_costs_more_per_hour():
    """Half the hours, twice the charge."""
    half, whole = rules(hours_per_year=4380), rules()
    assert half.capital_usd_per_hour(1) == pytest.approx(2 * whole.capital_usd_per_hour(1))


def test_energy_per_joule_is_energy_per_hour_of_a_watt():
    """A kilowatt-hour is 3.6 million joules."""
    assert rules().energy_usd_per_joule() * 3.6e6 == pytest.approx(0.12 * 1.4)


@given(
    rate=st.floats(1e-12, 1.0),
    years=st.integers(1, 12),
    residual=st.floats(0.0, 0.9),
    purchase=st.floats(1.0, 1e7),
)
def test_the_charge_discounts_to_the_outlay(rate, years, residual, purchase):
    """Yearly payments and the residual at the end are worth the purchase and its host today."""
    owned = rules(cost_of_capital=rate, life_years=years, residual=residual, host_share=0.3)
    yearly = owned.capital_usd_per_hour(purchase) * 8760
    outlay = 1.3 * purchase
    worth = math.fsum(yearly / (1 + rate) ** year for year in range(1, years + 1))
    assert worth + residual * outlay / (1 + rate) ** years == pytest.approx(outlay, rel=1e-9)


@given(years=st.floats(0.5, 12), residual=st.floats(0.0, 1.0))
def test_a_vanishing_cost_of_capital_is_straight_depreciation(years, residual):
    """The annuity is continuous at zero."""
    near, at = (rules(cost_of_capital=r, life_years=years, residual=residual) for r in (1e-13, 0.0))
    assert near.capital_usd_per_hour(1e4) == pytest.approx(at.capital_usd_per_hour(1e4), rel=1e-9, abs=1e-9)


@given(rate=st.floats(1e-12, 1.0), years=st.integers(1, 6), share=st.floats(0.0, 1.0), usd_per_hour=st.floats(0.01, 100.0))
def test_a_reservation_discounts_to_its_upfront_part(rate, years, share, usd_per_hour):
    """Yearly charges for it are worth what is paid at the start; what is billed is the rest of the rate."""
    upfront = share * usd_per_hour * years * 8760
    charge = rules(cost_of_capital=rate).reservation(usd_per_hour, years, upfront)
    worth = math.fsum(charge.amortised_usd_per_hour * 8760 / (1 + rate) ** year for year in range(1, years + 1))
    assert worth == pytest.approx(upfront, rel=1e-9, abs=1e-9)
    billed = charge.usd_per_hour - charge.amortised_usd_per_hour
    assert billed == pytest.approx((1 - share) * usd_per_hour, rel=1e-9, abs=1e-9)


def test_without_a_cost_of_capital_a_reservation_costs_its_rate():
    """However much of it is paid at the start."""
    assert rules().reservation(1.7, 3, 1.7 * 3 * 8760 / 4).usd_per_hour == pytest.approx(1.7)
