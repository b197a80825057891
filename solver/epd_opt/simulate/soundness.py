"""Whether a plan that may have been written by hand can be run: every class finds its stages, every pool is what it says."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from epd_models.placement import PLACEMENTS
from epd_models.workload import RequestClass
from epd_opt.document import ClassResult, PlanDocument, Pool
from epd_opt.errors import InvalidInput, Problem
from epd_opt.resolve import Resolved

_MOST_REPLICAS = 100_000
"""Replicas of a plan that are run one by one; each takes some kilobytes."""
_HINT = "the plan was changed: solve its instance again"


def demand_sound(document: PlanDocument, resolved: Resolved) -> None:
    """Complain of all that keeps requests from passing through the pools.

    Raises
    ------
    InvalidInput
        With a problem for each place.
    """
    problems = [Problem(path=path, message=message, hint=_HINT) for path, message in _faults(document, resolved)]
    if problems:
        raise InvalidInput(problems)


def _faults(document: PlanDocument, resolved: Resolved) -> Iterator[tuple[str, str]]:
    names = Counter(pool.name for pool in document.pools)
    for name in (name for name, count in names.items() if count > 1):
        yield f"pools.{name}", f"{names[name]} pools of this name"
    for pool in document.pools:
        for key, message in _of_pool(pool):
            yield f"pools.{pool.name}.{key}", message
    replicas = sum(pool.replicas + pool.spare_replicas for pool in document.pools)
    if replicas > _MOST_REPLICAS:
        yield "pools", f"{replicas:,} replicas in all; at most {_MOST_REPLICAS:,} can be simulated"
    stages = {pool.name: pool.stages for pool in document.pools}
    served = {request.name for request in resolved.requests}
    for name in document.classes:
        if name not in served:
            yield f"classes.{name}", f"the plan's instance has no such class; it has {', '.join(sorted(served))}"
    for request in resolved.requests:
        result = document.classes.get(request.name)
        if result is None:
            yield f"classes.{request.name}", "missing, though the plan's instance has this class"
        else:
            for key, message in _of_class(request, result, stages):
                yield f"classes.{request.name}.routes{key}", message


def _of_pool(pool: Pool) -> Iterator[tuple[str, str]]:
    if pool.spare_replicas < 0:
        yield "spare_replicas", f"found {pool.spare_replicas}, expected at least 0"
    if "encode" in pool.stages and pool.operating_point.fan_out < 1:
        yield "operating_point.fan_out", f"found {pool.operating_point.fan_out}, expected at least 1"
    if pool.provenance == "measured":
        return
    placement = PLACEMENTS.get(pool.placement)
    if placement is None:
        yield "placement", f"found {pool.placement!r}, expected one of {', '.join(PLACEMENTS)}"
    elif not set(pool.stages) <= set(placement.stages):
        yield "stages", f"found {', '.join(pool.stages)}; {pool.placement} runs {', '.join(placement.stages)}"


def _of_class(request: RequestClass, result: ClassResult, stages: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    rates = [route.rate_per_s for route in result.routes]
    if not all(math.isfinite(rate) and rate >= 0.0 for rate in rates) or not sum(rates) > 0.0:
        found = ", ".join(f"{rate:g}" for rate in rates) or "no route"
        yield "", f"found {found}; expected requests/s of at least 0 on each route, and some on one"
    for i, route in enumerate(result.routes):
        passed = [stage for name in route.pools for stage in stages[name]]
        needed = ["prefill", "decode"]
        if passed != ["encode", *needed] and (request.has_vision or passed != needed):
            wanted = " then ".join(["encode", *needed] if request.has_vision else needed)
            yield f".{i}", f"passes {' then '.join(passed) or 'no stage'}, expected {wanted}"
