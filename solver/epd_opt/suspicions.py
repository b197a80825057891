"""Values that are valid and yet look as if typed in another unit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from epd_opt.address import format_path

if TYPE_CHECKING:
    from epd_opt.instance import Instance


def suspicions(instance: Instance) -> Iterator[str]:
    """One sentence for each suspicious value of an instance, opening with its path."""
    for request in instance.workload.classes:
        for key, least_ms in (("ttft_ms", 10.0), ("itl_ms", 0.5), ("e2e_ms", 10.0)):
            target_ms = getattr(request.slo, key)
            if target_ms is not None and target_ms < least_ms:
                path = format_path(["workload", "classes", request.name, "slo", key])
                yield f"{path}: {target_ms:g} ms is very short; for {target_ms:g} s write {target_ms * 1000:g}"
    cost = instance.cost
    if cost.cost_of_capital is not None and cost.cost_of_capital > 1:
        yield (
            f"cost.cost_of_capital: {cost.cost_of_capital:g} is {cost.cost_of_capital * 100:g} % a year; "
            f"if {cost.cost_of_capital:g} % was meant, write {cost.cost_of_capital / 100:g}"
        )
    if isinstance(cost.electricity_usd_per_kwh, float) and cost.electricity_usd_per_kwh > 2:
        yield (
            f"cost.electricity_usd_per_kwh: {cost.electricity_usd_per_kwh:g} USD is a high tariff; "
            f"if cents were meant, write {cost.electricity_usd_per_kwh / 100:g}"
        )
    if instance.redundancy.headroom > 2:
        yield (
            f"redundancy.headroom: {instance.redundancy.headroom:g} multiplies every rate by "
            f"{1 + instance.redundancy.headroom:g}; if {instance.redundancy.headroom:g} % was meant, "
            f"write {instance.redundancy.headroom / 100:g}"
        )
