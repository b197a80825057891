"""The tables of docs/encoder-separation.md, from the kept ones."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from encoding.moves import BASE, LEVERS
from encoding.prose import Tables, only, section
from encoding.table import number

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (DOCS / "encoder-separation.md", DOCS / "when-to-separate.md")


def filled(text: str, tables: Tables) -> str:
    """The page with every block of ours between `<!-- NAME -->` and `<!-- end -->` written anew."""

    def block(found: re.Match[str]) -> str:
        if found[1] not in BLOCKS:
            return found[0]
        return f"<!-- {found[1]} -->\n{BLOCKS[found[1]](tables)}\n<!-- end -->"

    return re.sub(r"<!-- (\w[\w-]*) -->\n.*?<!-- end -->", block, text, flags=re.S)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def cell(text: str, digits: int = 0, unit: str = "") -> str:
    """A number to so many decimals, or a dash."""
    value = number(text)
    if math.isnan(value):
        return "-"
    return "any" if math.isinf(value) else f"{value:,.{digits}f}{unit}"


def three(text: str) -> str:
    """A number to three digits, or a dash."""
    value = number(text)
    return "-" if math.isnan(value) else f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"


def signed(text: str) -> str:
    """Per cent with its sign."""
    return "-" if not text else f"{number(text):+.0f} %"


def prices(tables: Tables) -> str:
    """What devices cost."""
    return markdown(
        ("", "device", "price", "USD/h", "of a GB200", "dated", "confidence", "source"),
        [
            (
                r["basis"],
                r["sku"],
                f"{number(r['given_usd']):,.0f} USD" if r["unit"] == "USD" else f"{r['given_usd']} USD/h",
                cell(r["usd_per_hour"], 2),
                cell(str(100 * number(r["share_of_gpu"])), 0, " %"),
                r["dated"],
                r["confidence"],
                r["source"],
            )
            for r in tables["prices"]
        ],
    )


def published(tables: Tables) -> str:
    """The story on GB200."""

    def error(r: Mapping[str, str]) -> str:
        return f"{number(r['error']):+.1f} points" if r["unit"] == "%" else f"{100 * number(r['error']):+.0f} %"

    return markdown(
        ("five or ten images, GB200", "published", "predicted", "error", "fitted"),
        [
            (r["case"], f"{r['published']} {r['unit']}", three(r["predicted"]), error(r), r["fitted"])
            for r in tables["published"]
        ],
    )


def ampere(tables: Tables) -> str:
    """The story on A100."""
    return markdown(
        ("images", "text tokens", "4 integrated", "predicted", "1 encoder + 3", "predicted", "gain", "predicted"),
        [
            (
                r["images"],
                r["text"],
                r["published_integrated"],
                cell(r["predicted_integrated"], 1),
                r["published_separate"],
                cell(r["predicted_separate"], 1),
                f"x {cell(r['published_gain'], 2)}",
                f"x {cell(r['predicted_gain'], 2)}",
            )
            for r in tables["published-ampere"]
        ],
    )


def divided(tables: Tables) -> str:
    """The published gain over the fleet's price."""
    return markdown(
        ("", "two cards make the fleet dearer by", "published: a request costs", "predicted", "predicted, against shared"),
        [
            (
                f"{r['basis']}, {r['card']}",
                signed(r["dearer_fleet_percent"]),
                signed(r["published_cost_per_request_percent"]),
                signed(r["predicted_cost_per_request_percent"]),
                signed(r["predicted_against_shared_percent"]),
            )
            for r in tables["divided"]
        ],
    )


def cards(tables: Tables) -> str:
    """How many cards are right."""
    return markdown(
        ("beside 4 GB200", "goodput, requests/s", "owned, USD per 1000", "rented, USD per 1000"),
        [
            (
                r["kind"] if r["cards"] == "0" else f"{r['cards']} card{'s' if r['cards'] != '1' else ''}",
                cell(r["requests_per_s"], 1),
                cell(r["owned_usd_per_1000"], 3),
                cell(r["rented_usd_per_1000"], 3),
            )
            for r in tables["cards"]
        ],
    )


def cost(tables: Tables) -> str:
    """Every way at the same targets."""
    kept = [r for r in tables["cost"] if r["images"] == "10"]
    ways = dict.fromkeys((r["way"], r["card"]) for r in kept if r["way"] != "cheapest")

    def usd(way: str, card: str, basis: str, rate: str) -> str:
        found = [r for r in kept if (r["way"], r["card"], r["basis"], r["rate"]) == (way, card, basis, rate)]
        return f"{cell(found[0]['usd_per_1000'], 3)} ({signed(found[0]['against_shared_percent'])})" if found else "-"

    columns = [(basis, rate) for basis in ("owned", "rented") for rate in ("10", "400")]
    return markdown(
        ("ten images, USD per 1000 requests", *(f"{basis}, {rate} requests/s" for basis, rate in columns)),
        [(" ".join(key).strip(), *(usd(*key, *column) for column in columns)) for key in ways],
    )


def load(tables: Tables) -> str:
    """Few requests and many."""
    head = (
        "requests/s",
        "shared",
        "separate",
        "difference",
        "GB200 + cards",
        "cards' devices at work",
        "rented",
        "cheapest fleet, owned",
    )
    rows = [
        (
            r["rate"],
            cell(r["shared_usd_per_1000"], 3),
            cell(r["separate_usd_per_1000"], 3),
            signed(r["separate_against_shared_percent"]),
            f"{r['separate_gpus']} + {r['separate_cards']}",
            cell(str(100 * number(r["encoder_device_used"])), 0, " %"),
            signed(only(tables["load"], basis="rented", rate=r["rate"])["separate_against_shared_percent"]),
            r["cheapest_fleet"],
        )
        for r in tables["load"]
        if r["basis"] == "owned"
    ]
    return markdown(head, rows)


def break_even(tables: Tables) -> str:
    """What a card may cost, as a share of a GPU's price."""
    kept = tables["break-even"]
    names = list(dict.fromkeys(r["card"] for r in kept))
    keys = dict.fromkeys((r["lever"], r["value"]) for r in kept)
    return markdown(
        ("", *names, *(f"{name} against integrated" for name in names)),
        [
            (
                f"{lever}: {value}",
                *(cell(only(kept, card=n, lever=lever, value=value)["against_shared"], 2) for n in names),
                *(cell(only(kept, card=n, lever=lever, value=value)["against_integrated"], 1) for n in names),
            )
            for lever, value in keys
        ],
    )


def network(tables: Tables) -> str:
    """Slow links and fast ones."""
    return markdown(
        (
            "images x tokens",
            "Gb/s per device",
            "separate, USD per 1000",
            "against shared",
            "TTFT p95 ms",
            "card's link in use",
        ),
        [
            (
                f"{r['images']} x {r['tokens']}",
                r["gbit"],
                cell(r["usd_per_1000"], 3),
                signed(r["against_shared_percent"]),
                cell(r["ttft_ms"]),
                cell(str(100 * number(r["sending_link_used"])), 0, " %"),
            )
            for r in tables["network"]
        ],
    )


def levers(tables: Tables) -> str:
    """Which way each lever pushes; the base case once."""
    head = (
        "",
        "encoding's share",
        "shared saves",
        "GPUs of its own save",
        "cards of its own save",
        "a card may cost, of a GB200",
    )
    names = ("encoding_share_percent", "own_process_saves_percent", "own_gpu_saves_percent", "own_card_saves_percent")

    def line(r: Mapping[str, str], label: str) -> tuple[str, ...]:
        return (label, *(cell(r[name], 0, " %") for name in names), cell(str(100 * number(r["break_even_share"])), 0, " %"))

    rows = tables["levers"]
    moved = [r for r in rows if replace(BASE, **LEVERS[r["lever"]][r["value"]]) != BASE]
    base = only(rows, lever="images", value=str(BASE.images))
    return markdown(head, [line(base, "**base**"), *(line(r, f"{r['lever']}: {r['value']}") for r in moved)])


def simulated(tables: Tables) -> str:
    """The plans request by request."""
    return markdown(
        ("plan", "fleet", "both targets kept by", "TTFT p95 ms, planned and simulated", "ITL p95 ms, planned and simulated"),
        [
            (
                r["plan"],
                r["fleet"],
                f"{cell(r['both_low_percent'], 1)} to {cell(r['both_high_percent'], 1)} %",
                f"{cell(r['planned_ttft_p95_ms'])}, {cell(r['simulated_ttft_p95_ms'])}",
                f"{cell(r['planned_itl_p95_ms'], 1)}, {cell(r['simulated_itl_p95_ms'], 1)}",
            )
            for r in tables["simulated"]
        ],
    )


BLOCKS: Mapping[str, Callable[[Tables], str]] = {
    "prices": prices,
    "published": published,
    "ampere": ampere,
    "divided": divided,
    "cards": cards,
    "cost": cost,
    "load": load,
    "break-even": break_even,
    "network": network,
    "levers": levers,
    "simulated": simulated,
    "answer": partial(section, "answer"),
    "claims": partial(section, "claims"),
    "when": partial(section, "when"),
}
