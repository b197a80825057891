"""Arrivals follow the classes that they are drawn from."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from epd_models.distribution import Distribution
from epd_opt.simulate.arrivals import Source, drawn


def source(name: str = "chat", rate: float = 10.0, scv: float = 1.0, **sizes: Distribution) -> Source:
    return Source(
        name=name,
        rate=rate,
        scv=scv,
        text_tokens=sizes.get("text", Distribution.lognormal(mean=800, p95=2400)),
        output_tokens=sizes.get("output", Distribution.constant(300)),
        image_counts=sizes.get("images", Distribution.constant(0)),
    )


@pytest.mark.parametrize("scv", [0.0, 0.5, 1.0, 4.0])
def test_gaps_have_the_stated_mean_and_variation(scv: float) -> None:
    """Forty thousand gaps come within a few per cent of 1 / rate and of the squared coefficient of variation."""
    times = np.array([a.time_s for a in itertools.islice(drawn([source(scv=scv)], seed=3), 40_000)])
    gaps = np.diff(times)
    assert gaps.mean() == pytest.approx(0.1, rel=0.04)
    assert gaps.var() / gaps.mean() ** 2 == pytest.approx(scv, rel=0.1, abs=1e-9)


def test_sizes_are_whole_and_keep_their_mean() -> None:
    """Lengths are whole tokens, at least one, with the mean of the class."""
    found = [a.text_tokens for a in itertools.islice(drawn([source()], seed=1), 20_000)]
    assert all(size == int(size) >= 1 for size in found)
    assert np.mean(found) == pytest.approx(800, rel=0.03)


def test_streams_merge_in_order_and_do_not_disturb_each_other() -> None:
    """Times never fall, rates add up, and a class's own requests stay the same whatever the rate of another."""
    album = source("album", 5.0, images=Distribution.of_values([(1, 0.5), (9, 0.5)]))
    both = list(itertools.islice(drawn([source(), album], seed=7), 9_000))
    assert all(a.time_s <= b.time_s for a, b in itertools.pairwise(both))
    assert 9_000 / both[-1].time_s == pytest.approx(15.0, rel=0.04)
    busier = itertools.islice(drawn([source(rate=90.0), album], seed=7), 9_000)
    ours = [a for a in both if a.class_name == "album"]
    theirs = [a for a in busier if a.class_name == "album"]
    assert {a.image_count for a in ours} == {1, 9}
    assert theirs == ours[: len(theirs)]
