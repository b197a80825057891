"""The plan document, `epd-opt/plan/v1`: what pipelines read. The JSON Schema comes from these same types."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

PLAN_SCHEMA = "epd-opt/plan/v1"
HOURS_PER_MONTH = 730.0
Status = Literal["optimal", "feasible", "infeasible", "stopped"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, ser_json_inf_nan="strings")


class Cost(_Part):
    """What the fleet costs."""

    usd_per_hour: float = Field(description="All of the fleet, US dollars per hour.")
    usd_per_request: float | None = Field(
        description="usd_per_hour over the mean requests per hour of all classes; null where nothing is requested."
    )
    usd_per_month: float = Field(description="730 hours, US dollars.")
    capex_usd: float = Field(description="Purchases with their hosts, US dollars.")
    power_kw: float = Field(description="Nameplate IT power of the installed units, hosts included, kW.")
    bound_usd_per_hour: float = Field(description="No plan of this model costs less, US dollars per hour.")
    gap: float = Field(
        description="(usd_per_hour - bound) / usd_per_hour; where scenarios are planned for by another measure than the "
        "mean cost, the gap of what is minimised, `robust.gap`."
    )
    billed_usd_per_hour: float | None = Field(
        default=None,
        description="Of usd_per_hour, what invoices of an hour show: rents, electricity, space; not the charge for what is "
        "paid at the start of purchases and reservations.",
    )
    upfront_usd: float = Field(default=0.0, description="Paid at the start of reservations, US dollars.")


class ParallelDegrees(_Part):
    """Degrees of one replica, logical devices."""

    tensor: int = Field(description="Tensor parallel degree.")
    pipeline: int = Field(description="Pipeline stages.")
    attention_data: int = Field(description="Attention data parallel degree.")
    expert: int = Field(description="Ranks that share the routed experts.")


class OperatingPoint(_Part):
    """How the replicas of a pool are run, and what they are sized for."""

    max_sequences: int = Field(description="Sequences decoded together per replica; 0 where nothing is decoded.")
    max_batched_tokens: int = Field(description="Token budget of one iteration; 0 for encoder pools.")
    memory_fraction: float = Field(description="Share of device memory given to the engine; 0 for measured workers.")
    max_context_tokens: int = Field(description="Longest request planned for, tokens.")
    encoder_processes: int = Field(description="Encoder processes per logical device.")
    fan_out: int = Field(description="Encoder processes that the images of one request go to at once.")
    batch: int = Field(description="Compiled batch size on devices with static shapes; 0 elsewhere.")
    portion: int = Field(description="Which of the ways to share an end-to-end target is kept; 0 without one.")
    design_itl_ms: float = Field(description="Mean token interval that the pool is sized for, ms.")
    wait_ms: float = Field(description="Longest planned wait of any class in the pool at its risk, ms.")
    waits_ms: dict[str, float] = Field(description="The same for each class, ms.")
    itl_promised_ms: dict[str, float] = Field(description="Interval promised to each class at its percentile, ms.")
    staffing: dict[str, str] = Field(description="Rule that sizes each queue.")


class FittedError(_Part):
    """How far times were off on measurements."""

    quantity: str = Field(description="What was compared: itl, ttft or image (the encode of one image).")
    median: float = Field(description="Absolute error over the measured value, median; 0.07 is 7 %.")
    p90: float | None = Field(description="The same at the 90th percentile; null where nobody stated it.")
    points: int = Field(description="Measurements compared.")
    held_out: bool = Field(description="Whether the fit had not seen them.")


class StageTimes(_Part):
    """Where the times of one stage come from."""

    stage: str = Field(description="encode, prefill or decode.")
    source: str = Field(description="analytic, profile or silicon.")
    confidence: str = Field(description="Weakest confidence among the figures behind the times.")
    fitted_error: FittedError | None = Field(description="Error of the fit or interpolation; null where nobody compared.")
    note: str = Field(description="What stands behind the times.")


class Pool(_Part):
    """Replicas of one kind at one operating point."""

    name: str = Field(description="Unique name.")
    key: str = Field(description="Identity of the pool's operating point among all that the models offer.")
    placement: str = Field(description="Stages that sit together.")
    stages: list[str] = Field(description="Stages that the pool runs.")
    sku: str = Field(description="SKU.")
    device: str = Field(description="Name of the device entry.")
    parallelism: ParallelDegrees
    replicas: int = Field(description="Replicas that serve.")
    spare_replicas: int = Field(description="Spare replicas on top.")
    devices: float = Field(description="Sold units of all replicas, spares included.")
    serves: dict[str, float] = Field(description="Requests per second of each class.")
    utilisation: dict[str, float] = Field(description="Load over capacity of each requirement, 1 = full.")
    binding: list[str] = Field(description="Requirements that one replica less would break.")
    usd_per_hour: float = Field(description="Share of the fleet's cost, US dollars per hour.")
    operating_point: OperatingPoint
    provenance: str = Field(
        description="Weakest source of the pool's times: analytic, silicon, profile or measured (a measured worker)."
    )
    confidence: str = Field(description="Weakest confidence among the figures behind the pool's times.")
    times: list[StageTimes] = Field(
        default_factory=list, description="Where the times of each stage come from; empty for measured workers."
    )


class Route(_Part):
    """A way of a class through the fleet."""

    pools: list[str] = Field(description="Pools passed, in order.")
    rate_per_s: float = Field(description="Requests per second on this way.")


class ClassResult(_Part):
    """What one class gets."""

    rate_per_s: float = Field(description="Requests per second planned for, headroom included.")
    ttft_ms: float | None = Field(description="Predicted TTFT at the class's percentile, ms; null if measured only.")
    itl_ms: float | None = Field(description="Predicted interval at the class's percentile, ms.")
    e2e_ms: float | None = Field(default=None, description="Predicted end-to-end time where a target exists, ms.")
    slo_met: bool = Field(description="Whether all targets are met as predicted.")
    usd_per_request: float | None = Field(description="Cost of one request of this class, US dollars.")
    routes: list[Route]


class NodeUse(_Part):
    """Servers or scale-up domains that are filled alike."""

    count: int = Field(description="How many.")
    units: int = Field(description="Sold units in each.")
    owned: bool = Field(description="Whether they are of owned units alone.")
    groups: dict[str, int] = Field(description="Groups in each, spares included, by pool; a replica is one group.")
    free: float = Field(description="Units of each that no group takes.")


class DeviceUse(_Part):
    """Sold units of one device entry."""

    used: int = Field(description="In use.")
    owned: int = Field(description="Owned and in use.")
    bought: int = Field(description="Bought or rented, whole lots.")
    stock: int | None = Field(description="Most that may be in use; null = unlimited.")
    usd_per_hour: float = Field(description="Cost of the entry, US dollars per hour.")
    basis: str = Field(
        default="", description="rent (by the hour), spot, reserved or purchase; owned where none is for sale."
    )
    billed_usd_per_hour: float | None = Field(default=None, description="Of it, what invoices of an hour show.")
    nodes: list[NodeUse] = Field(
        default_factory=list,
        description="Where replicas stand: each in one server or scale-up domain; empty where nothing is known of servers.",
    )
    racks: int | None = Field(
        default=None,
        description="Racks that the units take, each filled with units of this entry up to limits.rack_kw; null without "
        "that limit, or where no power of the entry is known.",
    )


class UnitCost(_Part):
    """Effective cost of the fleet per unit of service."""

    unit: str = Field(description="hour, month, request, image, million_input_tokens or million_output_tokens.")
    usd: float | None = Field(description="US dollars per unit; null where none is served or its count is not told.")
    per_hour: float | None = Field(description="Units in an hour: what the hourly cost is divided by.")
    denominator: str = Field(description="What is counted.")


class Tariff(_Part):
    """What one unit of a device entry costs in use, and what the plan's units of its SKU would cost at its tariff.

    Units that are held for interruptions are counted in.
    """

    device: str = Field(description="Name of the device entry.")
    sku: str
    basis: str = Field(description="rent (by the hour), spot, reserved or purchase.")
    price: float = Field(description="As stated, of one unit: US dollars per hour, or of a purchase.")
    price_date: str | None
    price_source: str | None
    usd_per_hour: float = Field(description="Effective, at full work: energy at nameplate power where units are bought.")
    idle_usd_per_hour: float = Field(description="Effective, without any work.")
    billed_usd_per_hour: float = Field(description="Of usd_per_hour, what invoices of an hour show.")
    usd_per_month: float = Field(description="usd_per_hour times 730 hours.")
    upfront_usd: float = Field(description="Paid at the start: purchase with its host, or the upfront part of a term.")
    fleet_units: int = Field(description="Units of the SKU in use in the plan, over all its entries; 0 without a plan.")
    fleet_usd_per_hour: float | None = Field(description="What all of those cost at this tariff, whole lots, at their work.")
    usd_per_request: float | None = Field(description="fleet_usd_per_hour over the requests of all classes in an hour.")
    usd_per_image: float | None = Field(description="The same over images.")
    usd_per_million_input_tokens: float | None = Field(description="The same over millions of prompt tokens.")
    usd_per_million_output_tokens: float | None = Field(description="The same over millions of generated tokens.")


class Goodput(_Part):
    """The largest multiple of the stated demand that a fleet within the limits serves; all rates of the plan are at it."""

    multiple: float = Field(description="Factor on every rate of the instance, mean rates included; headroom comes on top.")
    requests_per_s: float = Field(description="The stated rates of all classes times the multiple, headroom left out.")
    bound_multiple: float = Field(description="No fleet of this model serves a larger multiple.")
    gap: float = Field(description="(bound_multiple - multiple) / multiple.")
    points_for: list[float] = Field(description="Multiples of the demand that operating points were made for.")


class RateMultiple(_Part):
    """The multiple of the stated demand at which a request costs least; all rates of the plan are at it."""

    multiple: float = Field(description="Factor on every rate of the instance, mean rates included.")
    low: float = Field(description="Lowest multiple that was allowed.")
    high: float = Field(description="Highest multiple that was allowed.")
    bound_usd_per_request: float = Field(description="No plan of this model at any multiple allowed has a lower cost.")
    iterations: int = Field(description="Mixed-integer programmes solved.")
    points_for: list[float] = Field(description="Multiples of the demand that operating points were made for.")


class Assumption(_Part):
    """A number the plan rests on that the instance did not state."""

    text: str
    value: float | str
    unit: str
    source: str
    confidence: str


class Reason(_Part):
    """One reason why nothing is feasible."""

    limit: str
    request_class: str | None = Field(default=None, alias="class")
    wanted: float | None = None
    best_reachable: float | None = None
    text: str


class Mend(_Part):
    """A change after which the instance has a plan."""

    change: str = Field(description="Path of the value to change, as --set takes it.")
    to: Any = Field(description="What to change it to: a number, a text, a list or a mapping.")
    text: str = Field(default="", description="The change in words.")
    usd_per_hour: float | None = Field(default=None, description="Cost of the plan after it, US dollars per hour.")


class Infeasibility(_Part):
    """Why there is no plan."""

    reasons: list[Reason]
    mends: list[Mend] = Field(description="Each is enough alone; the cheapest plan first.")
    together: list[Mend] = Field(default=[], description="Changes that are enough together, where no limit is alone.")
    note: str = Field(default="", description="What was left undone.")


class SimulatedRound(_Part):
    """One fleet of a search that simulation judges."""

    planned_ms: dict[str, dict[str, float]] = Field(description="Targets that the formulas planned for: ttft, itl, ms.")
    usd_per_hour: float
    replicas: dict[str, int] = Field(description="Of each pool.")
    attainment: dict[str, dict[str, float | None]] = Field(description="Share of requests that keep each stated target.")
    target_met: bool
    idle: list[str] = Field(description="Pools that could lose a replica; looked for where all targets are met.")


class Simulated(_Part):
    """What simulation said of the plan, and of those before it."""

    rounds: list[SimulatedRound]
    chosen: int = Field(description="Index of the round that this plan is from.")
    requests: int = Field(description="Requests that counted in each round.")
    certificate: str = Field(description="What is proved and what is simulated.")


class ScenarioResult(_Part):
    """What one scenario gets of the fleet, and what it costs there."""

    name: str = Field(description="Name of the scenario.")
    weight: float = Field(description="Its share of all weight.")
    targets_met: bool = Field(description="Whether all of its demand is served within all targets.")
    served_share: float = Field(
        description="Share of its demand, the same of every class, that the fleet serves within all targets; 1 where all is."
    )
    usd_per_hour: float = Field(
        description="All of the fleet at the scenario's prices, with the energy of the planned work, US dollars per hour."
    )
    usd_per_request: float | None = Field(
        description="usd_per_hour over the scenario's mean requests per hour; null where nothing is requested."
    )
    pools: list[Pool] = Field(description="Operating points that run; empty where targets are not met.")
    classes: dict[str, ClassResult] = Field(description="What each class gets; empty where targets are not met.")
    devices: dict[str, DeviceUse] = Field(description="The fleet's units at the prices of the scenario.")
    unit_costs: list[UnitCost] = Field(default_factory=list, description="Cost of the fleet per unit of service there.")
    power_kw: float | None = Field(
        default=None, description="Nameplate IT power of the units installed in it, where that is not the whole fleet's, kW."
    )
    warnings: list[str] = Field(default=[], description="Of the scenario's own values and operating points.")


class KeptIn(_Part):
    """A fleet that was planned for something else, in one scenario."""

    targets_met: bool | None = Field(description="Whether it serves the scenario within all targets; null = not decided.")
    usd_per_hour: float | None = Field(
        description="What it costs there, without the energy of work where it does not serve it, US dollars per hour."
    )
    breaks: list[Reason] = Field(default=[], description="What breaks first, where it does not.")


class SinglePlan(_Part):
    """The plan for one workload alone, and its fleet under all scenarios."""

    planned_for: str | None = Field(description="Scenario that it is planned for; null = the workload as stated.")
    status: Status
    usd_per_hour: float | None = Field(description="What it costs in that workload, US dollars per hour.")
    bound_usd_per_hour: float | None = Field(description="No fleet serves that workload alone for less, US dollars/h.")
    fleet: dict[str, int] = Field(description="Replicas by physical pool, spares included.")
    scenarios: dict[str, KeptIn]
    held_share: float = Field(description="Weight of the scenarios in which its targets hold.")
    objective_usd_per_hour: float | None = Field(
        description="What is minimised over the scenarios, for this fleet; null where it holds in too few of them."
    )
    regret_usd_per_hour: float | None = Field(
        description="objective_usd_per_hour less that of the plan: what robustness saves against this fleet."
    )


class RobustResult(_Part):
    """One fleet for all scenarios: how good it is, and what that costs and saves."""

    minimise: Literal["expected_cost", "worst_cost", "cvar"] = Field(description="What is minimised over the scenarios.")
    cvar_level: float | None = Field(description="With cvar: share of weight that is cheaper than what counts.")
    served_share: float = Field(description="Share of weight in which targets must hold.")
    held_share: float = Field(description="Share of weight in which they hold.")
    objective_usd_per_hour: float = Field(description="What is minimised, for this fleet, US dollars per hour.")
    bound_usd_per_hour: float = Field(description="No fleet of this model has less, US dollars per hour.")
    gap: float = Field(description="(objective - bound) / objective.")
    expected_usd_per_hour: float = Field(description="Mean hourly cost by weight.")
    worst_usd_per_hour: float = Field(description="Largest hourly cost of any scenario.")
    sized_by: dict[str, str] = Field(
        description="For each pool, the scenario that asks for the most of it; the operating point and the flows that stand "
        "with the pool are its."
    )
    single_plans: list[SinglePlan] = Field(description="Plans for one workload alone, under the same scenarios.")
    note: str = Field(default="", description="What was left undone.")


class Committed(_Part):
    """Units of one device entry that are paid for at all hours."""

    device: str = Field(description="Name of the device entry.")
    basis: str = Field(description="reserved or purchase; owned where none is for sale.")
    units: int = Field(description="The commitment: units bought or reserved, and owned ones in use.")
    idle_unit_usd_per_hour: float = Field(
        description="What an hour of one unit costs that runs nothing: its charge and, at the own site, idle power."
    )
    idle_unit_hours_per_day: float = Field(description="Hours of units that run nothing, over a day.")
    idle_usd_per_day: float = Field(description="What those cost.")


class HourOfDay(_Part):
    """One hour of the day."""

    hour: int = Field(description="Begins so many hours after midnight.")
    scenario: str = Field(description="The group of hours that it is planned for with, by name among `scenarios`.")
    hired: dict[str, int] = Field(
        description="Units by device entry that are hired for the hour; those of lots all counted."
    )
    idle: dict[str, float] = Field(description="Committed units by device entry that run nothing.")
    usd_per_hour: float = Field(description="All that is committed and hired, with the energy of the work.")


class SingleTariff(_Part):
    """The best plan where all units are paid for in one way."""

    basis: str = Field(description="rent (by the hour), spot, reserved or purchase.")
    usd_per_hour: float | None = Field(description="Mean over the day; null where there is no such plan, or none was found.")
    text: str = Field(default="", description="Why there is none.")


class HoursResult(_Part):
    """Demand by the hour: what is committed to, what is hired when, and what commitment alone or none would cost."""

    committed: list[Committed]
    hours: list[HourOfDay] = Field(description="The 24 hours of the day.")
    single_tariffs: list[SingleTariff] = Field(description="Best plans with one way to pay; empty where there is one only.")


class Provenance(_Part):
    """What made the plan."""

    epd_opt: str = Field(description="Version of this program.")
    instance_sha256: str = Field(description="SHA-256 of the instance, whatever the order of its keys.")
    solver: str = Field(description="Solver and version.")
    threads: int
    seconds: float = Field(description="Wall-clock time of the whole solve.")
    prices_dated: str = Field(description="Where the prices come from.")


class PlanDocument(_Part):
    """A deployment plan."""

    schema_: Literal["epd-opt/plan/v1"] = Field(default="epd-opt/plan/v1", alias="schema")
    instance: str = Field(description="Name of the instance.")
    status: Status
    cost: Cost | None
    pools: list[Pool]
    classes: dict[str, ClassResult]
    devices: dict[str, DeviceUse]
    retired: dict[str, int] = Field(
        default_factory=dict, description="Owned units that the plan leaves unused, by device entry."
    )
    unit_costs: list[UnitCost] = Field(default_factory=list, description="Cost of the fleet per unit of service.")
    tariffs: list[Tariff] = Field(default_factory=list, description="Every priced device entry, side by side.")
    goodput: Goodput | None = Field(default=None, description="With objective goodput; else null.")
    rate_multiple: RateMultiple | None = Field(default=None, description="With objective rate_multiple; else absent.")
    infeasibility: Infeasibility | None = None
    simulated: Simulated | None = Field(default=None, description="With solve --simulate; else absent.")
    scenarios: list[ScenarioResult] | None = Field(
        default=None,
        description="With scenarios: what each gets of the fleet, by name; else absent. `classes` is empty then.",
    )
    robust: RobustResult | None = Field(default=None, description="With scenarios; else absent.")
    hours: HoursResult | None = Field(
        default=None, description="With demand by the hour, whose groups of hours are the scenarios; else absent."
    )
    assumptions: list[Assumption]
    warnings: list[str]
    instance_document: dict[str, Any]
    cards: dict[str, Any]
    provenance: Provenance

    @property
    def multiple(self) -> float:
        """Factor on the instance's rates that the plan serves."""
        chosen = self.goodput or self.rate_multiple
        return 1.0 if chosen is None else chosen.multiple

    @property
    def points_for(self) -> list[float]:
        """Multiples of the instance's demand that operating points were made for."""
        chosen = self.goodput or self.rate_multiple
        return [1.0] if chosen is None else chosen.points_for


def plan_json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of plan documents."""
    schema = PlanDocument.model_json_schema(by_alias=True, mode="serialization")
    schema["required"] = sorted({*schema["required"], "schema", "goodput"})
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": PLAN_SCHEMA, **schema}
