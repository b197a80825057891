"""One question of the study: which fleet serves a workload in a given way, and what does it cost?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import Any, Literal

import epd_opt
from epd_models import catalog
from epd_models.tariff import CostRules
from epd_opt.document import PlanDocument

Way = Literal["integrated", "split", "one vendor", "pair", "reverse"]
LIFE_YEARS, COST_OF_CAPITAL, HOST_SHARE, PUE = 4.0, 0.08, 0.3, 1.25
MAX_SEQUENCES = 1024
"""Per replica; vLLM's default on devices with 70 GiB and more."""
USUAL_DEGREES = (1, 2, 4)
FORMATS = {
    "Ascend-910C": {"weights": "int8", "kv_cache": "int8"},
    "RBLN-ATOM-Max-CA25": {"weights": "int8", "kv_cache": "bf16"},
    "TPU-v6e": {"weights": "int8", "kv_cache": "int8"},
}
"""Storage formats of devices that do not store FP8: the narrowest on their cards."""
DEGREES = {
    "Ascend-910C": (2, 4, 8),
    "RBLN-ATOM-Max-CA25": (4, 8, 16, 32),
    "RNGD": (1, 2, 4, 8),
    "TPU-v6e": (1, 2, 4, 8),
    "TPU-v7-Ironwood": (2, 4, 8),
    "Trainium2": (4, 8, 16, 32),
}
"""Tensor degrees looked at, in logical devices, of devices that hold several or little memory."""
MORE_SHAPES = (192, 320, 384, 448, 512, 640, 768, 1024)
"""Batch sizes compiled beside a card's where a device is taken to be as efficient as a GPU."""
CARDS = {"Trainium2": {"logical_devices_per_unit": 4}}
"""What differs from a device's card: two cores joined to one logical device, as AWS documents (LNC 2), else no weights of
70 billion parameters fit beside their share of a KV cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked; everything has the value of the study's base case unless it is stated.

    Attributes
    ----------
    way : str
        ``integrated``: prompts and answers on the same workers of ``gpu`` (images there too, or in an encoder pool).
        ``split``: prefill and decode pools, both of ``gpu``. ``one vendor``: any of the two, or both.
        ``pair``: prompts (and images) on ``gpu``, answers on ``npu``.
        ``reverse``: prompts on ``npu``, answers on ``gpu``.
    gpu, npu : str
        SKUs.
    model : str
        Catalogue name; FP8 weights and KV cache, but for devices that do not store it (``FORMATS``).
    rate, prompt, answer : float
        Requests/s, mean text tokens of a prompt, mean tokens of an answer; lognormal, 95th percentile 2.5 times the mean.
    images : int
        Images of 1280 x 960 pixels in each request.
    ttft_ms, itl_ms : float
        Targets at the 95th percentile.
    gpu_price, npu_price : float or None
        US dollars: of a purchase, or per hour where ``rented``; None is the catalogue's typical price.
    rented : bool
        Whether devices are rented all-in, or bought (four years, 8 % per year, hosts 30 % on top, energy).
    bandwidth_share : float or None
        Achieved share of the NPU's memory bandwidth in place of its card's estimate.
    as_gpu : bool
        Whether the NPU reaches the shares and overheads fitted on Hopper GPUs under vLLM, at any batch up to the engine's
        limit, in place of its card's estimates.
    gbit, conversion : float or None
        Network in Gbit/s per device (None: the cards' NICs); factor on KV bytes between vendors.
    tariff : float
        US dollars per kWh.
    budget : float or None
        US dollars of purchase, hosts included; the fleet that serves most is sought whose cost per hour is at most their
        capital charge (with a tariff of 0, whose purchase is at most this). None: the cheapest fleet for ``rate``.
    """

    way: Way
    gpu: str
    npu: str = ""
    model: str = "Llama-3.1-70B"
    rate: float = 40.0
    prompt: float = 2000.0
    answer: float = 500.0
    images: int = 0
    ttft_ms: float = 2000.0
    itl_ms: float = 50.0
    gpu_price: float | None = None
    npu_price: float | None = None
    rented: bool = False
    bandwidth_share: float | None = None
    as_gpu: bool = False
    gbit: float | None = None
    conversion: float = 1.5
    tariff: float = 0.12
    budget: float | None = None

    def stated(self) -> dict[str, Any]:
        """What differs from the base case, as the data file keeps it."""
        usual = {field.name: field.default for field in fields(self)}
        return {key: value for key, value in asdict(self).items() if value != usual[key]}


@cache
def list_price(sku: str, rented: bool) -> float | None:
    """The catalogue's price of a device: typical purchase, or median rent per hour; None where there is none."""
    device = catalog.device(sku)
    found = device.price
    if found is None:
        return None
    return found.usd_per_hour if rented else found.purchase_usd


def guessed_range(sku: str) -> tuple[float, float] | None:
    """Lowest and highest purchase price on a device's card, US dollars; None where the card has none."""
    purchase = catalog.device_card(sku)["price"]["purchase"]
    if "low_usd" not in purchase:
        return None
    return float(purchase["low_usd"]), float(purchase["high_usd"])


def rules(tariff: float) -> CostRules:
    """The study's terms of ownership."""
    return CostRules(
        life_years=LIFE_YEARS,
        residual=0.0,
        cost_of_capital=COST_OF_CAPITAL,
        host_share=HOST_SHARE,
        hours_per_year=8760.0,
        pue=PUE,
        electricity_usd_per_kwh=tariff,
    )


def instance(asked: Question) -> dict[str, Any]:
    """The question as an instance document."""
    document: dict[str, Any] = {
        "schema": "epd-opt/instance/v1",
        "name": "npu-study",
        "model": asked.model,
        "engine": {"name": "vllm", "max_sequences": MAX_SEQUENCES},
        "precision": {"weights": "fp8", "kv_cache": "fp8"},
        "workload": {"classes": [_requests(asked)]},
        "devices": _devices(asked),
        "placements": _placements(asked),
        "network": {"latency_us": 30, "conversion_factor": asked.conversion},
        "cost": {
            "life_years": LIFE_YEARS,
            "residual": 0.0,
            "cost_of_capital": COST_OF_CAPITAL,
            "host_share": HOST_SHARE,
            "pue": PUE,
            "electricity_usd_per_kwh": asked.tariff,
        },
        "solver": {"gap": 0.002, "threads": 1, "time_limit_s": 120},
    }
    if asked.gbit is not None:
        document["network"]["gbit_per_s_per_device"] = asked.gbit
    if asked.budget is not None:
        document["limits"] = {"usd_per_hour": rules(0.0).capital_usd_per_hour(asked.budget / (1.0 + HOST_SHARE))}
        document["objective"] = "goodput"
        document["solver"]["gap"] = 0.005
    return document


def _requests(asked: Question) -> dict[str, Any]:
    requests: dict[str, Any] = {
        "name": "chat",
        "rate_per_s": asked.rate,
        "text_tokens": {"mean": asked.prompt, "p95": 2.5 * asked.prompt},
        "output_tokens": {"mean": asked.answer, "p95": 2.5 * asked.answer},
        "slo": {"ttft_ms": asked.ttft_ms, "itl_ms": asked.itl_ms, "percentile": 95},
    }
    if asked.images:
        requests["images"] = {"count": asked.images, "width_px": 1280, "height_px": 960}
    return requests


def _placements(asked: Question) -> list[str]:
    together, apart = ["prefill_decode"], ["prefill", "decode"]
    if asked.images:
        together = ["integrated", "shared", "encoder_pool", "prefill_decode"]
        apart = ["encoder_pool", "encode_prefill", "prefill", "decode"]
    both = list(dict.fromkeys(together + apart))
    return {"integrated": together, "split": apart, "pair": apart, "reverse": apart}.get(asked.way, both)


def _devices(asked: Question) -> list[dict[str, Any]]:
    price = list_price(asked.gpu, asked.rented) if asked.gpu_price is None else asked.gpu_price
    gpu = _entry(asked.gpu, price, asked.rented)
    if not asked.npu:
        return [gpu]
    first, last = ["encode", "prefill"] if asked.images else ["prefill"], ["decode"]
    stages = {"pair": (first, last), "reverse": (last, first)}[asked.way]
    price = list_price(asked.npu, asked.rented) if asked.npu_price is None else asked.npu_price
    npu = _entry(asked.npu, price, asked.rented)
    if asked.as_gpu:
        npu["card"] = {**CARDS.get(asked.npu, {}), **as_a_gpu(asked.npu)}
    elif asked.bandwidth_share is not None:
        start = catalog.device_card(asked.npu)["coefficients"]
        npu["coefficients"] = {"from": start, "default": {"bandwidth_share": asked.bandwidth_share}}
    return [{**entry, "stages": given} for entry, given in zip((gpu, npu), stages, strict=True)]


def as_a_gpu(sku: str) -> dict[str, Any]:
    """Keys of a device card that make the device as efficient as a Hopper GPU under vLLM."""
    shapes = catalog.device_card(sku).get("shapes")
    changes: dict[str, Any] = {"coefficients": "hopper"}
    if shapes:
        changes["shapes"] = {**shapes, "batch": sorted({*shapes["batch"], *MORE_SHAPES, 256})}
    return changes


def _entry(sku: str, price: float | None, rented: bool) -> dict[str, Any]:
    if price is None:
        raise ValueError(f"{sku} has no price of that kind in the catalogue: state one")
    entry: dict[str, Any] = {
        "sku": sku,
        "price": {"usd_per_hour" if rented else "purchase_usd": price},
        "tensor_parallel": list(DEGREES.get(sku, USUAL_DEGREES)),
    }
    if sku in FORMATS:
        entry["precision"] = FORMATS[sku]
    if sku in CARDS:
        entry["card"] = CARDS[sku]
    return entry


def answered(asked: Question) -> dict[str, Any]:
    """The plan's figures: cost, fleet, times, tokens per dollar and per kWh; ``status`` alone where there is no plan.

    ``kw`` is the average draw of the installations, idle and load, with the site's overhead, where devices are owned and
    the tariff is not nil; ``nameplate_kw`` what they may draw before that overhead.
    """
    plan = epd_opt.solve(epd_opt.Instance.model_validate(instance(asked)), mends=False)
    document = plan.document
    cost = document.cost
    if cost is None:
        reasons = [] if document.infeasibility is None else [reason.text for reason in document.infeasibility.reasons]
        return {"status": document.status, "reason": reasons[0] if reasons else ""}
    (served,) = document.classes.values()
    tokens_per_hour = 3600.0 * served.rate_per_s * asked.answer
    found: dict[str, Any] = {
        "status": document.status,
        "usd_per_hour": cost.usd_per_hour,
        "capex_usd": cost.capex_usd,
        "nameplate_kw": cost.power_kw,
        "devices": {name: use.used for name, use in document.devices.items() if use.used},
        "units": _units(document),
        "fleet": [f"{pool.replicas} {pool.placement} {pool.sku} tp{pool.parallelism.tensor}" for pool in document.pools],
        "requests_per_s": served.rate_per_s,
        "ttft_ms": served.ttft_ms,
        "itl_ms": served.itl_ms,
        "tokens_per_usd": tokens_per_hour / cost.usd_per_hour,
    }
    if not asked.rented and asked.tariff > 0.0 and asked.budget is None:
        energy = cost.usd_per_hour - rules(asked.tariff).capital_usd_per_hour(cost.capex_usd / (1.0 + HOST_SHARE))
        found["kw"] = energy / asked.tariff
        found["tokens_per_kwh"] = tokens_per_hour / found["kw"]
    return {key: _rounded(value) for key, value in found.items()}


def _units(document: PlanDocument) -> dict[str, float]:
    """Sold units by placement."""
    found: dict[str, float] = {}
    for pool in document.pools:
        found[pool.placement] = found.get(pool.placement, 0.0) + pool.devices
    return found


def _rounded(value: Any) -> Any:
    """Five significant digits: what a data file needs."""
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    return float(f"{value:.5g}") if isinstance(value, float) else value
