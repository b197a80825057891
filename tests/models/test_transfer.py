"""Hand-overs take the latency and the bytes over the slower side, with the link shared at its planned load."""

import math

import pytest

from epd_models.transfer import LINK_LOAD_LIMIT, transfer_s


def test_the_slower_side_sets_the_pace():
    """One gigabyte at 25 GB/s, of which half is left by others, and 20 microseconds."""
    assert LINK_LOAD_LIMIT == 0.5
    for sender, receiver in ((25e9, 50e9), (50e9, 25e9)):
        assert transfer_s(1e9, sender, receiver, 20e-6) == pytest.approx(20e-6 + 2 * 1e9 / 25e9)


def test_nothing_to_hand_over_takes_no_time():
    """Text carries no embeddings, and measured workers hand over within their own time."""
    assert transfer_s(0.0, 25e9, 25e9, 20e-6) == 0.0
    assert transfer_s(1e9, math.inf, 25e9, 20e-6) == 0.0


@pytest.mark.parametrize(("sender", "receiver"), [(0.0, 25e9), (25e9, 0.0), (0.0, 0.0)])
def test_without_a_network_a_hand_over_never_ends(sender, receiver):
    """Cards without a network card cannot take part."""
    assert transfer_s(1.0, sender, receiver, 20e-6) == math.inf
