"""The explanation document, `epd-opt/explanation/v1`. The JSON Schema comes from these same types."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from epd_opt.document import Infeasibility, Reason, Status

EXPLANATION_SCHEMA = "epd-opt/explanation/v1"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class RequirementFacts(_Part):
    """One requirement of a pool."""

    kind: str = Field(description="Name of the requirement, as in the plan's utilisation.")
    text: str = Field(description="What it asks room for.")
    needs_replicas: float = Field(description="Replicas that it asks for at the pool's load.")
    slack_replicas: float = Field(description="Replicas of the pool less those.")
    utilisation: float = Field(description="needs_replicas over the pool's replicas, 1 = full.")
    binding: bool = Field(description="Whether one replica less would break it.")


class PoolFacts(_Part):
    """What holds a pool to its size."""

    name: str
    placement: str
    device: str
    replicas: int
    requirements: list[RequirementFacts] = Field(description="The fullest first.")
    room: float = Field(description="Most traffic of the same mix that the pool carries, over what it does; at least 1.")
    room_with_one_more: float = Field(description="The same with one replica more.")
    room_with_one_less: float = Field(description="The same with one replica less; 0 where that leaves none.")
    one_less: Alternative | None = Field(
        default=None, description="The cheapest plan in which all pools of this placement and cut have a replica less."
    )


class TargetFacts(_Part):
    """A target and what is predicted for it, at the class's percentile."""

    target_ms: float
    predicted_ms: float | None = Field(description="null where only measured workers serve the class.")
    slack_ms: float | None = Field(description="target_ms - predicted_ms.")
    percentile: float


class Step(_Part):
    """A part of the time to the first token."""

    pool: str
    what: str = Field(description="transfer, wait_QUEUE, host, encode, encoder_sharing, prefill, steps, overhead or behind.")
    text: str
    ms: float


class Path(_Part):
    """A way of a class through the fleet, and where the time to its first token goes."""

    pools: list[str]
    rate_per_s: float
    ttft_ms: float | None = Field(description="null where only measured workers are passed.")
    steps: list[Step] = Field(description="In order; they add up to ttft_ms.")


class Interval(_Part):
    """The interval between tokens of a class in one pool."""

    pool: str
    mean_ms: float
    predicted_ms: float = Field(description="At the class's percentile.")
    promised_ms: float | None = Field(description="What the pool is sized to keep.")
    design_ms: float = Field(description="Mean interval that the pool is sized for.")


class ClassFacts(_Part):
    """How a class stands to its targets."""

    rate_per_s: float
    targets: dict[str, TargetFacts] = Field(description="ttft_ms, itl_ms and e2e_ms, those that are stated.")
    paths: list[Path]
    intervals: list[Interval]
    text: str


class LimitFacts(_Part):
    """A limit of the whole fleet."""

    limit: str = Field(description="stock, devices, skus, usd_per_hour, power_kw or racks.")
    path: str = Field(description="Path of its value in the instance.")
    allowed: float
    used: float
    slack: float
    without: Alternative | None = Field(default=None, description="The cheapest plan without this limit.")
    text: str


class Use(_Part):
    """A placement on a SKU."""

    placement: str
    sku: str


class AlternativePool(_Part):
    """A pool of another plan."""

    name: str
    placement: str
    sku: str
    device: str
    replicas: int
    devices: float
    serves: dict[str, float]


class Alternative(_Part):
    """Another plan beside this one, or that there is none."""

    status: Status
    usd_per_hour: float | None = None
    usd_per_request: float | None = None
    bound_usd_per_hour: float | None = Field(default=None, description="No plan of this kind costs less.")
    more_usd_per_hour: float | None = Field(default=None, description="Over the plan that is explained.")
    more_share: float | None = Field(default=None, description="more_usd_per_hour over that plan's cost.")
    uses: list[Use] = []
    pools: list[AlternativePool] = []
    reasons: list[Reason] = Field(default=[], description="Why there is none.")
    text: str


class Answer(_Part):
    """The price of using, or of doing without, a placement or a SKU."""

    asked: str
    kind: Literal["with", "without"]
    share: float | None = Field(default=None, description="Least share of traffic asked for.")
    request_class: str | None = Field(default=None, alias="class", description="Class that the share is of; null = all.")
    alternative: Alternative


class ExplanationDocument(_Part):
    """Why a plan is as it is, or why there is none."""

    schema_: Literal["epd-opt/explanation/v1"] = Field(default="epd-opt/explanation/v1", alias="schema")
    instance: str
    status: Status = Field(description="Of the plan.")
    usd_per_hour: float | None
    pools: list[PoolFacts] = []
    classes: dict[str, ClassFacts] = {}
    limits: list[LimitFacts] = []
    runners_up: list[Alternative] = []
    why_not: list[Answer] = []
    infeasibility: Infeasibility | None = None
    notes: list[str] = Field(default=[], description="What was left out, and why.")
    seconds: float = Field(description="Wall-clock time of the explanation.")


def explanation_json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of explanation documents."""
    schema = ExplanationDocument.model_json_schema(by_alias=True, mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": EXPLANATION_SCHEMA, **schema}
