"""Workloads that one fleet stands for, and what it is to be best at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from epd_opt.fields import Complaint, HalfOpenShare, Name, Part, Positive, PositiveShare, in_key_order


class Scenario(Part):
    """One of the workloads that the fleet stands for, as changes of the stated one."""

    name: Name = Field(description="Any text, unique among the scenarios.")
    weight: Positive = Field(default=1.0, description="How much it counts: a probability or a share of time; normalised.")
    changes: Annotated[dict[str, Any], AfterValidator(in_key_order)] = Field(
        default={},
        alias="set",
        description="Paths below workload, of rents (devices.NAME.price.usd_per_hour), of cost.electricity_usd_per_kwh or "
        "cost.pue, and the values that hold there; x1.5 is one and a half times what the instance states. Nothing = the "
        "workload as stated.",
    )


class Robust(Part):
    """What a fleet for several scenarios is to be best at, and how often its targets must hold."""

    minimise: Literal["expected_cost", "worst_cost", "cvar"] = Field(
        default="expected_cost",
        description="Of the hourly cost over the scenarios: expected_cost, its mean by weight; worst_cost, its largest; "
        "cvar, its mean over the dearest scenarios.",
    )
    cvar_level: HalfOpenShare | None = Field(
        default=None,
        description="With cvar: share of weight (0 to below 1) that is cheaper than the scenarios that count; default 0.9.",
    )
    served_share: PositiveShare = Field(
        default=1.0, description="Least share of weight (above 0, to 1) of the scenarios in which every target must hold."
    )

    def complaints(self) -> Iterator[Complaint]:
        if self.cvar_level is not None and self.minimise != "cvar":
            yield Complaint(
                where=("cvar_level",),
                message=f"belongs to minimise: cvar, and {self.minimise} is minimised",
                hint="leave it out, or give minimise: cvar",
            )

    @property
    def level(self) -> float:
        """The level of cvar, as stated or by default."""
        return 0.9 if self.cvar_level is None else self.cvar_level
