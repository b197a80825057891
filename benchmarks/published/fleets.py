"""Fixed fleets: the most they serve, and mean times at a load."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import epd_opt
from epd_models.loop import predicted_interval
from epd_models.parallelism import Parallelism
from epd_models.placement.table import PLACEMENTS
from epd_models.pool import Pool, Queue, Settings
from epd_opt.offering import context_of, loads_of
from epd_opt.resolve import resolve

Document = Mapping[str, Any]
Member = tuple[str, str, int]
"""A pool of a fleet: placement, device entry, replicas of one device each."""


def instance(**parts: Any) -> dict[str, Any]:
    """An instance document; devices are rented at a dollar where nothing is said, as prices do not matter here."""
    devices = [{"price": {"usd_per_hour": 1}, **device} for device in parts.pop("devices")]
    classes = parts.pop("classes")
    solver = {"gap": 0.01, "time_limit_s": 120}
    return {
        "schema": "epd-opt/instance/v1",
        "name": "published",
        "workload": {"classes": classes},
        "devices": devices,
        "solver": solver,
        **parts,
    }


def goodput(document: Document) -> float:
    """Requests/s that the fleet, whose size the document's stocks limit, serves within the targets."""
    plan = epd_opt.solve({**document, "objective": "goodput"})
    found = plan.to_dict()["goodput"]
    return 0.0 if found is None else float(found["requests_per_s"])


def mean_times(document: Document, fleet: Sequence[Member]) -> dict[str, tuple[float, float]]:
    """Mean seconds to the first token, and between tokens, of each class on pools that all classes pass in this order.

    Waits are those of a queue with random service (Allen and Cunneen's approximation), without the reserves of a plan.
    """
    resolved = resolve(epd_opt.Instance.model_validate(document))
    loads, _ = loads_of(resolved)
    context = context_of(resolved, loads)
    entries = {entry.name: entry for entry in resolved.entries}
    rates = {load.name: load.request.rate for load in loads}
    first, between = dict.fromkeys(rates, 0.0), dict.fromkeys(rates, 0.0)
    for placement, name, replicas in fleet:
        level, pool = 0.02, None
        for _ in range(8):
            settings = Settings(itl_level_s=level, burst_share=0.3)
            pool = PLACEMENTS[placement].build(context, entries[name], Parallelism(), settings)
            if pool.loop is None:
                break
            intervals = predicted_interval(pool.loop, rates, replicas, 0.5)
            level = min(max(mean for mean, _ in intervals.values()), 1.0)
            between = {name: mean for name, (mean, _) in intervals.items()}
        assert pool is not None
        for hop in pool.hops:
            first[hop.name] += hop.own_s + sum(_wait_s(q, rates, replicas) for q in pool.queues if q.name in hop.queues)
            first[hop.name] += hop.sends / pool.bandwidth if hop.sends else 0.0
    return {name: (first[name], between[name]) for name in rates}


def _wait_s(queue: Queue, rates: Mapping[str, float], replicas: int) -> float:
    """Mean wait in a queue of a pool."""
    flows = [(rates[service.name], service) for service in queue.services]
    rate = sum(flow for flow, _ in flows)
    mean = sum(flow * service.mean for flow, service in flows) / rate
    second = sum(flow * service.second for flow, service in flows) / rate
    arrivals = sum(flow * service.scv for flow, service in flows) / rate
    servers = queue.servers_per_replica * replicas
    busy = rate * mean / servers
    if mean == 0.0:
        return 0.0
    if busy >= 1.0:
        return math.inf
    all_busy = busy ** (math.sqrt(2.0 * (servers + 1.0)) - 1.0)
    return mean * (arrivals + second / mean**2 - 1.0) / 2.0 * all_busy / (servers * (1.0 - busy))


def loop_of(document: Document, placement: str, name: str) -> Pool:
    """A pool of a placement for the document's classes at an entry's first cut, to read its times from."""
    resolved = resolve(epd_opt.Instance.model_validate(document))
    loads, _ = loads_of(resolved)
    entry = next(entry for entry in resolved.entries if entry.name == name)
    settings = Settings(itl_level_s=0.02, burst_share=0.3)
    table = PLACEMENTS[placement]
    return table.build(context_of(resolved, loads), entry, table.cuts(entry)[0], settings)
