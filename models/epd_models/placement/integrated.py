"""Integrated: E, P and D in one loop; encode and prefill take time from decode, and text queues behind images."""

from __future__ import annotations

from epd_models.candidate import Stage
from epd_models.entry import Entry
from epd_models.parallelism import Parallelism
from epd_models.placement.context import Context
from epd_models.placement.loops import loop_pool, loop_settings
from epd_models.pool import Pool, Settings

STAGES: tuple[Stage, ...] = ("encode", "prefill", "decode")


def settings(context: Context, entry: Entry, cut: Parallelism) -> list[Settings]:
    """Levels of the token interval worth considering."""
    return loop_settings(context, entry, cut, build)


def build(context: Context, entry: Entry, cut: Parallelism, chosen: Settings) -> Pool:
    """Host work and vision transformer stall the loop, image by image; an encode cannot be cut into chunks."""
    return loop_pool(context, entry, cut, chosen, placement="integrated", stages=STAGES, encode="in_line", prefills=True)
