"""Every mend of an infeasible instance is a change after which the instance is solved, at the cost that was said."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import epd_opt
from epd_opt.backends import BACKENDS
from epd_opt.document import Infeasibility, Mend
from epd_opt.explain import explain
from epd_opt.mending.ladder import on_rung, rung_below

A100 = {"sku": "A100-80-SXM", "price": {"usd_per_hour": 1.9}, "tensor_parallel": [1]}
L4 = {"sku": "L4", "price": {"usd_per_hour": 0.7}, "tensor_parallel": [1]}


def chat(name: str = "chat", **changes: Any) -> dict[str, Any]:
    """A class of text."""
    slo = {"ttft_ms": 1500, "itl_ms": 60} | changes.pop("slo", {})
    return {"name": name, "rate_per_s": 12, "text_tokens": 800, "output_tokens": 200, "slo": slo, **changes}


def instance(*classes: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A dense 8B model on one kind of GPU; feasible as it stands."""
    return {
        "schema": "epd-opt/instance/v1",
        "model": "Qwen3-8B",
        "engine": "vllm",
        "workload": {"classes": list(classes) or [chat()]},
        "devices": [A100],
        "placements": ["prefill_decode"],
        "solver": {"gap": 0.0, "threads": 1},
        **changes,
    }


def after(document: dict[str, Any], mends: Sequence[Mend]) -> epd_opt.Plan:
    """The plan of a document after mends, set as on the command line."""
    overrides = [f"{mend.change}={json.dumps(mend.to, ensure_ascii=False)}" for mend in mends]
    return epd_opt.solve(epd_opt.read(document, overrides=overrides), mends=False)


def checked(document: dict[str, Any]) -> tuple[Infeasibility, dict[str, Mend]]:
    """All mends of an infeasible document, each of which is solved; the last of each path by path."""
    why = explain(epd_opt.read(document)).infeasibility
    assert isinstance(why, Infeasibility)
    for changes in [[mend] for mend in why.mends] + ([why.together] if why.together else []):
        plan = after(document, changes)
        assert plan.cost is not None, changes
        assert plan.cost.usd_per_hour == pytest.approx(changes[0].usd_per_hour)
    costs = [mend.usd_per_hour for mend in why.mends]
    assert costs == sorted(costs, key=float)  # type: ignore[arg-type]
    return why, {mend.change: mend for mend in why.mends}


def nearer(to: float) -> float:
    """The number that one would type below this one."""
    return on_rung(rung_below(to) - 1)


CASES: dict[str, tuple[dict[str, Any], str, Callable[[Any], Any] | None]] = {
    "memory": (instance(model="Llama-3.1-70B"), "devices.A100-80-SXM.tensor_parallel", None),
    "ttft_ms": (instance(chat(slo={"ttft_ms": 2})), "workload.classes.chat.slo.ttft_ms", nearer),
    "itl_ms": (instance(chat(slo={"itl_ms": 2})), "workload.classes.chat.slo.itl_ms", nearer),
    "e2e_ms": (instance(chat(slo={"e2e_ms": 300})), "workload.classes.chat.slo.e2e_ms", nearer),
    "stock": (instance(devices=[{**A100, "stock": 1}]), "devices.A100-80-SXM.stock", lambda to: to - 1),
    "devices": (instance(limits={"devices": 1}), "limits.devices", lambda to: to - 1),
    "usd_per_hour": (instance(limits={"usd_per_hour": 2}), "limits.usd_per_hour", nearer),
    "power_kw": (instance(limits={"power_kw": 0.5}), "limits.power_kw", nearer),
    "racks": (instance(limits={"rack_kw": 1, "racks": 1}), "limits.racks", lambda to: to - 1),
    "rack_kw": (instance(limits={"rack_kw": 0.3}), "limits.rack_kw", nearer),
    "minimum_order": (
        instance(devices=[{**A100, "price": {"usd_per_hour": 1.9, "pack": 8}, "stock": 4}]),
        "devices.A100-80-SXM.stock",
        lambda to: to - 1,
    ),
    "context_length": (
        instance(chat(text_tokens=60_000, slo={"ttft_ms": 60_000}), engine={"name": "vllm", "max_sequences": 64}),
        "workload.classes.chat.text_tokens",
        lambda to: to + 500,
    ),
    "no_price": (instance(devices=[{"sku": "A100-80-SXM"}]), "devices.A100-80-SXM.price.usd_per_hour", None),
    "parallelism": (instance(devices=[{**A100, "tensor_parallel": [3]}]), "devices.A100-80-SXM.tensor_parallel", None),
    "precision": (instance(precision={"kv_cache": "fp8"}), "precision.kv_cache", None),
}


@pytest.mark.parametrize("limit", CASES)
def test_every_limit_has_its_mend(limit: str) -> None:
    """The limit is named, the change that answers it gives a plan, and a smaller change of the same value gives none."""
    document, path, less = CASES[limit]
    why, mends = checked(document)
    assert [reason.limit for reason in why.reasons] == [limit]
    assert path in mends
    if less is not None:
        least = min((mend for mend in why.mends if mend.change == path), key=lambda mend: mend.to)
        too_little = Mend(change=path, to=less(least.to))
        assert after(document, [too_little]).status == "infeasible"
    assert not why.together
    assert not why.note


def test_solving_gives_a_mend_at_once() -> None:
    """A plan that is infeasible carries a mend, and explaining that document needs nothing else."""
    document = CASES["memory"][0]
    plan = epd_opt.solve(document)
    (mend,) = plan.infeasibility.mends
    assert after(document, [mend]).status == "optimal"
    again = explain(json.loads(plan.to_json())).infeasibility
    assert mend in again.mends
    assert len(again.mends) > 1


def test_rented_neighbours_and_looser_targets_where_stock_is_short() -> None:
    """One unit too few: a unit more, fewer requests or an unpriced neighbour would do."""
    document = instance(devices=[{**A100, "stock": 1}, {"sku": "L4"}])
    _, mends = checked(document)
    assert {
        "devices.A100-80-SXM.stock",
        "devices.L4.price.usd_per_hour",
        "workload.classes.chat.rate_per_s",
    } <= mends.keys()


def test_limits_that_must_give_way_together() -> None:
    """A stock and a budget that are both too small are raised together, and neither is enough alone."""
    document = instance(devices=[{**A100, "stock": 1}], limits={"usd_per_hour": 2})
    found = epd_opt.solve(document).infeasibility
    assert [mend.change for mend in found.together] == ["devices.A100-80-SXM.stock", "limits.usd_per_hour"]
    assert after(document, found.together).status == "optimal"
    assert all(after(document, [mend]).status == "infeasible" for mend in found.together)


def test_two_classes_at_once() -> None:
    """Two targets out of reach are two reasons, and only both changes together do."""
    odd = 'mail "b".c=d'
    document = instance(chat(slo={"ttft_ms": 2}), chat(odd, slo={"itl_ms": 2}))
    why, _ = checked(document)
    assert [(reason.limit, reason.request_class) for reason in why.reasons] == [("ttft_ms", "chat"), ("itl_ms", odd)]
    assert [mend.change for mend in why.together] == [
        "workload.classes.chat.slo.ttft_ms",
        'workload.classes["mail \\"b\\".c=d"].slo.itl_ms',
    ]


def test_one_limit_behind_another() -> None:
    """Past the memory stands the TTFT: a wider cut and a later first token do together."""
    document = instance(chat(text_tokens=30_000), devices=[L4])
    why, _ = checked(document)
    assert not why.mends
    assert [mend.change for mend in why.together] == [
        "devices.L4.tensor_parallel",
        "workload.classes.chat.slo.ttft_ms",
    ]


def test_owned_units_without_a_price_are_not_multiplied() -> None:
    """More of a device that is not for sale is no mend; a price for it is."""
    document = instance(devices=[{"sku": "A100-80-SXM", "owned": 1, "tensor_parallel": [1]}])
    why, mends = checked(document)
    assert "devices.A100-80-SXM.stock" not in mends
    assert "devices.A100-80-SXM.price.usd_per_hour" in mends
    assert why.reasons[0].limit == "stock"


DESK: dict[str, Any] = {
    "schema": "epd-opt/instance/v1",
    "candidates": {"modelled": False},
    "workload": {
        "classes": [
            {"name": "chat", "rate_per_s": 9},
            {"name": "album", "rate_per_s": 3, "images": {"count": 10, "tokens": 256}},
        ]
    },
    "devices": [
        {"sku": "big", "price": {"usd_per_hour": 4}},
        {"sku": "small", "price": {"usd_per_hour": 0.5}},
        {"sku": "idle", "price": {"usd_per_hour": 1}},
    ],
    "workers": [
        {
            "name": "language",
            "sku": "big",
            "devices": 1,
            "stages": ["prefill", "decode"],
            "max_rate_per_s": {"chat": 4, "album": 1.5},
        },
        {"name": "encoder", "sku": "small", "devices": 1, "stages": ["encode"], "max_rate_per_s": 1},
    ],
    "solver": {"gap": 0, "threads": 1},
}

TOGETHER: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "required": ({"limits": {"require": ["idle"]}}, ["require"], []),
    "two required": (
        {
            "limits": {"require": ["idle", "other"]},
            "devices": [*DESK["devices"], {"sku": "other", "price": {"usd_per_hour": 1}}],
        },
        ["require"],
        [],
    ),
    "required and a budget": (
        {"limits": {"require": ["idle"], "usd_per_hour": 2}},
        ["require", "usd_per_hour"],
        ["limits.require", "limits.usd_per_hour"],
    ),
    "SKUs and devices, of any goodput": (
        {"objective": "goodput", "limits": {"skus": 1, "devices": 1}},
        ["devices", "skus"],
        ["limits.devices", "limits.skus"],
    ),
    "SKUs and a budget, of twice the rates": (
        {
            "objective": {"minimise": "cost_per_request", "rate_multiple": [2, 3]},
            "limits": {"skus": 1, "usd_per_hour": 22},
        },
        ["usd_per_hour", "skus"],
        ["limits.usd_per_hour", "limits.skus"],
    ),
    "no price and a budget": (
        {
            "devices": [{"sku": "big", "owned": 2}, {"sku": "small", "price": {"usd_per_hour": 3}}],
            "limits": {"usd_per_hour": 0},
        },
        ["no_price", "usd_per_hour"],
        ["devices.big.price.usd_per_hour", "limits.usd_per_hour"],
    ),
}


@pytest.mark.parametrize("case", TOGETHER)
def test_what_must_give_way_is_named_and_nothing_else(case: str) -> None:
    """Requirements, numbers of SKUs and missing prices give way like limits, for the least demand allowed."""
    changes, limits, paths = TOGETHER[case]
    why, mends = checked(DESK | changes)
    assert [reason.limit for reason in why.reasons] == limits
    assert [mend.change for mend in why.together] == paths
    assert bool(mends) != bool(paths)


def test_every_solver_raises_limits_together() -> None:
    """CP-SAT takes bounded variables alone, and finds the limits to raise as the others do."""
    for name in ("highs", "cp_sat"):
        if not BACKENDS[name].availability().usable:
            continue
        document = instance(
            devices=[{**A100, "stock": 1}], limits={"usd_per_hour": 2}, solver={"name": name, "gap": 0.0, "threads": 1}
        )
        found = epd_opt.solve(document).infeasibility
        assert [(mend.change, mend.to) for mend in found.together] == [
            ("devices.A100-80-SXM.stock", 3),
            ("limits.usd_per_hour", 5.7),
        ]


def test_stages_and_placements_allowed_together() -> None:
    """Images where neither stages nor placements encode: both changes together do, and the class need not be left out."""
    album = chat("album", rate_per_s=2, images={"count": 4, "width_px": 896, "height_px": 896})
    document = instance(album, model="Qwen2.5-VL-7B", devices=[{**A100, "stages": ["prefill", "decode"]}])
    why, mends = checked(document)
    assert not mends
    assert [mend.change for mend in why.together] == ["devices.A100-80-SXM.stages", "placements"]


def test_targets_raised_together_are_not_at_the_edge_of_what_devices_reach() -> None:
    """Just within reach, 27,000 devices would serve what a few do with both targets a quarter looser."""
    document = instance(chat(slo={"ttft_ms": 2}), model="Llama-3.1-70B")
    why, _ = checked(document)
    assert why.together[0].usd_per_hour is not None
    assert why.together[0].usd_per_hour < 500


def test_stock_for_very_large_fleets() -> None:
    """A million requests/s take more than a hundred thousand devices: the stock for them is a mend like any other."""
    document = instance(chat(rate_per_s=1e6), devices=[{**A100, "stock": 1}])
    (mend,) = epd_opt.solve(document).infeasibility.mends
    assert (mend.change, mend.to > 100_000) == ("devices.A100-80-SXM.stock", True)


def test_class_that_no_worker_serves() -> None:
    """Where nothing else helps, leaving the class out does."""
    document = {
        "schema": "epd-opt/instance/v1",
        "candidates": {"modelled": False},
        "workload": {"classes": [{"name": "chat", "rate_per_s": 1}, {"name": "mail", "rate_per_s": 1}]},
        "devices": [{"sku": "H100.x [1]", "price": {"usd_per_hour": 1}}],
        "workers": [
            {
                "name": "w",
                "sku": "H100.x [1]",
                "devices": 1,
                "stages": ["prefill", "decode"],
                "max_rate_per_s": {"chat": 1},
            }
        ],
    }
    _, mends = checked(document)
    assert {path: mend.to for path, mend in mends.items()} == {"workload.classes.mail.rate_per_s": 0}


def test_no_time_for_mends() -> None:
    """Without time the reasons stand, and the note says what was left undone."""
    plan = epd_opt.solve(CASES["ttft_ms"][0], mends=False)
    assert plan.infeasibility.mends == []
    found = explain(plan, time_limit_s=1e-6)
    assert found.infeasibility is None or found.infeasibility.note
    assert found.notes or found.infeasibility.note
