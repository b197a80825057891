"""Plans to a comparison, from their documents alone: nothing is solved again."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from epd_opt.comparison import document as doc
from epd_opt.comparison.differences import ABSENT, differences
from epd_opt.comparison.matching import matched
from epd_opt.document import DeviceUse, PlanDocument, Pool


def compare(plans: Sequence[PlanDocument], files: Sequence[str]) -> doc.ComparisonDocument:
    """Compare plans with the first of them.

    Parameters
    ----------
    plans : sequence of PlanDocument
        At least one.
    files : sequence of str
        What to call them, one each.
    """
    labels = _labels(files)
    return doc.ComparisonDocument(
        plans=[_plan(plan, label, file) for plan, label, file in zip(plans, labels, files, strict=True)],
        differences=[difference(plans[0], other) for other in plans[1:]],
        inputs=[
            doc.Input(path=path, kind=_kind(path), values=_plain(values))
            for path, values in differences([plan.instance_document for plan in plans])
        ],
        cards=_cards(plans),
        devices=[_device(name, plans) for name in _names([plan.devices for plan in plans])],
        pools=[_pool_row(row) for row in matched([plan.pools for plan in plans])],
        classes=[_class(name, plans) for name in _names([plan.classes for plan in plans])],
    )


def difference(first: PlanDocument, other: PlanDocument) -> doc.Difference | None:
    """What ``other`` costs more than ``first``, and which devices make it so; None where either has no cost."""
    if first.cost is None or other.cost is None:
        return None
    before, after = first.cost.usd_per_request, other.cost.usd_per_request
    per_request = None if before is None or after is None else after - before
    dearer, cheaper = sorted((other.cost, first.cost), key=lambda cost: -cost.usd_per_hour)
    return doc.Difference(
        usd_per_hour=other.cost.usd_per_hour - first.cost.usd_per_hour,
        usd_per_request=per_request,
        per_request_share=None if per_request is None or not before else per_request / before,
        order_proved=dearer.bound_usd_per_hour > cheaper.usd_per_hour * (1 + 1e-9),
        devices=[
            effect
            for name in _names([first.devices, other.devices])
            if (effect := _effect(name, first.devices.get(name), other.devices.get(name))) is not None
        ],
    )


def _effect(name: str, before: DeviceUse | None, after: DeviceUse | None) -> doc.DeviceEffect | None:
    used_before, used_after = before.used if before else 0, after.used if after else 0
    cost_before, cost_after = before.usd_per_hour if before else 0.0, after.usd_per_hour if after else 0.0
    if used_before == used_after and cost_before == cost_after:
        return None
    each = cost_before / used_before if used_before else (cost_after / used_after if used_after else 0.0)
    by_units = (used_after - used_before) * each
    return doc.DeviceEffect(
        name=name,
        units=used_after - used_before,
        units_usd_per_hour=by_units,
        unit_cost_usd_per_hour=cost_after - cost_before - by_units,
    )


def _labels(files: Sequence[str]) -> list[str]:
    """File names, with as many folders as tell different files apart, and numbered where the file is the same."""
    named = [_shortest(file, set(files) - {file}) for file in files]
    return [name if named.count(name) == 1 else f"{name} ({named[: i + 1].count(name)})" for i, name in enumerate(named)]


def _shortest(file: str, others: Collection[str]) -> str:
    """The shortest end of a path that no other one has."""
    parts = PurePath(file).parts
    for count in range(1, len(parts)):
        if all(PurePath(other).parts[-count:] != parts[-count:] for other in others):
            return str(PurePath(*parts[-count:]))
    return file


def _plan(plan: PlanDocument, label: str, file: str) -> doc.ComparedPlan:
    cost = plan.cost
    each = None if cost is None else cost.usd_per_request
    return doc.ComparedPlan(
        label=label,
        file=file,
        instance=plan.instance,
        instance_sha256=plan.provenance.instance_sha256,
        status=plan.status,
        cost=cost,
        infeasibility=plan.infeasibility,
        requests_per_s=cost.usd_per_hour / each / 3600.0 if cost is not None and each else None,
        pools=len(plan.pools),
        devices=sum(pool.devices for pool in plan.pools),
        epd_opt=plan.provenance.epd_opt,
        solver=plan.provenance.solver,
    )


def _names(mappings: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted({name for mapping in mappings for name in mapping})


def _plain(values: Sequence[Any]) -> list[Any]:
    return [None if value is ABSENT else value for value in values]


def _kind(path: str) -> doc.Kind:
    top = path.replace("[", ".").split(".")[0]
    if top == "devices":
        return "price" if ".price" in path else "offer"
    if top == "cost":
        return "price"
    if top == "workload":
        return "target" if ".slo" in path else "workload"
    if top in ("limits", "redundancy"):
        return "limit"
    return "solver" if top == "solver" else "setting"


def _cards(plans: Sequence[PlanDocument]) -> list[doc.CardChange]:
    """Figures of cards that all plans rest on; cards of other devices or models are seen among the inputs."""
    held = [plan.cards for plan in plans]
    found = []
    for group in _names(held):
        parts = [cards.get(group) for cards in held]
        if not all(isinstance(part, Mapping) for part in parts):
            continue
        mappings = [part for part in parts if isinstance(part, Mapping)]
        same = mappings if group == "devices" or len({str(part.get("name")) for part in mappings}) == 1 else []
        found += [
            doc.CardChange(path=f"{group}.{path}", values=_plain(values))
            for path, values in (differences(same) if same else [])
            if group != "devices" or ABSENT not in values or "." in path
        ]
    return found


def _device(name: str, plans: Sequence[PlanDocument]) -> doc.DeviceRow:
    uses = [plan.devices.get(name) for plan in plans]
    return doc.DeviceRow(
        name=name,
        used=[use.used if use else None for use in uses],
        bought=[use.bought if use else None for use in uses],
        usd_per_hour=[use.usd_per_hour if use else None for use in uses],
    )


def _pool_row(row: Sequence[Pool | None]) -> doc.PoolRow:
    there = [pool for pool in row if pool is not None]
    points = [pool.operating_point.model_dump(mode="json") for pool in there]
    differing = {key: values for key, values in differences(points) if key in points[0]} if len(points) > 1 else {}
    settings = {}
    for key, values in differing.items():
        each = iter(_plain(values))
        settings[key] = [None if pool is None else next(each) for pool in row]
    return doc.PoolRow(
        placement=there[0].placement,
        sku=there[0].sku,
        pools=[None if pool is None else _pool(pool) for pool in row],
        settings=settings,
    )


def _pool(pool: Pool) -> doc.PoolFacts:
    return doc.PoolFacts(
        name=pool.name,
        device=pool.device,
        parallelism=pool.parallelism.model_dump(),
        replicas=pool.replicas,
        spare_replicas=pool.spare_replicas,
        devices=pool.devices,
        serves=pool.serves,
        binding=pool.binding,
        usd_per_hour=pool.usd_per_hour,
    )


def _class(name: str, plans: Sequence[PlanDocument]) -> doc.ClassRow:
    results = [plan.classes.get(name) for plan in plans]
    return doc.ClassRow(
        name=name,
        plans=[
            None
            if result is None
            else doc.ClassFacts(
                rate_per_s=result.rate_per_s,
                ttft_ms=result.ttft_ms,
                itl_ms=result.itl_ms,
                e2e_ms=result.e2e_ms,
                slo_met=result.slo_met,
                usd_per_request=result.usd_per_request,
                routes=result.routes,
            )
            for result in results
        ],
    )
