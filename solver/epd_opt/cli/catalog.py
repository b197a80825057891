"""`epd-opt catalog`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from epd_models import catalog as cards
from epd_models.architecture import Architecture
from epd_models.catalog import UnknownCard
from epd_models.device import Device
from epd_opt.cli.terminal import echo_json
from epd_opt.errors import UsageError


@click.command()
@click.argument("kind", type=click.Choice(["devices", "models"]))
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def catalog(kind: str, name: str | None, as_json: bool) -> None:
    """List device or model cards, or show one.

    A card is found by its NAME or an alias and shown with sources and confidences.
    """
    if name is not None:
        try:
            card = cards.device_card(name) if kind == "devices" else cards.model_card(name)
        except UnknownCard as error:
            raise UsageError(str(error)) from None
        if as_json:
            echo_json(json.dumps(card, indent=2, ensure_ascii=False, allow_nan=False))
        else:
            click.echo(_outline(card), nl=False)
        return
    if as_json:
        every = (
            {sku: cards.device_card(sku) for sku in cards.device_names()}
            if kind == "devices"
            else {model: cards.model_card(model) for model in cards.model_names()}
        )
        echo_json(json.dumps(every, indent=2, ensure_ascii=False, allow_nan=False))
    elif kind == "devices":
        click.echo(_device_table(cards.devices()), nl=False)
    else:
        click.echo(_model_table(cards.models()), nl=False)


def _outline(card: Mapping[str, Any]) -> str:
    import io

    from ruamel.yaml import YAML

    buffer = io.StringIO()
    yaml = YAML()
    yaml.width = 110
    yaml.dump(dict(card), buffer)
    return buffer.getvalue()


def _columns(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines) + "\n"


def _figure(value: float | None, scale: float = 1.0) -> str:
    return "-" if value is None else f"{value / scale:,.4g}"


def _device_table(devices: Mapping[str, Device]) -> str:
    rows: list[tuple[str, ...]] = [
        ("sku", "vendor", "kind", "memory GB", "GB/s", "bf16 TF", "fp8 TF", "W", "$/h", "$ purchase", "confidence")
    ]
    for sku, device in devices.items():
        n = device.logical_per_unit
        rows.append(
            (
                sku,
                device.vendor,
                device.kind,
                ("" if n == 1 else f"{n} x ") + _figure(device.memory_bytes, 1e9),
                _figure(device.bandwidth * n, 1e9),
                _figure(device.peaks["bf16"] * n, 1e12),
                _figure(device.peaks["fp8"] * n, 1e12) if "fp8" in device.peaks else "-",
                _figure(device.tdp_w),
                _figure(device.price.usd_per_hour),
                _figure(device.price.purchase_usd),
                device.provenance["card"].confidence.label if "card" in device.provenance else "-",
            )
        )
    return _columns(rows)


def _model_table(models: Mapping[str, Architecture]) -> str:
    rows: list[tuple[str, ...]] = [
        ("model", "parameters B", "active B", "layers", "attention", "experts", "vision tower", "confidence")
    ]
    for name, model in models.items():
        rows.append(
            (
                name,
                _figure(model.parameters, 1e9),
                _figure(model.active_parameters, 1e9),
                str(model.layers),
                " + ".join(f"{group.layers} {group.kind}" for group in model.attention),
                f"{model.experts.active} of {model.experts.routed}" if model.experts else "-",
                f"{model.vision.name}, {_figure(model.vision.parameters, 1e9)} B" if model.vision else "-",
                model.provenance.confidence.label,
            )
        )
    return _columns(rows)
