"""Encode-prefill: E and P in one loop, feeding a decode pool; text prompts queue behind images."""

from __future__ import annotations

from epd_models.candidate import Stage
from epd_models.entry import Entry
from epd_models.parallelism import Parallelism
from epd_models.placement.context import Context
from epd_models.placement.prompts import one_way as settings
from epd_models.placement.prompts import prompt_pool
from epd_models.pool import Pool, Settings

STAGES: tuple[Stage, ...] = ("encode", "prefill")

__all__ = ["STAGES", "build", "settings"]


def build(context: Context, entry: Entry, cut: Parallelism, chosen: Settings) -> Pool:
    """Images in line with their prompt, one queue for all."""
    return prompt_pool(context, entry, cut, chosen, placement="encode_prefill", stages=STAGES)
