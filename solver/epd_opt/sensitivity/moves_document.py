"""The documents of tornados and marginal values; their JSON Schemas come from these types."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from epd_opt.sensitivity.document import PointStatus, Value

TORNADO_SCHEMA = "epd-opt/tornado/v1"
MARGINAL_SCHEMA = "epd-opt/marginal/v1"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class End(_Part):
    """The instance with one input moved one way, solved anew."""

    value: Value = Field(description="What the input is then; the factor, where several inputs move together.")
    status: PointStatus
    usd_per_hour: float | None = Field(description="Cost of the best plan; null where there is none.")
    usd_per_request: float | None
    change_share: float | None = Field(description="usd_per_request over that of the instance as stated, less 1.")
    kept_usd_per_request: float | None = Field(
        description="The same of today's fleet, routing and operating points free; null where it does not serve this."
    )
    kept_change_share: float | None = Field(description="kept_usd_per_request over the stated usd_per_request, less 1.")
    kept_breaks: list[str] = Field(description="What breaks first in today's fleet; empty where it serves this.")
    plan: str = Field(description="Placements on SKUs of the best plan, or why there is none.")


class TornadoInput(_Part):
    """One input, moved down and up."""

    path: str = Field(description="Path of the input, as --set takes it.")
    value: Value = Field(description="What the instance states, or what holds where it leaves it out; null for several.")
    low: End
    high: End
    spread_usd_per_request: float | None = Field(
        description="Dearest less cheapest of both ends and the instance as stated; null where an end has no plan."
    )


class TornadoDocument(_Part):
    """Inputs in the order of what they do to the cost of a request, the largest effect first."""

    schema_: Literal["epd-opt/tornado/v1"] = Field(default="epd-opt/tornado/v1", alias="schema")
    instance: str = Field(description="Name of the instance.")
    by: float = Field(description="Share by which every input is moved; whole numbers by 1 at least.")
    usd_per_hour: float = Field(description="Cost of the best plan of the instance as stated.")
    usd_per_request: float
    gap: float = Field(description="Relative gap of the solves: smaller effects mean nothing.")
    today: dict[str, int] = Field(description="Replicas of today's fleet by physical pool, spares included.")
    inputs: list[TornadoInput]
    notes: list[str] = []
    instance_sha256: str = Field(description="SHA-256 of the instance, whatever the order of its keys.")
    epd_opt: str = Field(description="Version of this program.")


class MarginalMove(_Part):
    """One step of one limit, target or price, solved anew."""

    path: str = Field(description="Path of the input, as --set takes it.")
    change: str = Field(description="The step, in words.")
    value: float = Field(description="What the instance states.")
    to: float = Field(description="What it is after the step.")
    status: PointStatus
    usd_per_hour: float | None = Field(description="Cost of the best plan after the step; null where there is none.")
    saves_usd_per_hour: float | None = Field(description="Cost before less cost after.")
    saves_usd_per_month: float | None = Field(description="730 hours.")
    bounds: list[float] | None = Field(
        description="[least, most] that the step saves for certain, whatever the gaps of both solves."
    )
    plan: str = Field(description="Placements on SKUs of the plan after the step, or why there is none.")
    changes_plan: bool = Field(description="Whether those, or the replicas of any pool, are others than before.")


class MarginalDocument(_Part):
    """What one step of each limit, target and price is worth, by solving again."""

    schema_: Literal["epd-opt/marginal/v1"] = Field(default="epd-opt/marginal/v1", alias="schema")
    instance: str = Field(description="Name of the instance.")
    usd_per_hour: float | None = Field(description="Cost of the best plan as stated; null where there is none.")
    gap: float = Field(description="Relative gap of the solves.")
    plan: str = Field(description="Placements on SKUs of the best plan as stated.")
    moves: list[MarginalMove] = Field(description="What saves most first.")
    notes: list[str] = []
    instance_sha256: str = Field(description="SHA-256 of the instance, whatever the order of its keys.")
    epd_opt: str = Field(description="Version of this program.")


def tornado_json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of tornado documents."""
    schema = TornadoDocument.model_json_schema(by_alias=True, mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": TORNADO_SCHEMA, **schema}


def marginal_json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of documents of marginal values."""
    schema = MarginalDocument.model_json_schema(by_alias=True, mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": MARGINAL_SCHEMA, **schema}
