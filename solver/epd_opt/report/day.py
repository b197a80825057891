"""A day on the page: what is committed to, what is hired when, what runs, and what each class gets over the hours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from epd_opt.document import ClassResult, HoursResult, PlanDocument, ScenarioResult
from epd_opt.hours_view import WAYS
from epd_opt.report.day_chart import Bar, day_chart
from epd_opt.report.markup import Child, Markup, badge, element, joined, letter, listed, number, paragraph, table
from epd_opt.scenario_plan import physical_of
from epd_opt.tariffs import BASES
from epd_opt.wording import counted, labels, milliseconds, money, share, significant


def day(document: PlanDocument, hours: HoursResult) -> Markup:
    """The picture, what is committed to, the hours, and what one way to pay alone would cost."""
    return joined(
        paragraph(
            "Committed units are paid for at all hours, hired ones for the hours in which they run. Hours that are planned "
            "for together stand in one row; ways, settings and classes of some of them are on a page of their own: ",
            element("code", "epd-opt report PLAN --scenario HOURS"),
            ".",
        ),
        _picture(hours),
        element("h3", "Commitment"),
        _committed(hours),
        element("h3", "Hour by hour"),
        _by_hours(document, hours),
        *_alone(hours),
    )


def _picture(hours: HoursResult) -> Markup:
    committed = sum(one.units for one in hours.committed)
    bars = [
        Bar(running=committed - sum(one.idle.values()), idle=sum(one.idle.values()), hired=sum(one.hired.values()))
        for one in hours.hours
    ]
    legend = (("run", "committed, in use"), ("idle", "committed, idle"), ("hired", "hired by the hour"))
    said = [[element("span", class_=f"swatch units-{kind}", aria_hidden="true"), words] for kind, words in legend]
    line = f"; the dashed line is the commitment, {counted(committed, 'unit')}"
    return element(
        "figure",
        day_chart(bars, committed),
        element("figcaption", listed(said, class_="legend"), f"Units in each hour{line}."),
    )


def _committed(hours: HoursResult) -> Markup:
    if not hours.committed:
        return paragraph("Nothing is committed to: all units are hired by the hour.")
    rows = []
    for i, one in enumerate(hours.committed):
        place = ("hours", "committed", i)
        rows.append(
            [
                element("span", one.device, class_="name"),
                BASES.get(one.basis, one.basis),
                number(f"{one.units:,}", one.units, *place, "units"),
                number(money(one.idle_unit_usd_per_hour), one.idle_unit_usd_per_hour, *place, "idle_unit_usd_per_hour"),
                number(
                    significant(one.idle_unit_hours_per_day), one.idle_unit_hours_per_day, *place, "idle_unit_hours_per_day"
                ),
                number(money(one.idle_usd_per_day), one.idle_usd_per_day, *place, "idle_usd_per_day"),
            ]
        )
    columns = [
        "Device",
        "Paid",
        ">Units at all hours",
        ">An hour of an idle unit",
        ">Idle unit-hours a day",
        ">Their cost a day",
    ]
    return table("Commitment", columns, rows)


def _by_hours(document: PlanDocument, hours: HoursResult) -> Markup:
    letters = labels(document.pools)
    stands = {physical_of(pool): letters[pool.name] for pool in document.pools}
    rows = []
    for i, result in enumerate(document.scenarios or ()):
        first = next(one for one in hours.hours if one.scenario == result.name)
        place = ("hours", "hours", first.hour)
        hired = [_units(units, name, (*place, "hired", name)) for name, units in first.hired.items()]
        idle = [_units(units, name, (*place, "idle", name)) for name, units in first.idle.items() if units]
        rows.append(
            [
                result.name,
                number(share(result.weight), result.weight, "scenarios", i, "weight"),
                number(f"{first.usd_per_hour:,.2f}", first.usd_per_hour, *place, "usd_per_hour"),
                listed(_running(i, result, stands), class_="plain") if result.pools else "–",
                listed(hired, class_="plain") if hired else "–",
                listed(idle, class_="plain") if idle else "–",
            ]
        )
    columns = ["Hours", ">Of the day", ">$/h", "Replicas that run", "Hired", "Committed and idle"]
    return table("The hours of the day", columns, rows)


def _units(units: float, name: str, place: tuple[str | int, ...]) -> Child:
    return [number(f"{units:g}", units, *place), " ", element("span", name, class_="name")]


def _running(index: int, result: ScenarioResult, stands: Mapping[tuple[object, ...], str]) -> Iterator[Child]:
    for j, pool in enumerate(result.pools):
        replicas = number(f"{pool.replicas}", pool.replicas, "scenarios", index, "pools", j, "replicas")
        spare: Child = None
        if pool.spare_replicas:
            told = number(f"{pool.spare_replicas}", pool.spare_replicas, "scenarios", index, "pools", j, "spare_replicas")
            spare = [" + ", told, " spare"]
        yield [letter(stands[physical_of(pool)]), " ", replicas, spare]


def _alone(hours: HoursResult) -> Iterator[Markup]:
    said: list[Child] = []
    for i, single in enumerate(hours.single_tariffs):
        cost: Child = single.text
        if single.usd_per_hour is not None:
            usd = number(money(single.usd_per_hour), single.usd_per_hour, "hours", "single_tariffs", i, "usd_per_hour")
            cost = [usd, " per hour over the day"]
        said.append([f"{WAYS[single.basis]}: ", cost])
    if said:
        yield element("h3", "With one way to pay alone")
        yield listed(said)


def day_pools(document: PlanDocument) -> Markup:
    """The pools that stand, with the hours that ask for the most of each."""
    rows = []
    for i, pool in enumerate(document.pools):
        rows.append(
            [
                [letter(labels(document.pools)[pool.name]), " ", element("span", pool.name, class_="name")],
                pool.device,
                number(f"{pool.replicas}", pool.replicas, "pools", i, "replicas"),
                number(f"{pool.devices:g}", pool.devices, "pools", i, "devices"),
                number(f"{pool.usd_per_hour:,.2f}", pool.usd_per_hour, "pools", i, "usd_per_hour"),
                "–" if document.robust is None else document.robust.sized_by.get(pool.name, "–"),
            ]
        )
    columns = ["Pool", "Device", ">Replicas at most", ">Devices at most", ">$/h on average", "Most asked for in"]
    return table("Pools", columns, rows)


def day_classes(document: PlanDocument) -> Markup:
    """What each class gets over the hours: the range of its rate, and its slowest hours."""
    names = list(dict.fromkeys(name for result in document.scenarios or () for name in result.classes))
    rows = [list(_class_row(document.scenarios or (), name)) for name in names]
    columns = [
        "Class",
        ">Least requests/s",
        ">Most requests/s",
        "Slowest TTFT",
        "Slowest ITL",
        ">Dearest $/request",
        "Targets",
    ]
    return table("Classes over the day", columns, rows)


def _class_row(results: Sequence[ScenarioResult], name: str) -> Iterator[Child]:
    told = [(i, result.name, result.classes[name]) for i, result in enumerate(results) if name in result.classes]
    yield element("span", name, class_="name")
    for edge in (min, max):
        i, _, one = edge(told, key=lambda item: item[2].rate_per_s)
        yield number(significant(one.rate_per_s), one.rate_per_s, "scenarios", i, "classes", name, "rate_per_s")
    for key in ("ttft_ms", "itl_ms"):
        yield _slowest(told, name, key)
    yield _dearest(told, name)
    met = all(one.slo_met for _, _, one in told)
    yield badge("met", "good") if met else badge("missed", "bad")


def _slowest(told: Sequence[tuple[int, str, ClassResult]], name: str, key: str) -> Child:
    found = [(value, i, hours) for i, hours, one in told if (value := getattr(one, key)) is not None]
    if not found:
        return "measured only"
    value, i, hours = max(found, key=lambda item: item[0])
    return [number(milliseconds(value), value, "scenarios", i, "classes", name, key), f" ms, {hours}"]


def _dearest(told: Sequence[tuple[int, str, ClassResult]], name: str) -> Child:
    found = [(usd, i) for i, _, one in told if (usd := one.usd_per_request) is not None]
    if not found:
        return "–"
    usd, i = max(found)
    return number(money(usd).removeprefix("$"), usd, "scenarios", i, "classes", name, "usd_per_request")
