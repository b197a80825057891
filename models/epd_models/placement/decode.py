"""Decode: D alone, on any device; the KV cache comes over the network."""

from __future__ import annotations

from epd_models.candidate import Stage
from epd_models.entry import Entry
from epd_models.parallelism import Parallelism
from epd_models.placement.context import Context
from epd_models.placement.loops import loop_pool, loop_settings
from epd_models.pool import Pool, Settings

STAGES: tuple[Stage, ...] = ("decode",)


def settings(context: Context, entry: Entry, cut: Parallelism) -> list[Settings]:
    """Levels of the token interval worth considering."""
    return loop_settings(context, entry, cut, build)


def build(context: Context, entry: Entry, cut: Parallelism, chosen: Settings) -> Pool:
    """Token intervals vary with the number of sequences in flight only; KV caches being received take memory."""
    return loop_pool(context, entry, cut, chosen, placement="decode", stages=STAGES, encode="none", prefills=False)
