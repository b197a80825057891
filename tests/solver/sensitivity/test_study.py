"""A study's points are what solving each alone gives, and today's fleet never beats the best plan."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import epd_opt
from epd_opt.backends import OutOfTime
from epd_opt.paths import set_value
from epd_opt.sensitivity import Study, parse_vary, switch
from epd_opt.sensitivity import lines as lines_of
from epd_opt.sensitivity import point as points
from epd_opt.sensitivity import study as studies
from support.documents import measured, modelled

RATES = "workload.classes.*.rate_per_s"
CHAT = "workload.classes.chat.rate_per_s"


@pytest.fixture(scope="module")
def over_chat() -> Study:
    """Measured workers at other rates of chat, with what is between them."""
    return epd_opt.sensitivity(measured(), {CHAT: [2, 7, 12, 20, 40]})


def test_points_equal_separate_solves(over_chat: Study) -> None:
    """Every point has the cost and pools of its own instance solved by itself, means in proportion to their rates."""
    for point in over_chat.document.points:
        rate = point.at[CHAT]
        assert isinstance(rate, int)
        alone = set_value(set_value(measured(), CHAT, rate), "workload.classes.chat.mean_rate_per_s", 7 * rate / 12)
        plan = epd_opt.solve(alone)
        assert point.status == "optimal"
        assert point.cost is not None
        assert point.cost.usd_per_hour == pytest.approx(plan.cost.usd_per_hour, rel=1e-9)
        assert [(p.name, p.replicas) for p in point.pools] == [(p.name, p.replicas) for p in plan.pools]


def test_a_kept_fleet_never_beats_the_best_plan(over_chat: Study) -> None:
    """At gap 0 regret is never below zero: none at today's rates, some where demand falls, and no number beyond what the
    fleet serves, where something is said to break."""
    regrets = [point.regret_usd_per_hour for point in over_chat.document.points]
    assert regrets[2] == 0.0
    for point, regret in zip(over_chat.document.points[:2], regrets[:2], strict=True):
        assert regret is not None
        assert regret > 0.01
        assert point.kept_fleet is not None
        assert point.kept_fleet.feasible
    for point in over_chat.document.points[3:]:
        assert point.kept_fleet is not None
        assert point.kept_fleet.feasible is False
        assert [reason.limit for reason in point.kept_fleet.breaks][-1] == "replicas"
        assert point.regret_usd_per_hour is None


def test_modelled_fleets_are_kept_with_their_operating_points_free() -> None:
    """A modelled fleet serves its own instance at its own cost, is too large at a third of the demand, and breaks a named
    target, or lacks replicas of a named pool, a tenth above it."""
    study = epd_opt.sensitivity(modelled(), [parse_vary(f"{RATES}=x0.3,x1,x1.1", modelled())], switches=False)
    less, same, more = study.document.points
    assert same.regret_usd_per_hour == 0.0
    assert less.regret_usd_per_hour is not None
    assert less.regret_usd_per_hour > 0.0
    assert more.kept_fleet is not None
    assert more.kept_fleet.feasible is False
    assert {reason.limit for reason in more.kept_fleet.breaks} & {"itl_ms", "ttft_ms", "replicas"}


def test_switches_hold_on_both_sides() -> None:
    """Whole workers on big give way to split ones as big gets dearer; solved anew at both ends of every switch, the plan
    has the structure that the study names."""
    path = "devices.big.price.usd_per_hour"
    study = epd_opt.sensitivity(measured(), {path: [0.05, 4.5]})
    assert study.document.switch_points
    for found in study.document.switch_points:
        assert 0 < found.at - found.below_at <= found.tolerance == pytest.approx(0.00445)
        for value, structure in ((found.below_at, found.below), (found.at, found.above)):
            again = epd_opt.sensitivity(measured(), {path: [value]}).document.points[0]
            assert studies.structure(again.model_dump()) == structure
        assert found.below != found.above
    ends = [studies.structure(point.model_dump()) for point in study.document.points]
    assert [study.document.switch_points[0].below, study.document.switch_points[-1].above] == ends


def test_switches_that_are_too_many_stay_wide_and_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no more points may be solved, the two ends stay where they are, which a note says."""
    monkeypatch.setattr(switch, "_MOST_POINTS", 3)
    study = epd_opt.sensitivity(measured(), {"devices.big.price.usd_per_hour": [0.05, 4.5]})
    assert any(found.at - found.below_at > found.tolerance for found in study.document.switch_points)
    assert "further apart than asked" in study.document.notes[0]


def test_an_interrupt_ends_the_study(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt that a solver answers by ending its solve ends the whole study, not that solve alone."""

    def interrupted(resolved: Any, offered: Any, solver: Any, **_: Any) -> None:
        solver.clock.stop()
        raise OutOfTime

    monkeypatch.setattr(points, "search", interrupted)
    with pytest.raises(KeyboardInterrupt):
        epd_opt.sensitivity(measured(), {CHAT: [7, 12]})


def test_processes_and_executors_find_what_one_process_finds(over_chat: Study) -> None:
    """The document is the same from spawned processes and from an executor that is handed in."""
    vary = {CHAT: [2, 7, 12, 20, 40]}
    assert epd_opt.sensitivity(measured(), vary, workers=2).to_json() == over_chat.to_json()
    with ThreadPoolExecutor(1) as executor:
        assert epd_opt.sensitivity(measured(), vary, executor=executor).to_json() == over_chat.to_json()


def test_a_study_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Points on disk are not solved again, a torn last line and points of another instance count for nothing, and the
    document comes out the same."""
    whole = epd_opt.sensitivity(measured(), {CHAT: [7, 12]}, folder=tmp_path, switches=False)
    file = tmp_path / "points.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines()
    file.write_text(f"{lines[0]}\n{lines[1][:40]}", encoding="utf-8")
    solved: list[dict[str, Any]] = []
    original = lines_of.answered

    def counting(job: studies.Job) -> studies.Answer:
        solved.append(job.at)
        return original(job)

    monkeypatch.setattr(lines_of, "answered", counting)
    again = epd_opt.sensitivity(measured(), {CHAT: [7, 12]}, folder=tmp_path, switches=False)
    assert solved == [{CHAT: 12}]
    assert again.to_json() == whole.to_json()
    epd_opt.sensitivity(measured(name="other"), {CHAT: [7, 12]}, folder=tmp_path, switches=False)
    assert solved == [{CHAT: 12}, {CHAT: 7}, {CHAT: 12}]


def test_a_failing_point_fails_alone() -> None:
    """A value that makes no sense is told at its point; the others are solved."""
    study = epd_opt.sensitivity(measured(), {CHAT: [-1, 12]}, switches=False)
    bad, good = study.document.points
    assert bad.status == "failed"
    assert bad.error is not None
    assert "rate_per_s" in bad.error
    assert good.status == "optimal"


def test_a_study_of_nothing_but_failures_is_invalid_input() -> None:
    """Where every point fails, the input is at fault."""
    with pytest.raises(epd_opt.InvalidInput, match="rate_per_s"):
        epd_opt.sensitivity(measured(), {CHAT: [-2, -1]})


def test_a_fleet_beyond_stock_or_budget_breaks_there() -> None:
    """A stock below what stands in the fleet, or a budget below its cost, is what breaks."""
    stock = epd_opt.sensitivity(measured(), {"devices.big.stock": [1, 16]}, switches=False).document.points[0]
    assert stock.kept_fleet is not None
    assert [reason.limit for reason in stock.kept_fleet.breaks] == ["stock"]
    budget = epd_opt.sensitivity(measured(), {"limits.usd_per_hour": [1, 100]}, switches=False).document.points
    assert budget[0].kept_fleet is not None
    assert [reason.limit for reason in budget[0].kept_fleet.breaks] == ["usd_per_hour"]
    assert budget[1].regret_usd_per_hour == 0.0


def test_two_dimensions_make_a_grid() -> None:
    """Two paths give every pair of their values, and no switch points; the JSON is strict."""
    study = epd_opt.sensitivity(measured(), {CHAT: [7, 12], "devices.big.price.usd_per_hour": [4.5, 9]})
    assert [tuple(point.at.values()) for point in study.document.points] == [(7, 4.5), (7, 9), (12, 4.5), (12, 9)]
    assert study.document.switch_points == []
    plain = json.loads(study.to_json(), parse_constant=lambda _: pytest.fail("not strict"))
    assert plain["schema"] == "epd-opt/study/v1"


def test_objectives_that_leave_the_rates_open_are_refused() -> None:
    """A study of goodput would compare fleets at different rates."""
    with pytest.raises(epd_opt.InvalidInput, match="objective=cost_per_request"):
        epd_opt.sensitivity(measured(objective="goodput"), {CHAT: [7, 12]})


def test_a_study_as_a_table_and_as_pictures(over_chat: Study) -> None:
    """The data frame has a row and the page a line for every point; one dimension has one picture, two have two."""
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib")
    frame = over_chat.to_frame()
    assert list(frame[CHAT]) == [2, 7, 12, 20, 40]
    assert list(frame["kept_feasible"]) == [True, True, True, False, False]
    assert len(over_chat.plot().axes) == 1
    assert "regret" in over_chat._repr_html_()
    grid = epd_opt.sensitivity(measured(), {CHAT: "7:12:2", "devices.big.price.usd_per_hour": "x1,x2"})
    titles = [axes.get_title() for axes in grid.plot().axes]
    assert titles[:2] == ["best plan, $/h", "regret of today's fleet, $/h (blank: it breaks)"]
