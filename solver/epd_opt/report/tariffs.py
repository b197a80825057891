"""Ways to pay on the page: what a unit costs at each tariff, and what the fleet costs per unit of service."""

from __future__ import annotations

from collections.abc import Sequence

from epd_opt.document import PlanDocument, Tariff
from epd_opt.report.markup import Child, Markup, element, joined, number, paragraph, table
from epd_opt.tariffs import BASES, tariff_document
from epd_opt.wording import money, significant


def tariffs(document: PlanDocument) -> Markup:
    """Unit costs of the plan, tariffs on offer, and the plan's units at each of them.

    Plans by the hour hold no tariffs: theirs are those of `epd-opt tariffs PLAN --json`.
    """
    parts: list[Child] = []
    if document.unit_costs:
        parts.append(_per_unit(document))
    of, every = ("plan", document.tariffs) if document.tariffs else ("tariffs", tariff_document(document).tariffs)
    if every:
        parts += [
            element("h3", "One unit at each tariff"),
            paragraph("Effective: with the charge for what is paid at the start. At full work, and running nothing."),
            table("Tariffs", _COLUMNS, [_tariff(i, one, of) for i, one in enumerate(every)]),
        ]
    if any(one.fleet_units for one in document.tariffs):
        rows = [_fleet(i, one) for i, one in enumerate(document.tariffs) if one.fleet_units]
        parts += [element("h3", "The plan’s units at each tariff"), table("The plan’s units", _FLEET, rows)]
    return joined(*parts)


_COLUMNS = [
    "Device",
    "Paid",
    ">Price",
    "Dated",
    ">$/h at full work",
    ">$/h idle",
    ">$/h billed",
    ">$/month",
    ">At the start",
]
_FLEET = ["Units at", ">Units", ">$/h", ">$/request", ">$/image", ">$/million input tokens", ">$/million output tokens"]


def _per_unit(document: PlanDocument) -> Markup:
    rows = []
    for i, cost in enumerate(document.unit_costs):
        count: Child = "not stated"
        if cost.per_hour is not None:
            count = number(significant(cost.per_hour), cost.per_hour, "unit_costs", i, "per_hour")
        rows.append(
            [
                cost.unit.replace("_", " "),
                number(money(cost.usd), cost.usd, "unit_costs", i, "usd"),
                count,
                cost.denominator,
            ]
        )
    return table("Cost per unit of service", ["Per", ">Costs", ">In an hour", "What is counted"], rows)


def _tariff(index: int, one: Tariff, of: str) -> Sequence[Child]:
    def usd(key: str, text: str) -> Child:
        return number(text, getattr(one, key), "tariffs", index, key, of=of)

    return [
        element("span", one.device, class_="name"),
        BASES[one.basis],
        [usd("price", money(one.price)), "" if one.basis == "purchase" else "/h"],
        one.price_date or "–",
        usd("usd_per_hour", f"{one.usd_per_hour:,.4f}"),
        usd("idle_usd_per_hour", f"{one.idle_usd_per_hour:,.4f}"),
        usd("billed_usd_per_hour", f"{one.billed_usd_per_hour:,.4f}"),
        usd("usd_per_month", money(one.usd_per_month)),
        usd("upfront_usd", money(one.upfront_usd)) if one.upfront_usd else "–",
    ]


def _fleet(index: int, one: Tariff) -> Sequence[Child]:
    def usd(key: str) -> Child:
        value = getattr(one, key)
        return "–" if value is None else number(money(value).removeprefix("$"), value, "tariffs", index, key)

    return [
        [element("span", one.device, class_="name"), f", {BASES[one.basis]}"],
        number(f"{one.fleet_units:,}", one.fleet_units, "tariffs", index, "fleet_units"),
        usd("fleet_usd_per_hour"),
        usd("usd_per_request"),
        usd("usd_per_image"),
        usd("usd_per_million_input_tokens"),
        usd("usd_per_million_output_tokens"),
    ]
