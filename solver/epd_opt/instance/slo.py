"""Latency targets."""

from __future__ import annotations

from pydantic import Field

from epd_opt.fields import Part, Percentile, Positive


class Slo(Part):
    """Latency targets of a class, each judged by itself at its percentile over requests."""

    ttft_ms: Positive | None = Field(
        default=None, description="Time to first token at the client, milliseconds; required for modelled workers."
    )
    itl_ms: Positive | None = Field(
        default=None,
        description="Inter-token latency of a request, (end to end - TTFT)/(output tokens - 1), milliseconds; required "
        "for modelled workers unless every request has one output token.",
    )
    e2e_ms: Positive | None = Field(default=None, description="End-to-end latency, milliseconds; absent = no target.")
    percentile: Percentile = Field(
        default=95.0, description="Per cent of requests that meet a target that has no percentile of its own."
    )
    ttft_percentile: Percentile | None = Field(default=None, description="Per cent of requests that meet ttft_ms.")
    itl_percentile: Percentile | None = Field(default=None, description="Per cent of requests that meet itl_ms.")
    e2e_percentile: Percentile | None = Field(default=None, description="Per cent of requests that meet e2e_ms.")
    planned_ttft_ms: Positive | None = Field(
        default=None,
        description="What the formulas plan for in place of ttft_ms, milliseconds; simulation still judges by ttft_ms. "
        "`solve --simulate` finds it.",
    )
    planned_itl_ms: Positive | None = Field(default=None, description="The same in place of itl_ms, milliseconds.")
