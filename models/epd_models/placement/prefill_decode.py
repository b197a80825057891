"""Prefill-decode: P and D in one loop, fed by an encoder pool or serving text."""

from __future__ import annotations

from epd_models.candidate import Stage
from epd_models.entry import Entry
from epd_models.parallelism import Parallelism
from epd_models.placement.context import Context
from epd_models.placement.loops import loop_pool, loop_settings
from epd_models.pool import Pool, Settings

STAGES: tuple[Stage, ...] = ("prefill", "decode")


def settings(context: Context, entry: Entry, cut: Parallelism) -> list[Settings]:
    """Levels of the token interval worth considering."""
    return loop_settings(context, entry, cut, build)


def build(context: Context, entry: Entry, cut: Parallelism, chosen: Settings) -> Pool:
    """Prefill takes time from decode, in chunks; no vision tower on these workers."""
    return loop_pool(context, entry, cut, chosen, placement="prefill_decode", stages=STAGES, encode="none", prefills=True)
