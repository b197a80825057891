"""One SKU on offer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from epd_models.parallelism import Parallelism
from epd_opt.fields import (
    Complaint,
    Count,
    Mapped,
    Name,
    NonNegative,
    Part,
    Positive,
    PositiveCount,
    complaint,
    no_repeats,
    shown,
)
from epd_opt.instance.performance import Performances
from epd_opt.instance.precision import Precision
from epd_opt.instance.price import Price
from epd_opt.instance.stages import STAGES, Stages


def _ascending(values: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(no_repeats(values)))


Degrees = Annotated[tuple[PositiveCount, ...], Field(min_length=1), AfterValidator(_ascending)]


class Cut(Part):
    """How one replica is cut over logical devices."""

    tensor: PositiveCount = Field(default=1, description="Tensor parallel degree, logical devices.")
    pipeline: PositiveCount = Field(default=1, description="Pipeline stages.")
    attention_data: PositiveCount = Field(default=1, description="Attention data parallel degree.")
    expert: PositiveCount = Field(default=1, description="Ranks that share the routed experts.")

    def complaints(self) -> Iterator[Complaint]:
        if (self.tensor * self.attention_data) % self.expert:
            yield Complaint(
                where=("expert",),
                message=f"found {self.expert}, expected a divisor of tensor x attention_data = "
                f"{self.tensor * self.attention_data}",
            )

    def parallelism(self) -> Parallelism:
        """As the performance models take it."""
        return Parallelism(
            tensor=self.tensor, pipeline=self.pipeline, attention_data=self.attention_data, expert=self.expert
        )


def _card(value: object) -> object:
    if isinstance(value, str):
        raise complaint(
            f"found the text {shown(value)}, expected a mapping",
            "paths to cards are followed only when an instance is read with epd_opt.read",
        )
    return value


Card = Annotated[Mapped, BeforeValidator(_card), WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}]})]
"""The keys of a card, or the path to one."""


def _hide_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


class DeviceEntry(Part):
    """One SKU on offer: its price, its stock, and what overrides the catalogue's card."""

    sku: Name = Field(description="SKU of the catalogue, or of a complete card given under `card`.")
    name: Name = Field(
        default="",
        description="Unique name of this entry; default: the SKU, so one SKU can be offered twice.",
        json_schema_extra=_hide_default,
    )
    price: Price | None = Field(default=None, description="Price; absent excludes the SKU with a warning.")
    stock: Count | None = Field(default=None, description="Most sold units in use, owned ones included; absent = unlimited.")
    owned: Count = Field(default=0, description="Sold units already owned; they cost their running cost only.")
    tensor_parallel: Degrees | None = Field(
        default=None, description="Tensor parallel degrees to consider, logical devices: shorthand for parallelism."
    )
    parallelism: Annotated[tuple[Cut, ...], Field(min_length=1), AfterValidator(no_repeats)] | None = Field(
        default=None, description="Parallel degrees to consider; absent = whatever is legal."
    )
    stages: Stages = Field(default=STAGES, description="Stages that this device may serve.")
    precision: Precision | None = Field(default=None, description="Storage formats that override the instance's.")
    host_cores: PositiveCount | None = Field(default=None, description="CPU cores per server for image processing.")
    power_w: Positive | None = Field(default=None, description="Nameplate power of one sold unit, watts.")
    idle_power_w: NonNegative | None = Field(default=None, description="Idle power of one sold unit, watts.")
    card: Card | None = Field(
        default=None,
        description="Keys of a device card that override the catalogue's, or a complete card, or the path to one.",
    )
    coefficients: Card | None = Field(
        default=None,
        description="Fitted shares and overheads by engine that override the card's, or the path of a coefficients card, as "
        "`epd-opt calibrate` writes it.",
    )
    performance: Performances = Field(
        default=None, description="Where the times of this device come from; absent = the analytic model."
    )

    @model_validator(mode="before")
    @classmethod
    def _name_by_sku(cls, data: object) -> object:
        if isinstance(data, Mapping) and isinstance(data.get("sku"), str) and "name" not in data:
            return {**data, "name": data["sku"]}
        return data

    def complaints(self) -> Iterator[Complaint]:
        if self.tensor_parallel is not None and self.parallelism is not None:
            yield Complaint(
                where=("tensor_parallel",),
                message="tensor_parallel and parallelism are both given",
                hint="tensor_parallel: [4, 8] is short for parallelism: [{tensor: 4}, {tensor: 8}]",
            )
        if self.stock is not None and self.owned > self.stock:
            yield Complaint(
                where=("owned",),
                message=f"found {self.owned}, expected at most stock = {self.stock}",
                hint="stock counts owned units too",
            )
        if self.performance is not None and self.performance.silicon is not None and self.stages == ("encode",):
            yield Complaint(
                where=("performance",),
                message="kernel tables hold no times of images, and this device only encodes",
                hint="leave performance out, or give performance: {profile: FILE.csv}",
            )
        if self.power_w is not None and self.idle_power_w is not None and self.idle_power_w > self.power_w:
            yield Complaint(
                where=("idle_power_w",),
                message=f"found {self.idle_power_w:g}, expected at most power_w = {self.power_w:g}",
            )

    def parallelisms(self) -> tuple[Parallelism, ...] | None:
        """Degrees to consider, from either spelling; None where the entry leaves them open."""
        if self.tensor_parallel is not None:
            return tuple(Parallelism(tensor=degree) for degree in self.tensor_parallel)
        if self.parallelism is not None:
            return tuple(cut.parallelism() for cut in self.parallelism)
        return None
