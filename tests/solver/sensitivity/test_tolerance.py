"""At the edge of its tolerance a fleet serves everything, beyond it something breaks."""

from __future__ import annotations

import json

import pytest

import epd_opt
from epd_opt.keeping.fleet import Fleet, kept
from epd_opt.sensitivity import ToleranceReport, tolerance
from epd_opt.sensitivity.point import clocked
from epd_opt.sensitivity.shift import Dimension, shifted
from epd_opt.sensitivity.tolerance import PRECISION
from support.documents import measured, modelled


@pytest.fixture(scope="module")
def small() -> epd_opt.Plan:
    """A modelled plan for chat alone, with the sizes and rate that leave its pools some room."""
    document = modelled()
    document["workload"]["classes"] = document["workload"]["classes"][1:]
    document["devices"] = document["devices"][:1]
    return epd_opt.solve(document)


@pytest.fixture(scope="module")
def report(small: epd_opt.Plan) -> ToleranceReport:
    """Its tolerances."""
    return tolerance(small)


def _serves(plan: epd_opt.Plan, path: str, factor: float) -> bool | None:
    from epd_opt.resolve import resolve

    moved = Dimension(path=path, values=(factor,), scaled=True)
    changed = epd_opt.Instance(**shifted(plan.document.instance_document, [(moved, factor)]))
    resolved = resolve(changed)
    return kept(Fleet.of(plan.document), resolved, clocked(resolved)).feasible


def test_edges_serve_and_what_lies_beyond_does_not(small: epd_opt.Plan, report: ToleranceReport) -> None:
    """Every factor of the report is solved anew: the fleet serves there, not at the factor where it breaks, and the two lie
    as close as promised; something is named that breaks."""
    assert [one.path.split(".")[-1] for one in report.document.inputs] == [
        "rate_per_s",
        "text_tokens",
        "output_tokens",
        "count",
    ]
    edges = 0
    for one in report.document.inputs:
        for shift in (one.up, one.down):
            assert shift.factor is not None
            assert _serves(small, one.path, shift.factor) is True
            if shift.breaks_at is None:
                assert shift.unlimited
                continue
            edges += 1
            assert _serves(small, one.path, shift.breaks_at) is False
            if one.path.endswith("count"):
                assert abs(shift.breaks_at - shift.factor) * 2 == pytest.approx(1.0)
            else:
                assert abs(shift.breaks_at - shift.factor) <= PRECISION * max(1.0, shift.factor)
            assert shift.breaks
    assert edges >= 4


def test_measured_fleets_move_in_their_rates_alone() -> None:
    """A fleet of measured workers that is full has no room upwards, whatever downwards; sizes are left out, which a note
    says."""
    report = tolerance(epd_opt.solve(measured()))
    assert [one.path for one in report.document.inputs] == [
        "workload.classes.*.rate_per_s",
        "workload.classes.album.rate_per_s",
        "workload.classes.chat.rate_per_s",
    ]
    for one in report.document.inputs:
        assert one.up.factor == 1.0
        assert one.up.breaks[0].limit == "replicas"
        assert "writer" in one.up.breaks[0].text
        assert one.down.factor == 0.0
    assert "measured" in report.document.notes[0]
    assert json.loads(report.to_json(), parse_constant=lambda _: pytest.fail("not strict"))["schema"] == (
        "epd-opt/tolerance/v1"
    )


def test_a_plan_without_a_fleet_has_no_tolerance() -> None:
    """Infeasible plans are refused."""
    document = measured(limits={"usd_per_hour": 1})
    with pytest.raises(epd_opt.InvalidInput, match="no fleet"):
        tolerance(epd_opt.solve(document, mends=False))
