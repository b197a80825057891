"""Shows that plans read well at 80 to 120 columns whatever their names and sizes, and say what a reader must know."""

from __future__ import annotations

import re
from typing import Any

import pytest

import epd_opt
from epd_opt.document import PlanDocument
from epd_opt.render import plan_html, plan_text
from epd_opt.wording import requirement
from support.documents import measured, modelled

NASTY = "chat [bold]x[/bold] <b>\nsecond line \x1b[31m"
LONG = "a class whose name goes on and on, further than anybody would think it useful to go in a name"


@pytest.fixture(scope="module")
def split() -> PlanDocument:
    """Measured workers, three pools in a row, one spare each."""
    return epd_opt.solve(measured()).document


@pytest.fixture(scope="module")
def predicted() -> PlanDocument:
    """Modelled workers with predicted times."""
    return epd_opt.solve(modelled()).document


def renamed(document: PlanDocument, name: str, to: str) -> PlanDocument:
    """The plan with a class called otherwise."""

    def swap(value: Any) -> Any:
        if isinstance(value, dict):
            return {to if key == name else key: swap(item) for key, item in value.items()}
        if isinstance(value, list):
            return [swap(item) for item in value]
        return to if value == name else value

    return PlanDocument.model_validate(swap(document.model_dump(mode="json", by_alias=True)))


def changed(document: PlanDocument, **changes: Any) -> PlanDocument:
    return document.model_copy(update=changes)


@pytest.mark.parametrize("width", [80, 100, 120])
def test_no_line_is_wider_than_the_page(split: PlanDocument, predicted: PlanDocument, width: int) -> None:
    for document in (split, predicted, renamed(split, "chat", LONG)):
        assert max(map(len, plan_text(document, width=width).splitlines())) <= width


def test_the_headline_has_cost_per_request_and_proof(split: PlanDocument) -> None:
    cost = split.cost
    assert cost is not None
    first, second = plan_text(split).splitlines()[:2]
    assert first.startswith("measured: $0.00")
    assert "per request, proved" in first
    assert f"${cost.usd_per_hour:.2f}/h" in second


def test_a_plan_that_is_not_proved_says_what_the_optimum_may_be(split: PlanDocument) -> None:
    assert split.cost is not None
    loose = split.cost.model_copy(update={"bound_usd_per_hour": 12.5, "gap": 0.4})
    text = plan_text(changed(split, status="feasible", cost=loose))
    assert "not proved: the optimum may be as low as $12.50/h" in text
    assert "optimal" not in text
    nothing = split.cost.model_copy(update={"bound_usd_per_hour": 0.0, "gap": 1.0})
    assert "not proved: no bound was found" in plan_text(changed(split, status="feasible", cost=nothing))


def test_one_assumption_is_told_in_the_singular(split: PlanDocument) -> None:
    """One estimate is an assumption, not assumptions."""
    assumption = next(a for a in split.assumptions if a.confidence == "estimate")
    text = " ".join(plan_text(changed(split, assumptions=[assumption])).split())
    assert "1 assumption, an estimate, is in the plan document." in text


def test_ways_name_pools_by_their_letters_in_order(split: PlanDocument) -> None:
    letters = dict(re.findall(r"^(\w)   (\S+)  .*spare", plan_text(split), re.M))
    named = {pool: letter for letter, pool in letters.items()}
    way = " → ".join(named[pool] for pool in split.classes["album"].routes[0].pools)
    assert re.search(rf"^album .* {way}$", plan_text(split), re.M)


def test_spares_are_shown_beside_replicas(split: PlanDocument) -> None:
    pool = split.pools[0]
    assert pool.spare_replicas == 1
    assert f"{pool.replicas} + 1 spare" in plan_text(split)


def test_times_stand_against_targets_at_their_percentile(predicted: PlanDocument) -> None:
    result = predicted.classes["photo"]
    assert result.ttft_ms is not None
    assert re.search(r"^photo .*\d of 3,000 p95 .*\d of 80 p95", plan_text(predicted), re.M)
    text = plan_text(predicted)
    assert "weakest confidence among their figures: estimate" in text
    assert f"{len(predicted.assumptions)} assumptions" in re.sub(r"\s+", " ", text)


def test_a_missed_target_is_red(predicted: PlanDocument) -> None:
    late = predicted.classes["photo"].model_copy(update={"ttft_ms": 3500.0})
    missed = changed(predicted, classes={**predicted.classes, "photo": late})
    assert "\x1b[1;31m3,500\x1b[0m" in plan_text(missed, color=True)
    assert "\x1b[1;31m" not in plan_text(predicted, color=True)


def test_names_come_out_as_they_are_and_cannot_command_the_terminal(split: PlanDocument) -> None:
    text = plan_text(renamed(split, "chat", NASTY), width=120)
    assert r"chat [bold]x[/bold] <b>\nsecond line \x1b[31m" in text
    assert "\x1b" not in text


def test_html_shows_the_same_and_escapes_names(split: PlanDocument) -> None:
    page = plan_html(renamed(split, "chat", NASTY))
    assert page.startswith("<pre")
    assert "chat [bold]x[/bold] &lt;b&gt;" in page
    assert "<b>" not in page


def test_every_requirement_of_a_plan_has_words(split: PlanDocument, predicted: PlanDocument) -> None:
    kinds = {kind for document in (split, predicted) for pool in document.pools for kind in pool.utilisation}
    assert kinds
    assert not {kind for kind in kinds if requirement(kind) == kind}


def test_what_binds_comes_first(predicted: PlanDocument) -> None:
    pool = predicted.pools[0].model_copy(
        update={"utilisation": {"time": 0.3, "host": 0.97, "kv_memory": 0.96}, "binding": ["kv_memory"]}
    )
    text = plan_text(changed(predicted, pools=[pool, *predicted.pools[1:]]))
    assert re.search(r"^A   kv_memory 96% +memory for KV caches", text, re.M)


def test_warnings_can_be_left_to_others(split: PlanDocument) -> None:
    warned = changed(split, warnings=["mind the gap"])
    assert "warning: mind the gap" in plan_text(warned)
    assert "mind the gap" not in plan_text(warned, warnings=False)


def test_an_infeasible_plan_shows_reasons_and_mends_only() -> None:
    document = epd_opt.solve(measured(limits={"devices": 2})).document
    assert document.infeasibility is not None
    text = plan_text(document)
    assert text.startswith("measured: infeasible\n  devices: ")
    assert "replicas" not in text


def test_a_solve_without_a_plan_shows_no_numbers(split: PlanDocument) -> None:
    text = plan_text(changed(split, status="stopped", cost=None, pools=[], classes={}, devices={}))
    assert "stopped without a plan" in text
    assert "$" not in text
