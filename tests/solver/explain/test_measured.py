"""Explanations of fleets small enough to be worked out by hand: two kinds of measured workers."""

from __future__ import annotations

from typing import Any

import pytest

import epd_opt
from epd_opt.errors import InvalidInput, UsageError
from epd_opt.explain import Explanation, explain

SLOW, FAST = "A: x", 'B "b".c=d'
CHAT, MAIL = "chat=1", "mail.*"


def instance(**changes: Any) -> dict[str, Any]:
    """Nine chats and one mail per second; the slow worker carries 4/s at 2 $/h, the fast one 8/s at 5 $/h."""
    return {
        "schema": "epd-opt/instance/v1",
        "name": "by hand",
        "candidates": {"modelled": False},
        "workload": {"classes": [{"name": CHAT, "rate_per_s": 9}, {"name": MAIL, "rate_per_s": 1}]},
        "devices": [{"sku": SLOW, "price": {"usd_per_hour": 2}}, {"sku": FAST, "price": {"usd_per_hour": 5}}],
        "workers": [
            {"name": "slow", "sku": SLOW, "devices": 1, "stages": ["prefill", "decode"], "max_rate_per_s": 4},
            {"name": "fast", "sku": FAST, "devices": 1, "stages": ["prefill", "decode"], "max_rate_per_s": 8},
        ],
        "solver": {"gap": 0.0, "threads": 1},
        **changes,
    }


def explained(changes: dict[str, Any] | None = None, **questions: Any) -> Explanation:
    """The explanation of the plan."""
    return explain(epd_opt.solve(instance(**(changes or {}))), **questions)


def test_what_binds() -> None:
    """Three slow workers take 10 of 12 requests/s: a fifth more fits; one more carries 16, one less 8."""
    found = explained(runners_up=0)
    (pool,) = found.pools
    (rate,) = pool.requirements
    assert (pool.replicas, rate.kind, rate.binding) == (3, "rate", True)
    assert (rate.needs_replicas, rate.slack_replicas) == pytest.approx((2.5, 0.5))
    assert (pool.room, pool.room_with_one_more, pool.room_with_one_less) == pytest.approx((1.2, 1.6, 0.8))
    assert found.classes[CHAT].paths[0].ttft_ms is None


def test_one_replica_less() -> None:
    """Two slow workers carry 8 of 10 requests/s; the cheapest fleet with no more than two is one of each, at 7 $/h."""
    less = explained(runners_up=0).pools[0].one_less
    assert less.usd_per_hour == pytest.approx(7.0)
    assert {pool.device: pool.replicas for pool in less.pools} == {SLOW: 1, FAST: 1}
    assert less.more_usd_per_hour == pytest.approx(1.0)


def test_runner_up() -> None:
    """Without slow workers there are two fast ones, at 10 $/h; nothing else is of another structure."""
    first, last = explained().runners_up
    assert (first.status, first.usd_per_hour, first.more_usd_per_hour) == ("optimal", 10.0, 4.0)
    assert first.more_share == pytest.approx(4 / 6)
    assert first.text == f"+$4.00/h (+66.7%): prefill_decode on {FAST} in place of prefill_decode on {SLOW}"
    assert last.status == "infeasible"


@pytest.mark.parametrize(
    ("what", "share", "cost"),
    [
        (FAST, None, 7.0),
        (f"prefill_decode:{FAST}", None, 7.0),
        (FAST, 0.5, 7.0),
        (FAST, 0.9, 10.0),
        (FAST, f"{CHAT}=1", 10.0),
        (FAST, f"{MAIL}=1", 7.0),
        (SLOW, None, 6.0),
        ("prefill_decode", None, 6.0),
    ],
)
def test_price_of_use(what: str, share: Any, cost: float) -> None:
    """One fast worker and a slow one cost 7 $/h; from nine tenths of all traffic on, or for all chats, it takes two fast
    ones."""
    (answer,) = explained(why_not=[what], share=share, runners_up=0).why_not
    assert answer.alternative.usd_per_hour == pytest.approx(cost)
    assert answer.alternative.more_usd_per_hour == pytest.approx(cost - 6.0)


@pytest.mark.parametrize(("what", "cost"), [(SLOW, 10.0), (FAST, 6.0), ("slow-" + SLOW, 10.0)])
def test_price_of_absence(what: str, cost: float) -> None:
    """Doing without the slow workers costs 10 $/h; the fast ones are not used anyway."""
    (answer,) = explained(without=[what], runners_up=0).why_not
    assert (answer.kind, answer.alternative.usd_per_hour) == ("without", pytest.approx(cost))


@pytest.mark.parametrize("what", ["encoder_pool", f"decode:{FAST}"])
def test_no_worker_runs_there(what: str) -> None:
    """No worker encodes, and none decodes alone."""
    (answer,) = explained(why_not=[what], runners_up=0).why_not
    assert answer.alternative.status == "infeasible"
    assert answer.alternative.usd_per_hour is None
    assert "no worker" in answer.alternative.text


def test_impossible_use_names_the_limit() -> None:
    """One fast worker is in stock, and all traffic needs two."""
    devices = [{"sku": SLOW, "price": {"usd_per_hour": 2}}, {"sku": FAST, "price": {"usd_per_hour": 5}, "stock": 1}]
    (answer,) = explained({"devices": devices}, why_not=[FAST], share=1, runners_up=0).why_not
    (reason,) = answer.alternative.reasons
    assert (reason.limit, reason.wanted, reason.best_reachable) == ("stock", 1.0, 2.0)


def test_nothing_else_can_serve() -> None:
    """Without both workers of the placement no class is served, and the reasons say which."""
    (answer,) = explained(without=["prefill_decode"], runners_up=0).why_not
    assert [reason.request_class for reason in answer.alternative.reasons] == [CHAT, MAIL]


def test_limits_that_cost_money() -> None:
    """Two slow workers in stock: a third would save the dollar that the fast one costs more; the budget costs nothing."""
    devices = [{"sku": SLOW, "price": {"usd_per_hour": 2}, "stock": 2}, {"sku": FAST, "price": {"usd_per_hour": 5}}]
    found = explained({"devices": devices, "limits": {"usd_per_hour": 20}}, runners_up=0)
    stock, budget = found.limits
    assert (stock.limit, stock.allowed, stock.used) == ("stock", 2.0, 1.0)
    assert stock.without.more_usd_per_hour == pytest.approx(-1.0)
    assert (budget.limit, budget.used, budget.slack) == ("usd_per_hour", 7.0, 13.0)
    assert budget.text.endswith("costs nothing")


def test_skus_in_use_are_counted_and_not_their_units() -> None:
    """Three slow workers are one SKU of the one that is allowed; a second would not make the fleet cheaper."""
    (skus,) = explained({"limits": {"skus": 1}}, runners_up=0).limits
    assert (skus.limit, skus.allowed, skus.used, skus.slack) == ("skus", 1.0, 1.0, 0.0)
    assert skus.text == "limits.skus: 1 of 1, all used; costs nothing"


@pytest.mark.parametrize(
    ("questions", "hint"),
    [
        ({"why_not": ["A: y"]}, f"did you mean {SLOW}"),
        ({"why_not": ["decode:A: y"]}, f"did you mean {SLOW}"),
        ({"without": ["prefil_decode"]}, "did you mean prefill_decode"),
        ({"why_not": ["decode:L40S"]}, "add it under devices, as in - {sku: L40S, price: {usd_per_hour: ...}}"),
        ({"why_not": [SLOW], "share": 1.5}, "up to 1"),
        ({"why_not": [SLOW], "share": "0"}, "above 0"),
        ({"why_not": [SLOW], "share": "chat=0.5"}, f"did you mean {CHAT}"),
    ],
)
def test_questions_about_nothing(questions: dict[str, Any], hint: str) -> None:
    """A question that names nothing known is refused before any work, with the nearest name."""
    with pytest.raises(UsageError, match=None) as refused:
        explain(epd_opt.read(instance()), **questions)
    assert hint in str(refused.value)


def test_plan_of_another_version() -> None:
    """A pool that the models do not offer any more is named."""
    plan = epd_opt.solve(instance()).to_dict()
    plan["pools"][0]["key"] = "measured|gone"
    with pytest.raises(InvalidInput, match=r"not among what the models of this version offer.*solve its instance again"):
        explain(plan)


def test_a_search_that_fails_takes_nothing_else_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What binds stands where a search for another plan ends with a fault, and a note says so."""
    plan = epd_opt.solve(instance())

    def failing(*_: Any, **__: Any) -> epd_opt.Plan:
        raise epd_opt.VerificationError("the plan failed\n  its check")

    monkeypatch.setattr("epd_opt.explain.ground.search", failing)
    found = explain(plan)
    assert [other.status for other in found.runners_up] == ["stopped"]
    assert found.pools[0].room == pytest.approx(1.2)
    assert found.notes[0] == "a search for another plan failed: the plan failed its check"
