"""The public story beside our predictions: where images are encoded on GB200, and encoder separation on A100."""

from __future__ import annotations

import math
from functools import cache

from published import placements, separation
from published.fleets import goodput
from published.row import Row

from encoding.table import Table, Value

KINDS = ("shared", "separate")
OUTPUTS = (128, 256, 512, 1024, 2048, 4096)
IMAGES = (1, 5, 10, 20, 30, 50)
FITTED = {
    "5 images, 128 output tokens: end to end, shared",
    "5 images, 2048 output tokens: end to end, shared",
    "10 images, 1024 output tokens: goodput gained by separate encoders",
}
"""Published figures that coefficients were set by."""
R5 = {
    (1, 400): (23, 24),
    (2, 400): (16, 24),
    (3, 400): (8, 15),
    (4, 400): (6, 12),
    (1, 2000): (8, 18),
    (2, 2000): (5, 11),
    (3, 2000): (4, 9),
    (4, 2000): (4, 8),
}
"""Images and text tokens: published goodput of four integrated workers, and of one encoder and three workers, requests/s."""


@cache
def gb200() -> dict[str, Row]:
    """All predicted figures of the story on GB200; the mixed case under a name without the load that it was found at."""
    found = {row.case: row for row in placements.rows()}
    for case in [case for case in found if case.startswith("half text")]:
        found[f"half text, half images: {case.rpartition(': ')[2]}, shared"] = found[case]
    return found


def story(case: str) -> dict[str, Value]:
    """One figure."""
    row = gb200()[case]
    fitted = "yes" if case in FITTED else "no"
    return {"unit": row.unit, "published": row.measured, "predicted": row.predicted, "error": row.error, "fitted": fitted}


def by_output(kind: str, output: int) -> dict[str, Value]:
    """Five images: by how many per cent requests and first tokens come sooner than integrated."""
    base, found = placements.times("integrated", 5, output), placements.times(kind, 5, output)
    known = {(128, "shared"): 11.8, (2048, "shared"): -2.5, (128, "separate"): 20.3, (2048, "separate"): 5.2}
    return {
        "published_end_to_end_percent": known.get((output, kind), math.nan),
        "end_to_end_percent": placements.gain(found[1], base[1]),
        "ttft_percent": placements.gain(found[0], base[0]),
    }


def by_images(kind: str, images: int, tokens: int) -> dict[str, Value]:
    """1024 output tokens: by how many per cent first tokens come sooner than integrated."""
    base, found = (placements.times(way, images, 1024, tokens=tokens) for way in ("integrated", kind))
    return {
        "integrated_ttft_ms": 1e3 * base[0],
        "ttft_ms": 1e3 * found[0],
        "ttft_percent": placements.gain(found[0], base[0]),
    }


def ampere(images: int, text: int) -> dict[str, Value]:
    """Goodput of four A100, requests/s, and the gain of one that encodes for the other three."""
    before, after = R5[images, text]
    together, apart = (goodput(separation.case(images, text, topology)) for topology in ("DP4", "1E3PD"))
    return {
        "published_integrated": before,
        "predicted_integrated": together,
        "published_separate": after,
        "predicted_separate": apart,
        "published_gain": after / before,
        "predicted_gain": apart / together,
    }


_STORY = (
    *(f"5 images, {output} output tokens: end to end, {kind}" for output in (128, 2048) for kind in KINDS),
    "10 images, 1024 output tokens: goodput gained by separate encoders",
    *(f"10 images, 1024 output tokens: TTFT, {kind}" for kind in KINDS),
    *(f"half text, half images: TTFT of {what}, shared" for what in ("text", "images")),
    *(f"one GB200, 5 images: {what}, {kind}" for kind in ("integrated", "shared") for what in ("TTFT", "end to end")),
)
TABLES = (
    Table(name="published", keys=tuple({"case": case} for case in _STORY), cell=story),
    Table(
        name="published-by-output",
        keys=tuple({"kind": kind, "output": output} for kind in KINDS for output in OUTPUTS),
        cell=by_output,
    ),
    Table(
        name="published-by-images",
        keys=tuple({"kind": kind, "tokens": t, "images": n} for kind in KINDS for t in (128, 256) for n in IMAGES),
        cell=by_images,
    ),
    Table(name="published-ampere", keys=tuple({"images": n, "text": t} for n, t in R5), cell=ampere),
)
