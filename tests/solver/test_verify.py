"""A plan that anybody has tampered with fails its check, in a sentence that names what is wrong."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from epd_opt import Plan, VerificationError, solve, verify
from epd_opt.document import PlanDocument
from support.documents import measured, modelled

Document = dict[str, Any]
Change = Callable[[Document], None]


@pytest.fixture(scope="module")
def planned() -> Document:
    """A plan of measured workers on split stages: encoder, reader and writer, one spare each, lots of two."""
    return solve(measured()).to_dict()


@pytest.fixture(scope="module")
def predicted() -> Document:
    """A plan of modelled workers, with predicted times."""
    return solve(modelled(placements=["encode_prefill", "decode"])).to_dict()


def broken(document: Document, change: Change) -> str:
    """What the check says after a change; loading would refuse what does not even hang together."""
    tampered = copy.deepcopy(document)
    change(tampered)
    with pytest.raises(VerificationError) as caught:
        verify(Plan(PlanDocument.model_validate(tampered)))
    return str(caught.value)


def pool(document: Document, stage: str) -> Document:
    """The pool that runs a stage alone."""
    return next(p for p in document["pools"] if p["stages"] == [stage])


def test_untouched_plans_pass_after_a_round_trip(planned: Document, predicted: Document) -> None:
    """Written to JSON and read again, a plan holds on its own cards and instance."""
    for document in (planned, predicted):
        verify(Plan.load(json.loads(json.dumps(document))))


def test_the_plan_has_what_the_changes_below_touch(planned: Document) -> None:
    """Three pools in a row, with bought and owned units in lots of two."""
    assert [p["stages"] for p in planned["pools"]] == [["encode"], ["prefill"], ["decode"]]
    assert planned["devices"]["small"]["owned"] > 0
    assert planned["devices"]["small"]["bought"] > 0


def a_replica_less(d: Document) -> None:
    pool(d, "decode")["replicas"] -= 1


def a_cheaper_fleet(d: Document) -> None:
    writer = pool(d, "decode")
    writer["replicas"] -= 2
    writer["devices"] -= 4


def no_replicas(d: Document) -> None:
    pool(d, "prefill")["replicas"] = 0


def a_spare_less(d: Document) -> None:
    pool(d, "prefill")["spare_replicas"] = 0


def a_zone_to_lose(d: Document) -> None:
    d["instance_document"]["redundancy"] |= {"zones": 3, "survive_zones": 1}


def another_device(d: Document) -> None:
    pool(d, "prefill")["device"] = "small"


def another_cut(d: Document) -> None:
    pool(d, "prefill")["parallelism"]["tensor"] = 8


def an_unknown_pool(d: Document) -> None:
    pool(d, "prefill")["key"] = "measured|nobody|big"


def a_name_twice(d: Document) -> None:
    pool(d, "prefill")["name"] = pool(d, "decode")["name"]


def flow_moved(d: Document) -> None:
    pool(d, "decode")["serves"]["chat"] -= 1.0


def flow_hidden(d: Document) -> None:
    del pool(d, "decode")["serves"]["chat"]


def a_stranger_served(d: Document) -> None:
    pool(d, "decode")["serves"]["mail"] = 1.0


def utilisation_understated(d: Document) -> None:
    pool(d, "decode")["utilisation"]["rate"] = 0.1


def a_route_dropped(d: Document) -> None:
    d["classes"]["album"]["routes"] = []


def a_route_cut_short(d: Document) -> None:
    d["classes"]["chat"]["routes"][0]["pools"].pop()


def a_route_past_the_encoder(d: Document) -> None:
    d["classes"]["album"]["routes"][0]["pools"].pop(0)


def a_route_to_nowhere(d: Document) -> None:
    d["classes"]["chat"]["routes"][0]["pools"][1] = "elsewhere"


def a_route_backwards(d: Document) -> None:
    routes = d["classes"]["chat"]["routes"]
    routes.append({"pools": routes[0]["pools"], "rate_per_s": -1.0})
    routes[0]["rate_per_s"] += 1.0


def a_class_missing(d: Document) -> None:
    del d["classes"]["chat"]


def cost_changed(d: Document) -> None:
    d["cost"]["usd_per_hour"] -= 0.5


def month_changed(d: Document) -> None:
    d["cost"]["usd_per_month"] *= 0.9


def request_changed(d: Document) -> None:
    d["cost"]["usd_per_request"] *= 0.9


def purchases_changed(d: Document) -> None:
    d["cost"]["capex_usd"] *= 0.9


def power_changed(d: Document) -> None:
    d["cost"]["power_kw"] *= 0.9


def entry_cost_changed(d: Document) -> None:
    d["devices"]["big"]["usd_per_hour"] -= 1.0


def pool_cost_changed(d: Document) -> None:
    pool(d, "encode")["usd_per_hour"] += 1.0


def bound_above_cost(d: Document) -> None:
    d["cost"]["bound_usd_per_hour"] = d["cost"]["usd_per_hour"] * 1.01


def an_entry_missing(d: Document) -> None:
    del d["devices"]["big"]


def a_lot_broken(d: Document) -> None:
    d["devices"]["small"]["bought"] += 1


def too_few_bought(d: Document) -> None:
    d["devices"]["small"]["bought"] -= 2


def too_many_owned(d: Document) -> None:
    d["devices"]["small"]["owned"] += 2


def stock_exceeded(d: Document) -> None:
    entry(d, "big")["stock"] = 2


def entry(d: Document, name: str) -> Document:
    """A device entry of the embedded instance."""
    found: Document = next(e for e in d["instance_document"]["devices"] if name in (e.get("name"), e["sku"]))
    return found


def fewer_devices_allowed(d: Document) -> None:
    d["instance_document"]["limits"] = {"devices": 10}


def less_money_allowed(d: Document) -> None:
    d["instance_document"]["limits"] = {"usd_per_hour": 10}


def less_power_allowed(d: Document) -> None:
    d["instance_document"]["limits"] = {"power_kw": 3}


def fewer_skus_allowed(d: Document) -> None:
    d["instance_document"]["limits"] = {"skus": 1}


def fewer_racks_allowed(d: Document) -> None:
    d["instance_document"]["limits"] = {"rack_kw": 1, "racks": 2}
    d["devices"]["small"]["racks"] = 8


def racks_understated(d: Document) -> None:
    d["instance_document"]["limits"] = {"rack_kw": 1}
    d["devices"]["small"]["racks"] = 1


def a_larger_order_wanted(d: Document) -> None:
    entry(d, "small")["price"]["minimum"] = 100


def an_idle_entry_required(d: Document) -> None:
    d["instance_document"]["devices"].append({**entry(d, "big"), "name": "third"})
    d["instance_document"]["limits"] = {"require": ["third"]}


def more_demand(d: Document) -> None:
    next(c for c in d["instance_document"]["workload"]["classes"] if c["name"] == "chat")["rate_per_s"] = 13


def a_slower_worker(d: Document) -> None:
    next(w for w in d["instance_document"]["workers"] if w["name"] == "writer")["max_rate_per_s"] = {"default": 2.0}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (a_replica_less, "writer-small counts 12"),
        (a_cheaper_fleet, "writer-small needs 5 replicas for rate and has 3"),
        (no_replicas, "reader-big has 0 replicas"),
        (a_spare_less, "0 spare replicas, 1 are wanted"),
        (a_zone_to_lose, "spare replicas, 3 are wanted, evenly over 3 zones of which 1 may be lost"),
        (another_device, "reader-big names another device"),
        (another_cut, "reader-big names another device, placement or parallelism"),
        (an_unknown_pool, "reader-big is not on offer"),
        (a_name_twice, "pool names are not unique"),
        (flow_moved, "writer-small serves 11 requests/s of 'chat', routes bring 12"),
        (flow_hidden, "writer-small serves no 'chat', routes bring 12"),
        (a_stranger_served, "writer-small serves classes that it does not offer"),
        (utilisation_understated, "writer-small uses 1 of its rate, the plan says 0.1"),
        (a_route_dropped, "the routes of class 'album' do not add up to 3"),
        (a_route_cut_short, "a route of class 'chat' ends prefilled"),
        (a_route_past_the_encoder, "class 'album' reaches reader-big raw, which takes encoded"),
        (a_route_to_nowhere, "a route of class 'chat' names elsewhere, which is no pool"),
        (a_route_backwards, "a route of class 'chat' carries -1 requests/s"),
        (a_class_missing, "class 'chat' is missing"),
        (cost_changed, "USD/h, the plan says"),
        (month_changed, "cost per month does not follow"),
        (request_changed, "cost per request does not follow"),
        (purchases_changed, "purchases come to"),
        (power_changed, "the plan says 5"),
        (entry_cost_changed, "big: costs 13.5 USD/h, the plan says 12.5"),
        (pool_cost_changed, "costs of the pools do not add up"),
        (bound_above_cost, "lies above the cost"),
        (an_entry_missing, "big is not listed under devices"),
        (a_lot_broken, "are no whole lots of 2"),
        (too_few_bought, "do not cover"),
        (too_many_owned, "exceed what there is"),
        (stock_exceeded, "big: 3 bought and 0 owned units exceed what there is"),
        (fewer_devices_allowed, "devices, the limit is 10"),
        (less_money_allowed, "USD/h, the limit is 10"),
        (less_power_allowed, "W, the limit is 3000"),
        (fewer_skus_allowed, "the fleet has 2 different SKUs, the limit is 1"),
        (fewer_racks_allowed, "the fleet takes 8 racks, the limit is 2"),
        (racks_understated, "small: takes 8 racks, the plan says 1"),
        (a_larger_order_wanted, "units are bought, the smallest order is 100"),
        (an_idle_entry_required, "third is required and serves 0.000% of the classes"),
        (more_demand, "the routes of class 'chat' do not add up to 13"),
        (a_slower_worker, "writer-small needs 7.5 replicas for rate and has 5"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_every_tampering_is_named(planned: Document, change: Change, sentence: str) -> None:
    """One change, one sentence that says what it broke."""
    assert sentence in broken(planned, change)


@pytest.fixture(scope="module")
def racked() -> Document:
    """A plan of groups of five and three devices in servers of eight, one server owned."""
    workers = [
        {
            "name": f"of {n}",
            "sku": "H100-SXM",
            "devices": n,
            "stages": ["encode", "prefill", "decode"],
            "max_rate_per_s": rate,
        }
        for n, rate in ((3, {"album": 1.5}), (5, {"chat": 4.0}))
    ]
    devices = [{"sku": "H100-SXM", "price": {"usd_per_hour": 24, "per": "server"}, "owned": 8}]
    return solve(measured(devices=devices, workers=workers)).to_dict()


def test_servers_hold_what_they_can(racked: Document) -> None:
    """Four fives and three threes, spares among them: three servers with both, and an owned one with a five."""
    nodes = racked["devices"]["H100-SXM"]["nodes"]
    assert sorted((n["count"], n["owned"], sum(n["groups"].values())) for n in nodes) == [
        (1, True, 1),
        (3, False, 2),
    ]
    verify(Plan.load(json.loads(json.dumps(racked))))


def node(d: Document, index: int = 0) -> Document:
    """One kind of server of the plan."""
    found: Document = d["devices"]["H100-SXM"]["nodes"][index]
    return found


def a_server_overfull(d: Document) -> None:
    node(d)["groups"]["of 5-H100-SXM"] = 2


def a_server_less(d: Document) -> None:
    node(d)["count"] -= 1


def a_server_more(d: Document) -> None:
    node(d)["count"] += 1


def half_a_server(d: Document) -> None:
    node(d)["units"] = 5


def all_servers_owned(d: Document) -> None:
    for each in d["devices"]["H100-SXM"]["nodes"]:
        each["owned"] = True


def a_stranger_in_a_server(d: Document) -> None:
    node(d)["groups"]["elsewhere"] = 1


def no_waste_admitted(d: Document) -> None:
    next(n for n in d["devices"]["H100-SXM"]["nodes"] if len(n["groups"]) == 1)["free"] = 0


def servers_left_out(d: Document) -> None:
    d["devices"]["H100-SXM"]["nodes"] = []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (a_server_overfull, "do not stand in 8 units of one domain"),
        (a_server_less, "replicas of of 3-H100-SXM stand in servers"),
        (a_server_more, "are not among 24 bought units"),
        (half_a_server, "5 units are no whole servers of 8"),
        (all_servers_owned, "beside 4 owned ones are not among 24 bought units"),
        (a_stranger_in_a_server, "a server holds 1 groups of elsewhere"),
        (no_waste_admitted, "0 of 8 units are said to be free, 3 are"),
        (servers_left_out, "0 replicas of of 3-H100-SXM stand in servers"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_servers_are_looked_into(racked: Document, change: Change, sentence: str) -> None:
    """Where replicas are said to stand is checked server by server."""
    assert sentence in broken(racked, change)


def test_a_plan_without_cost_has_no_pools(planned: Document) -> None:
    """Pools that nobody pays for are no plan."""
    assert "a plan without a cost has pools" in broken(planned, lambda d: d.update(cost=None))


def test_tightened_targets_are_seen(predicted: Document) -> None:
    """Predicted times are held against the targets that the plan embeds."""
    chat = predicted["classes"]["chat"]

    def tighten(d: Document) -> None:
        slo = next(c for c in d["instance_document"]["workload"]["classes"] if c["name"] == "chat")["slo"]
        slo["ttft_ms"], slo["itl_ms"] = chat["ttft_ms"] * 0.9, chat["itl_ms"] * 0.9

    text = broken(predicted, tighten)
    assert f"class 'chat' gets ttft_ms {chat['ttft_ms']:.6g}" in text
    assert f"class 'chat' gets itl_ms {chat['itl_ms']:.6g}" in text


def test_a_missed_target_is_seen(predicted: Document) -> None:
    """A class that the plan itself says misses its targets fails the check."""
    assert "class 'photo' does not meet its targets" in broken(
        predicted, lambda d: d["classes"]["photo"].update(slo_met=False)
    )


def test_modelled_pools_keep_every_requirement(predicted: Document) -> None:
    """A modelled pool with a replica less breaks the requirements that bound it."""
    first = predicted["pools"][0]
    assert first["binding"]

    def shrink(d: Document) -> None:
        d["pools"][0]["replicas"] -= 1

    text = broken(predicted, shrink)
    assert any(f"for {kind} and has" in text for kind in first["binding"]) or "has 0 replicas" in text
