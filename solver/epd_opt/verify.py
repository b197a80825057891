"""Re-checks a plan in plain Python, from its whole counts and without any solver."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from fractions import Fraction

from epd_models.candidate import STATES, Candidate
from epd_opt.accounting import energy_usd_per_hour
from epd_opt.document import HOURS_PER_MONTH, DeviceUse, PlanDocument, Pool
from epd_opt.errors import EpdError
from epd_opt.formulation.constraints.choice import SERVING_SHARE
from epd_opt.instance import CostOverRange, Instance
from epd_opt.nodes import Nodes, fits
from epd_opt.offering import Offering
from epd_opt.plan import Plan
from epd_opt.problem import Offer
from epd_opt.resolve import Resolved, resolve
from epd_opt.restore import restored
from epd_opt.scenario_plan import disagreements, in_scenario, view
from epd_opt.scenarios import hired_entries
from epd_opt.standing import units_of_a_replica

_RELATIVE = 1e-6


class VerificationError(EpdError):
    """A plan breaks a rule that every plan must keep: a fault of this program."""

    exit_code = 1


def verify(plan: Plan, *, resolved: Resolved | None = None, offered: Offering | None = None) -> None:
    """Check a plan against its own instance and cards.

    Checked are: every pool exists among what the models offer, its replicas carry its flows on every requirement
    (waits, time, memory, sequences, intervals, compute, links), routes deliver each class's rate stage by stage,
    predicted times keep the targets, units and lots fit stock, owned fleet and limits, and the cost follows from the
    counts.

    Parameters
    ----------
    resolved, offered : optional
        The plan's instance as resolved, at the rates that are planned for, and its candidates where they are at hand;
        derived from the document otherwise.

    Raises
    ------
    VerificationError
        With every rule that is broken.
    """
    document = plan.document
    if document.cost is None:
        if document.pools:
            raise VerificationError("a plan without a cost has pools")
        return
    if document.scenarios is not None:
        _verify_scenarios(document)
        return
    _verify_one(document, resolved, offered)


def _verify_one(document: PlanDocument, resolved: Resolved | None = None, offered: Offering | None = None) -> None:
    """Check a plan for one workload."""
    if resolved is None or offered is None:
        again = restored(document, planned=True)
        resolved, offered = resolved or again[0], offered or again[1]
    broken = [
        *_multiple(document, resolved),
        *_pools(document, offered),
        *_routes(document, resolved),
        *_targets(document),
        *_fleet(document, resolved, _candidates(document, offered)),
        *_pool_costs(document, resolved),
        *_servers(document, resolved, _candidates(document, offered)),
        *_wishes(document, resolved),
    ]
    if broken:
        raise VerificationError("the plan failed its check:\n" + "\n".join(f"  {text}" for text in broken))


def _verify_scenarios(document: PlanDocument) -> None:
    """Check a plan for several scenarios: each as the plan that it is there, then that all share one fleet."""
    broken = [*disagreements(document), *_servers_of_all(document)]
    for result in document.scenarios or ():
        if not result.targets_met:
            broken += [f"scenario {result.name!r}: {text}" for text in _idle(view(document, result.name))]
            continue
        try:
            _verify_one(in_scenario(document, result.name))
        except VerificationError as error:
            broken.append(f"scenario {result.name!r}: {error}")
    if broken:
        raise VerificationError("the plan failed its check:\n" + "\n".join(f"  {text}" for text in broken))


def _idle(document: PlanDocument) -> Iterator[str]:
    """A scenario whose targets are not met has the fleet, and nothing runs."""
    if document.pools or document.classes:
        yield "its targets are not met, and yet something is planned"
    yield from _fleet(document, resolve(Instance(**document.instance_document), cards=document.cards), {})


def _multiple(document: PlanDocument, resolved: Resolved) -> Iterator[str]:
    """Whether the multiple is one that the objective may choose, and what is said of it follows from the rest."""
    wanted, goodput, chosen = resolved.instance.objective, document.goodput, document.rate_multiple
    if (goodput is not None and wanted != "goodput") or (chosen is not None and not isinstance(wanted, CostOverRange)):
        yield "the plan chose a multiple of the demand, which its objective does not ask for"
    if goodput is not None:
        stated = math.fsum(request.rate_per_s for request in resolved.instance.workload.classes)
        if not goodput.multiple > 0.0:
            yield f"the multiple of the demand is {goodput.multiple:g}"
        if not _close(goodput.requests_per_s, goodput.multiple * stated):
            yield f"{goodput.multiple:g} times {stated:g} requests/s are not {goodput.requests_per_s:g}"
        if not goodput.multiple <= goodput.bound_multiple * (1 + _RELATIVE):
            yield f"the multiple {goodput.multiple:.6g} lies above its bound {goodput.bound_multiple:.6g}"
        if not _close(goodput.gap * goodput.multiple, goodput.bound_multiple - goodput.multiple):
            yield f"the gap of the multiple is not {goodput.gap:.6g}"
    if chosen is not None and isinstance(wanted, CostOverRange):
        low, high = wanted.rate_multiple
        if (chosen.low, chosen.high) != (low, high) or not low <= chosen.multiple <= high:
            yield f"the multiple {chosen.multiple:.6g} is not from {low:g} to {high:g}"
        cost = None if document.cost is None else document.cost.usd_per_request
        if cost is None or not chosen.bound_usd_per_request <= cost * (1 + _RELATIVE) + 1e-12:
            yield f"the bound {chosen.bound_usd_per_request:.6g} lies above the cost of a request"


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=_RELATIVE, abs_tol=1e-9)


def _candidates(document: PlanDocument, offered: Offering) -> dict[str, Candidate]:
    known = {candidate.key: candidate for candidate in offered.problem.candidates}
    return {pool.name: known[pool.key] for pool in document.pools if pool.key in known}


def _pools(document: PlanDocument, offered: Offering) -> Iterator[str]:
    if len({pool.name for pool in document.pools}) < len(document.pools):
        yield "pool names are not unique"
    candidates = _candidates(document, offered)
    for pool in document.pools:
        candidate = candidates.get(pool.name)
        if candidate is None:
            yield f"{pool.name} is not on offer"
            continue
        if pool.replicas < 1 or pool.spare_replicas < 0:
            yield f"{pool.name} has {pool.replicas} replicas and {pool.spare_replicas} spares"
            continue
        cut = pool.parallelism
        degrees = (cut.tensor, cut.pipeline, cut.attention_data, cut.expert)
        ours = candidate.parallelism
        if (pool.device, pool.sku, pool.placement, tuple(pool.stages), degrees) != (
            candidate.device,
            candidate.sku,
            candidate.placement,
            candidate.stages,
            (ours.tensor, ours.pipeline, ours.attention_data, ours.expert),
        ):
            yield f"{pool.name} names another device, placement or parallelism than its operating point"
        if set(pool.serves) - set(candidate.classes):
            yield f"{pool.name} serves classes that it does not offer"
        if not _close(pool.devices, float((pool.replicas + pool.spare_replicas) * candidate.units)):
            yield f"{pool.name} counts {pool.devices} devices"
        for row in candidate.rows:
            need = row.need(pool.serves)
            if not need <= pool.replicas * (1 + _RELATIVE):
                yield f"{pool.name} needs {need:.6g} replicas for {row.kind} and has {pool.replicas}"
            said = pool.utilisation.get(row.kind)
            if said is not None and not need <= said * pool.replicas * (1 + _RELATIVE) + 1e-9:
                yield f"{pool.name} uses {need / pool.replicas:.6g} of its {row.kind}, the plan says {said:.6g}"


def _routes(document: PlanDocument, resolved: Resolved) -> Iterator[str]:
    pools = {pool.name: pool for pool in document.pools}
    carried: dict[tuple[str, str], float] = {}
    for request in resolved.requests:
        result = document.classes.get(request.name)
        if result is None:
            yield f"class {request.name!r} is missing"
            continue
        if not _close(sum(route.rate_per_s for route in result.routes), request.rate):
            yield f"the routes of class {request.name!r} do not add up to {request.rate:g} requests/s"
        for route in result.routes:
            missing = [name for name in route.pools if name not in pools]
            if missing or not route.rate_per_s > 0:
                why = f"names {missing[0]}, which is no pool" if missing else f"carries {route.rate_per_s:g} requests/s"
                yield f"a route of class {request.name!r} {why}"
                continue
            state = "raw" if request.has_vision else "encoded"
            for name in route.pools:
                carried[name, request.name] = carried.get((name, request.name), 0.0) + route.rate_per_s
                begins, ends = _span(pools[name], has_vision=request.has_vision)
                if begins != state:
                    yield f"class {request.name!r} reaches {name} {state}, which takes {begins}"
                state = ends
            if state != "done":
                yield f"a route of class {request.name!r} ends {state}"
    for pool in document.pools:
        for name, rate in pool.serves.items():
            brought = carried.pop((pool.name, name), 0.0)
            if not _close(brought, rate):
                yield f"{pool.name} serves {rate:g} requests/s of {name!r}, routes bring {brought:g}"
    for (pool_name, name), brought in carried.items():
        yield f"{pool_name} serves no {name!r}, routes bring {brought:g} requests/s"


def _span(pool: Pool, *, has_vision: bool) -> tuple[str, str]:
    order = {"encode": 0, "prefill": 1, "decode": 2}
    first, last = order[pool.stages[0]], order[pool.stages[-1]]
    return STATES[first if has_vision else max(first, 1)], STATES[last + 1]


def _targets(document: PlanDocument) -> Iterator[str]:
    for stated in document.instance_document["workload"]["classes"]:
        result = document.classes.get(stated["name"])
        if result is None:
            continue
        slo = stated.get("slo", {})
        for key, value in (("ttft_ms", result.ttft_ms), ("itl_ms", result.itl_ms), ("e2e_ms", result.e2e_ms)):
            target = slo.get(f"planned_{key}") or slo.get(key)
            if target is not None and value is not None and not value <= target * (1 + _RELATIVE):
                yield f"class {stated['name']!r} gets {key} {value:.6g}, its target is {target:g}"
        if not result.slo_met:
            yield f"class {stated['name']!r} does not meet its targets"


def _pool_costs(document: PlanDocument, resolved: Resolved) -> Iterator[str]:
    assert document.cost is not None
    costs = math.fsum(pool.usd_per_hour for pool in document.pools)
    if resolved.requests and not _close(costs, document.cost.usd_per_hour):
        yield "the costs of the pools do not add up to that of the fleet"


def _standing(name: str, use: DeviceUse, offer: Offer, pools: list[tuple[Pool, Fraction]]) -> Iterator[str]:
    """Whether every replica, of so many units, stands in a server or scale-up domain of the entry, and those are there."""
    nodes = offer.nodes
    if nodes is None:
        if use.nodes:
            yield f"{name}: replicas are said to stand in servers, of which nothing is known"
        return
    sizes = {pool.name: units * nodes.unit for pool, units in pools}
    placed = dict.fromkeys(sizes, Fraction(0))
    new, owned, inside = 0, 0, Fraction(0)
    for node in use.nodes:
        groups: dict[int, int] = {}
        for pool_name, count in node.groups.items():
            if pool_name not in sizes or node.count < 1 or count < 1:
                yield f"{name}: a server holds {count} groups of {pool_name}"
                return
            size = int(sizes[pool_name])
            if size > nodes.domain:
                alone = len(node.groups) == count == 1 and not node.free and node.units * nodes.unit == nodes.domain
                size = nodes.domain if alone else size % nodes.domain
            groups[size] = groups.get(size, 0) + count
            placed[pool_name] += node.count * count * Fraction(size) / sizes[pool_name]
        used = Fraction(sum(size * count for size, count in groups.items()), nodes.unit)
        if node.units * nodes.unit > nodes.domain or not fits(nodes, groups, node.units * nodes.unit):
            yield f"{name}: {', '.join(node.groups)} do not stand in {node.units} units of one domain"
        if not _close(node.free, float(node.units - used)):
            yield f"{name}: {node.free:g} of {node.units} units are said to be free, {float(node.units - used):g} are"
        if not node.owned:
            new += node.count * node.units
            if nodes.whole and node.units % nodes.chunk:
                yield f"{name}: {node.units} units are no whole servers of {nodes.chunk}"
        else:
            owned += node.count * (node.units // nodes.chunk)
            inside += node.count * used
    for pool, _ in pools:
        if placed[pool.name] != pool.replicas + pool.spare_replicas:
            yield f"{name}: {float(placed[pool.name]):g} replicas of {pool.name} stand in servers"
    shared = use.owned - inside
    if nodes.parts and nodes.whole:
        shared = Fraction(-(-use.owned // nodes.chunk) * nodes.chunk)
    if owned > offer.owned // nodes.chunk or inside > use.owned or new > use.bought + (shared if _shares(nodes) else 0):
        yield f"{name}: servers with {new} units beside {owned} owned ones are not among {use.bought} bought units"


def _wishes(document: PlanDocument, resolved: Resolved) -> Iterator[str]:
    """Whether what is required serves something."""
    rates = {demand.name: demand.rate for demand in resolved.demands}
    for wanted, entries in resolved.limits.required if resolved.requests else ():
        ours = [pool for pool in document.pools if pool.device in entries]
        served = sum(rate / rates[name] for pool in ours for name, rate in pool.serves.items() if name in rates)
        if served < SERVING_SHARE * (1 - 1e-4):
            yield f"{wanted} is required and serves {served:.3%} of the classes, less than {SERVING_SHARE:.0%}"


def _servers(document: PlanDocument, resolved: Resolved, candidates: Mapping[str, Candidate]) -> Iterator[str]:
    """Whether every replica stands in a server."""
    offers = {offer.name: offer for offer in resolved.offers}
    for name, use in document.devices.items():
        if name in offers:
            ours = [pool for pool in document.pools if pool.device == name and pool.name in candidates]
            pools = [(pool, candidates[pool.name].units) for pool in ours]
            yield from _standing(name, use, offers[name], pools)


def _servers_of_all(document: PlanDocument) -> Iterator[str]:
    """Whether every replica of a fleet for several scenarios stands in a server; where hired ones do, each scenario says."""
    hired = hired_entries(Instance(**document.instance_document))
    first = view(document, (document.scenarios or [])[0].name)
    offers = {o.name: o for o in resolve(Instance(**first.instance_document), cards=document.cards).offers}
    for name, use in document.devices.items():
        if name in offers and name not in hired:
            pools = [(pool, units_of_a_replica(pool)) for pool in document.pools if pool.device == name]
            yield from _standing(name, use, offers[name], pools)


def _shares(nodes: Nodes) -> bool:
    """Whether bought and owned units stand in the same domains."""
    return nodes.parts or not nodes.whole


def _spares(name: str, needed: int, spare: int, resolved: Resolved) -> Iterator[str]:
    """Whether a physical pool has the spares that are wanted, no more and no fewer."""

    def enough(spare: int) -> bool:
        low, fuller = divmod(needed + spare, resolved.zones)
        return low * (resolved.zones - resolved.lost_zones) + max(0, fuller - resolved.lost_zones) >= needed

    fewest = resolved.spare_replicas
    wanted = fewest + bisect_left(range(fewest, fewest + needed * resolved.lost_zones), True, key=enough)
    if spare != wanted:
        over = (
            f", evenly over {resolved.zones} zones of which {resolved.lost_zones} may be lost" if resolved.lost_zones else ""
        )
        yield f"{name} has {spare} spare replicas, {wanted} are wanted{over}"


def _racks_of(name: str, use: DeviceUse, offer: Offer, resolved: Resolved) -> Iterator[str]:
    """Whether an entry takes the racks that its power asks for."""
    rack_w = resolved.limits.rack_w
    wanted = None
    if rack_w is not None and offer.power_w > 0:
        server = offer.nodes.chunk if offer.nodes is not None and offer.nodes.whole else 1
        each = server * int(rack_w * (1 + 1e-9) // (server * offer.power_w))
        wanted = math.ceil(Fraction(use.bought + use.owned, each))
    if use.racks != wanted:
        yield f"{name}: takes {wanted} racks, the plan says {use.racks}"


def _fleet(document: PlanDocument, resolved: Resolved, candidates: Mapping[str, Candidate]) -> Iterator[str]:
    assert document.cost is not None
    offers = {offer.name: offer for offer in resolved.offers}
    means = {demand.name: demand.mean_rate / demand.rate for demand in resolved.demands}
    costs: list[float] = []
    spared: dict[tuple[str, str], tuple[int, int]] = {}
    for name in sorted({pool.device for pool in document.pools} | set(document.devices)):
        if name not in offers or name not in document.devices:
            yield f"{name} is {'not listed under devices' if name in offers else 'no device entry on offer'}"
            continue
        pools = [pool for pool in document.pools if pool.device == name and pool.name in candidates]
        units, busy = Fraction(0), 0.0
        for pool in pools:
            candidate = candidates[pool.name]
            needed, spare = spared.get(candidate.physical, (0, 0))
            spared[candidate.physical] = needed + pool.replicas, spare + pool.spare_replicas
            units += (pool.replicas + pool.spare_replicas) * candidate.units
            busy += sum(
                rate * means[served] * candidate.busy_s[served] * float(candidate.units)
                for served, rate in pool.serves.items()
                if served in means and served in candidate.busy_s
            )
        stock, use = offers[name].stock, document.devices[name]
        costs.append(
            use.bought * offers[name].usd_per_hour
            + use.owned * offers[name].owned_usd_per_hour
            + energy_usd_per_hour(offers[name], use.used, busy)
        )
        if use.used < units or offers[name].kept_by(use.bought) + use.owned < use.used:
            yield f"{name}: {use.used} units in use, {use.bought} bought and {use.owned} owned do not cover {units}"
        if use.bought % offers[name].lot:
            yield f"{name}: {use.bought} bought units are no whole lots of {offers[name].lot}"
        if 0 < use.bought < offers[name].minimum:
            yield f"{name}: {use.bought} units are bought, the smallest order is {offers[name].minimum}"
        if use.bought and not offers[name].for_sale:
            yield f"{name}: {use.bought} units are bought, but it has no price"
        if use.owned > offers[name].owned or (stock is not None and use.bought + use.owned > stock):
            yield f"{name}: {use.bought} bought and {use.owned} owned units exceed what there is"
        yield from _racks_of(name, use, offers[name], resolved)
        if not _close(use.usd_per_hour, costs[-1]):
            yield f"{name}: costs {costs[-1]:.6g} USD/h, the plan says {use.usd_per_hour:.6g}"
    for (_, name), (needed, spare) in spared.items():
        yield from _spares(name, needed, spare, resolved)
    cost = math.fsum(costs)
    if not _close(cost, document.cost.usd_per_hour):
        yield f"the fleet costs {cost:.6g} USD/h, the plan says {document.cost.usd_per_hour:.6g}"
    if not document.cost.bound_usd_per_hour <= cost * (1 + _RELATIVE) + 1e-9:
        yield f"the bound {document.cost.bound_usd_per_hour:.6g} lies above the cost {cost:.6g}"
    requests = 3600.0 * math.fsum(demand.mean_rate for demand in resolved.demands)
    if requests and not _close((document.cost.usd_per_request or 0.0) * requests, cost):
        yield "cost per request does not follow from the hourly cost"
    if not _close(document.cost.usd_per_month, cost * HOURS_PER_MONTH):
        yield "cost per month does not follow from the hourly cost"
    fleet = [(offers[name], use) for name, use in document.devices.items() if name in offers]
    capex = math.fsum(offer.capex_usd * use.bought for offer, use in fleet)
    if not _close(capex, document.cost.capex_usd):
        yield f"purchases come to {capex:.6g} USD, the plan says {document.cost.capex_usd:.6g}"
    upfront = math.fsum(offer.upfront_usd * use.bought for offer, use in fleet)
    if not _close(upfront, document.cost.upfront_usd):
        yield f"reservations ask {upfront:.6g} USD at their start, the plan says {document.cost.upfront_usd:.6g}"
    billed = cost - math.fsum(offer.amortised_usd_per_hour * use.bought for offer, use in fleet)
    if document.cost.billed_usd_per_hour is not None and not _close(billed, document.cost.billed_usd_per_hour):
        yield f"invoices come to {billed:.6g} USD/h, the plan says {document.cost.billed_usd_per_hour:.6g}"
    limits, slack = resolved.limits, 1 + _RELATIVE
    if limits.usd_per_hour is not None and cost > limits.usd_per_hour * slack:
        yield f"the fleet costs {cost:.6g} USD/h, the limit is {limits.usd_per_hour:g}"
    power = math.fsum(offer.power_w * (use.bought + use.owned) for offer, use in fleet)
    if not _close(power / 1e3, document.cost.power_kw):
        yield f"the fleet takes {power:.6g} W, the plan says {document.cost.power_kw:.6g} kW"
    if limits.power_w is not None and power > limits.power_w * slack:
        yield f"the fleet takes {power:.6g} W, the limit is {limits.power_w:g}"
    racks = sum(use.racks or 0 for use in document.devices.values())
    if limits.racks is not None and racks > limits.racks:
        yield f"the fleet takes {racks} racks, the limit is {limits.racks:g}"
    used = {offers[name].sku for name, use in document.devices.items() if name in offers and use.used}
    if limits.skus is not None and len(used) > limits.skus:
        yield f"the fleet has {len(used)} different SKUs, the limit is {limits.skus}"
    devices = sum(use.bought + use.owned for use in document.devices.values())
    if limits.devices is not None and devices > limits.devices:
        yield f"the fleet holds {devices} devices, the limit is {limits.devices}"
