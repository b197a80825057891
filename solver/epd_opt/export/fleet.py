"""A plan as something to deploy: its pools with their roles, sizes and settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from epd_opt.document import ClassResult, PlanDocument, Pool
from epd_opt.errors import UsageError
from epd_opt.instance import Instance
from epd_opt.resolve import Resolved, resolve
from epd_opt.wording import printable

Role = Literal["encode", "prefill", "decode", "whole"]

MODEL_UNKNOWN = "MODEL_OF_THE_MEASURED_WORKERS"
"""Stands for the model where the instance names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """One pool.

    Attributes
    ----------
    number : int
        From one, in the order of the plan.
    role : str
        ``encode``, ``prefill`` (with or without encode), ``decode``, or ``whole``: prefill and decode in one engine.
    logical_devices : int
        That one replica takes: what engines and device plug-ins count.
    nodes : int
        Servers that one replica spans.
    receives_embeddings : bool
        Whether requests come with images that another pool, or processes beside it, encoded.
    weights, kv_cache : str
        Storage formats; empty for measured workers.
    """

    number: int
    pool: Pool
    role: Role
    vendor: str
    kind: str
    logical_devices: int
    nodes: int
    receives_embeddings: bool
    weights: str
    kv_cache: str

    @property
    def replicas(self) -> int:
        """Serving ones and spares."""
        return self.pool.replicas + self.pool.spare_replicas

    @property
    def label(self) -> str:
        """Name on one line."""
        return printable(self.pool.name)

    @property
    def measured(self) -> bool:
        """Whether somebody measured it: no settings are known."""
        return self.pool.provenance == "measured"

    @property
    def fed_by_pool(self) -> bool:
        """Whether embeddings come from another pool."""
        return self.receives_embeddings and self.pool.placement != "shared"

    @property
    def encoders(self) -> int:
        """Encoder processes per logical device: beside the engine, or alone in an encoder pool."""
        if self.role == "encode":
            return max(1, self.pool.operating_point.encoder_processes)
        return self.pool.operating_point.encoder_processes if self.pool.placement == "shared" else 0

    @property
    def encoder_processes(self) -> int:
        """Encoder processes of one replica."""
        return self.encoders * self.logical_devices

    @property
    def encoder_memory(self) -> float:
        """Share of a device that one encoder process may take: an even part of the pool's, or of what the engine beside it
        leaves; 0 where unknown."""
        fraction = self.pool.operating_point.memory_fraction
        if not fraction:
            return 0.0
        return int(1000 * (fraction if self.role == "encode" else 1.0 - fraction) / max(1, self.encoders)) / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """All pools, and what they have in common."""

    document: PlanDocument
    pools: tuple[Deployed, ...]
    model: str
    has_vision: bool
    native_weights: str
    embeddings_bytes: int
    drafted: int
    notes: tuple[str, ...]

    @property
    def replicas(self) -> int:
        """Of all pools, spares included."""
        return sum(pool.replicas for pool in self.pools)

    @property
    def logical_devices(self) -> int:
        """Of all replicas."""
        return sum(pool.replicas * pool.logical_devices for pool in self.pools)


def fleet(document: PlanDocument) -> Fleet:
    """The fleet of a plan, and what no deployment format says of it.

    Raises
    ------
    UsageError
        Nothing is planned, as where all rates are 0.
    """
    if not document.pools:
        raise UsageError(f"the plan of {document.instance!r} has no pools: there is nothing to deploy")
    resolved = resolve(Instance(**document.instance_document), cards=document.cards)
    card = document.cards.get("model") or {}
    pools = tuple(_deployed(document, resolved, number, pool) for number, pool in enumerate(document.pools, start=1))
    speculative = resolved.instance.engine.speculative
    model = _model(document, card)
    used = {pool.device for pool in document.pools if "encode" in pool.stages and pool.provenance != "measured"}
    encoders = {entry.name: entry.precision.encoder for entry in resolved.entries if entry.name in used}
    return Fleet(
        document=document,
        pools=pools,
        model=model,
        has_vision=bool(card.get("vision")),
        native_weights="" if resolved.model is None else resolved.model.native_weights,
        embeddings_bytes=int(resolved.engine.encoder_cache_bytes),
        drafted=0 if speculative is None else speculative.draft_tokens,
        notes=tuple(_notes(document, pools, model, encoders)),
    )


def _deployed(document: PlanDocument, resolved: Resolved, number: int, pool: Pool) -> Deployed:
    card = document.cards.get("devices", {}).get(pool.device) or {}
    entry = next((e for e in resolved.entries if e.name == pool.device), None)
    units = Fraction(pool.devices).limit_denominator(1 << 20) / (pool.replicas + pool.spare_replicas)
    logical_per_unit = int(card.get("logical_devices_per_unit") or 1)
    units_per_server = (card.get("server") or {}).get("units")
    measured = pool.provenance == "measured"
    return Deployed(
        number=number,
        pool=pool,
        role=_role(pool),
        vendor=str(card.get("vendor", "")),
        kind=str(card.get("kind", "")),
        logical_devices=int(units * logical_per_unit),
        nodes=int(max(1, -(-units // units_per_server))) if units_per_server else 1,
        receives_embeddings=pool.placement == "shared" or ("prefill" in pool.stages and _after_encoders(document, pool)),
        weights="" if entry is None or measured else entry.precision.weights,
        kv_cache="" if entry is None or measured else entry.precision.kv_cache,
    )


def _role(pool: Pool) -> Role:
    if pool.stages == ["encode"]:
        return "encode"
    if "decode" not in pool.stages:
        return "prefill"
    return "whole" if "prefill" in pool.stages else "decode"


def _after_encoders(document: PlanDocument, pool: Pool) -> bool:
    encoders = {p.name for p in document.pools if p.stages == ["encode"]}
    ways = [route.pools for served in document.classes.values() for route in served.routes]
    return any(pool.name in way and encoders.intersection(way[: way.index(pool.name)]) for way in ways)


def _model(document: PlanDocument, card: dict[str, Any]) -> str:
    """What engines load: the Hugging Face id where one is known."""
    stated = document.instance_document.get("model")
    names = [stated, *([stated.get("_name_or_path")] if isinstance(stated, dict) else []), *card.get("aliases", [])]
    ids = [name for name in names if isinstance(name, str) and "/" in name]
    return (ids or [name for name in (stated, card.get("name")) if isinstance(name, str)] or [MODEL_UNKNOWN])[0]


def _notes(document: PlanDocument, pools: tuple[Deployed, ...], model: str, encoders: Mapping[str, str]) -> Iterator[str]:
    if model == MODEL_UNKNOWN:
        yield f"the plan names no model: replace {MODEL_UNKNOWN}"
    elif "/" not in model:
        yield f"no Hugging Face id of {printable(model)} is known: give the path or id of its checkpoint"
    roles = [pool.role for pool in pools]
    several = any(len(served.routes) > 1 for served in document.classes.values())
    if several or len(set(roles)) < len(roles) or {"whole", "decode"} <= set(roles):
        ways = "; ".join(_ways(name, served) for name, served in sorted(document.classes.items()) if served.routes)
        yield f"which class goes to which pool is left to the router in front; planned is {ways}"
    for pool in pools:
        if pool.measured and pool.logical_devices > 1:
            guess = "one encoder on each" if pool.role == "encode" else "tensor parallelism over all of them"
            yield (
                f"{pool.label}: how a replica is cut over its {pool.logical_devices} devices is not in the plan: "
                f"{guess} is written"
            )
        if pool.pool.operating_point.fan_out > 1:
            yield (
                f"{pool.label}: images of a request are planned to go to {pool.pool.operating_point.fan_out} encoder "
                "processes at once; the router decides"
            )
        if pool.pool.operating_point.batch:
            yield f"{pool.label}: batch {pool.pool.operating_point.batch} is to be compiled for; compile the model first"
    for device, stored in encoders.items():
        if stored != "bf16":
            yield f"{printable(device)}: the encoder is planned in {stored}, which no option says: the checkpoint decides"


def _ways(name: str, served: ClassResult) -> str:
    shares = [
        f"{route.rate_per_s / served.rate_per_s:.0%} over {' > '.join(printable(pool) for pool in route.pools)}"
        for route in served.routes
    ]
    return f"{printable(name)}: {', '.join(shares)}"
