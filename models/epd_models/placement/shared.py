"""Shared: encoder processes beside a prefill-decode process on the same device."""

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
    """Encoding has its own queue and overlaps with decode: it slows the loop by a share of its device time (kappa), is
    slowed itself (kappa'), and leaves less memory for the KV cache; device compute is a row of its own."""
    return loop_pool(context, entry, cut, chosen, placement="shared", stages=STAGES, encode="beside", prefills=True)
