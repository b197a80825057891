"""Points between others along prices are what solving them gives, without a solve."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import epd_opt
from epd_opt.paths import set_value
from epd_opt.sensitivity import Study
from epd_opt.sensitivity import lines as lines_of
from epd_opt.sensitivity import study as studies
from epd_opt.sensitivity.document import Point
from support.documents import measured

BIG = "devices.big.price.usd_per_hour"
SMALL = "devices.small.price.purchase_usd"
POWER = "cost.electricity_usd_per_kwh"
CHAT = "workload.classes.chat.rate_per_s"


def _alike(one: Any, other: Any) -> bool:
    """Equal but for the exactness of arithmetic and of the solver."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)
    return bool(one == other)


def _by_itself(study: Study, point: Point) -> Point:
    """The point as the only one of its study."""
    vary = {v.path: f"x{point.at[v.path]}" if v.scaled else [point.at[v.path]] for v in study.document.vary}
    return epd_opt.sensitivity(measured(), vary, switches=False).document.points[0]


def _between(study: Study) -> list[Point]:
    return [point for point in study.document.points if point.found == "between"]


@pytest.mark.parametrize(
    "vary",
    [
        {BIG: [0, 0.5, 1, 2, 3, 4.5, 6, 7, 8, 9, 10]},
        {SMALL: "x0:x4:9"},
        {POWER: "0:0.4:9"},
        {"cost.pue": "1:2:7"},
        {BIG: [0, 1, 2, 4, 6, 8], SMALL: "x0.25:x1.75:7"},
        {CHAT: [9, 12], BIG: [4, 4.25, 4.5, 4.75, 5, 5.25, 5.5]},
    ],
    ids=lambda vary: " by ".join(vary),
)
def test_every_point_is_what_solving_it_gives(vary: dict[str, Any]) -> None:
    """At gap 0 plan, cost, kept fleet and regret of every point are those of its own study, whatever prices move, down to
    nothing, in one dimension and two; and many points need no solve."""
    study = epd_opt.sensitivity(measured(), vary, switches=False)
    between = _between(study)
    assert len(between) >= len(study.document.points) / 4
    for point in between:
        mine, alone = (one.model_dump(exclude={"found"}) for one in (point, _by_itself(study, point)))
        assert _alike(mine, alone), point.at


def test_nothing_is_inferred_where_a_budget_depends_on_prices() -> None:
    """With a budget the fleets that may be planned depend on prices: every point is solved."""
    study = epd_opt.sensitivity(measured(limits={"usd_per_hour": 60}), {BIG: "4:5:7"}, switches=False)
    assert not _between(study)
    assert len(_between(epd_opt.sensitivity(measured(), {BIG: "4:5:7"}, switches=False))) >= 3


def test_bounds_between_hold_at_a_gap() -> None:
    """At a wide gap plans between are proved within it: their bounds lie below the true least cost, their costs above, and
    more points need no solve than at none."""
    vary = {BIG: "0.5:8.5:17"}
    wide = epd_opt.sensitivity(set_value(measured(), "solver.gap", 0.1), vary, switches=False)
    exact = epd_opt.sensitivity(measured(), vary, switches=False)
    assert len(_between(wide)) > len(_between(exact))
    for point, best in zip(wide.document.points, exact.document.points, strict=True):
        assert point.status == "optimal"
        assert point.cost is not None
        assert best.cost is not None
        assert point.cost.bound_usd_per_hour <= best.cost.usd_per_hour * (1 + 1e-6)
        assert point.cost.usd_per_hour >= best.cost.usd_per_hour * (1 - 1e-6)
        assert point.cost.gap <= 0.1


def test_a_price_that_makes_no_sense_fails_alone() -> None:
    """A negative price among others fails, and those beside it are found all the same."""
    points = epd_opt.sensitivity(measured(), {BIG: [-1, 4, 4.25, 4.5, 4.75, 5, 5.25]}, switches=False).document.points
    assert [point.status for point in points] == ["failed", *["optimal"] * 6]
    assert any(point.found == "between" for point in points)


def test_where_nothing_serves_prices_change_nothing() -> None:
    """Between two prices at which nothing serves, nothing does, for the same reasons."""
    nothing = set_value(set_value(measured(), "devices.big.stock", 1), "workload.classes.chat.rate_per_s", 400)
    points = epd_opt.sensitivity(nothing, {BIG: "1:9:9"}, switches=False).document.points
    assert {point.status for point in points} == {"infeasible"}
    assert {point.found for point in points} == {"solved", "between"}
    assert all(point.reasons == points[0].reasons for point in points)


def test_any_number_of_threads_finds_the_same() -> None:
    """Which points are solved, and the whole document, do not depend on how many are solved side by side."""
    vary = {BIG: "0.5:8.5:17"}
    with ThreadPoolExecutor(3) as executor:
        several = epd_opt.sensitivity(measured(), vary, executor=executor)
    assert several.to_json() == epd_opt.sensitivity(measured(), vary).to_json()


def test_a_folder_gives_the_same_points_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Started again, a study solves what is missing of what it solved, infers the rest, and comes out the same; lines of
    what was inferred are not written twice."""
    vary = {BIG: [0, 1, 2, 4, 6, 8], SMALL: "x0.25:x1.75:7"}
    whole = epd_opt.sensitivity(measured(), vary, folder=tmp_path)
    file = tmp_path / "points.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines()
    solved = [json.loads(line)["point"]["at"] for line in lines if json.loads(line)["point"]["found"] == "solved"]
    assert len(lines) == 42 > len(solved)
    file.write_text(
        "".join(f"{line}\n" for line in lines if json.loads(line)["point"]["at"] != solved[-1]), encoding="utf-8"
    )
    again: list[dict[str, Any]] = []
    original = lines_of.answered

    def counting(job: studies.Job) -> studies.Answer:
        again.append(job.at)
        return original(job)

    monkeypatch.setattr(lines_of, "answered", counting)
    assert epd_opt.sensitivity(measured(), vary, folder=tmp_path).to_json() == whole.to_json()
    assert again == [solved[-1]]
    assert len(file.read_text(encoding="utf-8").splitlines()) == 42
