"""A device as sold: what its datasheet says, what it costs, and the coefficients that turn peaks into times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from epd_models.provenance import Confidence, Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficients:
    """Achieved shares and overheads of one (device, engine): the only numbers here that are fitted, not printed.

    Attributes
    ----------
    bandwidth_share, expert_bandwidth_share, kv_bandwidth_share : float
        Achieved share of memory bandwidth when streaming dense weights, routed experts (grouped kernels over whichever
        experts a batch hits) and the KV cache.
    prefill_share, decode_share, encode_share : float
        Achieved share of peak FLOP/s in the dense matrices of prefill, of decode and of the vision transformer.
    encode_attention_share : float
        Achieved share of the 16-bit peak in the vision transformer's attention.
    expert_share : float
        Achieved share of peak FLOP/s in the grouped matrices of routed experts, in prefill and decode.
    attention_share : float
        Achieved share of the 16-bit peak in attention.
    narrow_share : float
        What is left of a share for each halving of the compute format below 16 bits: doubled peaks are not used as well.
    expert_half_width : float
        Columns of an expert on one rank at which grouped matrices stream at half of ``expert_bandwidth_share``: thin
        slices fill the device badly.
    step_overhead_s : float
        Fixed time of one engine iteration (scheduler, sampler, launch).
    layer_overhead_s : float
        Per transformer layer and iteration.
    narrow_layer_overhead_s, latent_layer_overhead_s : float
        On top of it where the dense matrices compute below 16 bits (activations are quantised first), and where latent
        attention (MLA) compresses and expands its queries, keys and values.
    expert_layer_overhead_s : float
        Per mixture-of-experts layer and iteration: routing, sorting tokens by expert, launching grouped kernels.
    sequence_overhead_s : float
        Per sequence and iteration (scheduler, sampler, detokeniser).
    collective_latency_s : float
        Per collective operation.
    link_share : float
        Achieved share of the link's bandwidth in collectives and transfers.
    activation_passes : float
        Times that a layer moves the hidden state of a token (and, among experts, of each routed copy) through memory in
        prefill.
    prompt_overhead_s : float
        Latency of a first token beyond its prefill and the engine's request overhead (mixed iterations, hand-overs
        between processes); takes no device time.
    opening_share : float
        Share of the opening burst in the mean TTFT of a closed-loop benchmark, of ``concurrency`` prefills. A habit of
        benchmarks; no plan uses it.
    image_overhead_s : float
        Fixed device-side time per image.
    """

    bandwidth_share: float
    expert_bandwidth_share: float
    kv_bandwidth_share: float
    prefill_share: float
    decode_share: float
    encode_share: float
    encode_attention_share: float
    expert_share: float
    attention_share: float
    narrow_share: float
    expert_half_width: float
    step_overhead_s: float
    layer_overhead_s: float
    narrow_layer_overhead_s: float
    latent_layer_overhead_s: float
    expert_layer_overhead_s: float
    sequence_overhead_s: float
    collective_latency_s: float
    link_share: float
    activation_passes: float
    prompt_overhead_s: float
    opening_share: float
    image_overhead_s: float
    provenance: Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogPrice:
    """Public prices of a SKU; anything unknown is None.

    Attributes
    ----------
    usd_per_hour : float or None
        Median rent on demand over ``providers``.
    purchase_usd : float or None
        Typical purchase price; ``basis`` says whose.
    """

    usd_per_hour: float | None
    purchase_usd: float | None
    rent_date: str | None = None
    purchase_date: str | None = None
    providers: int | None = None
    basis: str | None = None
    rent_confidence: Confidence = Confidence.ESTIMATE
    purchase_confidence: Confidence = Confidence.ESTIMATE


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One SKU: a *sold unit*. Memory, bandwidth and peaks are those of one **logical** device, what an engine sees.

    Attributes
    ----------
    logical_per_unit : int
        Logical devices inside one sold unit; their memory does not pool.
    memory_bytes : float
        Usable bytes of one logical device.
    bandwidth : float
        Peak memory bandwidth of one logical device, bytes/s.
    peaks : Mapping[str, float]
        Dense peak operations/s of one logical device by compute format ("bf16", "fp8", "fp4", "int8").
    weight_formats, kv_formats : tuple of str
        Storage formats that engines support on this device ("bf16", "fp8", "int8", "int4", "nvfp4", "mxfp4").
    tdp_w, idle_w : float
        Nameplate and idle power of one **sold unit**; ``host_power_factor`` multiplies nameplate power to include the
        server around it.
    scaleup_bandwidth : float
        Bytes/s per logical device and direction inside the scale-up domain; 0 where there is none.
    scaleup_domain : int
        Logical devices in one scale-up domain; 1 where there is none.
    pcie_bandwidth : float
        Bytes/s of one logical device to its host.
    nic_bandwidth : float
        Bytes/s of the network per **sold unit**.
    units_per_server : int
        Sold units in one server.
    """

    sku: str
    aliases: tuple[str, ...] = ()
    vendor: str
    kind: Literal["gpu", "npu", "tpu", "asic"]
    architecture: str
    year: int | None
    form_factor: str
    logical_per_unit: int
    memory_bytes: float
    memory_type: str
    bandwidth: float
    peaks: Mapping[str, float]
    weight_formats: tuple[str, ...]
    kv_formats: tuple[str, ...]
    tdp_w: float
    idle_w: float
    host_power_factor: float
    scaleup_technology: str
    scaleup_bandwidth: float
    scaleup_domain: int
    pcie_bandwidth: float
    nic_bandwidth: float
    units_per_server: int
    host_cores: int
    coefficients: Mapping[str, Coefficients]
    batch_shapes: tuple[int, ...] = ()
    context_shapes: tuple[int, ...] = ()
    kv_reservation: Literal["paged", "full"] = "paged"
    price: CatalogPrice
    provenance: Mapping[str, Provenance] = field(default_factory=dict)
    notes: str = ""

    def units(self, logical: int) -> Fraction:
        """Sold units that ``logical`` logical devices take up (a fraction where several groups share a unit)."""
        return Fraction(logical, self.logical_per_unit)

    def coefficients_for(self, engine: str) -> Coefficients:
        """Coefficients of an engine, or the card's default ones."""
        return self.coefficients.get(engine) or self.coefficients["default"]
