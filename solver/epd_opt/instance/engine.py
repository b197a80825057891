"""The serving engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from epd_opt.fields import Complaint, NonNegative, Part, PositiveCount, PositiveShare, complaint


class Speculative(Part):
    """Speculative decoding."""

    draft_tokens: PositiveCount = Field(description="Tokens drafted per step.")
    accepted_tokens: NonNegative = Field(description="Drafted tokens that stand per step, on average.")

    def complaints(self) -> Iterator[Complaint]:
        if self.accepted_tokens > self.draft_tokens:
            yield Complaint(
                where=("accepted_tokens",),
                message=f"found {self.accepted_tokens:g}, expected at most draft_tokens = {self.draft_tokens}",
            )


EngineName = Literal["vllm", "sglang", "trtllm", "generic", "tuned"]


class EngineSettings(Part):
    """A serving engine and the limits it is run with; what is absent holds as the engine has it."""

    name: EngineName = Field(default="generic", description="Engine.")
    max_sequences: PositiveCount | None = Field(default=None, description="Sequences decoded together per replica.")
    max_batched_tokens: PositiveCount | None = Field(
        default=None, description="Token budget of one iteration: the prefill chunk."
    )
    memory_fraction: PositiveShare | None = Field(
        default=None, description="Share of a device's memory that the engine may use (0 to 1)."
    )
    encoder_cache_gib: NonNegative | None = Field(default=None, description="Room for image embeddings, GiB.")
    encoder_processes: PositiveCount | None = Field(
        default=None,
        description="Encoder processes per device, beside a language model and on devices of their own, as far as cores and "
        "memory go; the engine card has a number for each.",
    )
    speculative: Speculative | None = Field(default=None, description="Speculative decoding; absent = none.")


def _engine_form(value: object) -> object:
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, Mapping) and "name" not in value:
        raise complaint("the engine's name is missing", "add name: vllm, sglang, trtllm, generic or tuned")
    return value


Engine = Annotated[
    EngineSettings,
    BeforeValidator(_engine_form, json_schema_input_type=EngineName | EngineSettings),
]
