"""The report of a simulation, `epd-opt/simulation/v1`: what pipelines read."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

SIMULATION_SCHEMA = "epd-opt/simulation/v1"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, ser_json_inf_nan="strings")


class Percentiles(_Part):
    """Milliseconds; null where there is nothing to measure or the quantile lies among refused requests."""

    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    mean: float | None


class Shares(_Part):
    """Shares of requests that keep a target; null where nothing was asked of it."""

    ttft: float | None
    itl: float | None
    both: float | None = Field(description="TTFT and interval, and the end-to-end target where there is one.")
    e2e: float | None = None


class Intervals(_Part):
    """95 % confidence intervals of the shares."""

    ttft: tuple[float, float] | None
    itl: tuple[float, float] | None
    both: tuple[float, float] | None
    e2e: tuple[float, float] | None = None


class Phase(_Part):
    """Requests that arrived before, during or after failures."""

    requests: int
    ttft_ms: Percentiles
    itl_ms: Percentiles
    attainment: Shares
    attainment_ci95: Intervals


class TraceTraffic(_Part):
    """How often and how unevenly the requests of a trace came, beside what the plan was made for."""

    rate_per_s: float
    busiest_rate_per_s: float = Field(description="In the busiest window; the mean where the trace is too short.")
    busiest_window_s: float = Field(description="0 where the trace is too short.")
    planned_rate_per_s: float
    gaps_scv: float | None = Field(description="Squared variation of gaps within windows; null where unknown.")
    counts_dispersion: float | None = Field(description="Variance over mean of counts in 10 s; 1 is Poisson.")
    stated_scv: float = Field(description="`interarrival_scv` of the plan's instance.")


class ClassOutcome(_Part):
    """What the requests of one class got."""

    requests: int = Field(description="Requests that count.")
    missed: int = Field(description="Of these, refused or never ended.")
    ttft_ms: Percentiles
    itl_ms: Percentiles = Field(description="Mean interval between the tokens of a request.")
    longest_gap_ms: Percentiles = Field(description="Longest single gap between the tokens of a request.")
    e2e_ms: Percentiles
    attainment: Shares
    attainment_ci95: Intervals
    target_met: bool = Field(description="Whether the upper end of every target's interval reaches its percentile.")
    untimed: list[str] = Field(
        default=[],
        description="Measured workers on its ways: up to their rate they add no time, so all times lack their part.",
    )
    phases: dict[str, Phase] | None = Field(default=None, description="Where failures were asked for.")
    traffic: TraceTraffic | None = Field(default=None, description="Of a trace.")


class Gauge(_Part):
    """A quantity over time."""

    mean: float
    max: float


class OverTime(_Part):
    """Samples of the first run, evenly spaced."""

    time_s: list[float] = Field(description="From the start of the time that counts.")
    working: list[float] = Field(description="Share of the living replicas at work.")
    queued: list[float] = Field(description="Requests waiting.")
    kv_memory: list[float] = Field(description="Share of the KV memory taken.")


class PoolOutcome(_Part):
    """What a pool went through."""

    placement: str
    replicas: int
    utilisation: float = Field(
        description="Share of time at work: of the loop, of the device of an encoder pool, of a measured worker's rate."
    )
    queue: Gauge = Field(description="Requests waiting.")
    kv_memory: Gauge | None = Field(description="Share of the KV memory taken; null where there is none.")
    preemptions: int = Field(description="Sequences that had to give their memory back, over all runs.")
    served_per_s: float
    energy_kwh_per_hour: float | None = Field(
        description="IT energy from idle and nameplate power at this utilisation; null without a device card."
    )
    over_time: OverTime


class Spending(_Part):
    """Money and energy over the requests that were served."""

    usd_per_hour: float = Field(description="Of the plan.")
    usd_per_served_request: float | None
    usd_per_request_on_target: float | None = Field(description="Over requests that keep all their targets.")
    energy_wh_per_request: float | None


class SimulationDocument(_Part):
    """A simulation."""

    schema_: Literal["epd-opt/simulation/v1"] = Field(default="epd-opt/simulation/v1", alias="schema")
    instance: str
    instance_sha256: str
    arrivals: str = Field(description="Where requests came from.")
    routing: str = Field(description="Rule inside pools.")
    seeds: list[int]
    simulated_requests: int = Field(description="Over all runs, those that do not count included.")
    seconds: float = Field(description="Simulated time that counts, over all runs.")
    failures: list[str]
    target_met: bool = Field(description="Whether every class meets its targets, as far as its times are known.")
    untimed: list[str] = Field(
        default=[],
        description="Pools of measured workers: nothing about them is timed, only whether requests come within their rates.",
    )
    classes: dict[str, ClassOutcome]
    pools: dict[str, PoolOutcome]
    spending: Spending
    notes: list[str]
    epd_opt: str = Field(description="Version of this program.")


def simulation_json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of simulation documents."""
    schema = SimulationDocument.model_json_schema(by_alias=True, mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SIMULATION_SCHEMA, **schema}
