"""Where the times of a device come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from epd_opt.fields import Complaint, Name, Part, complaint, shown


class ProfileFile(Part):
    """A CSV file of measurements, embedded."""

    file: Name = Field(description="Its name, for messages.")
    csv: str = Field(
        description="Its content: serving runs with the columns of `epd-opt predict`, or stage times with the columns "
        "stage, model, sku, cut, dtype, batch, context_tokens, new_tokens, megapixels and time_ms or time_s."
    )


def _profile(value: object) -> object:
    if isinstance(value, str):
        raise complaint(
            f"found the text {shown(value)}, expected a mapping",
            "paths to profiles are followed only when an instance is read with epd_opt.read",
        )
    return value


class Silicon(Part):
    """Kernel tables of the package aiconfigurator-core (`pip install 'epd-opt[silicon]'`)."""

    fallback: Literal["analytic"] | None = Field(
        default=None,
        description="What stands in, with a warning, where the tables do not cover a worker; absent = nothing does.",
    )


class Performance(Part):
    """Where the times of a device come from: measurements or kernel tables in place of the analytic model alone."""

    profile: (
        Annotated[
            ProfileFile,
            BeforeValidator(_profile, json_schema_input_type=str | ProfileFile),
        ]
        | None
    ) = Field(
        default=None,
        description="Path of a CSV file of measurements, relative to the instance: serving runs with the columns of "
        "`epd-opt predict`, or stage times with those of `csv`.",
    )
    strict: bool = Field(
        default=False,
        strict=True,
        description="With a profile: stages, degrees and sizes without measurements are refused instead of left to the "
        "analytic model with a warning.",
    )
    silicon: Silicon | None = Field(
        default=None,
        description="Kernel tables: {} or {fallback: analytic}; `performance: silicon` is short for {silicon: {}}.",
    )

    def complaints(self) -> Iterator[Complaint]:
        if self.profile is None and self.silicon is None:
            yield Complaint(
                message="no source is named", hint="give profile: FILE.csv or silicon: {}, or performance: analytic"
            )
        if self.profile is not None and self.silicon is not None:
            yield Complaint(where=("silicon",), message="profile and silicon are both given", hint="keep one of them")
        if self.strict and self.profile is None:
            yield Complaint(
                where=("strict",), message="strict belongs to a profile", hint="silicon is strict without fallback"
            )

    @property
    def source(self) -> str:
        """Name of the source."""
        return "silicon" if self.profile is None else "profile"

    def settings(self) -> dict[str, Any]:
        """What the source is told."""
        if self.profile is not None:
            return {**self.profile.model_dump(), "strict": self.strict}
        return {} if self.silicon is None else self.silicon.model_dump()


def _performance_form(value: object) -> object:
    if value == "analytic":
        return None
    if value == "silicon":
        return {"silicon": {}}
    if isinstance(value, str):
        hint = "give performance: {profile: FILE.csv}" if value == "profile" or value.lower().endswith(".csv") else ""
        raise complaint(f"found {shown(value)}, expected analytic, silicon or a mapping", hint)
    return value


Performances = Annotated[
    Performance | None,
    BeforeValidator(_performance_form, json_schema_input_type=Literal["analytic", "silicon"] | Performance | None),
]
