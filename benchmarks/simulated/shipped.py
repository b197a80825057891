"""Plans of the shipped instances: do they hold, and is anything idle?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import epd_opt
from epd_opt.document import Pool

INSTANCES = Path(__file__).parents[2] / "instances"
REQUESTS, SEEDS = 20_000, 3


def instances() -> Iterator[str]:
    """Attainment, predicted against simulated times, and the fewest replicas that still meet all targets."""
    yield ("| instance | class | TTFT p95: predicted | simulated | kept | ITL p95: predicted | simulated | kept | met |")
    yield "|---|---|---|---|---|---|---|---|---|"
    losses = []
    for stem, plan in _plans():
        found = epd_opt.simulate(plan, requests=REQUESTS, seeds=SEEDS)
        for name, outcome in found.classes.items():
            said, kept = plan.classes[name], outcome.attainment
            cells = [stem, name, _ms(said.ttft_ms), _ms(outcome.ttft_ms.p95), f"{kept.ttft:.4f}"]
            cells += [
                _ms(said.itl_ms),
                _ms(outcome.itl_ms.p95),
                f"{kept.itl:.4f}",
                "yes" if outcome.target_met else "**no**",
            ]
            yield f"| {' | '.join(cells)} |"
        losses += _losses(stem, plan)
    yield ""
    yield "| instance | pool | replicas | least that meet the targets | fewer by |"
    yield "|---|---|---|---|---|"
    yield from losses


def _plans() -> Iterator[tuple[str, epd_opt.Plan]]:
    """A plan for each instance, or for each of its scenarios."""
    for path in sorted(INSTANCES.glob("*.yaml")):
        plan = epd_opt.solve(path)
        if plan.document.scenarios is None:
            yield path.stem, plan
        else:
            for result in plan.document.scenarios:
                yield f"{path.stem}, {result.name}", plan.in_scenario(result.name)


def _losses(stem: str, plan: epd_opt.Plan) -> list[str]:
    """For each pool, the fewest replicas with which all targets are met, everything else the same."""
    lines = []
    for i, pool in enumerate(plan.pools):
        least = pool.replicas
        while least > 1 and epd_opt.simulate(_with(plan, i, least - 1), requests=REQUESTS // 2).target_met:
            least -= 1
        allowed = max(2, math.ceil(0.1 * pool.replicas) + 1)
        lost = pool.replicas - least
        excuse = " **idle**" if _servers_less(plan, pool, lost) else " (no server less)"
        lines.append(f"| {stem} | {pool.name} | {pool.replicas} | {least} | {lost}{'' if lost < allowed else excuse} |")
    return lines


def _servers_less(plan: epd_opt.Plan, pool: Pool, lost: int) -> int:
    """Servers, or single devices where these are not bought by the server, that so many replicas less would save."""
    (entry,) = (each for each in plan.document.instance_document["devices"] if each["name"] == pool.device)
    units = (entry.get("price") or {}).get("pack", 1)
    used = plan.document.devices[pool.device].used
    freed = lost * pool.devices / (pool.replicas + pool.spare_replicas)
    return math.ceil(used / units) - math.ceil((used - freed) / units)


def _with(plan: epd_opt.Plan, index: int, replicas: int) -> epd_opt.Plan:
    pools = list(plan.pools)
    pools[index] = pools[index].model_copy(update={"replicas": replicas})
    return epd_opt.Plan(plan.document.model_copy(update={"pools": pools}))


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
