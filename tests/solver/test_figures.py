"""Shows that a plan's picture has every class, pool and cost on it, and that nothing covers anything else."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import epd_opt
from epd_opt.errors import UsageError
from support.documents import measured, modelled

pytest.importorskip("matplotlib", reason="pictures need the extra: pip install -e '.[plot]'")


def texts(figure: Any) -> list[Any]:
    return [text for axes in figure.axes for text in axes.texts]


@pytest.mark.parametrize("instance", [measured(), modelled(), modelled(placements=["encoder_pool", "prefill", "decode"])])
def test_no_text_covers_another_and_all_stay_on_the_page(instance: dict[str, Any]) -> None:
    figure = epd_opt.solve(instance).plot()
    figure.canvas.draw()
    extents = [text.get_window_extent() for text in texts(figure)]
    assert not [pair for pair in itertools.combinations(extents, 2) if pair[0].overlaps(pair[1])]
    width, height = figure.canvas.get_width_height()
    assert all(e.x0 >= 0 and e.y0 >= 0 and e.x1 <= width and e.y1 <= height for e in extents)


def test_classes_pools_and_costs_are_on_it() -> None:
    plan = epd_opt.solve(measured())
    shown = "\n".join(text.get_text() for text in texts(plan.plot()))
    for name in plan.classes:
        assert name in shown
    for pool in plan.pools:
        assert f"{pool.replicas} × {pool.device} measured + {pool.spare_replicas} spare" in shown
        assert f"${pool.usd_per_hour:,.2f}/h" in shown


def test_names_are_text_and_not_formulas() -> None:
    instance = measured()
    instance["name"] = "cost $x_1$ [b] & more"
    figure = epd_opt.solve(instance).plot()
    figure.canvas.draw()
    assert any(text.get_text().startswith("cost $x_1$ [b] & more") for text in texts(figure))


def test_without_a_fleet_there_is_no_picture() -> None:
    plan = epd_opt.solve(measured(limits={"devices": 2}))
    with pytest.raises(UsageError, match="infeasible"):
        plan.plot()
