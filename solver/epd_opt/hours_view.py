"""Plans for demand by the hour, for people: what is hired when, what commitment is, and what one way to pay would cost."""

from __future__ import annotations

from collections.abc import Iterator

from rich.padding import Padding
from rich.text import Text

from epd_opt.document import PlanDocument
from epd_opt.tables import ruled, spaced
from epd_opt.wording import money, printable, share, significant

WAYS = {"rent": "units by the hour", "spot": "spot units", "reserved": "reservations", "purchase": "purchases"}


def hours_tables(document: PlanDocument) -> Iterator[Padding | Text]:
    """Demand by the hour: what is hired and idle when, what commitment is, and what one way to pay would cost."""
    if document.hours is None or document.scenarios is None:
        return
    table = ruled("hours", ">of the day", "hired by the hour", "committed and idle", ">$/h")
    first = {one.scenario: one for one in reversed(document.hours.hours)}
    for result in document.scenarios:
        one = first[result.name]
        table.add_row(
            result.name,
            share(result.weight),
            ", ".join(f"{units} {printable(name)}" for name, units in one.hired.items()) or "-",
            ", ".join(f"{units:g} {printable(name)}" for name, units in one.idle.items() if units) or "-",
            f"{result.usd_per_hour:,.2f}",
        )
    yield spaced(table)
    for committed in document.hours.committed:
        yield Text(
            f"Committed to {committed.units} {'unit' if committed.units == 1 else 'units'} of "
            f"{printable(committed.device)} ({committed.basis}): "
            f"an hour of one that runs nothing costs {money(committed.idle_unit_usd_per_hour)}; "
            f"{significant(committed.idle_unit_hours_per_day)} such hours a day, {money(committed.idle_usd_per_day)}."
        )
    for single in document.hours.single_tariffs:
        cost = single.text if single.usd_per_hour is None else f"{money(single.usd_per_hour)}/h over the day"
        yield Text(f"With {WAYS[single.basis]} alone: {cost}.")
