"""The fleet: what it costs by pool, the pools, what holds them to their size, how to run them, and the devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from epd_opt.document import Cost, DeviceUse, PlanDocument, Pool
from epd_opt.report.figures import cost_bar, meter
from epd_opt.report.markup import Child, Markup, badge, element, facts, joined, letter, listed, number, paragraph, table
from epd_opt.report.stage_graph import degrees, flow_sentences, stage_graph
from epd_opt.wording import counted, fullest, label, labels, milliseconds, requirement, share, significant

_NEGLIGIBLE = 1e-6
"""Share of the cost below which a difference comes from rounding."""

_SLACK = 0.8
"""Below this utilisation a single replica is there because less than one cannot be."""


def cost_breakdown(document: PlanDocument, cost: Cost) -> Markup:
    """The bar and its pieces in words."""
    pieces = [(label(i), pool.name, pool.usd_per_hour) for i, pool in enumerate(document.pools)]
    rest = cost.usd_per_hour - sum(usd for _, _, usd in pieces)
    entries: list[Child] = [
        _piece(i, mark, name, number(f"${usd:,.2f}/h", usd, "pools", i, "usd_per_hour"), usd, cost)
        for i, (mark, name, usd) in enumerate(pieces)
    ]
    if rest > _NEGLIGIBLE * cost.usd_per_hour:
        entries.append(_piece(len(pieces), "", "units in no pool", f"${rest:,.2f}/h", rest, cost))
        pieces.append(("", "units in no pool", rest))
    return element("figure", cost_bar(pieces), listed(entries, class_="costs"))


def _piece(index: int, mark: str, name: str, usd: Child, amount: float, cost: Cost) -> list[Child]:
    part = share(amount / cost.usd_per_hour) if cost.usd_per_hour else "–"
    swatch = element("span", class_=f"swatch tint{index % 4}", aria_hidden="true")
    return [swatch, letter(mark), element("span", name, class_="name"), usd, element("span", part, class_="number")]


def flows(document: PlanDocument) -> Markup:
    """The stage graph, and the same in words."""
    names = [sentence.rpartition(": ") for sentence in flow_sentences(document)]
    said = [
        [element("span", class_=f"swatch colour{i % 7}", aria_hidden="true"), " ", element("strong", name), ": ", ways]
        for i, (name, _, ways) in enumerate(names)
    ]
    return element("figure", stage_graph(document), element("figcaption", listed(said, class_="plain")))


def pools(document: PlanDocument) -> Markup:
    """One row for each pool."""
    rows = []
    for i, pool in enumerate(document.pools):
        spare: Child = None
        if pool.spare_replicas:
            spare = [" + ", number(f"{pool.spare_replicas}", pool.spare_replicas, "pools", i, "spare_replicas"), " spare"]
        served: list[Child] = [
            [name, " ", number(significant(rate), rate, "pools", i, "serves", name)] for name, rate in pool.serves.items()
        ]
        used = fullest(pool)
        rows.append(
            [
                [letter(label(i)), " ", element("span", pool.name, class_="name")],
                f"{pool.device}, {degrees(pool)}",
                [number(f"{pool.replicas}", pool.replicas, "pools", i, "replicas"), spare],
                number(f"{pool.devices:g}", pool.devices, "pools", i, "devices"),
                number(f"{pool.usd_per_hour:,.2f}", pool.usd_per_hour, "pools", i, "usd_per_hour"),
                listed(served, class_="plain"),
                _use(i, *used[0]) if used else "–",
            ]
        )
    columns = ["Pool", "Device, cut", ">Replicas", ">Devices", ">$/h", "Requests/s", "Fullest"]
    return table("Pools", columns, rows)


def _use(index: int, kind: str, value: float) -> Markup:
    return element(
        "div",
        element("span", requirement(kind), " ", number(share(value), value, "pools", index, "utilisation", kind)),
        meter(value, "full" if value > 0.9 else ""),
        class_="use",
    )


def binding(document: PlanDocument) -> Markup:
    """What each pool asks room for, the fullest first; what one replica less would break is marked."""
    articles = []
    for i, pool in enumerate(document.pools):
        items: list[Child] = []
        for kind, value in fullest(pool):
            bound = kind in pool.binding and (pool.replicas > 1 or value >= _SLACK)
            items.append(
                [
                    element("span", requirement(kind), " ", badge("binds", "warn") if bound else None, class_="what"),
                    number(share(value), value, "pools", i, "utilisation", kind),
                    meter(value, "full" if bound else ""),
                ]
            )
        heading = element("h3", letter(label(i)), " ", pool.name)
        least = paragraph("One replica is the least.", class_="small") if pool.replicas == 1 else None
        articles.append(element("article", heading, least, listed(items, class_="needs"), class_="card"))
    text = (
        "Each pool has room for several things; what “binds” would break with one replica less. "
        "Shares are of the serving replicas, spares left out."
    )
    return joined(paragraph(text), element("div", articles, class_="cards"))


def settings(document: PlanDocument) -> Markup | None:
    """What to start the replicas with; measured workers bring their own settings."""
    letters = labels(document.pools)
    rows = [_setting(i, pool, letters[pool.name]) for i, pool in enumerate(document.pools) if pool.provenance != "measured"]
    columns = [
        "Pool",
        "Cut",
        ">Sequences",
        ">Batched tokens",
        ">Memory",
        ">Longest context",
        ">Encoder processes",
        ">Design ITL ms",
        ">Longest wait ms",
    ]
    return table("Settings of the replicas", columns, rows) if rows else None


def _setting(index: int, pool: Pool, mark: str) -> Sequence[Child]:
    point = pool.operating_point

    def shown(name: str, value: float, text: str) -> Child:
        return number(text, value, "pools", index, "operating_point", name) if value else "–"

    cut = [degrees(pool)]
    cut += [f"batch {point.batch}"] if point.batch else []
    cut += [f"fan-out {point.fan_out}"] if point.fan_out > 1 else []
    return [
        letter(mark),
        " ".join(cut),
        shown("max_sequences", point.max_sequences, f"{point.max_sequences:,}"),
        shown("max_batched_tokens", point.max_batched_tokens, f"{point.max_batched_tokens:,}"),
        shown("memory_fraction", point.memory_fraction, share(point.memory_fraction)),
        shown("max_context_tokens", point.max_context_tokens, f"{point.max_context_tokens:,}"),
        shown("encoder_processes", point.encoder_processes, f"{point.encoder_processes}"),
        shown("design_itl_ms", point.design_itl_ms, milliseconds(point.design_itl_ms)),
        shown("wait_ms", point.wait_ms, milliseconds(point.wait_ms)),
    ]


def devices(document: PlanDocument, cost: Cost) -> Markup:
    """What is owned, what is to buy or rent, and what there is."""
    rows = [_device(name, use, cost) for name, use in document.devices.items()]
    columns = ["Device", ">In use", ">Owned", ">To buy or rent", ">Stock", ">$/h", "Of the cost"]
    return joined(table("Devices", columns, rows), *_priced(document))


def _device(name: str, use: DeviceUse, cost: Cost) -> Sequence[Child]:
    part = use.usd_per_hour / cost.usd_per_hour if cost.usd_per_hour else 0.0
    stock: Child = "unlimited"
    if use.stock is not None:
        stock = number(f"{use.stock:,}", use.stock, "devices", name, "stock")
    return [
        element("span", name, class_="name"),
        number(f"{use.used:,}", use.used, "devices", name, "used"),
        number(f"{use.owned:,}", use.owned, "devices", name, "owned"),
        number(f"{use.bought:,}", use.bought, "devices", name, "bought"),
        stock,
        number(f"{use.usd_per_hour:,.2f}", use.usd_per_hour, "devices", name, "usd_per_hour"),
        element("div", share(part), meter(part), class_="use"),
    ]


def _priced(document: PlanDocument) -> Iterator[Markup]:
    """The prices that the instance states for the devices in use."""
    stated: list[tuple[str, Child]] = []
    for offered in document.instance_document.get("devices", []):
        name, price = offered.get("name") or offered["sku"], offered.get("price") or {}
        if name not in document.devices:
            continue
        each = list(_price_words(price))
        each += [f"a {price['per']}"] if price.get("per", "device") != "device" else []
        each += [f"in lots of {price['pack']}"] if price.get("pack", 1) != 1 else []
        stated.append((name, ", ".join(each) or "no price"))
    if stated:
        yield element("h3", "Prices that the plan rests on")
        yield facts(stated)


def _price_words(price: Mapping[str, Any]) -> Iterator[str]:
    """A price as the instance states it."""
    if price.get("usd_per_hour") is not None:
        yield f"{_amount(price['usd_per_hour'])} per hour"
    if price.get("purchase_usd") is not None:
        yield f"{_amount(price['purchase_usd'])} to buy"
    if (reserved := price.get("reserved")) is not None:
        yield f"{_amount(reserved['usd_per_hour'])} per hour, reserved"
        yield f"for {counted(reserved['term_years'], 'year')}"
        if reserved.get("upfront_usd") is not None:
            yield f"{_amount(reserved['upfront_usd'])} of it paid at the start"
        elif reserved.get("upfront_share"):
            yield f"{share(reserved['upfront_share'])} of it paid at the start"
    if (spot := price.get("spot")) is not None:
        yield f"{_amount(spot['usd_per_hour'])} per hour, spot"
        yield f"{share(spot['interruption_allowance'])} more held for interruptions"
    if price.get("catalog") is not None:
        yield f"the catalogue’s {'median rent' if price['catalog'] == 'rent' else 'typical purchase price'}"


def _amount(amount: float | Mapping[str, float]) -> str:
    """US dollars, or an amount with its currency."""
    if isinstance(amount, Mapping):
        return " ".join(f"{value:,.10g} {code}" for code, value in amount.items())
    return f"${amount:,.10g}"
