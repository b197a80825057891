"""Where the time of a class goes, against its targets."""

from __future__ import annotations

import math

from epd_models.placement import Context
from epd_models.placement.spending import own_time
from epd_opt.document import ClassResult, PlanDocument
from epd_opt.explain.document import ClassFacts, Interval, Path, Step, TargetFacts
from epd_opt.explain.ground import Ground
from epd_opt.instance import RequestClass
from epd_opt.predict import Leg, context_for, legs
from epd_opt.solution import Way
from epd_opt.wording import milliseconds, share

_WORDS = {
    "transfer": "hand-over from the pool before",
    "host": "image processing on the host",
    "encode": "vision encoder",
    "encoder_sharing": "encoder processes in each other's way",
    "prefill": "prefill of the prompt",
    "steps": "iterations of the loop until the first token",
    "overhead": "the engine's own time per request",
    "behind": "prompts behind in the same loop",
}


def class_facts(ground: Ground) -> dict[str, ClassFacts]:
    """Targets, paths and intervals of every class that is served."""
    context = context_for(ground.resolved)
    stated = {request.name: request for request in ground.resolved.instance.workload.classes}
    return {name: _facts(ground, context, stated[name], ground.document.classes[name]) for name in ground.solution.ways}


def _facts(ground: Ground, context: Context | None, stated: RequestClass, result: ClassResult) -> ClassFacts:
    ways = ground.solution.ways[stated.name]
    passed = [legs(context, ground.offered, ground.solution, way) for way in ways]
    paths = [_path(ground.document, context, way, found) for way, found in zip(ways, passed, strict=True)]
    targets = _targets(stated, result)
    return ClassFacts(
        rate_per_s=result.rate_per_s,
        targets=targets,
        paths=paths,
        intervals=_intervals(ground.document, passed),
        text=_sentence(targets, paths),
    )


def _targets(stated: RequestClass, result: ClassResult) -> dict[str, TargetFacts]:
    slo = stated.slo
    pairs = {
        "ttft_ms": (slo.ttft_ms, result.ttft_ms, slo.ttft_percentile),
        "itl_ms": (slo.itl_ms, result.itl_ms, slo.itl_percentile),
        "e2e_ms": (slo.e2e_ms, result.e2e_ms, slo.e2e_percentile),
    }
    return {
        key: TargetFacts(
            target_ms=target,
            predicted_ms=predicted,
            slack_ms=None if predicted is None else target - predicted,
            percentile=percentile or slo.percentile,
        )
        for key, (target, predicted, percentile) in pairs.items()
        if target is not None
    }


def _path(document: PlanDocument, context: Context | None, way: Way, passed: list[Leg]) -> Path:
    steps = [step for leg in passed for step in _steps(document, context, leg)]
    return Path(
        pools=[document.pools[index].name for index, _ in way.steps],
        rate_per_s=way.rate,
        ttft_ms=math.fsum(leg.crossing_s + leg.delay_s for leg in passed) * 1e3 if passed else None,
        steps=steps,
    )


def _steps(document: PlanDocument, context: Context | None, leg: Leg) -> list[Step]:
    assert context is not None
    waits = [(f"wait_{queue}", seconds) for queue, seconds in leg.waits_s.items()]
    own = own_time(context, leg.behaviour.pool, leg.hop)
    behind = leg.hop.behind.seconds(sum(leg.waits_s.values()))
    parts = [("transfer", leg.crossing_s), *waits, *own, ("behind", behind)]
    return [
        Step(pool=document.pools[leg.index].name, what=what, text=words(what), ms=seconds * 1e3)
        for what, seconds in parts
        if seconds > 0.0
    ]


def words(what: str) -> str:
    """A step of the way to the first token, in words.

    >>> words("wait_prefill"), words("host")
    ('waiting for prefill', 'image processing on the host')
    """
    return _WORDS.get(what) or f"waiting for {what.removeprefix('wait_')}"


def _intervals(document: PlanDocument, passed: list[list[Leg]]) -> list[Interval]:
    found: dict[int, Interval] = {}
    for leg in (leg for way in passed for leg in way):
        interval = leg.interval_s
        if interval is not None:
            pool = document.pools[leg.index]
            mean, predicted = interval
            found[leg.index] = Interval(
                pool=pool.name,
                mean_ms=mean * 1e3,
                predicted_ms=predicted * 1e3,
                promised_ms=pool.operating_point.itl_promised_ms.get(leg.hop.name),
                design_ms=pool.operating_point.design_itl_ms,
            )
    return [found[index] for index in sorted(found)]


def _sentence(targets: dict[str, TargetFacts], paths: list[Path]) -> str:
    """How much of its targets a class has left, and what takes most of the time to its first token."""
    names = {"ttft_ms": "TTFT", "itl_ms": "ITL", "e2e_ms": "end to end"}
    parts = [
        f"{names[key]} {milliseconds(facts.predicted_ms)} of {milliseconds(facts.target_ms)} ms "
        f"({milliseconds(facts.slack_ms)} left)"
        for key, facts in targets.items()
        if facts.predicted_ms is not None
    ]
    slowest = max((path for path in paths if path.ttft_ms), key=lambda path: path.ttft_ms or 0.0, default=None)
    if slowest is not None and slowest.ttft_ms:
        most = max(slowest.steps, key=lambda step: step.ms)
        parts.append(f"{share(most.ms / slowest.ttft_ms)} of its TTFT is {most.text}")
    return "; ".join(parts) or "measured workers alone serve it: it meets every target at their rates"
