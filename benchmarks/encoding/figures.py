"""The pictures of docs/encoder-separation.md, from the kept tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

from encoding.table import number

IMAGES = Path(__file__).parents[2] / "docs" / "images"
Rows = Sequence[Mapping[str, str]]
COLOURS = {
    "integrated": "#999999",
    "shared": "#0072B2",
    "dedicated": "#CC79A7",
    "separate": "#D55E00",
    "cheapest": "#222222",
}
NAMES = {
    "integrated": "in the loop (integrated)",
    "shared": "own process, same GPU (shared)",
    "dedicated": "own GPUs of the same type (dedicated)",
    "separate": "own cards of another type (separate)",
    "cheapest": "whatever is cheapest",
}
_CLOSE = 3.0
"""Per cent below which a place on the map is a toss-up: the predictions are not that sharp."""


def draw(tables: Mapping[str, Rows]) -> None:
    """All of them."""
    IMAGES.mkdir(exist_ok=True)
    for name, figure in (
        ("encoder-map", placement_map(tables["map"])),
        ("encoder-published", published(tables["published-by-output"], tables["published-by-images"])),
        ("encoder-load", load([row for row in tables["load"] if row["basis"] == "owned"])),
        ("encoder-decisions", decisions(tables["levers"])),
    ):
        figure.savefig(IMAGES / f"{name}.png", dpi=110, metadata={"Software": None})
        plt.close(figure)


def placement_map(rows: Rows) -> Any:
    """Images per request against output tokens, coloured by the cheapest placement."""
    texts, columns = sorted({int(row["text"]) for row in rows}), ("one_gpu_type", "with_card")
    images, outputs = (sorted({int(row[name]) for row in rows}) for name in ("images", "output"))
    figure, axes = plt.subplots(
        len(texts), len(columns), figsize=(8.4, 3.1 * len(texts) + 0.7), layout="constrained", squeeze=False
    )
    titles = {"one_gpu_type": "GB200 only", "with_card": "GB200 and RTX 6000D"}
    seen: set[str] = set()
    for row in rows:
        for column in columns:
            axis = axes[texts.index(int(row["text"]))][columns.index(column)]
            at = outputs.index(int(row["output"])), images.index(int(row["images"]))
            way = row[column]
            margin = ahead(row, way, column)
            seen.add(way)
            strong = 0.9 if margin >= _CLOSE else 0.35
            axis.add_patch(
                plt.Rectangle((at[0] - 0.5, at[1] - 0.5), 1, 1, color=COLOURS.get(way, "white"), alpha=strong, lw=0)
            )
            axis.text(*at, f"{margin:.0f} %", ha="center", va="center", size=8, color="white" if strong > 0.5 else "black")
    for i, text in enumerate(texts):
        for j, column in enumerate(columns):
            axis = axes[i][j]
            axis.set(xlim=(-0.5, len(outputs) - 0.5), ylim=(-0.5, len(images) - 0.5))
            axis.set_xticks(range(len(outputs)), [f"{n:,}" for n in outputs])
            axis.set_yticks(range(len(images)), [str(n) for n in images])
            axis.set_title(f"{titles[column]}, {text:,} text tokens", size=10)
            axis.tick_params(length=0)
            axis.spines[:].set_visible(False)
            if i == len(texts) - 1:
                axis.set_xlabel("output tokens")
            if j == 0:
                axis.set_ylabel("images per request")
    handles = [plt.Rectangle((0, 0), 1, 1, color=COLOURS[way]) for way in NAMES if way in seen]
    figure.legend(handles, [NAMES[way] for way in NAMES if way in seen], loc="outside lower center", ncols=2, frameon=False)
    figure.suptitle("Cheapest place to encode images, and by how much per request (pale: too close to call)", size=11)
    return figure


def ahead(row: Mapping[str, str], way: str, column: str) -> float:
    """By how many per cent the next best way is dearer."""
    others = [w for w in ("integrated", "shared", "dedicated", "separate") if w != way]
    if column == "one_gpu_type":
        others.remove("separate")
    rivals = [number(row[f"{other}_usd_per_1000"]) for other in others]
    best = number(row[f"{way}_usd_per_1000"]) if way in COLOURS else float("nan")
    return 100.0 * (min((usd for usd in rivals if usd == usd), default=float("nan")) / best - 1.0)


def published(by_output: Rows, by_images: Rows) -> Any:
    """Published gains as crosses, predicted ones as lines."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.2), layout="constrained")
    for kind in ("shared", "separate"):
        rows = [row for row in by_output if row["kind"] == kind]
        outputs = [int(row["output"]) for row in rows]
        left.plot(
            outputs, [number(row["end_to_end_percent"]) for row in rows], color=COLOURS[kind], label=f"{kind}, predicted"
        )
        known = [(int(row["output"]), number(row["published_end_to_end_percent"])) for row in rows]
        known = [(output, gain) for output, gain in known if gain == gain]
        left.plot(*zip(*known, strict=True), "x", color=COLOURS[kind], ms=9, mew=2, label=f"{kind}, published")
        rows = [row for row in by_images if row["kind"] == kind and row["tokens"] == "256"]
        counts = [int(row["images"]) for row in rows]
        right.plot(counts, [number(row["ttft_percent"]) for row in rows], color=COLOURS[kind], label=f"{kind}, predicted")
    for kind, gain in (("shared", 58.0), ("separate", 50.0)):
        right.plot([10], [gain], "x", color=COLOURS[kind], ms=9, mew=2, label=f"{kind}, published")
    right.axhspan(25, 93, color="#999999", alpha=0.15, lw=0, label="published range, 5 to 50 images")
    left.set(xscale="log", xlabel="output tokens", ylabel="% shorter than integrated", title="end to end, 5 images")
    left.set_xticks([128, 512, 2048], ["128", "512", "2048"], minor=False)
    left.minorticks_off()
    right.set(xlabel="images per request", title="first token, 1024 output tokens", ylim=(-5, 100))
    for axis in (left, right):
        axis.axhline(0, color="#999999", lw=0.8)
        axis.spines[["top", "right"]].set_visible(False)
        axis.title.set_size(10)
        axis.legend(frameon=False, fontsize=8)
    return figure


def load(rows: Rows) -> Any:
    """Cost per request against the rate."""
    figure, axis = plt.subplots(figsize=(7, 3.2), layout="constrained")
    rates = [number(row["rate"]) for row in rows]
    for way in ("integrated", "shared", "separate", "cheapest"):
        style = {
            "color": COLOURS[way],
            "ls": "--" if way == "cheapest" else "-",
            "marker": "" if way == "cheapest" else "o",
            "ms": 4,
        }
        axis.plot(rates, [number(row[f"{way}_usd_per_1000"]) for row in rows], label=NAMES[way], **style)
    axis.set(xscale="log", yscale="log", xlabel="requests/s of ten images", ylabel="US dollars per 1000 requests")
    axis.set_xticks([0.5, 1, 2, 4, 8, 16, 32, 64, 128, 512], ["0.5", "1", "2", "4", "8", "16", "32", "64", "128", "512"])
    axis.set_yticks([0.15, 0.2, 0.3, 0.5, 1.0], ["0.15", "0.20", "0.30", "0.50", "1.00"])
    axis.minorticks_off()
    axis.legend(frameon=False, fontsize=9)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def decisions(rows: Rows) -> Any:
    """Every lever's way over the plane of the two decisions; formats and models as points, as they have no order."""
    figure, axis = plt.subplots(figsize=(8.4, 4.4), layout="constrained")
    ways = ("images", "output tokens", "tokens per image", "text requests")
    points = ("model", "weights")
    for lever, colour in zip(
        (*ways, *points), ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#222222", "#E69F00"), strict=True
    ):
        kept = [r for r in rows if r["lever"] == lever and r["own_process_saves_percent"] and r["own_card_saves_percent"]]
        x = [number(r["own_process_saves_percent"]) for r in kept]
        y = [number(r["own_card_saves_percent"]) for r in kept]
        axis.plot(x, y, "o-" if lever in ways else "D", color=colour, ms=4, lw=1.2, label=lever)
        named = kept if lever in points else [kept[0], kept[-1]]
        for at, r in zip(zip(x, y, strict=True), kept, strict=True):
            if r in named and r["value"] not in ("nvfp4", "Qwen3.5-122B-A10B", "0 %"):
                text = r["value"].removeprefix("Qwen3.5-")
                below = r["value"] in ("Qwen3.5-35B-A3B", "Qwen3.5-9B")
                axis.annotate(
                    text,
                    at,
                    xytext=(-12 if below else 5, -12 if below else 4),
                    textcoords="offset points",
                    size=8,
                    color=colour,
                )
    base = next(r for r in rows if r["value"] == "nvfp4")
    at = number(base["own_process_saves_percent"]), number(base["own_card_saves_percent"])
    axis.plot(*at, "o", color="#222222", ms=9, mfc="none")
    axis.annotate("base", at, xytext=(7, 5), textcoords="offset points", size=9)
    axis.axhline(0, color="#999999", lw=0.8)
    axis.axvline(0, color="#999999", lw=0.8)
    axis.set(xlabel="a process of its own saves, % of the integrated cost")
    axis.set_ylabel("then a card of its own saves, % of the shared cost")
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, fontsize=9, title="moving one lever", loc="outside right")
    return figure
