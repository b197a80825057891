"""Whatever a class's targets, the shares of its time and its risk add up to no more than it has."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epd_models import catalog
from epd_models.distribution import Distribution
from epd_models.request import request_load
from epd_models.risk import LEVEL_SHARES, promises, risk_shares
from epd_models.workload import Images, RequestClass, Targets

SIZES = st.one_of(
    st.integers(2, 4000).map(Distribution.constant),
    st.lists(st.tuples(st.integers(1, 4000), st.floats(0.001, 1)), min_size=1, max_size=5).map(Distribution.of_values),
    st.tuples(st.integers(10, 2000), st.floats(1.05, 3.5)).map(
        lambda pair: Distribution.lognormal(mean=pair[0], p95=pair[0] * pair[1])
    ),
)


def load(text=None, output=None, images=None, **targets):
    """A class for Qwen3-VL-8B."""
    kept = {"ttft_s": 1.0, "ttft_probability": 0.95, "itl_s": 0.05, "itl_probability": 0.9}
    request = RequestClass(
        name="class",
        rate=1.0,
        mean_rate=1.0,
        text_tokens=text or Distribution.constant(500),
        output_tokens=output or Distribution.constant(101),
        targets=Targets(**(kept | targets)),
        images=images,
    )
    return request_load(request, catalog.model("Qwen3-VL-8B"))


def test_separate_targets_are_promised_as_they_are():
    """Without an end-to-end target there is one way, with each target's own risk."""
    (only,) = promises(load())
    assert (only.ttft_s, only.itl_s) == (1.0, 0.05)
    assert (only.ttft_eps, only.itl_eps) == pytest.approx((0.05, 0.1))


def test_absent_targets_promise_any_time():
    """Classes that measured workers alone serve may state none."""
    (only,) = promises(load(ttft_s=None, itl_s=None))
    assert (only.ttft_s, only.itl_s) == (math.inf, math.inf)


def test_an_end_to_end_target_is_shared_in_several_ways():
    """4 s for 100 gaps: the interval takes from 40 to 93 per cent of it, the first token the rest."""
    ways = promises(load(e2e_s=4.0, ttft_s=None, itl_s=None))
    assert len(ways) > 1
    assert [way.itl_s for way in ways] == pytest.approx([0.016, 0.024, 0.03, 0.034, 0.0372])
    for way in ways:
        assert way.ttft_s + 100 * way.itl_s == pytest.approx(4.0)
        assert way.ttft_eps + way.itl_eps <= 0.05 + 1e-12


def test_one_token_answers_give_all_their_time_to_the_first_token():
    """No gaps, so the end is the first token."""
    (only,) = promises(load(output=Distribution.constant(1), e2e_s=0.7))
    assert only.ttft_s == 0.7
    assert only.itl_s == 0.05


@settings(max_examples=200, deadline=None)
@given(
    output=SIZES,
    e2e_s=st.floats(0.05, 100),
    e2e_probability=st.floats(0.5, 0.999),
    ttft_s=st.one_of(st.none(), st.floats(0.01, 10)),
    itl_s=st.one_of(st.none(), st.floats(0.001, 1)),
)
def test_keeping_a_promise_keeps_the_end_to_end_target(output, e2e_s, e2e_probability, ttft_s, itl_s):
    """First token, gaps of a long answer and their risks stay within the target and within the separate ones."""
    for way in promises(load(output=output, e2e_s=e2e_s, e2e_probability=e2e_probability, ttft_s=ttft_s, itl_s=itl_s)):
        risk = way.ttft_eps + way.itl_eps
        gaps = output.quantile(1 - way.ttft_eps) - 1
        if output.varies:
            share = (1 - e2e_probability) / 3
            gaps = output.quantile(1 - share) - 1
            risk += share
        assert way.ttft_s > 0
        assert way.itl_s > 0
        assert gaps <= 0 or way.ttft_s + gaps * way.itl_s <= e2e_s * (1 + 1e-9)
        assert risk <= 1 - e2e_probability + 1e-12
        assert way.ttft_s <= (ttft_s or math.inf)
        assert way.itl_s <= (itl_s or math.inf)


@settings(max_examples=200, deadline=None)
@given(
    text=SIZES,
    counts=st.one_of(st.none(), SIZES.map(lambda d: Distribution.of_values([(1 + v % 20, w) for v, w in pairs(d)]))),
    eps=st.floats(0.002, 0.5),
    queues=st.integers(1, 3),
    pools=st.integers(1, 3),
)
def test_waits_and_sizes_share_no_more_than_the_risk(text, counts, eps, queues, pools):
    """Each queue may exceed its wait, each pool its size quantile; together they stay within eps."""
    built = load(text=text, images=None if counts is None else Images(count=counts, tokens=64))
    shares = risk_shares(built, eps, queues=queues, pools=pools)
    sizes = max(
        built.exceeds(values, built.quantile(values, shares.size_probability))
        for values in (built.prompt_uppers, built.image_counts)
    )
    assert shares.wait_eps > 0
    assert queues * shares.wait_eps + pools * sizes <= eps * (1 + 1e-9)
    assert queues * shares.wait_eps >= eps / 2 * (1 - 1e-9)


def pairs(sizes):
    """Values and weights of a distribution."""
    return list(zip(sizes.values, sizes.weights, strict=True))


def test_equal_requests_leave_all_risk_to_the_queues():
    """Where sizes do not vary, nothing is set aside for them."""
    shares = risk_shares(load(), 0.05, queues=2, pools=2)
    assert shares.size_probability == 1.0
    assert shares.wait_eps == pytest.approx(0.025)


def test_varying_sizes_take_half():
    """A lognormal prompt over two pools: each counts the quantile that a quarter of the risk exceeds."""
    shares = risk_shares(load(text=Distribution.lognormal(mean=500, p95=1500)), 0.04, queues=2, pools=2)
    assert shares.size_probability == pytest.approx(0.99)
    assert shares.wait_eps == pytest.approx(0.01)


def test_levels_rise_within_the_target():
    """Elapsed-time levels at each hand-over ascend strictly inside the TTFT target."""
    for levels in LEVEL_SHARES.values():
        assert list(levels) == sorted(set(levels))
        assert 0 < levels[0] < levels[-1] < 1
