"""A model on a device: everything a replica's times and bytes depend on, checked for legality once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from epd_models.architecture import Architecture
from epd_models.device import Coefficients, Device
from epd_models.engine import Engine
from epd_models.parallelism import Parallelism, check_legal, link_bandwidth
from epd_models.precision import Precision, check_supported, compute_format
from epd_models.ratios import LanguageRatios
from epd_models.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One replica of a model on a device, cut by ``cut`` and run by ``engine``. Build it with :meth:`checked`.

    Attributes
    ----------
    source : Source or None
        Where its times come from; None is the analytic model.
    """

    model: Architecture
    device: Device
    cut: Parallelism
    precision: Precision
    engine: Engine
    source: Source | None = None

    @classmethod
    def checked(
        cls,
        *,
        model: Architecture,
        device: Device,
        cut: Parallelism,
        precision: Precision,
        engine: Engine,
        source: Source | None = None,
    ) -> Worker:
        """A worker that can exist.

        Raises
        ------
        IllegalParallelism, UnsupportedPrecision
            With the reason.
        """
        check_supported(device.sku, "weights", precision.weights, device.weight_formats)
        check_supported(device.sku, "the KV cache", precision.kv_cache, device.kv_formats)
        compute_format(precision.weights, device.peaks)
        check_legal(cut, model, device)
        return cls(model=model, device=device, cut=cut, precision=precision, engine=engine, source=source)

    @property
    def ratios(self) -> LanguageRatios:
        """What multiplies the analytic times of prefill and decode."""
        return LanguageRatios() if self.source is None else self.source.language(self)

    @property
    def coefficients(self) -> Coefficients:
        """Coefficients of this device under this engine."""
        return self.device.coefficients_for(self.engine.name)

    @property
    def units(self) -> Fraction:
        """Sold units per replica."""
        return self.device.units(self.cut.logical_devices)

    @property
    def peak(self) -> float:
        """Peak FLOP/s of one logical device at the format the weights are multiplied in."""
        return self.device.peaks[compute_format(self.precision.weights, self.device.peaks)]

    @property
    def wide_dense(self) -> bool:
        """Whether the dense matrices stay at 16 bits, as in published MXFP4 mixtures of experts."""
        return self.model.experts is not None and self.precision.weights == "mxfp4"

    @property
    def dense_peak(self) -> float:
        """FLOP/s within reach of the dense matrices of one logical device."""
        return self.device.peaks["bf16"] if self.wide_dense else self.expert_peak

    @property
    def expert_peak(self) -> float:
        """FLOP/s within reach of the routed experts: the peak less what narrow formats lose (``narrow_share`` for each
        doubling over the 16-bit peak)."""
        doublings = math.log2(self.peak / self.device.peaks["bf16"])
        left: float = self.coefficients.narrow_share ** max(0.0, doublings)
        return self.peak * left

    @property
    def bandwidth(self) -> float:
        """Achieved bandwidth of one logical device when it streams dense weights, bytes/s."""
        return self.device.bandwidth * self.coefficients.bandwidth_share

    @property
    def expert_bandwidth(self) -> float:
        """Achieved bandwidth of one logical device when it streams routed experts, bytes/s; thin slices of experts that
        are cut over many ranks stream slower."""
        c = self.coefficients
        share = c.expert_bandwidth_share
        if self.model.experts is not None:
            slices = self.cut.tensor * self.cut.attention_data // self.cut.expert
            width = self.model.experts.dim / slices
            share *= width / (width + c.expert_half_width)
        return self.device.bandwidth * share

    @property
    def kv_bandwidth(self) -> float:
        """Achieved bandwidth of one logical device when it streams the KV cache, bytes/s."""
        return self.device.bandwidth * self.coefficients.kv_bandwidth_share

    @property
    def expert_flops_per_token(self) -> float:
        """FLOPs of one token in its routed experts, all layers, all ranks."""
        experts = self.model.experts
        return 0.0 if experts is None else 6.0 * self.model.hidden * experts.dim * experts.active * experts.layers

    @property
    def link(self) -> float:
        """Achieved bytes/s between the ranks of the replica."""
        return link_bandwidth(self.cut, self.device) * self.coefficients.link_share
