"""Redraws docs/images/ and the plan printed in README.md from the instances they show.

Usage: python docs/make_images.py     needs the extra "plot"
"""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib.pyplot as plt

import epd_opt
from epd_opt.render import plan_text

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
ALBUMS = ROOT / "instances" / "ten-images.yaml"
COUNTS = (1, 2, 4, 6, 8, 10, 12, 16)
WAYS = {
    "encode in place": "[integrated, shared]",
    "encoder pool": "[encoder_pool, prefill_decode]",
    "whatever is cheapest": "[integrated, shared, encoder_pool, prefill_decode, encode_prefill, prefill, decode]",
}


def readme_with(plan: epd_opt.Plan) -> str:
    """The README with this plan in its text block."""
    printed = plan_text(plan.document, warnings=False)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.sub(r"(?<=^```text\n).*?(?=^```$)", lambda _: printed, text, count=1, flags=re.S | re.M)


def usd_per_request(images: int, placements: str) -> float:
    """Cost of the albums' instance with other album sizes and placements; nan where nothing is feasible."""
    overrides = [f"workload.classes.album.images.count={images}", f"placements={placements}", "devices.GB200.stock=32"]
    cost = epd_opt.solve(epd_opt.read(ALBUMS, overrides=overrides)).document.cost
    return cost.usd_per_request or 0.0 if cost else float("nan")


def crossing() -> None:
    """When do encoders of their own pay?"""
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    styles = (("#0072B2", "o-"), ("#D55E00", "s-"), ("#222222", "--"))
    for (way, placements), (colour, style) in zip(WAYS.items(), styles, strict=True):
        costs = [1000 * usd_per_request(images, placements) for images in COUNTS]
        axes.plot(COUNTS, costs, style, color=colour, label=way)
    axes.set(xlabel="images per album", ylabel="US dollars per 1000 requests", ylim=(0, None))
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(IMAGES / "encoder-pool.png", dpi=120)


def main() -> None:
    """Draw everything."""
    IMAGES.mkdir(exist_ok=True)
    plan = epd_opt.solve(epd_opt.read(ALBUMS))
    (ROOT / "README.md").write_text(readme_with(plan), encoding="utf-8")
    plan.plot().savefig(IMAGES / "ten-images.png", dpi=120)
    crossing()


if __name__ == "__main__":
    main()
