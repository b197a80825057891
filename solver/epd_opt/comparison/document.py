"""The comparison document, `epd-opt/comparison/v1`: lists of values have one entry per plan, in the order given."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from epd_opt.document import Cost, Infeasibility, Route, Status

COMPARISON_SCHEMA = "epd-opt/comparison/v1"
Kind = Literal["price", "offer", "workload", "target", "limit", "solver", "setting"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class ComparedPlan(_Part):
    """One of the plans."""

    label: str = Field(description="Short name, unique here.")
    file: str = Field(description="File that it came from.")
    instance: str = Field(description="Name of its instance.")
    instance_sha256: str
    status: Status
    cost: Cost | None
    infeasibility: Infeasibility | None = None
    requests_per_s: float | None = Field(description="Mean requests per second that the cost is divided by.")
    pools: int
    devices: float = Field(description="Sold units in all pools, spares included.")
    epd_opt: str = Field(description="Version of this program that made it.")
    solver: str


class Input(_Part):
    """A value that the plans' instances do not agree on."""

    path: str = Field(description="Where it stands in the instance.")
    kind: Kind
    values: list[Any] = Field(description="The value in each; null where it is absent.")


class CardChange(_Part):
    """A figure of the cards behind the plans on which they do not agree."""

    path: str
    values: list[Any]


class DeviceRow(_Part):
    """Sold units of one device entry; null where a plan has no such entry in use."""

    name: str
    used: list[int | None]
    bought: list[int | None]
    usd_per_hour: list[float | None]


class PoolFacts(_Part):
    """One pool of a row."""

    name: str
    device: str
    parallelism: dict[str, int]
    replicas: int
    spare_replicas: int
    devices: float
    serves: dict[str, float]
    binding: list[str]
    usd_per_hour: float


class PoolRow(_Part):
    """Pools of the same placement and SKU; of several, those alike in device entry, parallelism and operating point."""

    placement: str
    sku: str
    pools: list[PoolFacts | None]
    settings: dict[str, list[Any]] = Field(description="Operating points as far as they differ, by setting.")


class ClassFacts(_Part):
    """What a class gets in one plan."""

    rate_per_s: float
    ttft_ms: float | None
    itl_ms: float | None
    e2e_ms: float | None
    slo_met: bool
    usd_per_request: float | None
    routes: list[Route]


class ClassRow(_Part):
    """One class of requests; null where an instance does not have it."""

    name: str
    plans: list[ClassFacts | None]


class DeviceEffect(_Part):
    """What one device entry adds to the difference in cost: more units at the first plan's cost per unit, and another cost
    per unit for the units of this plan. The two add up to the entry's difference."""

    name: str
    units: float = Field(description="Units in use more than in the first plan.")
    units_usd_per_hour: float
    unit_cost_usd_per_hour: float


class Difference(_Part):
    """A plan against the first; null where either has no cost."""

    usd_per_hour: float = Field(description="Difference of the fleets' costs, US dollars per hour.")
    usd_per_request: float | None = Field(description="The same per request, US dollars.")
    per_request_share: float | None = Field(description="The same as a share of the first plan's: 0.05 is 5 per cent more.")
    order_proved: bool = Field(
        description="Whether the optima differ in this direction for certain: the dearer's bound is above the other's cost."
    )
    devices: list[DeviceEffect]


class ComparisonDocument(_Part):
    """Plans side by side."""

    schema_: Literal["epd-opt/comparison/v1"] = Field(default="epd-opt/comparison/v1", alias="schema")
    plans: list[ComparedPlan]
    differences: list[Difference | None] = Field(description="One for each plan after the first.")
    inputs: list[Input]
    cards: list[CardChange]
    devices: list[DeviceRow]
    pools: list[PoolRow]
    classes: list[ClassRow]


def comparison_json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of comparisons."""
    schema = ComparisonDocument.model_json_schema(by_alias=True, mode="serialization")
    schema["required"] = sorted({*schema["required"], "schema"})
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": COMPARISON_SCHEMA, **schema}
