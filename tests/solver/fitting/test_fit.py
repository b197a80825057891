"""Fits give back what a trace was made from: classes and their shares, sizes, rates and burstiness."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from epd_models.distribution import Distribution
from epd_opt.fitting.clusters import LEAST_REQUESTS, boxes
from epd_opt.fitting.fit import Settings, fit
from epd_opt.fitting.sample import Sample
from epd_opt.fitting.sizes import fit_size
from epd_opt.fitting.write import workload_text
from epd_opt.simulate.arrivals import Arrival
from epd_opt.simulate.assign import Classifier
from epd_opt.simulate.traces import Trace
from epd_opt.simulate.traffic import LEAST_WINDOWS, tick, traffic
from epd_opt.source import parse
from support.workloads import planned

SHARED = Path(__file__).parents[4] / "shared" / "traces"


def gamma_times(rng, rate, scv, span):
    """Arrivals with gamma gaps over a span."""
    count = int(rate * span * 1.2 + 50 * math.sqrt(rate * span * max(scv, 1.0)))
    times = np.cumsum(rng.gamma(1.0 / scv, scv / rate, count))
    return times[times < span]


def lognormal(rng, mean, sigma, count):
    """Whole lognormal sizes of at least one."""
    return np.maximum(np.round(rng.lognormal(math.log(mean) - sigma**2 / 2, sigma, count)), 1).astype(np.int64)


def sample(time, text, output, images=None, tokens=None, cached=None):
    """A sample from arrays, put in order of time."""
    order = np.argsort(time, kind="stable")
    zero = np.zeros(len(time), dtype=np.int64)
    images = zero if images is None else images
    tokens = images * 256.0 if tokens is None else tokens
    return Sample(
        time=time[order],
        text=text[order],
        output=output[order],
        images=images[order],
        image_tokens=tokens[order],
        image_pixels=np.where(images > 0, np.nan, 0.0)[order],
        cached=(zero if cached is None else cached)[order],
    )


@pytest.fixture(scope="module")
def three():
    """An hour of short questions (6/s), long documents (2/s, bursty) and albums of eight (1/s)."""
    rng = np.random.default_rng(7)
    parts = [
        (gamma_times(rng, 6, 1, 3600), 100, 300, 0),
        (gamma_times(rng, 2, 4, 3600), 6000, 150, 0),
        (gamma_times(rng, 1, 1, 3600), 60, 400, 8),
    ]
    time = np.concatenate([times for times, *_ in parts])
    text = np.concatenate([lognormal(rng, mean, 0.5, len(times)) for times, mean, *_ in parts])
    output = np.concatenate([lognormal(rng, mean, 0.5, len(times)) for times, _, mean, _ in parts])
    images = np.concatenate([np.full(len(times), count) for times, *_, count in parts])
    return sample(time, text, output, images)


def test_classes_rates_and_burstiness_of_a_made_trace_are_recovered(three):
    """Three classes, with shares within a point, mean rates within 5 per cent and burstiness within 20 per cent."""
    found = fit(three, Settings())
    questions, documents, albums = found.classes
    assert [one.share for one in found.classes] == pytest.approx([6 / 9, 2 / 9, 1 / 9], abs=0.01)
    assert [one.traffic.mean_rate for one in found.classes] == pytest.approx([6, 2, 1], rel=0.06)
    assert [one.traffic.scv for one in found.classes] == pytest.approx([1, 4, 1], rel=0.2)
    for one, text, output in ((questions, 100, 300), (documents, 6000, 150), (albums, 60, 400)):
        assert one.text.distribution.mean == pytest.approx(text, rel=0.03)
        assert one.output.distribution.mean == pytest.approx(output, rel=0.03)
        assert set(one.output.stated) == {"mean", "p95"}
    assert albums.images is not None
    assert (albums.images.stated, albums.tokens_per_image) == (8, 256)
    assert questions.images is None


def test_the_peak_is_the_busiest_window_and_drift_is_no_burstiness():
    """Traffic that swings twofold over the hours has a peak above its mean, and Poisson gaps."""
    rng = np.random.default_rng(3)
    span, highest = 6 * 3600.0, 6.0
    times = np.sort(rng.uniform(0, span, rng.poisson(highest * span)))
    kept = times[rng.random(len(times)) < (2 + np.sin(2 * np.pi * times / span)) / 3]
    whole = np.diff(kept)
    found = traffic(kept, span)
    assert found.mean_rate == pytest.approx(4.0, rel=0.03)
    assert found.peak_rate == pytest.approx(6.0, rel=0.06)
    assert found.peak_start_s == pytest.approx(span / 4, abs=1800)
    assert whole.var() / whole.mean() ** 2 > 1.1
    assert found.scv == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("scv", [0.25, 1.0, 4.0, 9.0])
def test_burstiness_of_gamma_gaps_is_recovered(scv):
    """Within 10 per cent, in hundreds of windows."""
    times = gamma_times(np.random.default_rng(5), 2.0, scv, 40_000.0)
    assert traffic(times, 40_000.0).scv == pytest.approx(scv, rel=0.1)


def test_bursts_that_gaps_do_not_show_appear_in_the_counts():
    """A rate that switches every few seconds between 1 and 19 requests/s: counts of ten seconds vary far more than gaps."""
    rng = np.random.default_rng(9)
    cells = [rng.uniform(4.0 * k, 4.0 * k + 4.0, rng.poisson(4.0 * rng.choice([1.0, 19.0]))) for k in range(900)]
    times = np.sort(np.concatenate(cells))
    found = traffic(times, 3600.0)
    assert found.dispersion > 3 * found.scv
    counted = traffic(times, 3600.0, burst_s=10.0)
    assert counted.scv == pytest.approx(found.dispersion)


def test_times_rounded_to_ticks_are_spread_before_burstiness_is_read():
    """Poisson arrivals recorded every three seconds are still Poisson; fine times are left alone."""
    exact = gamma_times(np.random.default_rng(4), 4.0, 1.0, 3600.0)
    rounded = np.floor(exact / 3.0) * 3.0
    assert tick(exact) == 0.0
    assert tick(rounded) == 3.0
    assert traffic(rounded, 3600.0).scv > 5
    assert traffic(rounded, 3600.0, tick_s=3.0).scv == pytest.approx(1.0, abs=0.1)


def test_a_short_or_thin_trace_says_what_it_cannot_tell():
    """No peak below two windows, no burstiness below fifty gaps; a rare class gets a longer window."""
    few = traffic(np.linspace(0, 400, 30), 400.0)
    assert (few.has_peak, few.peak_rate, few.known, few.scv) == (False, few.mean_rate, False, 1.0)
    rare = traffic(gamma_times(np.random.default_rng(1), 0.05, 1.0, 36_000.0), 36_000.0)
    assert rare.window_s == pytest.approx(min(400 / rare.mean_rate, 36_000 / LEAST_WINDOWS))


def test_one_lognormal_cloud_stays_one_class():
    """However wide it is; only classes that somebody asks for cut it."""
    rng = np.random.default_rng(2)
    cloud = sample(np.arange(5000.0), lognormal(rng, 900, 1.2, 5000), lognormal(rng, 300, 0.8, 5000))
    found, next_gain = boxes(cloud)
    assert len(found) == 1
    assert next_gain < 0
    assert len(boxes(cloud, classes=3)[0]) == 3


def test_sizes_that_vary_together_make_classes():
    """Long prompts with long answers are no product of independent sizes."""
    rng = np.random.default_rng(2)
    text = lognormal(rng, 900, 1.2, 5000)
    assert len(boxes(sample(np.arange(5000.0), text, np.maximum(text // 3, 1)))[0]) > 1


def test_requests_with_images_are_apart_unless_they_are_too_few():
    """A handful of text requests among photos is kept among them, as requests of no images."""
    rng = np.random.default_rng(6)
    text, output = lognormal(rng, 80, 0.3, 4000), lognormal(rng, 80, 0.3, 4000)
    for few, classes in ((LEAST_REQUESTS // 2, 1), (400, 2)):
        images = np.where(np.arange(4000) < few, 0, 2)
        found = fit(sample(np.arange(4000.0), text, output, images), Settings())
        assert len(found.classes) == classes
    everything = fit(sample(np.arange(4000.0), text, output, images), Settings(classes=1)).classes[0]
    assert everything.images.stated == {"values": [[0, 0.1], [2, 0.9]]}


def test_more_classes_than_differ_are_refused():
    """Requests that are all alike make one class."""
    alike = sample(np.arange(500.0), np.full(500, 80), np.full(500, 20))
    with pytest.raises(ValueError, match="1 classes are the most that differ"):
        fit(alike, Settings(classes=2))


def test_sizes_take_the_form_that_fits():
    """A number, every value of few, a lognormal, or values where no lognormal does; means are kept."""
    rng = np.random.default_rng(8)
    assert fit_size(np.full(100, 7)).stated == 7
    assert fit_size(np.array([1] * 75 + [3] * 25)).stated == {"values": [[1, 0.75], [3, 0.25]]}
    smooth = fit_size(lognormal(rng, 700, 0.9, 20_000))
    assert set(smooth.stated) == {"mean", "p95"}
    assert smooth.error < 0.05
    modes = np.concatenate([lognormal(rng, 50, 0.2, 5000), lognormal(rng, 5000, 0.2, 5000)])
    two = fit_size(modes)
    assert set(two.stated) == {"values"}
    assert two.error < 0.07 < two.other_error
    assert two.distribution.mean == pytest.approx(modes.mean(), rel=0.002)
    for probability in (0.95, 0.99, 0.999):
        assert two.distribution.quantile(probability) == pytest.approx(np.quantile(modes, probability), rel=0.03)


def test_the_stated_error_is_the_distance_between_quantiles():
    """Twice the values are a mean away; a single value stands for a uniform one at half its half-width."""
    sizes = np.arange(1000, 3001)
    found = fit_size(sizes)
    assert found.error == pytest.approx(np.abs(_binned_away(sizes, found.distribution)).mean() / sizes.mean(), rel=0.02)


def _binned_away(sizes, fitted: Distribution):
    levels = (np.arange(len(sizes)) + 0.5) / len(sizes)
    values, weights = fitted.arrays()
    return sizes - values[np.minimum(np.searchsorted(np.cumsum(weights), levels), len(values) - 1)]


def test_a_fit_is_the_same_whatever_the_run(three):
    """Same text from the same trace, and rates that scale."""
    once, again = (workload_text(fit(three, Settings()), Settings(), {}, ["t"]) for _ in range(2))
    assert once == again
    classes = parse(once, "w").value["workload"]["classes"]
    doubled = Settings(scale=2.0)
    twice = parse(workload_text(fit(three, doubled), doubled, {}, ["t"]), "w").value["workload"]["classes"]
    for one, two in zip(classes, twice, strict=True):
        assert two["rate_per_s"] == pytest.approx(2 * one["rate_per_s"], rel=1e-3)
        assert two["mean_rate_per_s"] == pytest.approx(2 * one["mean_rate_per_s"], rel=1e-3)
        assert two["interarrival_scv"] == one["interarrival_scv"]


def test_the_written_classes_know_their_requests_again(three):
    """The classifier of simulations, from the file alone, agrees with the fit in 99 of 100 requests."""
    found = fit(three, Settings())
    text = workload_text(found, Settings(), {"ttft_ms": 900, "itl_ms": 50}, ["t"])
    assert _agreement(found, three, planned(parse(text, "w").value["workload"]["classes"])) > 0.99


def _agreement(found, three, classes):
    classifier = Classifier(classes)
    agreed = 0
    for one in found.classes:
        part = three.part(one.box.chosen)
        for text, output, images, tokens in zip(part.text, part.output, part.images, part.image_tokens, strict=True):
            arrival = Arrival(0.0, None, float(text), float(output), int(images), float(tokens))
            agreed += classifier.assign(arrival) == one.name
    return agreed / len(three)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the samples of public traces are not here")
@pytest.mark.parametrize(
    ("name", "classes", "agreement"),
    [
        ("azure_llm_2023_conv", 2, 0.99),
        ("mooncake_synthetic", 2, 0.98),
        ("servegen_mm_image_10h_25min", 6, 0.9),
        ("servegen_reason_r1_10h_20min", 2, 0.99),
    ],
)
def test_samples_of_public_traces_keep_their_totals(name, classes, agreement):
    """Classes add up to the trace in requests and tokens, and the classifier knows them again."""
    whole = Sample.of(Trace(source=SHARED / f"{name}.csv.gz"))
    found = fit(whole, Settings())
    assert len(found.classes) == classes
    assert sum(one.requests for one in found.classes) == len(whole)
    for sizes, fitted in ((whole.text, "text"), (whole.output, "output")):
        total = sum(one.requests * getattr(one, fitted).distribution.mean for one in found.classes)
        assert total == pytest.approx(sizes.sum(), rel=0.005)
    text = workload_text(found, Settings(), {"ttft_ms": 900, "itl_ms": 50}, ["t"])
    assert _agreement(found, whole, planned(parse(text, "w").value["workload"]["classes"])) > agreement
