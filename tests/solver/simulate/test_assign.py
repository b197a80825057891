"""A traced request goes to the class of the plan under which it is most likely."""

from __future__ import annotations

import itertools

import pytest

from epd_opt.simulate.arrivals import Arrival
from epd_opt.simulate.assign import Classifier
from support.workloads import planned


def arrival(text, output, images=0, tokens=None):
    """A request at time zero."""
    return Arrival(0.0, None, float(text), float(output), images, tokens)


def made(name, text, output, rate=1.0, **more):
    """An entry of a workload."""
    return {"name": name, "rate_per_s": rate, "text_tokens": text, "output_tokens": output, **more}


PHOTO = made("photo", 100, 200, images={"count": 1, "tokens": 300})
ALBUM = made("album", 100, 200, images={"count": {"values": [[6, 0.5], [12, 0.5]]}, "tokens": 300})
CHAT = made("chat", {"mean": 800, "p95": 2400}, 300)
ESSAY = made("essay", 100, {"mean": 3000, "p95": 6000})
CLIP = made("clip", 60, 200, video={"seconds": 30, "fps": 2, "width_px": 640, "height_px": 360})
ALL = (PHOTO, ALBUM, CHAT, ESSAY, CLIP)


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        (arrival(500, 250), "chat"),
        (arrival(120, 2500), "essay"),
        (arrival(120, 200, 1, 280.0), "photo"),
        (arrival(120, 200, 9, 2700.0), "album"),
        (arrival(2000, 3000, 1, None), "photo"),
    ],
)
def test_requests_go_to_the_class_that_resembles_them(request_, name):
    """By images first, then by text and output; clips take nothing."""
    assert Classifier(planned(ALL)).assign(request_) == name


def test_the_order_of_classes_does_not_matter():
    """Every order assigns alike, ties included."""
    twins = (made("b", 100, 200), made("a", 100, 200), CHAT)
    requests = [arrival(text, output) for text in (10, 100, 900) for output in (20, 300)]
    answers = {tuple(Classifier(planned(order)).assign(one) for one in requests) for order in itertools.permutations(twins)}
    assert len(answers) == 1
    assert Classifier(planned(twins)).assign(arrival(100, 200)) == "a"


def test_of_two_alike_classes_the_one_with_the_higher_rate_takes_the_request():
    """A rare class is the less likely origin."""
    pair = (made("a", {"mean": 500, "p95": 1500}, 100, rate=0.1), made("b", {"mean": 500, "p95": 1500}, 100, rate=10))
    assert Classifier(planned(pair)).assign(arrival(500, 100)) == "b"


def test_a_request_without_a_class_of_its_kind_finds_none():
    """Images in a workload of text, text in a workload of images; a class may have both."""
    assert Classifier(planned([CHAT, ESSAY])).assign(arrival(700, 300, 2, 500.0)) is None
    assert Classifier(planned([PHOTO, ALBUM, CLIP])).assign(arrival(90, 210)) is None
    some = made("some", 100, 200, images={"count": {"values": [[0, 0.2], [2, 0.8]]}, "tokens": 300})
    assert Classifier(planned([PHOTO, some])).assign(arrival(90, 210)) == "some"
