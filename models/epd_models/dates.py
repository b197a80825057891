"""Dates of prices, as exactly as somebody stated them."""

from __future__ import annotations

import calendar
import datetime
import re

_STATED = re.compile(r"(?<!\d)(\d{4})(?:-(?:(H[12])|(\d{2})(?:-(\d{2}))?))?(?![\d])")


def latest_day(stated: str) -> datetime.date | None:
    """The last day that a date may mean; None where none is told.

    Of several dates, the last day of the latest one.

    >>> latest_day("2026-03-17"), latest_day("~2026-02 (inferred)"), latest_day("recalled")
    (datetime.date(2026, 3, 17), datetime.date(2026, 2, 28), None)
    >>> latest_day("2025"), latest_day("~2026-H1 (inferred)"), latest_day("2026-04-31")
    (datetime.date(2025, 12, 31), datetime.date(2026, 6, 30), None)
    """
    days = []
    for year, half, month, day in _STATED.findall(stated):
        last = int(month or {"H1": 6}.get(half, 12))
        try:
            days.append(datetime.date(int(year), last, int(day or calendar.monthrange(int(year), last)[1])))
        except (ValueError, calendar.IllegalMonthError):
            continue
    return max(days, default=None)


def over_a_year_old(stated: str, as_of: datetime.date) -> bool:
    """Whether a date lies more than a year back, whatever day it means; an unknown date does not.

    >>> over_a_year_old("2025-11-30", datetime.date(2026, 12, 1)), over_a_year_old("2025-12", datetime.date(2026, 12, 1))
    (True, False)
    """
    day = latest_day(stated)
    if day is None:
        return False
    last = calendar.monthrange(as_of.year - 1, as_of.month)[1]
    return day < as_of.replace(year=as_of.year - 1, day=min(as_of.day, last))
