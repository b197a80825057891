"""Points that differ in rates alone share operating points and what is proved, and come out as by themselves."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import epd_opt
from epd_opt.instance import Instance
from epd_opt.paths import set_value
from epd_opt.sensitivity import Study, lines, parse_vary
from epd_opt.sensitivity.lines import Lines
from epd_opt.sensitivity.point import Job
from epd_opt.sensitivity.shift import Dimension, shifted
from support.documents import measured, modelled

RATES = "workload.classes.*.rate_per_s"
CHAT = "workload.classes.chat.rate_per_s"
STOCK = "devices.big.stock"


GAP = 0.005


def at_a_gap() -> dict[str, Any]:
    """The modelled instance."""
    return set_value(modelled(), "solver.gap", GAP)


def rented() -> dict[str, Any]:
    """Measured workers whose work costs no energy, so that only units do."""
    units = [
        {"sku": "big", "price": {"usd_per_hour": 4.5}, "stock": 16},
        {"sku": "small", "price": {"usd_per_hour": 0.5}},
    ]
    return measured(devices=units)


def _jobs(document: dict[str, Any], text: str) -> tuple[Lines, list[Job]]:
    moved = parse_vary(text, document)
    known = Lines(document, [moved])
    jobs = [Job(at={moved.path: v}, document=shifted(document, [(moved, v)]), fleet=None) for v in moved.values]
    return known, [known.on(job) for job in jobs]


def _alone(document: dict[str, Any], path: str, value: Any, *, scaled: bool) -> epd_opt.Plan:
    return epd_opt.solve(Instance(**shifted(document, [(Dimension(path=path, values=(value,), scaled=scaled), value)])))


@pytest.fixture(scope="module")
def along_rates() -> Study:
    """A modelled instance at a gap, from half its demand to half more."""
    return epd_opt.sensitivity(at_a_gap(), {RATES: "x0.5:x1.5:4"}, switches=False)


def test_points_are_what_solving_them_gives(along_rates: Study) -> None:
    """Points cost what their instances cost that are solved by themselves, within the gap, and are proved to it."""
    for point in along_rates.document.points[::3]:
        alone = _alone(at_a_gap(), RATES, point.at[RATES], scaled=True)
        assert point.cost is not None
        assert point.status == alone.status == "optimal"
        assert point.cost.usd_per_hour == pytest.approx(alone.cost.usd_per_hour, rel=GAP)
        assert point.cost.bound_usd_per_hour <= alone.cost.usd_per_hour
        assert point.cost.gap <= GAP


def test_costs_rise_along_a_line(along_rates: Study) -> None:
    """No bound lies above a cost where there is more demand, and today's fleet serves up to a point and not beyond."""
    points = along_rates.document.points
    costs = [point.cost for point in points if point.cost is not None]
    assert len(costs) == len(points)
    for i, cost in enumerate(costs):
        assert all(cost.bound_usd_per_hour <= later.usd_per_hour for later in costs[i:])
        assert all(cost.usd_per_hour * (1 - GAP) <= later.usd_per_hour for later in costs[i:])
    served = [point.kept_fleet.feasible for point in points if point.kept_fleet is not None]
    assert served == sorted(served, key=lambda serves: not serves)
    assert set(served) == {True, False}


def test_what_lies_between_the_same_fleets_is_not_searched() -> None:
    """Where fewer requests need the fleet that more of them get, what lies between gets it too, as by itself at gap 0."""
    study = epd_opt.sensitivity(rented(), {CHAT: "9:12:13"}, switches=False)
    between = [point for point in study.document.points if point.found == "between"]
    assert len(between) >= 4
    for point in between:
        alone = _alone(rented(), CHAT, point.at[CHAT], scaled=False)
        assert point.cost is not None
        assert point.cost.usd_per_hour == pytest.approx(alone.cost.usd_per_hour, rel=1e-9)
        assert [(p.name, p.replicas) for p in point.pools] == [(p.name, p.replicas) for p in alone.pools]


def test_many_lines_are_worked_on_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A grid with a line for every stock is the same from threads, which get a line each, and from a folder in which some of
    its points are missing; points that follow from others count as known there."""
    monkeypatch.setattr(lines, "_MANY", 2)
    vary = {STOCK: [8, 16], CHAT: "9:10:5"}
    whole = epd_opt.sensitivity(rented(), vary, folder=tmp_path)
    with ThreadPoolExecutor(2) as executor:
        assert epd_opt.sensitivity(rented(), vary, executor=executor).to_json() == whole.to_json()
    file = tmp_path / "points.jsonl"
    written = file.read_text(encoding="utf-8").splitlines()
    assert len(written) == len(whole.document.points)
    file.write_text("".join(f"{line}\n" for line in written[::3]), encoding="utf-8")
    assert epd_opt.sensitivity(rented(), vary, folder=tmp_path).to_json() == whole.to_json()
    assert len(file.read_text(encoding="utf-8").splitlines()) == len(whole.document.points)
    assert any(json.loads(line)["point"]["found"] == "between" for line in written)


def test_a_wide_range_has_operating_points_for_every_third_of_it() -> None:
    """Points share what is made for the highest rates, and for below every third of those; the stated rates have theirs;
    without a rate a class needs none; and two points share nothing that would be made for two."""
    known, jobs = _jobs(measured(), f"{CHAT}=0,1,2,3,6,9,12,24,27")
    most = [tuple(rates[1] for rates in job.made_for) for job in jobs]
    assert most[0] == ()
    assert set(most[1:]) == {(27.0, 6.0, 1.0, 12.0)}
    assert len({known.of(job) for job in jobs[1:]}) == 1
    assert [job.made_for for job in _jobs(measured(), f"{CHAT}=1,9")[1]] == [(), ()]
    assert [job.made_for for job in _jobs(measured(), "devices.big.stock=6,7,8")[1]] == [(), (), ()]


def test_a_stock_that_is_too_small_is_told_at_every_rate() -> None:
    """Where more demand than there is stock for has no plan, the rest of the line does, and the reasons stand there."""
    small = set_value(measured(), STOCK, 4)
    points = epd_opt.sensitivity(small, {CHAT: "1:60:9"}, switches=False).document.points
    statuses = [point.status for point in points]
    assert statuses == sorted(statuses, reverse=True)
    assert {"optimal", "infeasible"} == set(statuses)
