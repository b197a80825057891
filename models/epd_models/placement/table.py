"""The table of placements, upstream first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from epd_models.candidate import Stage
from epd_models.entry import Entry
from epd_models.parallelism import Parallelism
from epd_models.placement import (
    decode,
    encode_prefill,
    encoder_pool,
    integrated,
    prefill,
    prefill_decode,
    shared,
)
from epd_models.placement.context import Context
from epd_models.pool import Pool, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A placement.

    Attributes
    ----------
    stages : tuple of Stage
        Stages that a device must be allowed to run.
    settings : callable
        Settings worth considering for an entry and a cut.
    build : callable
        The pool under one of them.
    one_device : bool
        Replicas take one logical device whatever the entry's degrees.
    """

    stages: tuple[Stage, ...]
    settings: Callable[[Context, Entry, Parallelism], list[Settings]]
    build: Callable[[Context, Entry, Parallelism, Settings], Pool]
    one_device: bool = False

    def cuts(self, entry: Entry) -> tuple[Parallelism, ...]:
        """Degrees to consider on an entry."""
        return (Parallelism(),) if self.one_device else entry.cuts


PLACEMENTS: Mapping[str, Placement] = {
    "encoder_pool": Placement(
        stages=encoder_pool.STAGES, settings=encoder_pool.settings, build=encoder_pool.build, one_device=True
    ),
    "encode_prefill": Placement(stages=encode_prefill.STAGES, settings=encode_prefill.settings, build=encode_prefill.build),
    "prefill": Placement(stages=prefill.STAGES, settings=prefill.settings, build=prefill.build),
    "integrated": Placement(stages=integrated.STAGES, settings=integrated.settings, build=integrated.build),
    "shared": Placement(stages=shared.STAGES, settings=shared.settings, build=shared.build),
    "prefill_decode": Placement(stages=prefill_decode.STAGES, settings=prefill_decode.settings, build=prefill_decode.build),
    "decode": Placement(stages=decode.STAGES, settings=decode.settings, build=decode.build),
}
"""Pools that hand over come before those that receive from them."""
