"""How one replica is cut over logical devices."""

from __future__ import annotations

from dataclasses import dataclass

from epd_models.architecture import Architecture
from epd_models.device import Device


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Parallelism:
    """Parallel degrees of one replica, counted in logical devices.

    A replica takes ``tensor * pipeline * attention_data`` logical devices. ``expert`` ranks share the routed experts
    and must divide ``tensor * attention_data``; what is left over cuts each expert by tensor parallelism.
    """

    tensor: int = 1
    pipeline: int = 1
    attention_data: int = 1
    expert: int = 1

    @property
    def logical_devices(self) -> int:
        """Logical devices of one replica."""
        return self.tensor * self.pipeline * self.attention_data

    @property
    def label(self) -> str:
        """Short name as in plan documents.

        >>> Parallelism(tensor=8, attention_data=2, expert=16).label
        'tp8-dp2-ep16'
        """
        parts = [f"tp{self.tensor}"]
        parts += [f"pp{self.pipeline}"] if self.pipeline > 1 else []
        parts += [f"dp{self.attention_data}"] if self.attention_data > 1 else []
        parts += [f"ep{self.expert}"] if self.expert > 1 else []
        return "-".join(parts)


class IllegalParallelism(ValueError):
    """A replica that cannot be built from this device and model."""


def check_legal(cut: Parallelism, model: Architecture, device: Device) -> None:
    """Raise :class:`IllegalParallelism` with the reason unless a replica can be cut like this.

    The tensor degree must divide the attention heads (and be a divisor or a multiple of the key/value heads), the
    pipeline degree must not exceed the layers, experts divide evenly; a replica must stay inside one scale-up domain or
    one server, and share sold units evenly.
    """
    for group in model.attention:
        heads = group.heads or group.linear_value_heads
        if heads and heads % cut.tensor:
            fits = [d for d in range(1, heads + 1) if heads % d == 0]
            raise IllegalParallelism(
                f"tensor degree {cut.tensor} does not divide the {heads} {group.kind}-attention heads of {model.name}; "
                f"degrees that do: {', '.join(map(str, fits))}"
            )
        kv_heads = group.kv_heads
        if kv_heads and cut.tensor % kv_heads and kv_heads % cut.tensor:
            raise IllegalParallelism(
                f"tensor degree {cut.tensor} neither divides nor is a multiple of the {kv_heads} key/value heads of "
                f"{model.name}"
            )
    if cut.pipeline > model.layers:
        raise IllegalParallelism(f"pipeline degree {cut.pipeline} exceeds the {model.layers} layers of {model.name}")
    ranks = cut.tensor * cut.attention_data
    if cut.expert > 1:
        if model.experts is None:
            raise IllegalParallelism(f"expert degree {cut.expert} needs a mixture of experts; {model.name} is dense")
        if ranks % cut.expert or model.experts.routed % cut.expert:
            raise IllegalParallelism(
                f"expert degree {cut.expert} must divide tensor x attention_data = {ranks} and the "
                f"{model.experts.routed} routed experts of {model.name}"
            )
    if cut.attention_data > 1 and model.experts is None and not any(g.kind == "mla" for g in model.attention):
        raise IllegalParallelism(
            f"attention_data {cut.attention_data} is for mixtures of experts and MLA models; for {model.name} run "
            "further replicas instead"
        )
    server = device.units_per_server * device.logical_per_unit
    domain = max(device.scaleup_domain, server)
    if cut.logical_devices > domain:
        raise IllegalParallelism(
            f"{cut.label} takes {cut.logical_devices} logical devices, but {device.sku} links {domain} at the most "
            f"(scale-up domain {device.scaleup_domain}, server {server})"
        )
    per_unit = device.logical_per_unit
    if cut.logical_devices % per_unit and per_unit % cut.logical_devices:
        raise IllegalParallelism(
            f"{cut.label} takes {cut.logical_devices} logical devices; a {device.sku} holds {per_unit}, so replicas "
            f"must use a divisor or a multiple of {per_unit}"
        )


def link_bandwidth(cut: Parallelism, device: Device) -> float:
    """Bytes/s between the ranks of a replica, per device and direction: scale-up links where the replica fits in their
    domain, PCIe otherwise."""
    if device.scaleup_domain >= cut.logical_devices and device.scaleup_bandwidth > 0:
        return device.scaleup_bandwidth
    return device.pcie_bandwidth
