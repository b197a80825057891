"""The tables of docs/gpu-prefill-npu-decode.md, from the stored rows."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from epd_models import catalog
from npu import says
from npu.question import guessed_range, list_price
from npu.stored import Row, find, name
from npu.tables import ALBUM, BOUGHT, RENTED, RIVALS, SMALL

DOCS = Path(__file__).parents[2] / "docs"
PAGE, GUIDE = DOCS / "gpu-prefill-npu-decode.md", DOCS / "when-to-separate.md"
MODELS: dict[str, dict[str, Any]] = {
    "Llama-3.1-70B": {"model": None},
    "Llama-3.1-8B": {"model": SMALL["model"], "prompt": None},
    "Qwen3-VL-32B, 4 images": {"model": ALBUM["model"]},
}
Tables = dict[str, list[dict[str, Any]]]


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others numbers."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
    return re.sub(r"(?<=\d)%", " %", text)


def _span(values: Iterable[float], digits: int) -> str:
    """``low to high``, or one number where they are the same."""
    low, high = min(found := list(values)), max(found)
    first, last = f"{low:,.{digits}f}", f"{high:,.{digits}f}"
    return first if first == last else f"{first} to {last}"


def _thousands(usd: float) -> str:
    return f"{usd / 1000.0:.1f}" if usd < 9950.0 else f"{usd / 1000.0:.0f}"


def _price(sku: str) -> str:
    """Public price, or guessed range, or rent, with its confidence."""
    card = catalog.device_card(sku)["price"]
    listed, guessed, rented = list_price(sku, False), guessed_range(sku), list_price(sku, True)
    if listed is not None:
        return f"{listed:,.0f} ({card['purchase'].get('confidence', 'estimate')})"
    if guessed is not None:
        return f"none; {guessed[0]:,.0f} to {guessed[1]:,.0f} guessed"
    return f"{rented:.2f}/h ({card['cloud']['confidence']})"


def devices(tables: Tables) -> str:
    """What one device reads and writes."""
    found = {(row["sku"], row["model"], row["as_gpu"]): row for row in tables["devices"]}
    rows = []
    for sku in dict.fromkeys(row["sku"] for row in tables["devices"]):
        cells = []
        for model in ("Llama-3.1-70B", "Llama-3.1-8B"):
            for part in ("read", "written"):
                text = f"{found[sku, model, False].get(part, 0.0):,.0f}"
                more = found.get((sku, model, True), {}).get(part)
                cells.append(text if more is None else f"{text} ({more:,.0f})")
        card = catalog.device(sku)
        confidence = card.coefficients_for("vllm").provenance.confidence.name.lower().replace("_", "-")
        rows.append([name(sku), _price(sku), f"{card.tdp_w:,.0f}", confidence, *cells])
    header = ["device", "price, USD", "W", "coefficients", "70B reads", "70B writes", "8B reads", "8B writes"]
    return table(header, rows)


def _pairs(rows: Sequence[Row], way: str, gpu: str, npu: str, model: str | None) -> list[Row]:
    return [
        row
        for row in rows
        if (row["asked"]["way"], row["asked"]["gpu"], row["asked"].get("npu")) == (way, gpu, npu)
        and row["asked"].get("model") == model
    ]


def fleets(tables: Tables) -> str:
    """Dollars per million written tokens and tokens per kWh, with and without NPUs."""
    rows, lines = tables["fleets"], []

    def line(label: str, each: list[list[Row]]) -> None:
        cells = []
        for found in each:
            cells.append(_span((1e6 / row["tokens_per_usd"] for row in found), 3) if found else "-")
            cells.append(_span((row["tokens_per_kwh"] / 1e6 for row in found), 1) if found else "-")
        lines.append([label, *cells])

    models = [asked["model"] for asked in MODELS.values()]
    for gpu in ("H100-SXM", *RIVALS, "GB200"):
        line(f"{name(gpu)} together", [[find(rows, way="integrated", gpu=gpu, model=model)] for model in models])
        line(f"{name(gpu)} apart", [[find(rows, way="split", gpu=gpu, model=model)] for model in models])
    line("Gaudi 3 alone", [[find(rows, way="one vendor", gpu="Gaudi3", model=model)] for model in models])
    for gpu in RIVALS:
        for npu in ("Gaudi3", "Ascend-910C", "RBLN-REBEL100-CR13", "RNGD"):
            line(f"{name(gpu)} reads, {name(npu)} writes", [_pairs(rows, "pair", gpu, npu, model) for model in models])
        for npu in ("Gaudi3", "RBLN-REBEL100-CR13"):
            line(
                f"{name(npu)} reads, {name(gpu)} writes",
                [_pairs(tables["reverse"], "reverse", gpu, npu, model) for model in models],
            )
    header = ["fleet"]
    for label in ("70B", "8B", "32B, 4 images"):
        header += [f"{label}: $/M tokens", "M tokens/kWh"]
    return table(header, lines)


def _break_even(row: Row) -> float:
    return 0.0 if row.get("never") else float(row["break_even"])


def _thousands_span(rows: Sequence[Row]) -> str:
    return " to ".join(_thousands(_break_even(row)) for row in rows)


def break_evens(tables: Tables) -> str:
    """Break-even purchase prices, as estimated and as efficient as a GPU."""
    rows = tables["break_evens"]
    lines = []
    for npu in BOUGHT:
        cells = []
        for asked in MODELS.values():
            for gpu in RIVALS:
                ends = [find(rows, npu=npu, gpu=gpu, as_gpu=as_gpu, model=asked["model"]) for as_gpu in (None, True)]
                cells.append(_thousands_span(ends))
        lines.append([name(npu), _price(npu).replace("none; ", ""), *cells])
    header = ["NPU", "its price, USD"]
    header += [f"{label} vs {name(gpu)}" for label in ("70B", "8B", "images") for gpu in RIVALS]
    return table(header, lines)


def shares(tables: Tables) -> str:
    """The share of bandwidth at which an NPU breaks even at its price, interpolated between the computed shares."""
    lines = []
    for npu in BOUGHT:
        listed, guessed = list_price(npu, False), guessed_range(npu)
        for price in (listed,) if listed is not None else guessed or ():
            cells = [_share_at(points(tables, npu, gpu), price) for gpu in RIVALS]
            lines.append([f"{name(npu)} at {price:,.0f} USD", *cells])
    return table(
        ["70B, everything but bandwidth as estimated", *(f"share needed against {name(gpu)}" for gpu in RIVALS)], lines
    )


def points(tables: Tables, npu: str, gpu: str) -> list[tuple[float, float]]:
    """Shares of bandwidth with break-even prices on the 70B model, the card's own share among them."""
    rows = [row for row in tables["bandwidth"] if (row["asked"]["npu"], row["asked"]["gpu"]) == (npu, gpu)]
    found = [(row["asked"]["bandwidth_share"], _break_even(row)) for row in rows]
    share = catalog.device(npu).coefficients_for("vllm").bandwidth_share
    return sorted([*found, (share, _break_even(find(tables["break_evens"], npu=npu, gpu=gpu, as_gpu=None, model=None)))])


def _share_at(found: Sequence[tuple[float, float]], price: float) -> str:
    for (low, cheaper), (high, dearer) in pairwise(found):
        if cheaper < price <= dearer:
            return f"{low + (high - low) * (price - cheaper) / (dearer - cheaper):.2f}"
    return f"none up to {found[-1][0]:.1f}"


def rent(tables: Tables) -> str:
    """Rented NPUs: the catalogue's rent, and the rent at which they break even."""
    rows, lines = tables["rent"], []
    for npu in RENTED:
        for gpu in RIVALS:
            pair = next(r for r in rows if r["asked"]["gpu"] == gpu and r["asked"].get("npu") == npu and "rival" not in r)
            ends = [
                next(
                    r
                    for r in rows
                    if r["asked"]["gpu"] == gpu
                    and r["asked"].get("npu") == npu
                    and "rival" in r
                    and r["asked"].get("as_gpu") is as_gpu
                )
                for as_gpu in (None, True)
            ]
            rival = ends[0]["usd_per_hour"]
            lines.append(
                [
                    f"{name(gpu)} + {name(npu)}",
                    f"{list_price(npu, True):.2f}",
                    f"{pair['usd_per_hour']:.0f}",
                    f"{rival:.0f}",
                    " to ".join(f"{_break_even(row):.2f}" for row in ends),
                ]
            )
    return table(["fleet", "NPU's rent, $/h", "fleet, $/h", "GPU alone, $/h", "NPU breaks even at, $/h"], lines)


def power(tables: Tables) -> str:
    """What electricity does to the comparison."""
    rows, lines = tables["power"], []
    for gpu in RIVALS:
        for npu in ("Gaudi3", "RBLN-REBEL100-CR13", "RNGD"):
            costs = []
            for tariff in (0.06, None, 0.24):
                pair = find(rows, way="pair", gpu=gpu, npu=npu, tariff=tariff)
                rival = find(rows, way="one vendor", gpu=gpu, tariff=tariff)
                costs.append(f"{pair['usd_per_hour'] / rival['usd_per_hour'] - 1.0:+.1%}")
            base = find(rows, way="pair", gpu=gpu, npu=npu, tariff=None)
            draw = base["kw"] / find(rows, way="one vendor", gpu=gpu, tariff=None)["kw"] - 1.0
            at = next(r for r in rows if "rival" in r and r["asked"]["gpu"] == gpu and r["asked"]["npu"] == npu)
            even = "none from 0 to 1" if at.get("never") else f"{at['tariff']:.2f}"
            reading = "list price, estimated" if npu == "Gaudi3" else f"{base['asked']['npu_price']:,.0f} USD, as a GPU"
            lines.append([f"{name(gpu)} + {name(npu)} ({reading})", f"{draw:+.0%}", *costs, even])
    header = ["against the GPU alone", "draw", "cost at 0.06 $/kWh", "at 0.12", "at 0.24", "breaks even at, $/kWh"]
    return table(header, lines)


def loads(tables: Tables) -> str:
    """Costs over the load."""
    rows = tables["loads"]
    rates = (1.0, 2.0, 5.0, 10.0, 20.0, None, 80.0)
    lines = []
    for gpu in RIVALS:
        ways: dict[str, dict[str, Any]] = {
            f"{name(gpu)} together": {"way": "integrated"},
            f"{name(gpu)} apart": {"way": "split"},
            f"{name(gpu)} + Gaudi 3": {"way": "pair", "npu": "Gaudi3"},
        }
        for label, asked in ways.items():
            found = [find(rows, gpu=gpu, rate=rate, **asked) for rate in rates]
            lines.append(
                [label, *(f"{1e6 / row['tokens_per_usd']:.2f}" if "tokens_per_usd" in row else "-" for row in found)]
            )
    return table(["$/M written tokens at requests/s", *(f"{rate or 40.0:.0f}" for rate in rates)], lines)


def network(tables: Tables) -> str:
    """Cost and first token over the network."""
    rows, lines = tables["network"], []
    for prompt in (None, 8000.0):
        for conversion in (1.0, 3.0):
            cells = []
            for gbit in (5.0, 10.0, 25.0, 100.0, 400.0):
                row = find(rows, gbit=gbit, conversion=conversion, prompt=prompt)
                cells.append(f"{row['usd_per_hour']:.2f}, {row['ttft_ms']:,.0f} ms" if "usd_per_hour" in row else "no plan")
            lines.append([f"prompt {prompt or 2000.0:,.0f}, bytes x {conversion:.0f}", *cells])
    return table(["H200 + Gaudi 3: $/h, first token p95", *(f"{g} Gbit/s" for g in (5, 10, 25, 100, 400))], lines)


def capital(tables: Tables) -> str:
    """Requests/s for a million dollars."""
    rows, lines = tables["capital"], []
    for gpu in RIVALS:
        most = find(rows, way="one vendor", gpu=gpu)["requests_per_s"]
        lines.append([f"{name(gpu)} alone", f"{most:.1f}", "1.00"])
        for row in rows:
            asked = row["asked"]
            if asked["way"] == "pair" and asked["gpu"] == gpu:
                price = asked.get("npu_price") or list_price(asked["npu"], False) or 0.0
                reading = "as a GPU" if asked.get("as_gpu") else "estimated"
                label = f"{name(gpu)} + {name(asked['npu'])} at {price:,.0f}, {reading}"
                lines.append([label, f"{row['requests_per_s']:.1f}", f"{row['requests_per_s'] / most:.2f}"])
    return table(["1 M USD of hardware", "requests/s", "against the GPU alone"], lines)


def stories(tables: Tables) -> str:
    """The public pairings: tokens per dollar against H100 apart."""
    rows, lines = tables["stories"], []
    for model in (None, "Llama-3.1-8B"):
        for prompt, answer in ((4000.0, None), (500.0, 4000.0)):
            same = {"model": model, "prompt": prompt, "answer": answer}
            base = find(rows, way="split", gpu="H100-SXM", **same)["tokens_per_usd"]
            cells = []
            for gpu in ("H100-SXM", "B200-SXM"):
                for asked in (
                    {"way": "integrated"},
                    {"way": "split"},
                    {"way": "pair", "npu": "Gaudi3", "as_gpu": None},
                    {"way": "pair", "npu": "Gaudi3", "as_gpu": True},
                    {"way": "pair", "npu": "MI300X"},
                ):
                    row = find(rows, gpu=gpu, **asked, **same)
                    cells.append(f"{row['tokens_per_usd'] / base:.2f}" if "tokens_per_usd" in row else "-")
            prices = [find(tables["story_prices"], as_gpu=as_gpu, **same) for as_gpu in (None, True)]
            cells.append("no price" if all(row.get("never") for row in prices) else _thousands_span(prices))
            lines.append([f"{model or 'Llama-3.1-70B'}, {prompt:,.0f} in, {answer or 500.0:,.0f} out", *cells])
    ways = ("together", "apart", "+ Gaudi 3", "+ Gaudi 3 as a GPU", "+ MI300X")
    header = ["tokens per dollar, H100 apart = 1", *(f"{gpu} {way}" for gpu in ("H100", "B200") for way in ways)]
    header.append("Gaudi 3 at which B200 + Gaudi 3 is 1.7 times B200 apart, 1,000 USD")
    return table(header, lines)


def claims(tables: Tables) -> str:
    """Published throughput beside ours."""
    return table(
        ["device", "published, tokens/s", "predicted (vLLM)", "error"],
        (
            [
                name(r["sku"]),
                f"{r['published']:,.0f}",
                f"{r['predicted']:,.0f}",
                f"{r['predicted'] / r['published'] - 1:+.0%}",
            ]
            for r in tables["claims"]
        ),
    )


def simulated(tables: Tables) -> str:
    """Promised and simulated."""
    lines = []
    for row in tables["simulated"]:
        seen = row["simulated"]
        lines.append(
            [
                row["name"],
                f"{row['ttft_ms']:,.0f} / {seen['ttft_ms']['p95']:,.0f}",
                f"{row['itl_ms']:.1f} / {seen['itl_ms']['p95']:.1f}",
                *(f"{seen['attainment'][part]:.2%}" for part in ("ttft", "itl", "both")),
                "yes" if seen["target_met"] else "no",
            ]
        )
    header = ["plan", "TTFT p95, promised / simulated, ms", "ITL p95, ms", "within TTFT", "within ITL", "both", "met"]
    return table(header, lines)


SECTIONS: dict[str, Callable[[Tables], str]] = {
    "answer": says.answer,
    "devices": devices,
    "claims": claims,
    "fleets": fleets,
    "fleets say": says.fleets,
    "break-evens": break_evens,
    "shares": shares,
    "break-evens say": says.break_evens,
    "split says": says.split,
    "loads": loads,
    "capital": capital,
    "power": power,
    "network": network,
    "rent": rent,
    "others say": says.others,
    "stories": stories,
    "verdicts": says.verdicts,
    "simulated": simulated,
    "prefill and decode": says.guide,
}


def filled(text: str, tables: Tables) -> str:
    """A page with every marked section made anew."""
    for section, made in SECTIONS.items():
        start, end = f"<!-- {section} -->\n", "<!-- end -->"
        before, found, rest = text.partition(start)
        if found:
            text = before + start + wrapped(made(tables)) + end + rest.partition(end)[2]
    return text


_JOINED = "~%"
"""Stands for a number's per cent while lines are broken."""


def wrapped(text: str) -> str:
    """Paragraphs and list items broken to the width of the pages; tables as they are."""
    blocks = [
        block for paragraph in text.strip("\n").split("\n\n") for block in re.split(r"\n(?=- |\|)", paragraph + "\n\n")
    ]
    lines = []
    for block in blocks:
        ends = "\n" * (len(block) - len(block.rstrip("\n")))
        body = block.rstrip("\n")
        if not body.startswith("|"):
            indent = "  " if body.startswith("- ") else ""
            words = " ".join(body.split()).replace(" %", _JOINED)
            body = textwrap.fill(words, 125, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
            body = body.replace(_JOINED, " %")
        lines.append(body + (ends or "\n"))
    return "".join(lines).rstrip("\n") + "\n"


def write(tables: Tables) -> None:
    """Put the sections into the pages."""
    for page in (PAGE, GUIDE):
        page.write_text(filled(page.read_text(encoding="utf-8"), tables), encoding="utf-8")
