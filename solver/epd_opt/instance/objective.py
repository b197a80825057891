"""What is best, and how its solver is set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from epd_opt.fields import TAG, Complaint, Name, Part, Positive, PositiveCount, Share

_WIDEST_RANGE = 100.0
"""Over wider ranges of demand the solvers' exactness is coarser than the usual gap."""


class CostOverRange(Part):
    """Least cost per request over a range of demand."""

    minimise: Literal["cost_per_request"] = Field(description="What to minimise.")
    rate_multiple: tuple[Positive, Positive] = Field(description="[low, high]: range of the factor on every rate.")

    def complaints(self) -> Iterator[Complaint]:
        low, high = self.rate_multiple
        if low > high:
            yield Complaint(where=("rate_multiple",), message=f"found [{low:g}, {high:g}], expected [low, high]")
        elif high > _WIDEST_RANGE * low:
            message = f"from {low:g} to {high:g} is too wide a range for one proof: high may be {_WIDEST_RANGE:g} times low"
            yield Complaint(where=("rate_multiple",), message=message, hint="solve narrower ranges one by one")


def _objective_form(value: object) -> str:
    return TAG + ("range" if isinstance(value, Mapping | CostOverRange) else "name")


Objective = Annotated[
    Annotated[Literal["cost_per_request", "goodput"], Tag(TAG + "name")] | Annotated[CostOverRange, Tag(TAG + "range")],
    Discriminator(_objective_form),
]


class SolverSettings(Part):
    """How the programme is solved."""

    name: Name = Field(default="highs", description="Solver; `epd-opt solvers` lists them.")
    gap: Share = Field(default=0.001, description="Relative gap at which a plan counts as proved.")
    time_limit_s: Positive = Field(default=60.0, description="Wall-clock limit, seconds.")
    threads: PositiveCount = Field(default=2, description="Threads of the solver.")
