"""What units are sold by: devices, servers and racks."""

from __future__ import annotations

from epd_models.device import Device
from epd_opt import instance as user
from epd_opt.address import format_path
from epd_opt.errors import InvalidInput, Problem
from epd_opt.nodes import Nodes


def units_per(entry: user.DeviceEntry, price: user.Price, device: Device | None) -> int:
    if price.per == "device":
        return 1
    path = format_path(["devices", entry.name, "price", "per"])
    if device is None:
        raise InvalidInput(
            [Problem(path=path, message=f"{price.per} prices need a card that says how many units a {price.per} holds")]
        )
    if price.per == "server":
        return device.units_per_server
    rack = device.scaleup_domain // device.logical_per_unit
    if rack <= device.units_per_server:
        raise InvalidInput(
            [
                Problem(
                    path=path,
                    message=f"{entry.sku} is not sold by the rack as far as its card says",
                    hint="give the price per device or server, with pack: UNITS",
                )
            ]
        )
    return rack


def nodes_of(device: Device, lot: int) -> Nodes:
    """Servers and racks: lots of whole racks or servers stand in them; other units are bought one by one."""
    unit, server = device.logical_per_unit, device.units_per_server
    domain = max(device.scaleup_domain, server * unit)
    if domain % (server * unit):
        domain = server * unit
    racks = lot % (domain // unit) == 0
    servers = lot % server == 0
    inner = device.scaleup_domain if server * unit % max(device.scaleup_domain, unit) == 0 else domain
    return Nodes(
        unit=unit,
        inner=max(inner, unit) if inner < server * unit else domain,
        domain=domain,
        chunk=server if servers and not racks else domain // unit,
        whole=racks or servers,
    )
