"""Explanations of a modelled plan agree with the plan, with its rows, and with instances solved by themselves."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import epd_opt
from epd_opt.explain import Explanation, explain, explanation_json_schema
from epd_opt.offering import offering
from epd_opt.problem import PlanningProblem
from epd_opt.prune import connected
from epd_opt.resolve import resolve
from support.documents import modelled
from support.solving import least_cost

APART = {"placements": ["encoder_pool", "prefill_decode"]}


@pytest.fixture(scope="module")
def whole() -> Explanation:
    """The small instance with all placements."""
    return explain(epd_opt.solve(modelled()), why_not=["encoder_pool:A100-80-SXM", "decode:L4"], without=["A100-80-SXM"])


@pytest.fixture(scope="module")
def apart() -> tuple[epd_opt.Plan, Explanation]:
    """The same with encoders apart, read back from its own document."""
    plan = epd_opt.solve(modelled(**APART))
    return plan, explain(json.loads(plan.to_json()), runners_up=2)


def test_pools_agree_with_the_plan(apart: tuple[epd_opt.Plan, Explanation]) -> None:
    """Utilisations and binding requirements are those of the plan, the fullest first."""
    plan, found = apart
    for pool, facts in zip(plan.pools, found.pools, strict=True):
        stated = {r.kind: r.utilisation for r in facts.requirements if r.kind != "minimum"}
        assert stated == pytest.approx(pool.utilisation)
        assert sorted(r.kind for r in facts.requirements if r.binding) == pool.binding
        needs = [r.needs_replicas for r in facts.requirements]
        assert needs == sorted(needs, reverse=True)
        assert facts.room >= 1.0 - 1e-9
        assert facts.room_with_one_less < 1.0 < facts.room_with_one_more


def test_times_agree_with_the_plan(apart: tuple[epd_opt.Plan, Explanation]) -> None:
    """The steps of a path add up to its TTFT, the slowest path is the plan's TTFT, and slacks are targets less these."""
    plan, found = apart
    for name, facts in found.classes.items():
        for path in facts.paths:
            assert math.fsum(step.ms for step in path.steps) == pytest.approx(path.ttft_ms, rel=1e-9)
        assert max(path.ttft_ms for path in facts.paths) == pytest.approx(plan.classes[name].ttft_ms, rel=1e-9)
        assert max(i.predicted_ms for i in facts.intervals) == pytest.approx(plan.classes[name].itl_ms, rel=1e-9)
        assert sum(path.rate_per_s for path in facts.paths) == pytest.approx(plan.classes[name].rate_per_s)
        ttft = facts.targets["ttft_ms"]
        assert ttft.slack_ms == pytest.approx(ttft.target_ms - plan.classes[name].ttft_ms)


def test_stages_of_the_way(apart: tuple[epd_opt.Plan, Explanation]) -> None:
    """A photo spends time on an encoder's host and its transformer, crosses over, and is read in the other pool."""
    _, found = apart
    (path,) = found.classes["photo"].paths
    encoder, reader = path.pools
    steps = {(step.pool, step.what): step.ms for step in path.steps}
    assert {(encoder, "host"), (encoder, "encode"), (reader, "transfer"), (reader, "prefill")} <= steps.keys()
    assert (reader, "host") not in steps
    assert all(pool in (encoder, reader) for pool, _ in steps)
    assert [pool for pool, _ in steps] == sorted((pool for pool, _ in steps), key=path.pools.index)


def cheapest_of_another_structure(document: dict[str, Any], plan: Explanation) -> float:
    """The least cost over all fleets without one of the plan's placements on its SKU, or without another."""
    problem = offering(resolve(epd_opt.read(document))).problem
    pairs = {(pool.placement, pool.device) for pool in plan.pools}

    def without(pair: tuple[str, str]) -> PlanningProblem:
        kept = tuple(c for c in problem.candidates if (c.placement, c.device) != pair)
        return replace(problem, candidates=tuple(connected(kept)))

    left = [without(pair) for pair in pairs]
    served = [p for p in left if {c for k in p.candidates for c in k.classes} == {d.name for d in p.demands}]
    return min((least_cost(p) for p in served), default=math.inf)


def test_runner_up_is_the_best_of_the_others(whole: Explanation) -> None:
    """The runner-up costs what the cheapest fleet costs that lacks a placement which the plan has on a SKU."""
    assert whole.runners_up[0].status == "optimal"
    assert whole.runners_up[0].usd_per_hour == pytest.approx(cheapest_of_another_structure(modelled(), whole))


def test_runner_up_leaves_out_one_of_two(apart: tuple[epd_opt.Plan, Explanation]) -> None:
    """With two pools, the runner-up is the better of the instance without the one and without the other."""
    plan, found = apart
    assert len(plan.pools) == 2
    assert found.runners_up[0].usd_per_hour == pytest.approx(cheapest_of_another_structure(modelled(**APART), found))
    assert found.runners_up[1].status == "infeasible"


def test_structures_differ(whole: Explanation) -> None:
    """No runner-up contains all of an earlier structure, and none costs less than one before it."""
    structures = [{(pool.placement, pool.device) for pool in whole.pools}]
    costs = [whole.usd_per_hour]
    for other in whole.runners_up:
        found = {(use.placement, use.sku) for use in other.uses}
        assert all(not earlier <= found for earlier in structures)
        assert other.usd_per_hour >= costs[-1] * (1 - 1e-9)
        structures.append(found)
        costs.append(other.usd_per_hour)


def test_answers(whole: Explanation) -> None:
    """An encoder on a dear GPU costs more than the plan; the L4 may not decode; nothing does without A100."""
    encoder, decode, without = whole.why_not
    assert encoder.alternative.more_usd_per_hour > 0.0
    assert ("encoder_pool", "A100-80-SXM") in {(use.placement, use.sku) for use in encoder.alternative.uses}
    assert "devices.L4.stages" in decode.alternative.text
    assert without.alternative.status == "infeasible"


def test_document(whole: Explanation, apart: tuple[epd_opt.Plan, Explanation]) -> None:
    """Explanations are strict JSON and keep their schema; a notebook and a terminal show them."""
    for found in (whole, apart[1]):
        plain = json.loads(found.to_json(), parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
        jsonschema.validate(plain, explanation_json_schema())
        assert plain == found.to_dict()
        assert "other structures, cheapest first" in str(found)
        assert found._repr_html_().startswith("<pre")


def test_out_of_time(apart: tuple[epd_opt.Plan, Explanation]) -> None:
    """Where no time is left, what needs none is there and the rest says so."""
    plan, _ = apart
    found = explain(plan, time_limit_s=1e-6)
    assert found.notes == ["no time was left to build the candidates"]
    assert found.usd_per_hour == plan.cost.usd_per_hour


@pytest.mark.parametrize("placement", ["integrated", "shared", "encode_prefill"])
def test_images_in_place(placement: str) -> None:
    """Where images are encoded on the way, host and transformer are steps of that pool, and their sum is the TTFT."""
    rest = ["decode"] if placement == "encode_prefill" else []
    plan = epd_opt.solve(modelled(placements=[placement, *rest]))
    found = explain(plan, runners_up=0)
    (path,) = found.classes["photo"].paths
    steps = {step.what: step.ms for step in path.steps}
    assert steps["host"] > 0.0
    assert steps["encode"] > 0.0
    assert math.fsum(steps.values()) == pytest.approx(plan.classes["photo"].ttft_ms, rel=1e-9)


def test_at_a_multiple_of_the_demand() -> None:
    """A plan for the most demand within its stock is explained at the rates that it serves."""
    devices: list[Any] = [{"sku": "A100-80-SXM", "price": {"usd_per_hour": 1.9}, "tensor_parallel": [1], "stock": 4}]
    plan = epd_opt.solve(modelled(objective="goodput", devices=devices, placements=["integrated", "shared"]))
    found = plan.explain(runners_up=1)
    assert found.classes["chat"].rate_per_s == pytest.approx(12 * plan.goodput.multiple)
    assert sum(path.rate_per_s for path in found.classes["chat"].paths) == pytest.approx(12 * plan.goodput.multiple)
    (stock,) = found.limits
    assert (stock.used, stock.slack) == (4.0, 0.0)


def test_from_a_file(tmp_path: Path, apart: tuple[epd_opt.Plan, Explanation]) -> None:
    """A saved plan and its instance's file are both taken."""
    plan, _ = apart
    plan.save(tmp_path / "plan.json")
    (tmp_path / "instance.json").write_text(json.dumps(modelled(**APART)), encoding="utf-8")
    from_plan = explain(tmp_path / "plan.json", runners_up=0)
    from_instance = explain(tmp_path / "instance.json", runners_up=0)
    assert from_plan.pools == from_instance.pools
    assert from_plan.classes == from_instance.classes
