"""The headline plans, request by request: do they keep their targets?"""

from __future__ import annotations

from dataclasses import replace

import epd_opt
from encoding.case import Case, plan_of
from encoding.table import Table, Value

REQUESTS = 6000
HEADLINES = {
    "integrated, 32 requests/s": (Case(rate=32.0), "integrated"),
    "shared, 32 requests/s": (Case(rate=32.0), "shared"),
    "separate, 32 requests/s": (Case(rate=32.0), "separate"),
    "separate, 8 requests/s": (Case(rate=8.0), "separate"),
    "shared, 4 requests/s": (Case(rate=4.0), "shared"),
    "shared, 512 output tokens, 32 requests/s": (Case(rate=32.0, output=512), "shared"),
    "separate, 20 images, 32 requests/s": (replace(Case(), images=20, rate=32.0), "separate"),
}


def simulated(plan: str) -> dict[str, Value]:
    """Share of the simulated requests that keep their targets (95 % are wanted), with its interval."""
    case, way = HEADLINES[plan]
    found = plan_of(case, way)
    outcome = epd_opt.simulate(found, requests=REQUESTS, seed=1)
    pages, expected = outcome.classes["pages"], found.classes["pages"]
    low, high = pages.attainment_ci95.both
    return {
        "fleet": ", ".join(f"{pool.devices:g} {pool.device} {pool.placement}" for pool in found.pools),
        "usd_per_1000": 1e3 * (found.cost.usd_per_request if found.cost else float("nan")),
        "ttft_attained_percent": 100.0 * pages.attainment.ttft,
        "itl_attained_percent": 100.0 * pages.attainment.itl,
        "both_low_percent": 100.0 * low,
        "both_high_percent": 100.0 * high,
        "target_met": "yes" if pages.target_met else "no",
        "planned_ttft_p95_ms": expected.ttft_ms,
        "simulated_ttft_p95_ms": pages.ttft_ms.p95,
        "planned_itl_p95_ms": expected.itl_ms,
        "simulated_itl_p95_ms": pages.itl_ms.p95,
    }


TABLES = (Table(name="simulated", keys=tuple({"plan": name} for name in HEADLINES), cell=simulated),)
