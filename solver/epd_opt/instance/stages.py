"""The stages of a request."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from epd_opt.fields import no_repeats

Stage = Literal["encode", "prefill", "decode"]
STAGES: tuple[Stage, ...] = ("encode", "prefill", "decode")


def _in_stage_order(values: tuple[Stage, ...]) -> tuple[Stage, ...]:
    return tuple(stage for stage in STAGES if stage in no_repeats(values))


Stages = Annotated[tuple[Stage, ...], Field(min_length=1), AfterValidator(_in_stage_order)]
