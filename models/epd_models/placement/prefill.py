"""Prefill: P alone; the KV cache crosses the network to a decode pool."""

from __future__ import annotations

from epd_models.candidate import Stage
from epd_models.entry import Entry
from epd_models.parallelism import Parallelism
from epd_models.placement.context import Context
from epd_models.placement.prompts import one_way as settings
from epd_models.placement.prompts import prompt_pool
from epd_models.pool import Pool, Settings

STAGES: tuple[Stage, ...] = ("prefill",)

__all__ = ["STAGES", "build", "settings"]


def build(context: Context, entry: Entry, cut: Parallelism, chosen: Settings) -> Pool:
    """Prompts with their images encoded elsewhere, one queue."""
    return prompt_pool(context, entry, cut, chosen, placement="prefill", stages=STAGES)
