"""The instance: what to serve, on what it may run, at which prices and under which limits.

Field names are those of the file and carry their units; nothing is converted here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    RootModel,
    Tag,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from epd_models.distribution import Distribution
from epd_models.parallelism import Parallelism
from epd_models.placement import PLACEMENTS
from epd_models.precision import BYTES_PER_VALUE
from epd_opt.complaints import problems_of, to_problem
from epd_opt.cross_checks import cross_checks
from epd_opt.errors import InvalidInput
from epd_opt.fields import (
    TAG,
    AtLeastOne,
    Complaint,
    Count,
    Currency,
    Day,
    HalfOpenShare,
    HoursPerYear,
    Mapped,
    Name,
    NonNegative,
    Part,
    Percentile,
    Positive,
    PositiveCount,
    PositiveShare,
    RequestRate,
    Share,
    StatedDate,
    complaint,
    in_key_order,
    shown,
)
from epd_opt.suspicions import suspicions

SCHEMA = "epd-opt/instance/v1"

Stage = Literal["encode", "prefill", "decode"]
STAGES: tuple[Stage, ...] = ("encode", "prefill", "decode")
HOURS = 24
"""Of a day; demand by the hour has as many factors."""


def _no_repeats(values: tuple[Any, ...]) -> tuple[Any, ...]:
    repeated = [value for index, value in enumerate(values) if value in values[:index]]
    if repeated:
        raise complaint(f"{repeated[0]!r} is listed twice", "list every one once")
    return values


def _in_stage_order(values: tuple[Stage, ...]) -> tuple[Stage, ...]:
    return tuple(stage for stage in STAGES if stage in _no_repeats(values))


def _placement(value: object) -> object:
    if isinstance(value, str) and value not in PLACEMENTS:
        near = get_close_matches(value.lower(), PLACEMENTS, n=1)
        raise complaint(
            f"found {shown(value)}, expected {' or '.join(PLACEMENTS)}", f"did you mean {near[0]}?" if near else ""
        )
    return value


def _in_placement_order(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(placement for placement in PLACEMENTS if placement in _no_repeats(values))


def _ascending(values: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(_no_repeats(values)))


def _sorted(value: dict[str, Any]) -> dict[str, Any]:
    return dict(sorted(value.items()))


def _profile_of_a_day(values: tuple[float, ...]) -> tuple[float, ...]:
    if len(values) != HOURS:
        raise complaint(f"found {len(values)} numbers, expected {HOURS}, one for each hour of a day from midnight")
    if not any(values):
        raise complaint("all hours are 0", "for a class without requests write rate_per_s: 0")
    return values


Placement = Annotated[str, Field(json_schema_extra={"enum": list(PLACEMENTS)}), BeforeValidator(_placement)]
Stages = Annotated[tuple[Stage, ...], Field(min_length=1), AfterValidator(_in_stage_order)]
Degrees = Annotated[tuple[PositiveCount, ...], Field(min_length=1), AfterValidator(_ascending)]
Format = Annotated[str, Field(json_schema_extra={"enum": sorted(BYTES_PER_VALUE)})]


def _format(value: object) -> object:
    if isinstance(value, str) and value not in BYTES_PER_VALUE:
        hint = "use bf16, which takes the same room and time" if value in {"fp16", "float16", "bfloat16"} else ""
        raise complaint(f"found {shown(value)}, expected one of {', '.join(sorted(BYTES_PER_VALUE))}", hint)
    return value


StorageFormat = Annotated[Format, BeforeValidator(_format)]


class Lognormal(Part):
    """A size that varies as a lognormal does."""

    mean: Positive = Field(description="Mean over requests.")
    p95: Positive = Field(description="95th percentile over requests.")

    def complaints(self) -> Iterator[Complaint]:
        try:
            self.distribution()
        except ValueError as error:
            yield Complaint(where=("p95",), message=str(error), hint="a wider spread fits {values: [[value, weight], ...]}")

    def distribution(self) -> Distribution:
        """As 32 values with weights."""
        return Distribution.lognormal(mean=self.mean, p95=self.p95)


class Values(Part):
    """A size given value by value."""

    values: tuple[tuple[NonNegative, NonNegative], ...] = Field(
        min_length=1, description="Pairs [value, weight]; weights are normalised."
    )

    def complaints(self) -> Iterator[Complaint]:
        if sum(weight for _, weight in self.values) <= 0:
            yield Complaint(where=("values",), message="all weights are 0", hint="weights are relative shares")

    def distribution(self) -> Distribution:
        """The values as given, in ascending order."""
        return Distribution.of_values(self.values)


def _quantity_form(value: object) -> str:
    if isinstance(value, Values) or (isinstance(value, Mapping) and "values" in value):
        return TAG + "values"
    if isinstance(value, Lognormal | Mapping):
        return TAG + "lognormal"
    return TAG + "number"


class Quantity(
    RootModel[
        Annotated[
            Annotated[NonNegative, Tag(TAG + "number")]
            | Annotated[Lognormal, Tag(TAG + "lognormal")]
            | Annotated[Values, Tag(TAG + "values")],
            Discriminator(_quantity_form),
        ]
    ]
):
    """A number per request, the same for all or varying.

    Examples
    --------
    >>> Quantity(800.0).distribution().mean
    800.0
    """

    model_config = ConfigDict(frozen=True)

    def distribution(self) -> Distribution:
        """The discrete distribution that stands for it."""
        if isinstance(self.root, Lognormal | Values):
            return self.root.distribution()
        return Distribution.constant(self.root)


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


class Images(Part):
    """Images of one request: by pixels (the model's own rule gives tokens) or by tokens."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["tokens"]}, {"required": ["width_px", "height_px"]}]}
    )

    count: Quantity = Field(description="Images per request: a number, {mean, p95} or {values}; 0 = no images.")
    width_px: PositiveCount | None = Field(default=None, description="Width as the model receives it, pixels.")
    height_px: PositiveCount | None = Field(default=None, description="Height as the model receives it, pixels.")
    max_tokens: PositiveCount | None = Field(
        default=None, description="Most tokens per image; the image is scaled down to it."
    )
    tokens: Positive | None = Field(default=None, description="Tokens per image, in place of width_px and height_px.")
    source_megapixels: Positive | None = Field(
        default=None, description="Megapixels per image as uploaded, which the host decodes; default width x height."
    )
    cached_share: Share = Field(
        default=0.0, description="Share of images (0 to 1) whose embeddings are found in the encoder cache."
    )

    def complaints(self) -> Iterator[Complaint]:
        given = [key for key in ("width_px", "height_px", "max_tokens") if getattr(self, key) is not None]
        missing = [key for key in ("width_px", "height_px") if key not in given]
        hint = "give width_px and height_px, or tokens"
        if self.tokens is not None and given:
            yield Complaint(where=("tokens",), message=f"tokens and {', '.join(given)} are both given", hint=hint)
        if self.tokens is None and missing:
            yield Complaint(message=f"the size of an image is missing: no {' and no '.join(missing)}", hint=hint)


class Video(Part):
    """One clip per request, sampled at ``fps`` up to ``max_frames``."""

    seconds: Positive = Field(description="Length of the clip, seconds.")
    fps: Positive = Field(description="Sampled frames per second.")
    width_px: PositiveCount = Field(description="Width of a frame, pixels.")
    height_px: PositiveCount = Field(description="Height of a frame, pixels.")
    max_frames: PositiveCount | None = Field(default=None, description="Most frames sampled from a clip.")
    max_tokens_per_frame: PositiveCount | None = Field(default=None, description="Most tokens per frame.")


Profile = Annotated[tuple[NonNegative, ...], AfterValidator(_profile_of_a_day)]


def _hourly_form(value: object) -> str:
    return TAG + ("name" if isinstance(value, str) else "numbers")


class RequestClass(Part):
    """One class of requests."""

    name: Name = Field(description="Any text, unique among the classes.")
    rate_per_s: RequestRate = Field(description="Requests per second to plan for (peak); 0 is a rate.")
    mean_rate_per_s: RequestRate | None = Field(
        default=None, description="Requests per second that the cost is divided by; default rate_per_s."
    )
    hourly: (
        Annotated[Annotated[Name, Tag(TAG + "name")] | Annotated[Profile, Tag(TAG + "numbers")], Discriminator(_hourly_form)]
        | None
    ) = Field(
        default=None,
        description="Factors on rate_per_s for the 24 hours of a day from midnight, or the name of a profile under "
        "`workload.profiles`; absent = the same at all hours.",
    )
    text_tokens: Quantity = Field(
        default=Quantity(0.0),
        description="Text tokens of the prompt: a number, {mean, p95} (lognormal) or {values: [[value, weight], ...]}.",
    )
    cached_tokens: NonNegative = Field(
        default=0.0, description="Prompt tokens found in the prefix cache: no prefill work, but KV memory."
    )
    output_tokens: Quantity | None = Field(
        default=None,
        description="Tokens generated: a number, {mean, p95} or {values}; required for modelled workers.",
    )
    interarrival_scv: NonNegative = Field(
        default=1.0,
        description="Squared coefficient of variation of the gaps between arrivals; 1 = Poisson, above = burstier.",
    )
    images: Images | None = Field(default=None, description="Images of one request.")
    video: Video | None = Field(default=None, description="The clip of one request.")
    slo: Slo = Field(default=Slo(), description="Latency targets.")

    @property
    def has_images(self) -> bool:
        """Whether any request of the class carries an image."""
        return self.images is not None and self.images.count.distribution().mean > 0

    @property
    def has_vision(self) -> bool:
        """Whether any request of the class carries an image or a clip."""
        return self.has_images or self.video is not None

    def complaints(self) -> Iterator[Complaint]:
        if self.mean_rate_per_s is not None and self.hourly is not None:
            yield Complaint(
                where=("mean_rate_per_s",),
                message="mean_rate_per_s and hourly are both given",
                hint="the mean follows from the hours: leave mean_rate_per_s out",
            )
        if self.mean_rate_per_s is not None and self.mean_rate_per_s > self.rate_per_s:
            yield Complaint(
                where=("mean_rate_per_s",),
                message=f"found {self.mean_rate_per_s:g}, expected at most rate_per_s = {self.rate_per_s:g}",
                hint="rate_per_s is the peak to plan for",
            )
        text = self.text_tokens.distribution().mean
        if self.cached_tokens > 0 and self.cached_tokens >= text:
            yield Complaint(
                where=("cached_tokens",),
                message=f"found {self.cached_tokens:g}, expected less than text_tokens = {text:g}",
                hint="at least one token of a prompt is prefilled",
            )
        if self.output_tokens is not None and self.output_tokens.distribution().values[0] < 1:
            wide = isinstance(self.output_tokens.root, Lognormal) and self.output_tokens.root.mean >= 1
            if not wide:
                yield Complaint(
                    where=("output_tokens",),
                    message=f"found {self.output_tokens.distribution().values[0]:g}, expected at least 1",
                    hint="a request ends with its first token at the earliest",
                )


class Workload(Part):
    """What is asked of the fleet."""

    classes: tuple[RequestClass, ...] = Field(min_length=1, description="Classes of requests, at least one.")
    profiles: Annotated[dict[str, Profile], AfterValidator(_sorted)] | None = Field(
        default=None, description="Hours of a day that several classes share, by name: 24 factors on their rates."
    )
    hourly_step: Share | None = Field(
        default=None,
        description="Hours are planned for together where their factors, rounded up to multiples of this, are equal; each "
        "class is then planned for at the largest of them. Absent = only equal hours are.",
    )

    def complaints(self) -> Iterator[Complaint]:
        if self.hourly_step is not None and all(request.hourly is None for request in self.classes):
            yield Complaint(where=("hourly_step",), message="no class has hourly", hint="leave it out, or give hourly")

    def profile(self, request: RequestClass) -> tuple[float, ...]:
        """Factors on the rate of a class, hour by hour."""
        if isinstance(request.hourly, str):
            return (self.profiles or {})[request.hourly]
        return (1.0,) * HOURS if request.hourly is None else request.hourly

    @property
    def by_the_hour(self) -> bool:
        """Whether demand goes by the hour of the day."""
        return any(request.hourly is not None for request in self.classes)


class Speculative(Part):
    """Speculative decoding."""

    draft_tokens: PositiveCount = Field(description="Tokens drafted per step.")
    accepted_tokens: NonNegative = Field(description="Drafted tokens that stand per step, on average.")

    def complaints(self) -> Iterator[Complaint]:
        if self.accepted_tokens > self.draft_tokens:
            yield Complaint(
                where=("accepted_tokens",),
                message=f"found {self.accepted_tokens:g}, expected at most draft_tokens = {self.draft_tokens}",
            )


EngineName = Literal["vllm", "sglang", "trtllm", "generic", "tuned"]


class EngineSettings(Part):
    """A serving engine and the limits it is run with; what is absent holds as the engine has it."""

    name: EngineName = Field(default="generic", description="Engine.")
    max_sequences: PositiveCount | None = Field(default=None, description="Sequences decoded together per replica.")
    max_batched_tokens: PositiveCount | None = Field(
        default=None, description="Token budget of one iteration: the prefill chunk."
    )
    memory_fraction: PositiveShare | None = Field(
        default=None, description="Share of a device's memory that the engine may use (0 to 1)."
    )
    encoder_cache_gib: NonNegative | None = Field(default=None, description="Room for image embeddings, GiB.")
    encoder_processes: PositiveCount | None = Field(
        default=None,
        description="Encoder processes per device, beside a language model and on devices of their own, as far as cores and "
        "memory go; the engine card has a number for each.",
    )
    speculative: Speculative | None = Field(default=None, description="Speculative decoding; absent = none.")


def _engine_form(value: object) -> object:
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, Mapping) and "name" not in value:
        raise complaint("the engine's name is missing", "add name: vllm, sglang, trtllm, generic or tuned")
    return value


Engine = Annotated[
    EngineSettings,
    BeforeValidator(_engine_form, json_schema_input_type=EngineName | EngineSettings),
]


class Precision(Part):
    """Storage formats; what is absent follows the checkpoint or, on a device entry, the instance."""

    weights: StorageFormat | None = Field(default=None, description="Format of the language model's weights.")
    kv_cache: StorageFormat | None = Field(default=None, description="Format of the KV cache.")
    encoder: StorageFormat | None = Field(default=None, description="Format of the vision encoder's weights.")


def _amount_form(value: object) -> str:
    return TAG + ("mapping" if isinstance(value, Mapping) else "number")


Amount = Annotated[
    Annotated[NonNegative, Tag(TAG + "number")]
    | Annotated[dict[Currency, NonNegative], Field(min_length=1, max_length=1), Tag(TAG + "mapping")],
    Discriminator(_amount_form),
]
"""US dollars, or an amount in another currency as in {EUR: 4.20}, converted at the rate under `currencies`."""


class ExchangeRate(Part):
    """What one unit of a currency is worth."""

    usd_per_unit: Positive = Field(description="US dollars per unit of the currency.")
    source: Name = Field(description="Whose rate it is.")
    date: StatedDate | None = Field(default=None, description="Date of the rate: YYYY-MM-DD, YYYY-MM or YYYY.")


class Reserved(Part):
    """A unit rented for all hours of a term."""

    usd_per_hour: Amount = Field(
        description="Whole rate over the term, upfront part included, US dollars per hour (of 8760 a year) and `per`."
    )
    term_years: Positive = Field(description="Years that are paid for.")
    upfront_share: Share | None = Field(
        default=None, description="Share (0 to 1) of all that is paid over the term that is paid at its start; default 0."
    )
    upfront_usd: Amount | None = Field(
        default=None, description="In place of upfront_share: the part that is paid at the start, US dollars per `per`."
    )

    def complaints(self) -> Iterator[Complaint]:
        if self.upfront_share is not None and self.upfront_usd is not None:
            yield Complaint(
                where=("upfront_usd",), message="upfront_share and upfront_usd are both given", hint="keep one of them"
            )


class Spot(Part):
    """A unit rented by the hour that may be taken away at any time."""

    usd_per_hour: Amount = Field(description="All-in rent, US dollars per hour and `per`.")
    interruption_allowance: NonNegative = Field(
        description="Units held on top of those in use, as a share of them: 0.25 holds 5 for 4 in use."
    )


PRICE_AMOUNTS = ("usd_per_hour", "purchase_usd", "reserved", "spot", "catalog")


class Price(Part):
    """What one unit, or what it is sold by, costs: an all-in rent, a reservation, spot, or a purchase."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [key]} for key in PRICE_AMOUNTS]})

    usd_per_hour: Amount | None = Field(
        default=None,
        description="All-in rent, host and power included, US dollars per hour and `per`; {EUR: 4.20} for another currency.",
    )
    purchase_usd: Amount | None = Field(default=None, description="Purchase price, US dollars per `per`.")
    reserved: Reserved | None = Field(default=None, description="All-in rent for a term, all hours of which are paid for.")
    spot: Spot | None = Field(default=None, description="All-in rent of units that may be taken away.")
    catalog: Literal["rent", "purchase"] | None = Field(
        default=None, description="The catalogue's median rent or typical purchase price, with its date and source."
    )
    per: Literal["device", "server", "rack"] = Field(default="device", description="What the price is for.")
    pack: PositiveCount = Field(default=1, description="Smallest lot, in sold units.")
    minimum: Count = Field(default=0, description="Fewest sold units of an order, if any are bought or rented at all.")
    date: StatedDate | None = Field(default=None, description="Date of the price: YYYY-MM-DD, YYYY-MM or YYYY.")
    source: Name | None = Field(default=None, description="Whose price it is.")

    @property
    def is_hourly(self) -> bool:
        """Whether units are rented by the hour, and may be given back after it."""
        return self.usd_per_hour is not None or self.spot is not None or self.catalog == "rent"

    @property
    def is_purchase(self) -> bool:
        """Whether units are bought, and powered at the own site."""
        return self.purchase_usd is not None or self.catalog == "purchase"

    def complaints(self) -> Iterator[Complaint]:
        given = [key for key in PRICE_AMOUNTS if getattr(self, key) is not None]
        if not given:
            yield Complaint(
                message="the price has no amount", hint="give usd_per_hour or purchase_usd, or reserved, spot or catalog"
            )
        elif len(given) > 1:
            yield Complaint(
                where=(given[1],),
                message=f"{' and '.join(given)} are {'both' if len(given) == 2 else 'all'} given",
                hint="offer the SKU twice under two names to let the plan choose between rent and purchase",
            )
        elif self.catalog is not None:
            for key, default in (("per", "device"), ("date", None), ("source", None)):
                if getattr(self, key) != default:
                    yield Complaint(where=(key,), message="the catalogue's price has its own", hint="leave it out")


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


def _hide_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


class ProfileFile(Part):
    """A CSV file of measurements, embedded."""

    file: Name = Field(description="Its name, for messages.")
    csv: str = Field(
        description="Its content: serving runs with the columns of `epd-opt predict`, or stage times with the columns "
        "stage, model, sku, cut, dtype, batch, context_tokens, new_tokens, megapixels and time_ms or time_s."
    )


def _profile(value: object) -> object:
    if isinstance(value, str):
        raise complaint(
            f"found the text {shown(value)}, expected a mapping",
            "paths to profiles are followed only when an instance is read with epd_opt.read",
        )
    return value


class Silicon(Part):
    """Kernel tables of the package aiconfigurator-core (`pip install 'epd-opt[silicon]'`)."""

    fallback: Literal["analytic"] | None = Field(
        default=None,
        description="What stands in, with a warning, where the tables do not cover a worker; absent = nothing does.",
    )


class Performance(Part):
    """Where the times of a device come from: measurements or kernel tables in place of the analytic model alone."""

    profile: (
        Annotated[
            ProfileFile,
            BeforeValidator(_profile, json_schema_input_type=str | ProfileFile),
        ]
        | None
    ) = Field(
        default=None,
        description="Path of a CSV file of measurements, relative to the instance: serving runs with the columns of "
        "`epd-opt predict`, or stage times with those of `csv`.",
    )
    strict: bool = Field(
        default=False,
        strict=True,
        description="With a profile: stages, degrees and sizes without measurements are refused instead of left to the "
        "analytic model with a warning.",
    )
    silicon: Silicon | None = Field(
        default=None,
        description="Kernel tables: {} or {fallback: analytic}; `performance: silicon` is short for {silicon: {}}.",
    )

    def complaints(self) -> Iterator[Complaint]:
        if self.profile is None and self.silicon is None:
            yield Complaint(
                message="no source is named", hint="give profile: FILE.csv or silicon: {}, or performance: analytic"
            )
        if self.profile is not None and self.silicon is not None:
            yield Complaint(where=("silicon",), message="profile and silicon are both given", hint="keep one of them")
        if self.strict and self.profile is None:
            yield Complaint(
                where=("strict",), message="strict belongs to a profile", hint="silicon is strict without fallback"
            )

    @property
    def source(self) -> str:
        """Name of the source."""
        return "silicon" if self.profile is None else "profile"

    def settings(self) -> dict[str, Any]:
        """What the source is told."""
        if self.profile is not None:
            return {**self.profile.model_dump(), "strict": self.strict}
        return {} if self.silicon is None else self.silicon.model_dump()


def _performance_form(value: object) -> object:
    if value == "analytic":
        return None
    if value == "silicon":
        return {"silicon": {}}
    if isinstance(value, str):
        hint = "give performance: {profile: FILE.csv}" if value == "profile" or value.lower().endswith(".csv") else ""
        raise complaint(f"found {shown(value)}, expected analytic, silicon or a mapping", hint)
    return value


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
    parallelism: Annotated[tuple[Cut, ...], Field(min_length=1), AfterValidator(_no_repeats)] | None = Field(
        default=None, description="Parallel degrees to consider; absent = whatever is legal."
    )
    stages: Stages = Field(default=STAGES, description="Stages that this device may serve.")
    precision: Precision | None = Field(default=None, description="Storage formats that override the instance's.")
    host_cores: PositiveCount | None = Field(default=None, description="CPU cores per server for image processing.")
    power_w: Positive | None = Field(default=None, description="Nameplate power of one sold unit, watts.")
    idle_power_w: NonNegative | None = Field(default=None, description="Idle power of one sold unit, watts.")
    card: (
        Annotated[
            Mapped,
            BeforeValidator(_card),
            WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}]}),
        ]
        | None
    ) = Field(
        default=None,
        description="Keys of a device card that override the catalogue's, or a complete card, or the path to one.",
    )
    coefficients: (
        Annotated[
            Mapped,
            BeforeValidator(_card),
            WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}]}),
        ]
        | None
    ) = Field(
        default=None,
        description="Fitted shares and overheads by engine that override the card's, or the path of a coefficients card, as "
        "`epd-opt calibrate` writes it.",
    )
    performance: Annotated[
        Performance | None,
        BeforeValidator(_performance_form, json_schema_input_type=Literal["analytic", "silicon"] | Performance | None),
    ] = Field(default=None, description="Where the times of this device come from; absent = the analytic model.")

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


class Network(Part):
    """The network between pools; what is absent follows the cards' NICs."""

    gbit_per_s_per_device: Positive | None = Field(default=None, description="Gbit/s per sold unit and direction.")
    latency_us: NonNegative | None = Field(default=None, description="Latency of one transfer, microseconds.")
    conversion_factor: Positive = Field(
        default=1.0, description="Multiplies the KV bytes moved between devices of different vendors."
    )
    forbidden_kv_pairs: tuple[tuple[Name, Name], ...] = Field(
        default=(), description="Pairs [from, to] of device names, SKUs or vendors between which no KV cache may move."
    )


class Cost(Part):
    """Terms of ownership; what is absent follows the catalogue's typical constants."""

    life_years: Positive | None = Field(default=None, description="Years over which a purchase is written off.")
    residual: Share | None = Field(default=None, description="Share of the price left at the end of life (0 to 1).")
    cost_of_capital: NonNegative | None = Field(default=None, description="Interest per year: 0.08 is 8 per cent.")
    host_share: NonNegative | None = Field(
        default=None, description="Price of the server around a device, as a share of the device's purchase price."
    )
    hours_per_year: HoursPerYear | None = Field(default=None, description="Hours of service per year.")
    pue: AtLeastOne | None = Field(default=None, description="Power usage effectiveness, >= 1.")
    electricity_usd_per_kwh: Amount | None = Field(default=None, description="Tariff, US dollars per kWh.")
    colocation_usd_per_kw_month: Amount | None = Field(
        default=None,
        description="Space and cooling at the own site, US dollars per kW of nameplate IT power and month, for bought and "
        "owned units; absent = not charged.",
    )


class Limits(Part):
    """Inclusive limits of the whole fleet; absent = none."""

    usd_per_hour: NonNegative | None = Field(default=None, description="Cost, US dollars per hour.")
    power_kw: NonNegative | None = Field(default=None, description="Sum of nameplate IT power, hosts included, kW.")
    devices: Count | None = Field(default=None, description="Sold units in use.")
    skus: PositiveCount | None = Field(default=None, description="Different SKUs in use.")
    rack_kw: Positive | None = Field(
        default=None,
        description="Nameplate IT power that one rack may draw, hosts included, kW; no unit, or server bought whole, that "
        "draws more is planned with.",
    )
    racks: Count | None = Field(
        default=None, description="Racks at the site, each filled with units of one device entry up to rack_kw."
    )
    forbid: Annotated[tuple[Name, ...], AfterValidator(_no_repeats)] = Field(
        default=(), description="Device names, SKUs, vendors or kinds (gpu, npu, tpu, asic) that no plan uses."
    )
    require: Annotated[tuple[Name, ...], AfterValidator(_no_repeats)] = Field(
        default=(),
        description="Device names, SKUs, vendors or kinds; each serves at least a hundredth of some class at some stage.",
    )

    def complaints(self) -> Iterator[Complaint]:
        if self.racks is not None and self.rack_kw is None:
            yield Complaint(
                where=("racks",),
                message="found without rack_kw, which says how many units stand in a rack",
                hint="give the nameplate power of a rack, as in {racks: 10, rack_kw: 40}",
            )


class Redundancy(Part):
    """Capacity held back."""

    spare_replicas: Count = Field(default=0, description="Spare replicas per physical pool.")
    zones: PositiveCount = Field(
        default=1, description="Zones that the replicas of every physical pool are spread over evenly."
    )
    survive_zones: Count = Field(
        default=0, description="Zones that may be lost while the replicas of the others still serve all demand."
    )
    headroom: NonNegative = Field(default=0.0, description="Share of every rate added before planning: 0.2 is 20 %.")

    def complaints(self) -> Iterator[Complaint]:
        if self.survive_zones >= self.zones:
            yield Complaint(
                where=("survive_zones",) if self.survive_zones else ("zones",),
                message=f"found {self.survive_zones}, expected less than zones = {self.zones}",
                hint="some zone must be left: {zones: 3, survive_zones: 1} survives the loss of any one of three",
            )


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


class Candidates(Part):
    """Where the workers to choose from come from."""

    modelled: bool = Field(
        default=True, strict=True, description="Whether the performance models add workers to the measured ones."
    )


def _rates_form(value: object) -> str:
    return TAG + ("mapping" if isinstance(value, Mapping) else "number")


Rates = Annotated[dict[str, NonNegative], AfterValidator(in_key_order)]


class Worker(Part):
    """A worker that somebody measured; it meets every target up to its rate and adds no delay."""

    name: Name = Field(description="Any text, unique among the workers.")
    sku: Name = Field(description="SKU or device name that it runs on.")
    devices: PositiveCount = Field(description="Sold units per replica.")
    stages: Stages = Field(description="Stages that it covers, without a gap.")
    max_rate_per_s: Annotated[
        Annotated[NonNegative, Tag(TAG + "number")] | Annotated[Rates, Tag(TAG + "mapping")],
        Discriminator(_rates_form),
    ] = Field(description="Requests per second and replica at the targets: a number, or {class: rate, default: rate}.")

    def complaints(self) -> Iterator[Complaint]:
        if self.stages == ("encode", "decode"):
            yield Complaint(
                where=("stages",),
                message="found encode and decode without prefill, expected stages that follow one another",
                hint="describe two workers",
            )
        if isinstance(self.max_rate_per_s, dict) and not self.max_rate_per_s:
            yield Complaint(where=("max_rate_per_s",), message="no rate is given", hint="add default: RATE")

    def rate_per_s(self, request_class: str) -> float | None:
        """Most requests of a class per second and replica, all of one kind; None where the class is not served."""
        if not isinstance(self.max_rate_per_s, dict):
            return self.max_rate_per_s
        return self.max_rate_per_s.get(request_class, self.max_rate_per_s.get("default"))


class Scenario(Part):
    """One of the workloads that the fleet stands for, as changes of the stated one."""

    name: Name = Field(description="Any text, unique among the scenarios.")
    weight: Positive = Field(default=1.0, description="How much it counts: a probability or a share of time; normalised.")
    changes: Annotated[dict[str, Any], AfterValidator(in_key_order)] = Field(
        default={},
        alias="set",
        description="Paths below workload, of rents (devices.NAME.price.usd_per_hour), of cost.electricity_usd_per_kwh or "
        "cost.pue, and the values that hold there; x1.5 is one and a half times what the instance states. Nothing = the "
        "workload as stated.",
    )


class Robust(Part):
    """What a fleet for several scenarios is to be best at, and how often its targets must hold."""

    minimise: Literal["expected_cost", "worst_cost", "cvar"] = Field(
        default="expected_cost",
        description="Of the hourly cost over the scenarios: expected_cost, its mean by weight; worst_cost, its largest; "
        "cvar, its mean over the dearest scenarios.",
    )
    cvar_level: HalfOpenShare | None = Field(
        default=None,
        description="With cvar: share of weight (0 to below 1) that is cheaper than the scenarios that count; default 0.9.",
    )
    served_share: PositiveShare = Field(
        default=1.0, description="Least share of weight (above 0, to 1) of the scenarios in which every target must hold."
    )

    def complaints(self) -> Iterator[Complaint]:
        if self.cvar_level is not None and self.minimise != "cvar":
            yield Complaint(
                where=("cvar_level",),
                message=f"belongs to minimise: cvar, and {self.minimise} is minimised",
                hint="leave it out, or give minimise: cvar",
            )

    @property
    def level(self) -> float:
        """The level of cvar, as stated or by default."""
        return 0.9 if self.cvar_level is None else self.cvar_level


def _text_or_mapping(value: object) -> str:
    return TAG + ("mapping" if isinstance(value, Mapping) else "text")


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
    placements: Annotated[tuple[Placement, ...], Field(min_length=1), AfterValidator(_in_placement_order)] = Field(
        default=tuple(PLACEMENTS), description="Placements to consider."
    )
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

    def __init__(self, /, **data: Any) -> None:
        found = [to_problem(broken, data) for broken in cross_checks(data)]
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise InvalidInput([*found, *problems_of(error, type(self), data)]) from None
        if found:
            raise InvalidInput(found)

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


def instance_sha256(instance: Instance) -> str:
    """SHA-256 (hex) of what the instance says: neither the order of keys nor that of named things counts."""
    document = instance.document()
    lists = [document["workload"]["classes"], document["devices"], document["workers"], document.get("scenarios", [])]
    for named in lists:
        named.sort(key=lambda item: item["name"])
    document["network"]["forbidden_kv_pairs"].sort()
    document["limits"]["forbid"].sort()
    document["limits"]["require"].sort()
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def instance_json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of instance files, from the same source as their validation."""
    schema = Instance.model_json_schema(by_alias=True, mode="validation")
    schema["required"] = sorted({*schema["required"], "schema"})
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **schema}
