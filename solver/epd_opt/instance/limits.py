"""Limits of the whole fleet, and capacity held back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, Field

from epd_opt.fields import Complaint, Count, Name, NonNegative, Part, Positive, PositiveCount, no_repeats


class Limits(Part):
    """Inclusive limits of the whole fleet; absent = none."""

    usd_per_hour: NonNegative | None = Field(default=None, description="Cost, US dollars per hour.")
    power_kw: NonNegative | None = Field(default=None, description="Sum of nameplate IT power, hosts included, kW.")
    devices: Count | None = Field(default=None, description="Sold units in use.")
    skus: PositiveCount | None = Field(default=None, description="Different SKUs in use.")
    rack_kw: Positive | None = Field(
        default=None,
        description="Nameplate IT power that one rack may draw, hosts included, kW; no unit, or server bought whole, that "
        "draws more is planned with.",
    )
    racks: Count | None = Field(
        default=None, description="Racks at the site, each filled with units of one device entry up to rack_kw."
    )
    forbid: Annotated[tuple[Name, ...], AfterValidator(no_repeats)] = Field(
        default=(), description="Device names, SKUs, vendors or kinds (gpu, npu, tpu, asic) that no plan uses."
    )
    require: Annotated[tuple[Name, ...], AfterValidator(no_repeats)] = Field(
        default=(),
        description="Device names, SKUs, vendors or kinds; each serves at least a hundredth of some class at some stage.",
    )

    def complaints(self) -> Iterator[Complaint]:
        if self.racks is not None and self.rack_kw is None:
            yield Complaint(
                where=("racks",),
                message="found without rack_kw, which says how many units stand in a rack",
                hint="give the nameplate power of a rack, as in {racks: 10, rack_kw: 40}",
            )


class Redundancy(Part):
    """Capacity held back."""

    spare_replicas: Count = Field(default=0, description="Spare replicas per physical pool.")
    zones: PositiveCount = Field(
        default=1, description="Zones that the replicas of every physical pool are spread over evenly."
    )
    survive_zones: Count = Field(
        default=0, description="Zones that may be lost while the replicas of the others still serve all demand."
    )
    headroom: NonNegative = Field(default=0.0, description="Share of every rate added before planning: 0.2 is 20 %.")

    def complaints(self) -> Iterator[Complaint]:
        if self.survive_zones >= self.zones:
            yield Complaint(
                where=("survive_zones",) if self.survive_zones else ("zones",),
                message=f"found {self.survive_zones}, expected less than zones = {self.zones}",
                hint="some zone must be left: {zones: 3, survive_zones: 1} survives the loss of any one of three",
            )
