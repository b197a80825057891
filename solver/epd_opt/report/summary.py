"""What a decision maker reads first: what it costs, what it takes, what is proved."""

from __future__ import annotations

from collections.abc import Iterator

from epd_opt.document import Cost, Goodput, PlanDocument, RateMultiple
from epd_opt.report.markup import Child, Markup, badge, element, joined, number, paragraph
from epd_opt.wording import counted, money, significant

_MILLION = 1e6
_EXACT = 5e-5
"""A smaller gap is none."""


def summary(document: PlanDocument, cost: Cost) -> Markup:
    """The sentence, the verdicts and the figures."""
    return joined(
        paragraph(*_sentence(document, cost), class_="lead"),
        element("p", _verdicts(document, cost), class_="verdicts"),
        element("dl", _tiles(document, cost), class_="tiles"),
    )


def _sentence(document: PlanDocument, cost: Cost) -> Iterator[Child]:
    yield from _demand(document) if document.hours is None else _day(document)
    yield element("strong", number(money(cost.usd_per_hour), cost.usd_per_hour, "cost", "usd_per_hour"), " per hour")
    if document.hours is not None:
        yield " on average over the day"
    if cost.usd_per_request is not None:
        each = number(money(cost.usd_per_request), cost.usd_per_request, "cost", "usd_per_request")
        yield [", ", element("strong", each, " per request")]
    yield ". "
    if document.goodput is not None:
        yield _most(document, document.goodput)
    elif document.rate_multiple is not None:
        yield _least(document, document.rate_multiple)
    elif document.status == "optimal" and cost.gap < _EXACT:
        yield "It is proved that no other fleet of this model costs less."
    elif document.status == "optimal":
        yield ["It is proved that no fleet of this model costs less than ", _bound(cost), " per hour."]
    else:
        yield ["This is not proved to be the cheapest: another fleet may cost as little as ", _bound(cost), " per hour."]


def _demand(document: PlanDocument) -> Iterator[Child]:
    """What is asked for, and what serves it."""
    rate = sum(result.rate_per_s for result in document.classes.values())
    yield f"{counted(len(document.classes), 'class', 'classes')} of requests, {significant(rate)} requests/s, "
    if document.instance_document.get("redundancy", {}).get("headroom"):
        yield "headroom included, "
    if document.goodput is not None:
        yield ["at ", _multiple(document.goodput.multiple, "goodput"), " times the stated demand, "]
    if document.rate_multiple is not None:
        yield ["at ", _multiple(document.rate_multiple.multiple, "rate_multiple"), " times the stated demand, "]
    yield [f"are served by {counted(units(document), 'device')} in {counted(len(document.pools), 'pool')} for "]


def _day(document: PlanDocument) -> Iterator[Child]:
    """The same of demand by the hour of the day."""
    results = document.scenarios or []
    rates = [sum(one.rate_per_s for one in result.classes.values()) for result in results] or [0.0]
    names = {name for result in results for name in result.classes}
    asked = f"{significant(min(rates))} to {significant(max(rates))} requests/s"
    yield f"{counted(len(names), 'class', 'classes')} of requests by the hour of the day, {asked}, "
    if document.instance_document.get("redundancy", {}).get("headroom"):
        yield "headroom included, "
    yield f"are served by {counted(units(document), 'device')} at most in {counted(len(document.pools), 'pool')} for "


def _multiple(value: float, objective: str) -> Markup:
    return number(significant(value), value, objective, "multiple")


def _most(document: PlanDocument, found: Goodput) -> list[Child]:
    """What is proved of a plan that serves as much as it can."""
    most = number(significant(found.bound_multiple), found.bound_multiple, "goodput", "bound_multiple")
    if document.status == "optimal":
        return ["It is proved that no fleet within the limits serves more than ", most, " times the demand."]
    return ["This is not proved to be the most: another fleet may serve as much as ", most, " times the demand."]


def _least(document: PlanDocument, found: RateMultiple) -> list[Child]:
    """What is proved of a plan at the multiple where a request costs least."""
    bound = found.bound_usd_per_request
    least = number(money(bound), bound, "rate_multiple", "bound_usd_per_request")
    within = f" at {found.low:g} to {found.high:g} times the demand."
    if document.status == "optimal":
        return ["It is proved that no fleet of this model serves a request for less than ", least, within]
    return ["This is not proved to be the least: a request may cost as little as ", least, within]


def _bound(cost: Cost) -> Markup:
    return number(money(cost.bound_usd_per_hour), cost.bound_usd_per_hour, "cost", "bound_usd_per_hour")


def _verdicts(document: PlanDocument, cost: Cost) -> Iterator[Child]:
    yield proof(document, cost)
    missed = [name for name, result in document.classes.items() if not result.slo_met]
    missed += [result.name for result in document.scenarios or () if not result.targets_met]
    if missed:
        yield badge(f"Targets predicted to be missed: {', '.join(missed)}", "bad")
    else:
        yield badge("All targets met, as predicted", "good")
    if document.warnings:
        yield element("a", badge(counted(len(document.warnings), "warning"), "warn"), href="#warnings")


def proof(document: PlanDocument, cost: Cost) -> Markup:
    """Whether the plan is proved, in a badge."""
    gap = cost.gap if document.goodput is None else document.goodput.gap
    if document.status != "optimal":
        return badge(f"Not proved, gap {percent(gap)}", "warn")
    return badge("Proved optimal" if gap < _EXACT else f"Proved within {percent(gap)} of the optimum", "good")


def _tiles(document: PlanDocument, cost: Cost) -> Iterator[Markup]:
    if cost.usd_per_request is None:
        yield _tile("Per request", "–", "nothing is requested")
    else:
        each = number(money(cost.usd_per_request), cost.usd_per_request, "cost", "usd_per_request")
        yield _tile("Per request", each, f"{money(cost.usd_per_request * _MILLION)} per million, at the mean rates")
    hour = number(money(cost.usd_per_hour), cost.usd_per_hour, "cost", "usd_per_hour")
    billed: Child = "the whole fleet"
    if cost.billed_usd_per_hour is not None:
        part = number(money(cost.billed_usd_per_hour), cost.billed_usd_per_hour, "cost", "billed_usd_per_hour")
        billed = element("span", "the whole fleet; ", part, " of it on invoices of the hour")
    yield _tile("Per hour", hour, billed)
    month = number(money(cost.usd_per_month), cost.usd_per_month, "cost", "usd_per_month")
    yield _tile("Per month", month, "730 hours")
    capex = number(money(cost.capex_usd), cost.capex_usd, "cost", "capex_usd")
    yield _tile("To buy", capex, "with hosts; its charge is in the hourly cost" if cost.capex_usd else "nothing is bought")
    upfront = number(money(cost.upfront_usd), cost.upfront_usd, "cost", "upfront_usd")
    yield _tile("Paid upfront", upfront, "at the start of reservations" if cost.upfront_usd else "nothing is reserved so")
    power = number(f"{significant(cost.power_kw)} kW", cost.power_kw, "cost", "power_kw")
    yield _tile("Power", power, "nameplate, hosts included" if cost.power_kw else "no card or entry states any")
    used = ", ".join(f"{use.used} {name}" for name, use in document.devices.items())
    yield _tile("Devices", f"{units(document):g}", used)


def _tile(term: str, value: Child, note: Child) -> Markup:
    return element("div", element("dt", term), element("dd", value, class_="big"), element("dd", note, class_="note"))


def units(document: PlanDocument) -> float:
    """Sold units in all pools, spares included."""
    return sum(pool.devices for pool in document.pools)


def percent(value: float) -> str:
    """A share in per cent, three digits.

    >>> percent(0.0095), percent(0.177), percent(0)
    ('0.95%', '17.7%', '0%')
    """
    return f"{100 * value:.3g}%"
