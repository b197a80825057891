"""The documents of studies, tolerances and break-evens; their JSON Schemas come from these types."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from epd_opt.document import Cost, Pool, Reason

STUDY_SCHEMA = "epd-opt/study/v1"
TOLERANCE_SCHEMA = "epd-opt/tolerance/v1"
BREAK_EVEN_SCHEMA = "epd-opt/break-even/v1"
PointStatus = Literal["optimal", "feasible", "infeasible", "stopped", "failed"]
Value = bool | int | float | str | list[Any] | dict[str, Any] | None


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Varied(_Part):
    """One dimension of a study."""

    path: str = Field(description="Path of the values that move, as --set takes it.")
    values: list[Value] = Field(description="Values that they take; factors on them where scaled.")
    scaled: bool = Field(description="Whether values are factors on what the instance states.")


class KeptFleet(_Part):
    """Today's fleet at a point: its replicas per placement, device and cut, with routing and operating points free."""

    usd_per_hour: float | None = Field(
        description="What the fleet costs at the point's prices, US dollars per hour, idle units included; null where it "
        "does not serve the point, or this was not found out."
    )
    feasible: bool | None = Field(
        description="Whether it serves all classes within their targets and the limits; null where the time limit passed."
    )
    breaks: list[Reason] = Field(
        description="What breaks first: targets that, loosened alone, let the fleet serve the point, the one that needs "
        "least first; then replicas that are missing, and limits of the fleet that it exceeds."
    )


class Point(_Part):
    """One point of a study: the plan that is best there, and what keeping today's fleet comes to."""

    at: dict[str, Value] = Field(description="Value, or factor, on each dimension.")
    status: PointStatus
    cost: Cost | None = Field(description="Of the plan that is best at the point.")
    pools: list[Pool] = Field(description="Its pools, as in a plan document.")
    kept_fleet: KeptFleet | None = Field(description="null where there is no fleet of today, or the point failed.")
    regret_usd_per_hour: float | None = Field(
        description="Cost of the kept fleet less that of the point's plan; null where one of them is. Below zero only where "
        "the plan is not proved to the last: then the kept fleet is the better one."
    )
    reasons: list[Reason] = Field(default=[], description="Why no fleet at all serves the point, as far as looked for.")
    error: str | None = Field(default=None, description="What went wrong at the point, and at no other.")
    found: Literal["solved", "between"] = Field(
        default="solved",
        description="solved: the point was planned by itself; between: not, as along prices alone the points on both sides "
        "of it prove its plan: no plan costs less than the straight line between what is proved of those two.",
    )


class SwitchPoint(_Part):
    """A value at which the placements and SKUs of the best plan change."""

    path: str
    at: float = Field(description="First value (or factor) found at which the plan is as above.")
    below: str = Field(description="Placements on SKUs of the best plan at below_at.")
    above: str = Field(description="Placements on SKUs of the best plan at `at`.")
    below_at: float = Field(description="Last value found at which the plan is as below.")
    tolerance: float = Field(description="Width to which the two were to be brought together.")


class StudyDocument(_Part):
    """How plan and cost move with the inputs."""

    schema_: Literal["epd-opt/study/v1"] = Field(default="epd-opt/study/v1", alias="schema")
    instance: str = Field(description="Name of the instance.")
    vary: list[Varied]
    today: dict[str, int] = Field(description="Replicas of today's fleet by physical pool, spares included.")
    points: list[Point]
    switch_points: list[SwitchPoint]
    notes: list[str] = Field(default=[], description="What was left out, and why.")
    instance_sha256: str = Field(description="SHA-256 of the instance, whatever the order of its keys.")
    epd_opt: str = Field(description="Version of this program.")


class Shift(_Part):
    """How far an input moves in one direction."""

    factor: float | None = Field(description="Last factor found at which the fleet serves everything; null where none.")
    value: Value = Field(description="What the input is then; null for several inputs together.")
    unlimited: bool = Field(description="Whether nothing broke as far as the shift was followed, to the factor given.")
    breaks_at: float | None = Field(default=None, description="First factor found at which it does not.")
    breaks: list[Reason] = Field(default=[], description="What breaks there; see KeptFleet.")


class Tolerance(_Part):
    """How far one input may move before the fleet no longer serves everything within its targets."""

    path: str = Field(description="Path of the input.")
    value: Value = Field(description="What the instance states; null for several inputs together.")
    up: Shift
    down: Shift


class ToleranceDocument(_Part):
    """How far each main input of a plan may move by itself while the bought fleet still serves it."""

    schema_: Literal["epd-opt/tolerance/v1"] = Field(default="epd-opt/tolerance/v1", alias="schema")
    instance: str
    fleet: dict[str, int] = Field(description="Replicas by physical pool, spares included.")
    precision: float = Field(description="Relative width to which each edge was found.")
    inputs: list[Tolerance]
    notes: list[str] = []


class FleetPool(_Part):
    """A pool of a plan beside others."""

    name: str
    placement: str
    sku: str
    device: str
    replicas: int = Field(description="Spares included.")
    devices: float
    serves: dict[str, float] = Field(description="Requests/s of each class.")


class Side(_Part):
    """A plan on one side of a break-even."""

    uses: bool = Field(description="Whether it uses what the break-even is of.")
    solved_at: float = Field(description="Value (or factor) at which it was found to be best.")
    usd_per_hour: float = Field(
        description="What it costs at the break-even; where that is not one value, at solved_at. US dollars per hour."
    )
    usd_per_hour_per_unit: float | None = Field(
        description="What it costs more per unit of the value; null where costs are no straight line in it."
    )
    pools: list[FleetPool]


class Stated(_Part):
    """What the use is worth as the instance stands."""

    value: float = Field(description="What the instance states at the path; 1 for factors.")
    used: bool | None = Field(description="Whether the best plan uses it; null where there is no plan.")
    usd_per_hour: float | None = Field(description="Cost of the best plan.")
    without_usd_per_hour: float | None = Field(description="Cost of the best plan without it; null where there is none.")
    with_usd_per_hour: float | None = Field(description="Cost of the best plan that uses it; null where there is none.")


class BreakEvenDocument(_Part):
    """The value of one input at which the best plan begins or ends to use a SKU, a placement or a stage."""

    schema_: Literal["epd-opt/break-even/v1"] = Field(default="epd-opt/break-even/v1", alias="schema")
    instance: str = Field(description="Name of the instance.")
    path: str = Field(description="Path of the input that moves, as --set takes it.")
    scaled: bool = Field(description="Whether values are factors on what the instance states.")
    of: str = Field(description="What it is the break-even of, in words.")
    placement: str | None
    sku: str | None = Field(description="Entry name or SKU.")
    stage: str | None
    low: float = Field(description="Lowest value looked at.")
    high: float = Field(description="Highest value looked at.")
    outcome: Literal["found", "always", "never", "no_plan", "unknown"] = Field(
        description="found: there is a break-even; always, never: it is used at both ends of the range, or at neither; "
        "no_plan: nothing serves the instance at an end of the range; unknown: the time passed."
    )
    at: float | None = Field(description="The break-even, where there is one in the range.")
    bounds: list[float] | None = Field(
        description="[from, to]: within these it lies for certain, whatever the gaps of the solves; null where not proved."
    )
    used: Literal["below", "above"] | None = Field(description="On which side of the break-even it is used.")
    method: Literal["lines", "bisection"] = Field(
        description="lines: costs are straight lines in the value, and those of the plans on both sides cross at the "
        "break-even; bisection: found between two values that were solved."
    )
    below: Side | None = Field(description="The plan below the break-even, or at the low end.")
    above: Side | None = Field(description="The plan above the break-even, or at the high end.")
    stated: Stated | None = Field(description="null where the instance states no number at the path.")
    gap: float = Field(description="Relative gap of the solves.")
    solves: int = Field(description="Mixed-integer programmes solved.")
    text: str = Field(description="The answer in words.")
    notes: list[str] = Field(default=[], description="What is not proved, and why.")
    instance_sha256: str = Field(description="SHA-256 of the instance, whatever the order of its keys.")
    epd_opt: str = Field(description="Version of this program.")


def study_json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of study documents."""
    schema = StudyDocument.model_json_schema(by_alias=True, mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": STUDY_SCHEMA, **schema}


def tolerance_json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of tolerance documents."""
    schema = ToleranceDocument.model_json_schema(by_alias=True, mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": TOLERANCE_SCHEMA, **schema}


def break_even_json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of break-even documents."""
    schema = BreakEvenDocument.model_json_schema(by_alias=True, mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": BREAK_EVEN_SCHEMA, **schema}
