"""The targets that a plan's instance states."""

from __future__ import annotations

from dataclasses import dataclass

from epd_opt.document import PlanDocument


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A time that a share of requests keeps: ``milliseconds`` at ``percentile`` (95 for 95 per cent)."""

    milliseconds: float
    percentile: float


def stated_targets(document: PlanDocument, name: str) -> dict[str, Target]:
    """Targets of a class by what they limit: ttft, itl, e2e."""
    for stated in document.instance_document["workload"]["classes"]:
        if stated["name"] == name:
            slo = stated.get("slo") or {}
            return {
                which: Target(
                    milliseconds=slo[f"{which}_ms"],
                    percentile=slo.get(f"{which}_percentile") or slo.get("percentile", 95),
                )
                for which in ("ttft", "itl", "e2e")
                if slo.get(f"{which}_ms") is not None
            }
    return {}
