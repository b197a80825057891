"""The page's pictures, drawn from the stored rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm

from npu.page import points
from npu.question import guessed_range, list_price
from npu.stored import alone, find, name
from npu.tables import ANSWERS, BOUGHT, PROMPTS, RIVALS

IMAGES = Path(__file__).parents[2] / "docs" / "images"
COLOURS = {"H200-SXM": "#0072B2", "B200-SXM": "#D55E00"}
SECOND: dict[str, dict[str, Any]] = {
    "Gaudi 3 at its list price, estimated efficiency": {"npu": "Gaudi3"},
    "REBEL100 at 22,500 USD, as efficient as a GPU": {"npu": "RBLN-REBEL100-CR13"},
}
"""NPUs of the maps."""


def break_even_prices(tables: dict[str, Any]) -> None:
    """What an NPU that decodes may cost, over the bandwidth share that it reaches."""
    figure, panels = plt.subplots(1, 4, figsize=(12, 3.6), layout="constrained")
    for axes, npu in zip(panels, BOUGHT, strict=True):
        for gpu in RIVALS:
            shares, usd = zip(*points(tables, npu, gpu), strict=True)
            prices = [price / 1000.0 for price in usd]
            axes.plot(shares, prices, "o-", color=COLOURS[gpu], label=f"cheaper than {name(gpu)} alone, below")
            star = find(tables["break_evens"], npu=npu, gpu=gpu, as_gpu=True, model=None)
            axes.plot([1.0], [star.get("break_even", 0.0) / 1000.0], "*", color=COLOURS[gpu], markersize=12, clip_on=False)
        guessed, listed = guessed_range(npu), list_price(npu, False)
        if npu in ("RNGD", "RBLN-REBEL100-CR13") and guessed:
            axes.axhspan(guessed[0] / 1000.0, guessed[1] / 1000.0, color="#bbbbbb", alpha=0.5, lw=0, label="guessed price")
        elif listed:
            axes.axhline(listed / 1000.0, color="#777777", ls="--", label="public price")
        axes.set(title=name(npu), xlabel="share of bandwidth reached", ylim=(0, None), xlim=(0.25, 1.04))
        axes.set_xticks([0.3, 0.5, 0.7, 0.9, 1.0], ["0.3", "0.5", "0.7", "0.9", "GPU"])
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("break-even price, 1,000 USD")
    handles, labels = panels[0].get_legend_handles_labels()
    more, other = panels[2].get_legend_handles_labels()
    figure.legend([*handles, more[-1]], [*labels, other[-1]], loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(IMAGES / "npu-break-even.png", dpi=110)
    plt.close(figure)


def _gain(rows: list[Any], gpu: str, npu: str, **asked: Any) -> tuple[float, str]:
    """Cost of the pair over the best of the GPU alone, less one, and which of the GPU's ways that is."""
    best = alone(rows, gpu, **asked)
    pair = find(rows, way="pair", gpu=gpu, npu=npu, **asked)
    if "usd_per_hour" not in best or "usd_per_hour" not in pair:
        return float("nan"), "-"
    return pair["usd_per_hour"] / best["usd_per_hour"] - 1.0, "together" if best["asked"]["way"] == "integrated" else "apart"


def _map(axes: Axes, values: np.ndarray, notes: list[list[str]], across: list[str], down: list[str]) -> Any:
    image = axes.imshow(values, cmap="RdBu_r", norm=TwoSlopeNorm(0.0, -0.4, 0.6), aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        text = "no plan" if np.isnan(value) else f"{value:+.0%}\n{notes[row][column]}"
        dark = not np.isnan(value) and (value > 0.4 or value < -0.3)
        axes.text(column, row, text, ha="center", va="center", fontsize=8, color="white" if dark else "black")
    axes.set_xticks(range(len(across)), across)
    axes.set_yticks(range(len(down)), down)
    return image


def _maps(
    rows: list[Any],
    cells: list[list[dict[str, Any]]],
    across: list[str],
    down: list[str],
    labels: tuple[str, str],
    file: str,
) -> None:
    figure, panels = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
    image = None
    for line, (title, second) in zip(panels, SECOND.items(), strict=True):
        for axes, gpu in zip(line, RIVALS, strict=True):
            found = [[_gain(rows, gpu, second["npu"], **cell) for cell in row] for row in cells]
            values = np.array([[gain for gain, _ in row] for row in found])
            image = _map(axes, values, [[way for _, way in row] for row in found], across, down)
            axes.set_title(f"{name(gpu)} reads, {title}", fontsize=9)
            axes.set(xlabel=labels[0], ylabel=labels[1])
    figure.colorbar(image, ax=panels, shrink=0.6, label="cost of GPU + NPU against the GPU alone")
    figure.savefig(IMAGES / file, dpi=110)
    plt.close(figure)


def lengths(tables: dict[str, Any]) -> None:
    """Who wins over lengths of prompts and answers."""
    base = {1000.0: 1000.0, 2000.0: None}
    cells = [[{"prompt": base.get(prompt, prompt), "answer": answer} for prompt in PROMPTS] for answer in reversed(ANSWERS)]
    across, down = [f"{value:,.0f}" for value in PROMPTS], [f"{value:,.0f}" for value in reversed(ANSWERS)]
    _maps(tables["lengths"], cells, across, down, ("tokens of a prompt", "tokens of an answer"), "npu-lengths.png")


def targets(tables: dict[str, Any]) -> None:
    """Who wins over the targets."""
    itls, ttfts = (20.0, 30.0, None, 100.0), (500.0, 1000.0, 4000.0)
    cells = [[{"itl_ms": itl, "ttft_ms": ttft} for itl in itls] for ttft in ttfts]
    _maps(
        tables["targets"],
        cells,
        ["20", "30", "50", "100"],
        ["500", "1,000", "4,000"],
        ("ms between tokens, 95th percentile", "ms to the first token, 95th percentile"),
        "npu-targets.png",
    )


def fleets(tables: dict[str, Any]) -> None:
    """Dollars per million written tokens of the base case, with and without NPUs."""
    rows = tables["fleets"]
    bars: list[tuple[str, list[float], str]] = []
    for gpu in ("H100-SXM", "H200-SXM", "B200-SXM", "GB200"):
        bars.append((f"{name(gpu)} alone", [alone(rows, gpu, model=None)["tokens_per_usd"]], "#555555"))
    bars.append(("Gaudi 3 alone", [find(rows, way="one vendor", gpu="Gaudi3", model=None)["tokens_per_usd"]], "#999999"))
    for gpu in RIVALS:
        for npu in BOUGHT:
            pairs = [
                r
                for r in rows
                if r["asked"]["way"] == "pair"
                and r["asked"]["gpu"] == gpu
                and r["asked"].get("npu") == npu
                and "model" not in r["asked"]
            ]
            bars.append((f"{name(gpu)} + {name(npu)}", [r["tokens_per_usd"] for r in pairs], COLOURS[gpu]))
    figure, axes = plt.subplots(figsize=(8, 4.6), layout="constrained")
    for place, (_, rates, colour) in enumerate(bars):
        costs = [1e6 / rate for rate in rates]
        axes.plot([min(costs), max(costs)], [place, place], "-", lw=6, color=colour, alpha=0.35, solid_capstyle="butt")
        axes.plot(costs, [place] * len(costs), "|", ms=12, mew=2, color=colour)
    axes.set_yticks(range(len(bars)), [label for label, _, _ in bars])
    axes.invert_yaxis()
    axes.set(xlabel="US dollars per million written tokens (prompts included)", xlim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(IMAGES / "npu-fleets.png", dpi=110)
    plt.close(figure)


def draw(tables: dict[str, Any]) -> None:
    """All pictures."""
    IMAGES.mkdir(exist_ok=True)
    for picture in (fleets, break_even_prices, lengths, targets):
        picture(tables)
