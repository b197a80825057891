"""How one replica is cut over logical devices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from epd_models.architecture import Architecture
from epd_models.device import Device


class IllegalParallelism(ValueError):
    """A replica that cannot be built from this device and model."""


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

    def __post_init__(self) -> None:
        for part in fields(self):
            if getattr(self, part.name) < 1:
                raise IllegalParallelism(f"{part.name} degree must be at least 1, found {getattr(self, part.name)}")

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


def tensor_degrees(model: Architecture) -> tuple[int, ...]:
    """Tensor degrees that cut a model evenly: they divide its heads and its dense feed-forward, and divide the
    key/value heads or are a multiple of them.

    >>> from epd_models import catalog
    >>> tensor_degrees(catalog.model("Qwen2.5-VL-7B"))
    (1, 2, 4)
    """
    heads = [h for g in model.attention for h in (g.heads, g.linear_key_heads, g.linear_value_heads) if h]
    heads += [model.dense_intermediate] if model.dense_layers else []
    kv_heads = [g.kv_heads for g in model.attention if g.kv_heads]
    return tuple(
        degree
        for degree in range(1, min(heads) + 1)
        if all(h % degree == 0 for h in heads) and all(degree % k == 0 or k % degree == 0 for k in kv_heads)
    )


def check_legal(cut: Parallelism, model: Architecture, device: Device) -> None:
    """Raise :class:`IllegalParallelism` with the reason unless a replica can be cut like this.

    The tensor degree must be one of :func:`tensor_degrees`, the pipeline degree must not exceed the layers, experts
    divide evenly; a replica must stay inside one scale-up domain or one server, and share sold units evenly.
    """
    degrees = tensor_degrees(model)
    if cut.tensor not in degrees:
        raise IllegalParallelism(
            f"tensor degree {cut.tensor} does not cut {model.name} evenly ({_shapes(model)}); "
            f"degrees that do: {_listed(degrees)}"
        )
    if cut.pipeline > model.layers:
        raise IllegalParallelism(f"pipeline degree {cut.pipeline} exceeds the {model.layers} layers of {model.name}")
    if cut.attention_data > 1 and model.experts is None and not any(g.kind == "mla" for g in model.attention):
        raise IllegalParallelism(
            f"attention_data {cut.attention_data} is for mixtures of experts and MLA models; for {model.name} run "
            "further replicas instead"
        )
    if model.experts is None and cut.expert > 1:
        raise IllegalParallelism(f"expert degree {cut.expert} needs a mixture of experts; {model.name} is dense")
    if model.experts is not None:
        ranks, routed, dim = cut.tensor * cut.attention_data, model.experts.routed, model.experts.dim
        fits = [e for e in range(1, ranks + 1) if ranks % e == 0 and routed % e == 0 and dim % (ranks // e) == 0]
        if cut.expert not in fits:
            raise IllegalParallelism(
                f"expert degree {cut.expert} does not spread the {routed} routed experts (width {dim}) of {model.name} "
                f"over tensor x attention_data = {ranks} ranks; degrees that do: {_listed(fits)}"
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
    if cut.logical_devices > 1 and link_bandwidth(cut, device) <= 0.0:
        raise IllegalParallelism(
            f"{cut.label} takes {cut.logical_devices} logical devices, but the card of {device.sku} lists no link "
            "between them (neither scale-up nor PCIe); only single devices fit"
        )


def _listed(degrees: Iterable[int]) -> str:
    return ", ".join(map(str, degrees)) or "none"


def _shapes(model: Architecture) -> str:
    """What a tensor degree must cut, in words."""
    parts = []
    for group in model.attention:
        if group.kind == "linear":
            parts.append(f"{group.linear_key_heads} key and {group.linear_value_heads} value heads of linear attention")
        else:
            parts.append(f"{group.heads} heads with {group.kv_heads} key/value heads")
    if model.dense_layers:
        parts.append(f"feed-forward of width {model.dense_intermediate}")
    return ", ".join(dict.fromkeys(parts))


def link_bandwidth(cut: Parallelism, device: Device) -> float:
    """Bytes/s between the ranks of a replica, per device and direction: scale-up links where the replica fits in their
    domain, PCIe otherwise."""
    if device.scaleup_domain >= cut.logical_devices and device.scaleup_bandwidth > 0:
        return device.scaleup_bandwidth
    return device.pcie_bandwidth
