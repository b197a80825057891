"""Waiting rows against closed results and against simulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from epd_models.distribution import Distribution
from epd_models.queueing import ServiceMoments, WaitingPoint, erlang_c, predicted_wait, waiting_points
from support.queue_simulation import Array, Stream, simulate

Law = tuple[tuple[float, ...], tuple[float, ...], Callable[[np.random.Generator, int], Array]]


def fixed(mean: float) -> Law:
    return (mean,), (1.0,), lambda rng, count: np.full(count, mean)


def exponential(mean: float) -> Law:
    edges = np.concatenate((np.linspace(0.0, 0.9, 40), 1.0 - np.geomspace(0.09, 1e-5, 40)))
    at = -np.log1p(-edges)
    left = np.append((at + 1.0) * (1.0 - edges), 0.0)
    weights = np.append(np.diff(edges), 1e-5)
    values = mean * (left[:-1] - left[1:]) / weights
    return tuple(values.tolist()), tuple(weights.tolist()), lambda rng, count: rng.exponential(mean, count)


def lognormal(mean: float, scv: float) -> Law:
    sigma = math.sqrt(math.log1p(scv))
    cut = Distribution.lognormal(mean=mean, p95=mean * math.exp(1.6449 * sigma - sigma**2 / 2))
    return cut.values, cut.weights, lambda rng, count: rng.lognormal(math.log(mean) - sigma**2 / 2, sigma, count)


def images(one: float) -> Law:
    """One to twenty images that arrive together: the request's whole work."""
    values = tuple(one * k for k in range(1, 21))
    return values, (0.05,) * 20, lambda rng, count: one * rng.integers(1, 21, count).astype(float)


CASES: dict[str, list[tuple[float, float, Law]]] = {
    "fixed": [(1, 1, fixed(1.0))],
    "exponential": [(1, 1, exponential(1.0))],
    "lognormal": [(1, 1, lognormal(1.0, 1.0))],
    "heavy": [(1, 1, lognormal(1.0, 4.0))],
    "images": [(1, 1, images(0.1))],
    "bursty": [(1, 4, exponential(1.0))],
    "bursty images": [(1, 4, images(0.1))],
    "very bursty": [(1, 9, fixed(1.0))],
    "text and images": [(9, 1, fixed(0.1)), (1, 1, images(0.4))],
    "text and bursty images": [(9, 1, lognormal(0.1, 1.0)), (1, 4, images(0.4))],
    "rare bursts": [(50, 1, exponential(0.2)), (1, 9, images(0.2))],
    "three": [(10, 1, lognormal(0.05, 1.0)), (3, 2, images(0.1)), (0.1, 1, fixed(10.0))],
}
"""Relative rate, squared coefficient of variation of the gaps, and service of each class."""


def services(name: str) -> list[ServiceMoments]:
    return [
        ServiceMoments(name=f"class {i}", values=values, weights=weights, scv=float(scv))
        for i, (_, scv, (values, weights, _)) in enumerate(CASES[name])
    ]


def flows_of(name: str, work: float) -> dict[str, float]:
    """Flows in the case's proportions that bring ``work`` Erlang."""
    kinds = services(name)
    unit = sum(rate * s.mean for (rate, _, _), s in zip(CASES[name], kinds, strict=True))
    return {s.name: work * rate / unit for (rate, _, _), s in zip(CASES[name], kinds, strict=True)}


def seen(name: str) -> float:
    """Mean service in progress that an arrival finds at a busy server, E[S**2] / E[S]."""
    flows = flows_of(name, 1.0)
    return sum(flows[s.name] * s.second for s in services(name))


def replicas(point: WaitingPoint, kinds: list[ServiceMoments], flows: dict[str, float]) -> int:
    return max(1, math.ceil(max(row.need(flows) for row in point.rows(kinds)) - 1e-9))


def fewest(points: list[WaitingPoint], kinds: list[ServiceMoments], flows: dict[str, float]) -> int:
    return min(replicas(point, kinds, flows) for point in points)


def lateness(
    name: str, flows: dict[str, float], servers: int, tau: float, eps: dict[str, float], customers: int
) -> tuple[float, float]:
    """Largest P(W > t_c) / eps_c over the classes, and two standard errors of it."""
    streams = [
        Stream(rate=flows[f"class {i}"], scv=float(scv), service=draw)
        for i, (_, scv, (_, _, draw)) in enumerate(CASES[name])
        if flows[f"class {i}"] > 0
    ]
    names = [f"class {i}" for i in range(len(CASES[name])) if flows[f"class {i}"] > 0]
    waits = simulate(streams, servers, customers, seed=servers)
    worst = (0.0, 0.0)
    for i, label in enumerate(names):
        if np.count_nonzero(waits.stream == i) * eps[label] < 30:
            continue
        late, error = waits.tail(tau * math.log(1.0 / eps[label]), i)
        worst = max(worst, (late / eps[label], error / eps[label]))
    return worst


def largest_flows(
    point: WaitingPoint, kinds: list[ServiceMoments], direction: dict[str, float], servers: int
) -> dict[str, float]:
    """The most that ``servers`` servers take of ``direction`` at this point."""
    scale = math.inf
    for row in point.rows(kinds):
        load = row.need(direction) - row.setup
        scale = min(scale, (servers - row.setup) / load if load > 0 else (math.inf if row.setup <= servers else 0.0))
    return {name: flow * max(scale, 0.0) for name, flow in direction.items()}


def test_erlang_c_is_never_below_the_exact_value() -> None:
    """The closed form bounds Erlang's recursion from above, by 8.1 % at one server and 1 % from ten on."""
    for servers in (1, 2, 3, 10, 100):
        for use in (0.01, 0.3, 0.7, 0.95):
            load, blocking = servers * use, 1.0
            for k in range(1, servers + 1):
                blocking = load * blocking / (k + load * blocking)
            exact = servers * blocking / (servers - load * (1.0 - blocking))
            ratio = float(erlang_c(np.array(float(servers)), np.array(load))) / exact
            assert 1.0 <= ratio < (1.081 if servers < 10 else 1.01)


def test_simulator_gives_erlangs_waits() -> None:
    """M/M/4: P(W > t) = C(4, A) exp(-(4 - A) t / S), within its error."""
    stream = Stream(rate=3.0, service=lambda rng, count: rng.exponential(1.0, count))
    waits = simulate([stream], 4, 300_000, seed=1)
    busy = 0.509433962
    for wait in (0.0, 0.7, 2.0):
        late, error = waits.tail(wait)
        assert abs(late - busy * math.exp(-wait)) < 2.0 * error


def test_simulator_gives_the_waits_of_one_deterministic_server() -> None:
    """M/D/1: mean wait rho S / (2 (1 - rho)); P(W <= t) = (1 - rho) exp(rho t / S) up to one service."""
    stream = Stream(rate=0.6, service=lambda rng, count: np.full(count, 1.0))
    waits = simulate([stream], 1, 300_000, seed=2)
    assert waits.seconds.mean() == pytest.approx(0.75, rel=0.03)
    late, error = waits.tail(0.8)
    assert abs(late - (1.0 - 0.4 * math.exp(0.48))) < 2.0 * error


def test_routing_to_least_work_waits_like_one_line() -> None:
    """Sending each arrival to the replica with least work gives the very waits of a common line."""
    streams = [Stream(rate=2.0, scv=4.0, service=lambda rng, count: rng.exponential(1.0, count))]
    line = simulate(streams, 3, 30_000, seed=3)
    routed = simulate(streams, 3, 30_000, seed=3, route_to_least_work=True)
    assert np.allclose(line.seconds, routed.seconds, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_rows_keep_the_promise(name: str) -> None:
    """At the largest flow that a point's rows allow, P(W > t) stays within 1.2 eps, for pools of one server and more."""
    kinds = services(name)
    checked = 0
    for over in (0.1, 0.5, 1.0, 5.0):
        eps = 0.05 if over > 1.0 else 0.01
        tau = over * seen(name) / math.log(1.0 / eps)
        points = waiting_points(kinds, tau, flows_of(name, 20.0), tail=eps)
        for servers in (1, 2, 3, 4, 9, 25):
            best = max((largest_flows(p, kinds, flows_of(name, 1.0), servers) for p in points), key=lambda f: f["class 0"])
            if best["class 0"] <= 0:
                continue
            customers = 200_000 if over > 1.0 else 40_000
            late, error = lateness(name, best, servers, tau, dict.fromkeys(best, eps), customers)
            assert late - error <= 1.2, (over, servers, late, error)
            checked += 1
    assert checked >= 10


@pytest.mark.parametrize("seed", range(8))
def test_rows_keep_the_promise_away_from_the_hint(seed: int) -> None:
    """Points made for one mix hold for any other, with a different percentile for each class."""
    rng = np.random.default_rng(seed)
    name = ["text and images", "text and bursty images", "rare bursts", "three"][seed % 4]
    kinds = services(name)
    strict = float(rng.choice([0.1, 0.03, 0.01]))
    eps = {s.name: min(0.1, strict * float(rng.choice([1.0, 3.0]))) for s in kinds}
    eps["class 1"] = strict
    tau = float(np.exp(rng.uniform(-2.5, 2.0))) * seen(name) / math.log(1.0 / strict)
    points = waiting_points(kinds, tau, flows_of(name, 30.0), tail=strict)
    work = rng.dirichlet(np.full(len(kinds), 0.7))
    direction = {s.name: float(part) / s.mean for s, part in zip(kinds, work, strict=True)}
    checked = 0
    for servers in (2, 5, 17):
        for point in points:
            flows = largest_flows(point, kinds, direction, servers)
            if sum(flows[s.name] * s.mean for s in kinds) < 0.02 * servers:
                continue
            late, error = lateness(name, flows, servers, tau, eps, 40_000)
            assert late - error <= 1.2, (servers, point, late, error)
            checked += 1
    assert checked


@pytest.mark.parametrize(
    ("name", "work"),
    [(n, a) for n in ("fixed", "exponential", "lognormal", "images", "text and images") for a in (1.6, 13.0, 60.0)],
)
def test_rows_are_tight(name: str, work: float) -> None:
    """Where t >= S, one replica or 3 % fewer break the promise: the cheapest point is hardly above simulation's least.

    S is the service in progress that an arrival finds, E[S**2] / E[S].
    """
    kinds, flows = services(name), flows_of(name, work)
    for over, eps in ((1.0, 0.05), (1.0, 0.01), (4.0, 0.05)):
        tau = over * seen(name) / math.log(1.0 / eps)
        size = fewest(waiting_points(kinds, tau, flows, tail=eps), kinds, flows)
        fewer = size - 1 - math.floor(max(1.0, 0.03 * size))
        if fewer > work:
            late, error = lateness(name, flows, fewer, tau, dict.fromkeys(flows, eps), 400_000)
            assert late + error > 1.0, (over, eps, size, late)


@pytest.mark.parametrize("name", ["exponential", "heavy", "bursty images", "text and images", "three"])
def test_a_few_points_cover_every_part_of_the_demand(name: str) -> None:
    """Eight points staff any part of the demand as well as points made for that part, within 5 % and three replicas."""
    kinds = services(name)
    for work in (3.0, 40.0, 1500.0):
        for over in (0.3, 2.0):
            tau = over * seen(name) / math.log(100.0)
            points = waiting_points(kinds, tau, flows_of(name, work), tail=0.01)
            assert 1 <= len(points) <= 8
            for part in (1.0, 0.6, 0.25, 0.05):
                flows = flows_of(name, work * part)
                own = fewest(waiting_points(kinds, tau, flows, tail=0.01), kinds, flows)
                assert fewest(points, kinds, flows) <= 1.05 * own + 3.0, (work, over, part)


def test_rows_are_affine_with_loads_that_only_add() -> None:
    """Every load and setup is finite and not negative, so more demand never frees a replica."""
    kinds = services("three")
    for point in waiting_points(kinds, 0.05, flows_of("three", 30.0), tail=0.01):
        for row in point.rows(kinds):
            assert row.setup >= 0.0
            assert all(0.0 <= load < math.inf for _, load in row.load)


def test_servers_of_a_replica_share_its_rows() -> None:
    """Eight servers in one replica divide loads and setup by eight."""
    kinds, flows = services("images"), flows_of("images", 24.0)
    for one in waiting_points(kinds, 0.2, flows, tail=0.05):
        many = replace(one, servers_per_replica=8)
        for before, after in zip(one.rows(kinds), many.rows(kinds), strict=False):
            if before.kind != "minimum":
                assert after.need(flows) == pytest.approx(before.need(flows) / 8)
        assert many.minimum_replicas == math.ceil(one.minimum_replicas / 8)


@pytest.mark.parametrize("servers_per_replica", [1, 4])
def test_points_are_made_for_whole_replicas(servers_per_replica: int) -> None:
    """Where a demand takes a little more than four servers, four serve nearly all of it, one by one or four at a time."""
    kinds, flows = services("images"), flows_of("images", 2.0)
    points = waiting_points(kinds, 0.2, flows, tail=0.05, servers_per_replica=servers_per_replica)
    for share, servers in ((0.95, 4), (1.0, 8)):
        some = {name: share * rate for name, rate in flows.items()}
        needed = [max(row.need(some) for row in point.rows(kinds)) for point in points]
        assert 4 * (servers // 4 - 1) < min(needed) * servers_per_replica <= servers


def test_a_burstier_class_needs_more() -> None:
    """Arrivals in bursts need more servers than Poisson arrivals of the same work."""
    smooth, bursty = services("exponential"), services("bursty")
    flows = flows_of("bursty", 12.0)
    tau = 1.0 / math.log(100.0)
    least = [fewest(waiting_points(kinds, tau, flows, tail=0.01), kinds, flows) for kinds in (smooth, bursty)]
    assert least[0] < least[1]


@pytest.mark.parametrize("name", ["fixed", "images", "bursty", "text and images"])
def test_predicted_wait_is_honest_and_within_the_promise(name: str) -> None:
    """The predicted wait is exceeded in at most 1.2 eps, and never above the promise of a point whose rows hold."""
    kinds, eps = services(name), 0.02
    tau = 1.5 * seen(name) / math.log(1.0 / eps)
    for servers in (2, 6, 20):
        points = waiting_points(kinds, tau, flows_of(name, float(servers)), tail=eps)
        point = max(points, key=lambda p: largest_flows(p, kinds, flows_of(name, 1.0), servers)["class 0"])
        flows = largest_flows(point, kinds, flows_of(name, 1.0), servers)
        promise = point.wait(1.0 - eps)
        assert predicted_wait(kinds, flows, servers, 1.0 - eps, point=point) <= promise
        lighter = {label: 0.8 * flow for label, flow in flows.items()}
        wait = predicted_wait(kinds, lighter, servers, 1.0 - eps)
        assert wait < promise
        late, error = lateness(name, lighter, servers, wait / math.log(1.0 / eps), dict.fromkeys(flows, eps), 60_000)
        assert late - error <= 1.2, (servers, late, error)


def test_predicted_wait_of_an_overloaded_pool_is_infinite() -> None:
    """A pool that cannot carry its load has no finite wait."""
    assert predicted_wait(services("fixed"), {"class 0": 3.0}, 2, 0.95) == math.inf


def test_a_point_promises_no_more_than_it_was_made_for() -> None:
    """Asking for a deeper percentile than the point's is an error that names both."""
    point = waiting_points(services("fixed"), 0.5, {"class 0": 3.0}, tail=0.05)[0]
    assert point.wait(0.95) == pytest.approx(0.5 * math.log(20.0))
    with pytest.raises(ValueError, match=r"up to probability 0\.95, asked for 0\.99"):
        point.wait(0.99)
