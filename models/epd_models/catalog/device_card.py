"""A device's card -> :class:`Device`: from what is printed of a sold unit to the logical devices an engine sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from epd_models.catalog.coefficient_card import coefficients_from_card
from epd_models.catalog.fields import Fields
from epd_models.device import CatalogPrice, Device
from epd_models.provenance import Confidence, Provenance

_KINDS = ("gpu", "npu", "tpu", "asic")
_PEAKS = {"bf16_tflops": "bf16", "fp8_tflops": "fp8", "fp4_tflops": "fp4", "int8_tops": "int8"}
WEIGHT_FORMATS = ("bf16", "fp8", "int8", "int4", "nvfp4", "mxfp4")
_GIGA = 1e9
_TERA = 1e12


def device_from_card(card: Mapping[str, Any], *, source: str = "inline card") -> Device:
    """A device from the content of a card.

    A card holds what is printed of one **sold unit**. Memory, memory bandwidth, peaks, scale-up and PCIe bandwidth are
    divided by ``logical_devices_per_unit``: the logical devices of a unit share its links evenly when all talk at once.
    Power and the network card stay per sold unit.

    Parameters
    ----------
    card : mapping
        As in docs/catalog.md.
    source : str
        Where the card comes from; named in messages and kept as provenance where the card states no source.

    Raises
    ------
    CardError
        A key is unknown or missing, a value of the wrong type or out of range.
    UnknownCard
        The card names a coefficients card that does not exist.
    """
    fields = Fields(card, label(card, "sku", source))
    sku = fields.text("sku")
    about = fields.provenance(source, Confidence.USER)
    logical = fields.integer("logical_devices_per_unit", 1, minimum=1)
    provenance = {"card": about}

    compute = fields.child("compute")
    peaks = {name: compute.number(key, above=0.0) * _TERA / logical for key, name in _PEAKS.items() if key in compute}
    if "bf16" not in peaks:
        raise compute.error("bf16_tflops", "every device needs the dense 16-bit peak, bf16 or fp16")
    compute.number("measured_bf16_tflops", None)
    provenance["compute"] = _close(compute, about)

    memory = fields.child("memory")
    capacity = memory.number("capacity_gb", above=0.0) * _GIGA
    capacity = memory.number("bytes", capacity, above=0.0) * memory.number("usable_share", 1.0, above=0.0)
    bandwidth = memory.number("bandwidth_gb_per_s", above=0.0) * _GIGA
    memory_type = memory.text("type", "")
    memory.number("measured_stream_gb_per_s", None)
    provenance["memory"] = _close(memory, about)

    power = fields.child("power")
    tdp_w = power.number("tdp_w", above=0.0)
    idle_w = power.number("idle_w")
    if idle_w > tdp_w:
        raise power.error("idle_w", f"idle power {idle_w:g} W exceeds nameplate power {tdp_w:g} W")
    host_power_factor = power.number("host_power_factor", minimum=1.0)
    provenance["power"] = _close(power, about)

    link = fields.child("link", {})
    counted = link.text("scaleup_domain_counts", "units", among=("units", "logical devices"))
    domain = link.integer("scaleup_domain", 1, minimum=1)
    technology = link.text("scaleup", "none")
    scaleup = link.number("scaleup_gb_per_s", 0.0) * _GIGA / logical
    pcie = link.number("pcie_gb_per_s", 0.0) * _GIGA / logical
    nic = link.number("nic_gbit_per_s", 0.0) * _GIGA / 8
    link.text("pcie", None)
    provenance["link"] = _close(link, about)

    server = fields.child("server")
    units_per_server = server.integer("units", minimum=1)
    host_cores = server.integer("host_cores_per_unit", minimum=0)
    provenance["server"] = _close(server, about)

    formats = fields.child("formats")
    weight_formats = formats.texts("weights", among=WEIGHT_FORMATS)
    kv_formats = formats.texts("kv_cache", among=WEIGHT_FORMATS)
    provenance["formats"] = _close(formats, about)

    shapes = fields.child("shapes", {})
    batch_shapes = shapes.integers("batch", ())
    context_shapes = shapes.integers("context", ())
    reservation: Literal["paged", "full"] = shapes.text("kv_reservation", "paged", among=("paged", "full"))
    provenance["shapes"] = _close(shapes, about)

    device = Device(
        sku=sku,
        aliases=fields.texts("aliases", ()),
        vendor=fields.text("vendor", ""),
        kind=fields.text("kind", among=_KINDS),
        architecture=fields.text("architecture", ""),
        year=fields.integer("year", None, minimum=1990),
        form_factor=fields.text("form_factor", ""),
        logical_per_unit=logical,
        memory_bytes=capacity / logical,
        memory_type=memory_type,
        bandwidth=bandwidth / logical,
        peaks=peaks,
        weight_formats=weight_formats,
        kv_formats=kv_formats,
        tdp_w=tdp_w,
        idle_w=idle_w,
        host_power_factor=host_power_factor,
        scaleup_technology=technology,
        scaleup_bandwidth=scaleup,
        scaleup_domain=domain * logical if counted == "units" and domain > 1 else domain,
        pcie_bandwidth=pcie,
        nic_bandwidth=nic,
        units_per_server=units_per_server,
        host_cores=host_cores,
        coefficients=coefficients_from_card(
            fields.raw("coefficients"),
            path=fields.path("coefficients"),
            source=about.source,
            confidence=about.confidence,
        ),
        batch_shapes=batch_shapes,
        context_shapes=context_shapes,
        kv_reservation=reservation,
        price=_price(fields.child("price", {})),
        provenance=provenance,
        notes=fields.text("notes", ""),
    )
    fields.close()
    return device


def label(card: Mapping[str, Any], key: str, source: str) -> str:
    """How messages call a card: by its name, and by its source where that is another one."""
    name = Fields(card, source).text(key)
    return name if source in ("inline card", name) else f"{source} ({name})"


def _close(fields: Fields, about: Provenance) -> Provenance:
    stated = fields.provenance(about.source, about.confidence)
    fields.close()
    return stated


def _price(fields: Fields) -> CatalogPrice:
    """Median rent and typical purchase; a range without a typical figure is a guess and gives no price."""
    purchase = fields.child("purchase", {})
    purchase_usd = purchase.number("typical_usd", None, above=0.0)
    for key in ("low_usd", "high_usd"):
        purchase.number(key, None, above=0.0)
    basis = purchase.text("basis", None)
    bought = purchase.provenance("", Confidence.ESTIMATE)
    purchase.close()

    cloud = fields.child("cloud", {})
    usd_per_hour = cloud.number("median_usd_per_hour", None, above=0.0)
    for key in ("low_usd_per_hour", "high_usd_per_hour"):
        cloud.number(key, None, above=0.0)
    providers = cloud.integer("providers", None)
    rented = cloud.provenance("", Confidence.ESTIMATE)
    cloud.close()

    reference = fields.child("reference", {})
    reference.number("owner_tco_usd_per_hour", None)
    reference.number("all_in_kw_per_unit", None)
    reference.provenance("", Confidence.ESTIMATE)
    reference.close()

    for offer in fields.children("offers", ()):
        offer.text("provider")
        offer.number("usd_per_hour", above=0.0)
        offer.integer("units", 1, minimum=1)
        for key in ("instance", "term", "region"):
            offer.text(key, None)
        offer.provenance("", Confidence.ESTIMATE)
        offer.close()

    fields.close()
    return CatalogPrice(
        usd_per_hour=usd_per_hour,
        purchase_usd=purchase_usd,
        rent_date=rented.date,
        purchase_date=bought.date,
        providers=providers,
        basis=basis,
        rent_confidence=rented.confidence,
        purchase_confidence=bought.confidence,
    )
