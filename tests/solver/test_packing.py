"""Groups stand in whole servers and racks: a real packing, not a count."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from epd_models.candidate import Candidate
from epd_models.row import Row
from epd_opt import solve
from epd_opt.accounting import ways_to_hold
from epd_opt.formulation import build
from epd_opt.nodes import Nodes, counted, fillings, fits, fluid, least_bins
from epd_opt.packing import Terms, least, stood
from epd_opt.problem import Offer, PlanningProblem
from support.packer import cheapest_standing, least_replicas, taken
from support.problems import arc, candidate, offer, planning_problem
from support.solving import solved

EIGHT = Nodes(unit=1, inner=8, domain=8, chunk=8, whole=True)
LOOSE = Nodes(unit=1, inner=8, domain=8, chunk=8, whole=False)
RACK = Nodes(unit=1, inner=72, domain=72, chunk=72, whole=True)
TRAYS = Nodes(unit=1, inner=72, domain=72, chunk=4, whole=True)
BRIDGED = Nodes(unit=1, inner=2, domain=8, chunk=8, whole=True)


def worker(size: int, rate: float, key: str = "") -> Candidate:
    """A worker of so many units per replica that serves so many chats a second."""
    rows = [Row(kind="rate", load=(("chat", 1.0 / rate),))]
    return candidate(key or f"tp{size}", [arc("chat", "encoded", "done")], rows, units=size)


def problem(rate: float, workers: Sequence[Candidate], terms: Offer) -> PlanningProblem:
    """Chats on workers of one device entry."""
    return planning_problem({"chat": rate}, workers, [terms])


def test_whole_nodes_by_hand() -> None:
    """10,000 tokens/s on replicas of two GPUs that give 1,500 take seven replicas, so two nodes of eight at 24 USD/h: 48."""
    document = {
        "schema": "epd-opt/instance/v1",
        "candidates": {"modelled": False},
        "workload": {"classes": [{"name": "tokens", "rate_per_s": 10000}]},
        "devices": [{"sku": "H100-SXM", "price": {"usd_per_hour": 24, "per": "server"}}],
        "workers": [
            {"name": "pair", "sku": "H100-SXM", "devices": 2, "stages": ["prefill", "decode"], "max_rate_per_s": 1500}
        ],
        "solver": {"gap": 0.0},
    }
    plan = solve(document)
    assert plan.cost.usd_per_hour == pytest.approx(48.0)
    assert plan.pools[0].replicas == 7
    use = plan.document.devices["H100-SXM"]
    assert (use.used, use.bought) == (14, 16)


def test_counting_alone_would_cheat() -> None:
    """Three groups of five are fifteen devices, which is less than two servers of eight; they take three servers."""
    found = solved(problem(3.0, [worker(5, 1.0)], offer("a", 1.0, lot=8, nodes=EIGHT)))
    assert found is not None
    assert found.usd_per_hour == pytest.approx(24.0)
    assert found.bound == pytest.approx(24.0)
    by_count = solved(problem(3.0, [worker(5, 1.0)], offer("a", 1.0, lot=8)))
    assert by_count is not None
    assert by_count.usd_per_hour == pytest.approx(16.0)


def test_sizes_that_fill_servers_evenly_are_counted() -> None:
    """Powers of two in servers of eight keep the model as it is; sixteens in a rack of 72, threes and sizes of whole trays
    and parts of them do as the definition says."""
    assert counted(EIGHT, (1, 2, 4, 8), 10**6)
    assert not counted(EIGHT, (1, 5), 10**6)
    assert fluid(EIGHT, (1, 5)) == (1,)
    assert not counted(RACK, (1, 2, 4, 8, 16), 10**6)
    assert counted(TRAYS, (1, 2, 4, 8, 16), 10**6)
    assert not counted(TRAYS, (3,), 73)
    assert counted(TRAYS, (3,), 72)
    assert counted(BRIDGED, (1, 2, 4, 8), 10**6)
    assert not counted(BRIDGED, (2, 3), 10**6)
    built = build(problem(9.0, [worker(4, 1.0), worker(2, 0.5)], offer("a", 1.0, lot=8, nodes=EIGHT)))
    assert not built.variables.nodes


@pytest.mark.parametrize("seed", range(60))
def test_counted_sizes_stand_wherever_there_are_as_many_units(seed: int) -> None:
    """Random groups of sizes that may be counted fill servers without waste, however many they are."""
    dice = random.Random(seed)
    sizes = dice.choice([(1, 2, 4, 8), (1, 4), (2, 8), (1, 2, 8)])
    groups = [dice.choice(sizes) for _ in range(dice.randint(1, 30))]
    assert counted(EIGHT, groups, 10**6)
    assert least_bins(groups, 8) == -(-sum(groups) // 8)


def test_small_groups_stay_in_scale_up_domains() -> None:
    """Where bridges join pairs within a server of eight, two threes and a pair stand; a pair may not be split over bridges,
    and threes go over any of them."""
    assert fits(BRIDGED, {3: 2, 2: 1}, 8)
    assert fits(BRIDGED, {2: 4}, 8)
    assert not fits(BRIDGED, {2: 4, 1: 1}, 8)
    quads = Nodes(unit=1, inner=4, domain=8, chunk=8, whole=True)
    assert not fits(quads, {3: 2, 2: 1}, 8)
    assert fits(quads, {5: 1, 3: 1}, 8)
    cards = Nodes(unit=4, inner=32, domain=32, chunk=8, whole=True)
    assert not fits(cards, {3: 2, 2: 1}, 8)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("nodes", [EIGHT, LOOSE], ids=["servers", "single units"])
def test_the_optimum_is_that_of_trying_every_fleet_and_every_packing(seed: int, nodes: Nodes) -> None:
    """Random groups of two or three sizes, owned servers and stock: least cost as by an independent packer."""
    dice = random.Random(seed)
    sizes = dice.sample([2, 3, 4, 5, 6, 7], dice.choice([2, 2, 3]))
    workers = [worker(size, dice.choice([0.5, 0.8, 1.0]) * size) for size in sorted(sizes)]
    rate = float(dice.randint(8, 14))
    owned = dice.choice([0, 0, 4, 8, 11])
    terms = offer(
        "a",
        1.0,
        lot=8 if nodes.whole else 1,
        owned=owned,
        owned_usd_per_hour=dice.choice([0.1, 0.7]),
        stock=dice.choice([None, owned + 16]),
        nodes=nodes,
    )
    whole = problem(rate, workers, terms)
    best: float | None = None
    ranges = [range(least_replicas(one, rate) + 1) for one in whole.candidates]
    for counts in sorted(itertools.product(*ranges), key=lambda counts: sum(taken(whole.candidates, counts))):
        served = sum(n / row.load[0][1] for one, n in zip(whole.candidates, counts, strict=True) for row in one.rows)
        if served >= rate - 1e-9:
            needed = sum(taken(whole.candidates, counts))
            if best is not None and needed * min(1.0, terms.owned_usd_per_hour) >= best:
                continue
            cost = cheapest_standing(terms, taken(whole.candidates, counts))
            if cost is not None:
                best = cost if best is None else min(best, cost)
    found = solved(whole)
    assert (found is None) == (best is None)
    if found is not None and best is not None:
        assert found.usd_per_hour == pytest.approx(best)
        assert found.bound <= best + 1e-6


@pytest.mark.parametrize("nodes", [EIGHT, LOOSE, RACK, TRAYS, BRIDGED], ids=lambda nodes: f"{nodes.domain}-{nodes.chunk}")
def test_what_is_held_has_a_place_for_every_group(nodes: Nodes) -> None:
    """However groups are held, each stands in one domain, and no domain holds more than it has."""
    dice = random.Random(nodes.domain + nodes.chunk)
    for _ in range(8):
        groups = {size: dice.randint(1, 6) for size in sorted(dice.sample([1, 2, 3, 5, 6, 8], 2))}
        used = sum(size * count for size, count in groups.items())
        owned = dice.choice([0, 5, nodes.chunk, nodes.chunk * 2 + 3])
        lot = nodes.chunk if nodes.whole else 1
        terms = offer("a", 1.0, lot=lot, owned=owned, owned_usd_per_hour=0.1, nodes=nodes)
        for held in ways_to_hold(terms, used, groups):
            placed = stood(nodes, groups, held.bought, owned)
            assert {size: sum(node.groups.get(size, 0) for node in placed) for size in groups} == groups
            assert all(fits(nodes, node.groups, min(node.units * nodes.unit, nodes.domain)) for node in placed)
            inside = sum(size * n for node in placed if node.owned for size, n in node.groups.items())
            assert inside <= held.owned <= owned
            shared = held.owned if nodes.parts or not nodes.whole else 0
            assert (
                sum(node.units for node in placed if not node.owned) <= held.bought + -(-shared // nodes.chunk) * nodes.chunk
            )


def test_thousands_of_groups_stand_as_few_do() -> None:
    """Where units come one by one, groups stand by first fit, however many there are: in servers of eight, three fives to
    three servers with a three beside each, and pairs where nothing else is left."""
    few = stood(LOOSE, {2: 4, 3: 2, 5: 3}, 100, 0)
    many = stood(LOOSE, {2: 8_000, 3: 4_000, 5: 6_000}, 100_000, 0)
    assert Counter(tuple(node.groups.items()) for node in few) == {((3, 1), (5, 1)): 2, ((2, 1), (5, 1)): 1, ((2, 3),): 1}
    assert Counter(tuple(node.groups.items()) for node in many) == {
        ((3, 1), (5, 1)): 4_000,
        ((2, 1), (5, 1)): 2_000,
        ((2, 4),): 1_500,
    }


def test_groups_reach_over_the_trays_of_a_rack() -> None:
    """28 groups of five take 35 trays of four, four groups to five trays; two owned trays stand in the same racks."""
    terms = Terms(lot=4, owned=0, stock=None, most=None, kept_share=1.0, minimum=0, usd=1.0, owned_usd=0.0)
    assert least(TRAYS, {5: 28}, terms) == (35 * 4, 0)
    assert least(TRAYS, {5: 28}, replace(terms, owned=8)) == (33 * 4, 8)
    assert {filling.chunks for filling in fillings(TRAYS, frozenset({5}), owned=True)} == {
        2,
        3,
        4,
        5,
        7,
        8,
        9,
        10,
        12,
        13,
        14,
        15,
        17,
        18,
    }


def test_owned_units_come_first_at_their_running_cost_and_the_rest_is_named() -> None:
    """Eight owned at 0.1 USD/h and rent at 3: six units in use are owned, 0.6 USD/h, and two more are left unused."""
    found = solved(problem(6.0, [worker(2, 2.0)], offer("a", 3.0, owned=8, owned_usd_per_hour=0.1, nodes=LOOSE)))
    assert found is not None
    assert found.usd_per_hour == pytest.approx(0.6)
    document = {
        "schema": "epd-opt/instance/v1",
        "candidates": {"modelled": False},
        "workload": {"classes": [{"name": "tokens", "rate_per_s": 3000}]},
        "devices": [{"sku": "H100-SXM", "owned": 8}],
        "workers": [
            {"name": "pair", "sku": "H100-SXM", "devices": 2, "stages": ["prefill", "decode"], "max_rate_per_s": 1500}
        ],
    }
    plan = solve(document)
    assert plan.to_dict()["retired"] == {"H100-SXM": 4}
    assert "owned and not used by this plan: 4 H100-SXM" in str(plan)
