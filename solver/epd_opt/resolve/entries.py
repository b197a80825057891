"""Device entries as the performance models take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epd_models.architecture import Architecture
from epd_models.device import Device
from epd_models.engine import Engine
from epd_models.entry import Entry
from epd_models.measurements import MeasurementsError
from epd_models.parallelism import Parallelism
from epd_models.precision import Precision
from epd_models.provenance import Confidence
from epd_models.source import Source, SourceUnavailable, Subject
from epd_models.sources import SOURCES
from epd_opt import instance as user
from epd_opt.address import format_path
from epd_opt.errors import InvalidInput, Problem
from epd_opt.problem import Offer
from epd_opt.resolve.offers import power_of
from epd_opt.resolve.resolved import Assumption

_DEFAULT_DEGREES = (1, 2, 4, 8, 16)


def entry_of(
    entry: user.DeviceEntry,
    device: Device,
    model: Architecture,
    engine: Engine,
    offer: Offer,
    instance: user.Instance,
    embedded: Mapping[str, Any],
) -> Entry:
    stated = [entry.precision, instance.precision]
    formats = {
        key: next((value for p in stated if p is not None and (value := getattr(p, key)) is not None), default)
        for key, default in (("weights", model.native_weights), ("kv_cache", "bf16"), ("encoder", "bf16"))
    }
    precision = Precision(**formats)
    subject = Subject(entry=entry.name, model=model, device=device, precision=precision, engine=engine)
    return Entry(
        name=entry.name,
        device=device,
        precision=precision,
        cuts=tuple(sorted(entry.parallelisms() or _cuts(model, device))),
        stages=entry.stages,
        power_w=offer.power_w,
        idle_w=power_of(entry, device, [], limited=False)[1],
        stock=offer.stock,
        source=_source(entry.performance, subject, embedded),
    )


def _cuts(model: Architecture, device: Device) -> tuple[Parallelism, ...]:
    """Degrees considered where the entry leaves them open: tensor degrees, and for expert models one group of attention
    data parallelism over a server."""
    server = max(device.scaleup_domain, device.units_per_server * device.logical_per_unit)
    cuts = [Parallelism(tensor=degree) for degree in _DEFAULT_DEGREES if degree <= server]
    if model.experts is not None and any(group.kind == "mla" for group in model.attention):
        cuts += [
            Parallelism(attention_data=ranks, expert=ranks)
            for ranks in (8, 16, 32)
            if ranks <= server and model.experts.routed % ranks == 0
        ]
    return tuple(cuts)


def _source(performance: user.Performance | None, subject: Subject, embedded: Mapping[str, Any]) -> Source:
    """Where the times of a device entry come from.

    Raises
    ------
    InvalidInput
        A file of measurements makes no sense, or a source cannot answer.
    """
    if performance is None:
        return SOURCES["analytic"]({}, subject, embedded={})
    path = format_path(["devices", subject.entry, "performance"])
    try:
        return SOURCES[performance.source](performance.settings(), subject, embedded=embedded)
    except MeasurementsError as error:
        raise InvalidInput(
            Problem(file=error.file, line=one.line, column=1, path=one.column, message=one.message, hint=one.hint)
            for one in error.complaints
        ) from None
    except SourceUnavailable as error:
        raise InvalidInput([Problem(path=path, message=str(error))]) from None


def device_assumptions(name: str, device: Device, engine: str) -> list[Assumption]:
    """Figure groups of a card that rest on less than a datasheet or a measurement, the fitted shares among them; and shares
    that the user gave."""
    result = []
    shares = device.coefficients_for(engine).provenance
    groups = {**device.provenance, "achieved shares and overheads": shares}
    for group, provenance in sorted(groups.items()):
        measured = provenance is shares and provenance.confidence is Confidence.USER
        if group != "card" and (provenance.confidence < Confidence.DATASHEET or measured):
            result.append(
                Assumption(
                    text=f"{name}: {group}",
                    value="card",
                    unit="",
                    source=f"{provenance.source}, {provenance.date}" if measured and provenance.date else provenance.source,
                    confidence=provenance.confidence.label,
                )
            )
    return result
