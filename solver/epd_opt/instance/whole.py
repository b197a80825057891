"""The instance itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Literal, Protocol, Self

from pydantic import AfterValidator, Discriminator, Field, PrivateAttr, Tag, ValidationError

from epd_models.placement import PLACEMENTS
from epd_opt.complaints import problems_of, to_problem
from epd_opt.cross_checks import cross_checks
from epd_opt.errors import InvalidInput, Problem
from epd_opt.fields import TAG, Currency, Day, Mapped, Name, Part, in_key_order
from epd_opt.instance.cost import Cost
from epd_opt.instance.currency import ExchangeRate
from epd_opt.instance.device import DeviceEntry
from epd_opt.instance.engine import Engine, EngineSettings
from epd_opt.instance.limits import Limits, Redundancy
from epd_opt.instance.network import Network
from epd_opt.instance.objective import Objective, SolverSettings
from epd_opt.instance.placements import Placements
from epd_opt.instance.precision import Precision
from epd_opt.instance.scenario import Robust, Scenario
from epd_opt.instance.worker import Candidates, Worker
from epd_opt.instance.workload import Workload
from epd_opt.suspicions import suspicions


def _text_or_mapping(value: object) -> str:
    return TAG + ("mapping" if isinstance(value, Mapping) else "text")


class Origin(Protocol):
    """Knows where values stand."""

    def place(self, problem: Problem) -> Problem:
        """The problem with the place of its value."""


class Instance(Part):
    """A planning problem as a user states it.

    Raises
    ------
    InvalidInput
        With every problem found; positions in a file are added by :func:`epd_opt.reading.read`.
    """

    schema_: Literal["epd-opt/instance/v1"] = Field(
        default="epd-opt/instance/v1", alias="schema", description="Version of this format."
    )
    name: Name = Field(default="instance", description="Name of the instance, any text.")
    model: (
        Annotated[
            Annotated[Name, Tag(TAG + "text")] | Annotated[Mapped, Tag(TAG + "mapping")],
            Discriminator(_text_or_mapping),
        ]
        | None
    ) = Field(
        default=None,
        description="Catalogue name, path to a Hugging Face config.json, or an inline mapping; required for "
        "modelled workers.",
    )
    engine: Engine = Field(default=EngineSettings(), description="Serving engine: its name, or a mapping of settings.")
    precision: Precision = Field(default=Precision(), description="Storage formats.")
    workload: Workload = Field(description="The classes of requests.")
    devices: tuple[DeviceEntry, ...] = Field(default=(), description="SKUs on offer.")
    network: Network = Field(default=Network(), description="Network between pools.")
    cost: Cost = Field(default=Cost(), description="Terms of ownership.")
    currencies: Annotated[dict[Currency, ExchangeRate], AfterValidator(in_key_order)] | None = Field(
        default=None, description="Rates of the currencies that amounts are stated in."
    )
    as_of: Day | None = Field(
        default=None,
        description="Day by which prices and rates are judged: dates more than a year before it warn; default: the "
        "catalogue's.",
    )
    limits: Limits = Field(default=Limits(), description="Upper limits of the whole fleet.")
    redundancy: Redundancy = Field(default=Redundancy(), description="Spares and headroom.")
    placements: Placements = Field(default=tuple(PLACEMENTS), description="Placements to consider.")
    objective: Objective = Field(
        default="cost_per_request",
        description="cost_per_request at the stated rates; goodput, the largest multiple of all rates within the limits; or "
        "{minimise: cost_per_request, rate_multiple: [low, high]} over a range of multiples.",
    )
    solver: SolverSettings = Field(default=SolverSettings(), description="Solver, gap and limits of a solve.")
    candidates: Candidates = Field(default=Candidates(), description="Modelled workers, or only measured ones.")
    workers: tuple[Worker, ...] = Field(default=(), description="Measured workers.")
    scenarios: Annotated[tuple[Scenario, ...], Field(min_length=1)] | None = Field(
        default=None,
        description="Workloads that one fleet must stand for, each served its own way; absent = the stated one alone. The "
        "stated workload counts only where a scenario has it, as {name: stated}.",
    )
    robust: Robust | None = Field(default=None, description="What such a fleet is to be best at; absent = expected_cost.")

    _origin: Origin | None = PrivateAttr(default=None)

    def __init__(self, /, **data: Any) -> None:
        found = [to_problem(broken, data) for broken in cross_checks(data)]
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise InvalidInput([*found, *problems_of(error, type(self), data)]) from None
        if found:
            raise InvalidInput(found)

    def from_origin(self, origin: Origin | None) -> Self:
        """The same, whose complaints are given the places of an origin."""
        copy = self.model_copy()
        copy._origin = origin
        return copy

    @property
    def origin(self) -> Origin | None:
        """What it was read from; None where it came from Python."""
        return self._origin

    @contextmanager
    def placing(self) -> Iterator[None]:
        """Give complaints that are raised inside, about this instance, their places in its file."""
        try:
            yield
        except InvalidInput as error:
            origin = self._origin
            if origin is None:
                raise
            raise InvalidInput(origin.place(problem) for problem in error.problems) from None

    def suspicions(self) -> list[str]:
        """Valid values that look as if typed in another unit, one sentence each, with their paths."""
        return list(suspicions(self))

    def document(self) -> dict[str, Any]:
        """The instance as a JSON-able mapping with every default written out; reading it gives the instance again."""
        document: dict[str, Any] = _without_integral_floats(self.model_dump(mode="json", by_alias=True, exclude_none=True))
        return document


def _without_integral_floats(value: Any) -> Any:
    """Whole numbers without their ``.0``, as people write them."""
    if isinstance(value, dict):
        return {key: _without_integral_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_integral_floats(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value
