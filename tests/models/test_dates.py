"""Dates are read as exactly as they were stated."""

import datetime

import pytest

from epd_models import catalog
from epd_models.dates import latest_day


@pytest.mark.parametrize(
    ("stated", "day"),
    [("2024-H2, 2025-H2, 2025-Q1", (2025, 12, 31)), ("2024-2026", (2026, 12, 31)), ("2026-13", None), ("12026", None)],
)
def test_the_latest_day_that_a_date_may_mean(stated, day):
    """Of several dates the last one; what is no date is none."""
    assert latest_day(stated) == (None if day is None else datetime.date(*day))


def test_no_price_of_the_catalogue_is_newer_than_its_day():
    """Otherwise the day would have been forgotten when prices were brought in; a year or a half of one may be running."""
    day = datetime.date.fromisoformat(catalog.as_of())
    for device in catalog.devices().values():
        for stated in (device.price.rent_date, device.price.purchase_date):
            found = latest_day(stated) if stated else None
            assert found is None or found <= day or found == datetime.date(day.year, 12, 31), (device.sku, stated)
