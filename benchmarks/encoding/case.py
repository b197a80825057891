"""A workload with images on GB200, the ways of encoding it, and what each costs."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from epd_models import catalog
from epd_opt.backends import Clock, SolverFailed
from epd_opt.document import Pool
from epd_opt.instance import Instance
from epd_opt.pipeline import planned as solved
from epd_opt.plan import Plan
from epd_opt.resolve import resolve

GPU = "GB200"
GAP = 0.001
PROCESSES = (2, 4)
"""Encoder processes beside a language model: as in the published runs, and as many as on a card of its own."""
WAYS: Mapping[str, tuple[str, ...]] = {
    "integrated": ("integrated", "prefill_decode"),
    "shared": ("shared", "prefill_decode"),
    "dedicated": ("encoder_pool", "prefill_decode"),
    "separate": ("encoder_pool", "prefill_decode"),
    "cheapest": ("integrated", "shared", "encoder_pool", "prefill_decode"),
}
"""Placements of each way. `dedicated` encodes on GPUs of the one type, `separate` on the other card; text may pass by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One class with images, and one of text where ``text_share`` asks for it.

    The defaults are the published sweep's request (9000 text tokens, pages of 3.7 megapixels shrunk to 256 tokens, intervals
    below 100 ms); the target of the first token is ours, as none is published.

    Attributes
    ----------
    images, tokens, megapixels : int, int, float
        Images of a request, visual tokens of each, and size of the source.
    clip_s : float
        Seconds of video at two frames per second in place of images; 0 = images.
    text_share : float
        Share of the requests that carry no image.
    rate : float
        Requests/s, all classes together.
    gpu_usd, card_usd : float or None
        Rents per hour; None: the catalogue's purchase prices, owned under its typical constants.
    gpus, cards : int or None
        Stocks; None = unlimited.
    card_cores : int or None
        CPU cores per encoder card; None = as the catalogue says.
    habits : tuple of (str, float)
        Figures of the engine's card that differ from the catalogue's.
    """

    images: int = 10
    tokens: int = 256
    megapixels: float = 3.7
    clip_s: float = 0.0
    text: int = 9000
    output: int = 1024
    text_share: float = 0.0
    rate: float = 400.0
    ttft_ms: float = 3000.0
    itl_ms: float = 100.0
    model: str = "Qwen3.5-122B-A10B"
    weights: str = "nvfp4"
    tensor: tuple[int, ...] = (1,)
    card: str = "RTX-6000D"
    gpu_usd: float | None = None
    card_usd: float | None = None
    gpus: int | None = None
    cards: int | None = None
    card_cores: int | None = None
    habits: tuple[tuple[str, float], ...] = ()
    network_gbit: float = 20.0

    def document(self, way: str) -> dict[str, Any]:
        """The instance that plans it in one of `WAYS`."""
        gpu: dict[str, Any] = {"sku": GPU, "price": price(GPU, self.gpu_usd), "tensor_parallel": list(self.tensor)}
        gpu |= {"stock": self.gpus} if self.gpus is not None else {}
        devices = [gpu]
        if way in ("separate", "cheapest"):
            card: dict[str, Any] = {"sku": self.card, "price": price(self.card, self.card_usd), "stages": ["encode"]}
            card |= {"stock": self.cards} if self.cards is not None else {}
            card |= {"host_cores": self.card_cores * units_per_server(self.card)} if self.card_cores is not None else {}
            devices.append(card)
        if way == "separate":
            gpu["stages"] = ["prefill", "decode"]
        return {
            "schema": "epd-opt/instance/v1",
            "name": "encoder-separation",
            "model": self.model,
            "engine": {"name": "vllm", "max_sequences": 1024},
            "precision": {"weights": self.weights, "kv_cache": "fp8", "encoder": "bf16"},
            "workload": {"classes": self.classes()},
            "devices": devices,
            "network": {"gbit_per_s_per_device": self.network_gbit},
            "placements": list(WAYS[way]),
            "solver": {"gap": GAP, "time_limit_s": 120},
        }

    def classes(self) -> list[dict[str, Any]]:
        """The workload."""
        common = {
            "text_tokens": self.text,
            "output_tokens": self.output,
            "slo": {"ttft_ms": self.ttft_ms, "itl_ms": self.itl_ms, "percentile": 95},
        }
        found: list[dict[str, Any]] = []
        if self.text_share < 1.0:
            pages = {"name": "pages", "rate_per_s": self.rate * (1.0 - self.text_share), **common}
            if self.clip_s:
                pages["video"] = {"seconds": self.clip_s, "fps": 2, "max_frames": 64, "width_px": 640, "height_px": 360}
            else:
                pages["images"] = {"count": self.images, "tokens": self.tokens, "source_megapixels": self.megapixels}
            found.append(pages)
        if self.text_share > 0.0:
            found.append({"name": "text", "rate_per_s": self.rate * self.text_share, **common})
        return found


def price(sku: str, usd_per_hour: float | None) -> dict[str, float]:
    """A rent, or the catalogue's purchase price."""
    if usd_per_hour is not None:
        return {"usd_per_hour": usd_per_hour}
    purchase = catalog.device(sku).price.purchase_usd
    if purchase is None:
        raise ValueError(f"the catalogue has no purchase price of {sku}")
    return {"purchase_usd": purchase}


def units_per_server(sku: str) -> int:
    """Devices that share a server's cores."""
    return catalog.device(sku).units_per_server


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a way costs; nan and no pools where it cannot serve.

    Attributes
    ----------
    usd : float
        US dollars per 1000 requests.
    hourly : float
        US dollars per hour.
    gpus, cards : float
        Devices in use.
    """

    usd: float
    hourly: float
    gpus: float
    cards: float
    ttft_ms: float
    itl_ms: float
    pools: tuple[Pool, ...]

    @property
    def fleet(self) -> str:
        """Its pools in words."""
        return ", ".join(f"{pool.devices:g} {pool.device} {pool.placement}" for pool in merged(self.pools)) or "none"

    def used(self, placement: str, row: str) -> float:
        """How full a requirement of the pools of a placement is, the fullest of them; nan without such a pool."""
        return max((p.utilisation.get(row, math.nan) for p in self.pools if p.placement == placement), default=math.nan)


def merged(pools: Sequence[Pool]) -> list[Pool]:
    """Pools of one placement and device as one."""
    found: dict[tuple[str, str], Pool] = {}
    for pool in sorted(pools, key=lambda p: (p.placement, p.device)):
        key = pool.placement, pool.device
        before = found.get(key)
        found[key] = pool if before is None else before.model_copy(update={"devices": before.devices + pool.devices})
    return list(found.values())


def plan_of(case: Case, way: str) -> Plan:
    """The cheapest fleet of a way as a plan; to twice the gap where the solver's own check fails at the first."""
    cards = {"engine": {**catalog.engine_card("vllm"), **dict(case.habits)}}
    document = case.document(way)

    def to_gap(gap: float) -> Plan:
        instance = Instance.model_validate({**document, "solver": {**document["solver"], "gap": gap}})
        return solved(resolve(instance, cards=cards), Clock(instance.solver.time_limit_s), start=time.perf_counter())

    try:
        return to_gap(GAP)
    except SolverFailed:
        return to_gap(2.0 * GAP)


@cache
def planned(case: Case, way: str) -> Outcome:
    """The cheapest fleet of a way; encoders beside a language model run as many processes as is best."""
    if way == "shared" and not any(name == "encoder_processes" for name, _ in case.habits):
        tried = [planned(replace(case, habits=(*case.habits, ("encoder_processes", n))), way) for n in PROCESSES]
        return min(tried, key=lambda found: math.inf if math.isnan(found.usd) else found.usd)
    plan = plan_of(case, way)
    if plan.cost is None:
        none = math.nan
        return Outcome(usd=none, hourly=none, gpus=none, cards=none, ttft_ms=none, itl_ms=none, pools=())
    counts = {name: use.used for name, use in plan.document.devices.items()}
    pages = plan.classes.get("pages") or plan.classes["text"]
    return Outcome(
        usd=1e3 * (plan.cost.usd_per_request or 0.0),
        hourly=plan.cost.usd_per_hour,
        gpus=counts.get(GPU, 0),
        cards=counts.get(case.card, 0),
        ttft_ms=pages.ttft_ms or math.nan,
        itl_ms=pages.itl_ms or math.nan,
        pools=tuple(plan.pools),
    )


def break_even(case: Case, rival: str = "shared") -> float:
    """Rent of an encoder card, as a share of a GPU's, at which separate encoders cost what another way does.

    Infinite where the other way serves nothing, nan where separate encoders do not, 0 where even free cards do not pay.

    The cost of the separate fleet is concave in the card's price, and that of any one fleet is a line above it. At the price
    where that line meets the other way's cost, separate encoders still pay, or just; so such steps rise to the break-even.
    """
    rented = replace(case, gpu_usd=1.0, card_usd=0.0)
    other = planned(rented, rival).hourly
    if math.isnan(other):
        return math.inf
    card = 0.0
    for _ in range(8):
        fleet = planned(replace(rented, card_usd=card), "separate")
        if math.isnan(fleet.hourly):
            return math.nan
        reached = max(0.0, (other - fleet.gpus) / fleet.cards)
        if reached <= card * (1.0 + GAP) or reached == 0.0:
            return max(card, reached)
        card = reached
    return card
