"""A class's sizes, sums over decode steps and quantiles agree with sampled requests, and bounds err to the safe side."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epd_models import catalog
from epd_models.distribution import Distribution
from epd_models.request import ContextExceeded, request_load
from epd_models.workload import Images, RequestClass, Targets, Video

MODEL = catalog.model("Qwen3-VL-8B")
TEXT = Distribution.of_values([(100, 0.5), (900, 0.3), (4000, 0.2)])
COUNTS = Distribution.of_values([(0, 0.2), (1, 0.5), (10, 0.3)])
OUTPUTS = Distribution.of_values([(1, 0.1), (50, 0.6), (700, 0.3)])


def request(text=TEXT, output=OUTPUTS, **more):
    """A class of requests with targets that no test reads."""
    targets = Targets(ttft_s=1.0, ttft_probability=0.95, itl_s=0.1, itl_probability=0.95)
    return RequestClass(
        name="class", rate=1.0, mean_rate=1.0, text_tokens=text, output_tokens=output, targets=targets, **more
    )


def load(model=MODEL, **more):
    """The class as work for a model."""
    return request_load(request(**more), model)


ALBUM = load(images=Images(count=COUNTS, tokens=256), cached_tokens=150)


def sampled(seed=11, size=40_000):
    """Prompt tokens, images and output tokens of sampled requests of the album class."""
    random = np.random.default_rng(seed)
    text, counts, output = (random.choice(d.values, size, p=d.weights) for d in (TEXT, COUNTS, OUTPUTS))
    return text + 256 * counts, counts, output


def test_text_and_images_vary_independently():
    """Nine sizes whose weights are products, and whose means are those of sampled requests."""
    prompts, counts, _ = sampled()
    assert ALBUM.weights.shape == (9,)
    assert ALBUM.weights.sum() == pytest.approx(1.0)
    assert ALBUM.weights[ALBUM.prompt_tokens == 100 + 2560].sum() == pytest.approx(0.5 * 0.3)
    assert ALBUM.mean_prompt == pytest.approx(TEXT.mean + 256 * COUNTS.mean)
    assert ALBUM.mean_prompt == pytest.approx(prompts.mean(), rel=0.02)
    assert ALBUM.mean_images == pytest.approx(counts.mean(), rel=0.03)
    assert ALBUM.prompt_tokens**2 @ ALBUM.weights == pytest.approx((prompts**2).mean(), rel=0.03)


def test_cached_tokens_are_not_prefilled_but_one_token_always_is():
    """A prompt inside the cached prefix still reads its last token."""
    assert ALBUM.new_tokens == pytest.approx(np.maximum(ALBUM.prompt_tokens - 150, 1))
    assert ALBUM.new_tokens.min() == 1


def test_quantiles_are_those_of_sampled_requests_read_upwards():
    """At least the wanted share of samples lies at or below each quantile."""
    prompts, _, _ = sampled()
    for probability in (0.1, 0.5, 0.9, 0.95, 0.99):
        quantile = ALBUM.quantile(ALBUM.prompt_tokens, probability)
        assert quantile in ALBUM.prompt_tokens
        assert (prompts <= quantile).mean() >= probability - 0.01
        assert ALBUM.exceeds(ALBUM.prompt_tokens, quantile) <= 1 - probability + 1e-12
        assert ALBUM.exceeds(ALBUM.prompt_tokens, quantile * 0.999) > 1 - probability - 1e-12
    assert ALBUM.quantile(ALBUM.prompt_tokens, 1.0) == 4000 + 2560


@pytest.mark.parametrize("probability", [0.5, 0.9, 0.95, 0.99])
def test_quantiles_of_upper_edges_bound_a_continuous_class(probability):
    """A lognormal text beside images: the quantile of the bins' edges is not below that of sampled requests."""
    spread = load(text=Distribution.lognormal(mean=800, p95=2400), images=Images(count=COUNTS, tokens=256))
    random = np.random.default_rng(5)
    sigma = 0.9322
    text = random.lognormal(np.log(800) - sigma**2 / 2, sigma, 40_000)
    prompts = text + 256 * random.choice(COUNTS.values, 40_000, p=COUNTS.weights)
    true = np.quantile(prompts, probability)
    assert true * 0.97 <= spread.quantile(spread.prompt_uppers, probability) <= true * 1.25


def test_peak_context_is_a_long_prompt_with_a_long_answer():
    """The largest of discrete sizes; for lognormal sizes the 99.9 % quantiles, exceeded by fewer than one in 500."""
    assert ALBUM.peak_context == 4000 + 2560 + 700
    spread = load(text=Distribution.lognormal(mean=800, p95=2400), output=Distribution.lognormal(mean=300, p95=700))
    random = np.random.default_rng(6)
    context = sum(
        random.lognormal(np.log(mean) - sigma**2 / 2, sigma, 40_000) for mean, sigma in ((800, 0.9322), (300, 0.6696))
    )
    assert (context > spread.peak_context).mean() < 0.002


def brute_force(prompts, output, window=None):
    """Mean steps and mean sum of contexts over requests: token n+1 is decoded over prompt + n tokens."""
    steps, sums = [], []
    for prompt, tokens in zip(prompts, output, strict=True):
        contexts = prompt + np.arange(1, int(tokens))
        steps.append(len(contexts))
        sums.append(np.sum(contexts if window is None else np.minimum(contexts, window)))
    return np.mean(steps), np.mean(sums)


def test_decoded_sums_are_those_of_sampled_requests():
    """Steps and contexts added up step by step over 20,000 requests."""
    prompts, _, output = sampled(size=20_000)
    steps, contexts = brute_force(prompts, output)
    assert ALBUM.decoded == pytest.approx((steps, contexts), rel=0.03)


def test_decoded_sums_of_one_size_are_exact():
    """1000 tokens in, 5 out: four steps over 1001 to 1004 tokens."""
    one = load(text=Distribution.constant(1000), output=Distribution.constant(5))
    assert one.decoded == pytest.approx((4, 1001 + 1002 + 1003 + 1004))
    assert one.averaging_steps == 4
    silent = load(text=Distribution.constant(1000), output=Distribution.constant(1))
    assert silent.decoded == (0.0, 0.0)
    assert silent.averaging_steps == 0.0
    assert silent.windowed_context_sum(128) == 0.0


@pytest.mark.parametrize("window", [1, 128, 500, 1000, 5000, 100_000])
def test_windowed_sums_bound_sampled_requests_from_above(window):
    """Never below the sum counted step by step, never above the sum without a window or with a full one."""
    prompts, _, output = sampled(size=20_000)
    _, exact = brute_force(prompts, output, window)
    bound = ALBUM.windowed_context_sum(window)
    assert bound >= exact * 0.97
    assert bound <= min(ALBUM.decoded[1], ALBUM.decoded[0] * window) * (1 + 1e-12)
    if window in (1, 100_000):
        assert bound == pytest.approx(exact, rel=0.03)


@settings(max_examples=100, deadline=None)
@given(prompt=st.integers(1, 3000), output=st.integers(2, 1500), window=st.integers(1, 4000))
def test_windowed_sums_bound_one_size_from_above(prompt, output, window):
    """Jensen's inequality, request by request."""
    one = load(text=Distribution.constant(prompt), output=Distribution.constant(output))
    _, exact = brute_force([prompt], [output], window)
    assert one.windowed_context_sum(window) >= exact * (1 - 1e-12)


def test_averaging_steps_are_the_harmonic_mean_of_answers_longer_than_a_token():
    """One-token answers have no interval and do not count."""
    assert ALBUM.averaging_steps == pytest.approx(0.9 / (0.6 / 49 + 0.3 / 699))


def test_images_by_pixels_follow_the_models_rule():
    """An image of 1920 x 1080 is 2040 tokens for Qwen3-VL, 8160 patches and 2.07 megapixels on the host."""
    photo = load(images=Images(count=Distribution.constant(2), width_px=1920, height_px=1080))
    assert (photo.image.tokens, photo.image.positions) == (2040, 8160)
    assert photo.megapixels == pytest.approx(2.0736)
    assert photo.tokens_per_image == 2040
    assert photo.mean_prompt == pytest.approx(TEXT.mean + 4080)
    assert photo.has_vision


def test_the_host_decodes_the_source_not_what_is_kept():
    """A 12-megapixel photograph kept at 256 tokens; without a stated source, the pixels of the patches."""
    kept = load(images=Images(count=COUNTS, tokens=256, source_megapixels=12.0, cached_share=0.4))
    assert kept.megapixels == 12.0
    assert kept.encoded_share == pytest.approx(0.6)
    assert ALBUM.megapixels == pytest.approx(1024 * 16**2 / 1e6)
    assert ALBUM.encoded_share == 1.0


def test_a_clip_is_steps_of_frames():
    """30 s at 2 frames per second: 60 frames in 30 steps of two, each as many tokens as the rule gives."""
    clip = load(video=Video(seconds=30, fps=2, width_px=640, height_px=360))
    assert clip.mean_images == 30
    assert clip.megapixels == pytest.approx(2 * 640 * 360 / 1e6)
    assert clip.mean_prompt == pytest.approx(TEXT.mean + 30 * clip.image.tokens)


def test_text_has_no_images():
    """One image count of zero, nothing for the encoder."""
    text = load()
    assert text.image is None
    assert not text.has_vision
    assert text.mean_images == 0
    assert text.tokens_per_image == 0.0
    assert text.prompt_tokens == pytest.approx(TEXT.values)


def test_requests_beyond_the_models_context_are_refused_with_both_lengths():
    """Llama 2 70B takes 4096 tokens; a prompt of 4000 with an answer of 700 does not fit."""
    with pytest.raises(ContextExceeded, match="4700 tokens of context; Llama-2-70B takes 4096") as refusal:
        load(catalog.model("Llama-2-70B"))
    assert (refusal.value.wanted, refusal.value.most) == (4700, 4096)


def test_images_need_a_vision_tower():
    """A text model refuses them by name."""
    with pytest.raises(ValueError, match=r"Llama-3\.1-8B has no vision tower"):
        load(catalog.model("Llama-3.1-8B"), images=Images(count=COUNTS, tokens=256))


def test_reserved_contexts_are_those_of_the_last_step():
    """Every step of a request counts with its last context, prompt and whole output."""
    prompts, _, output = sampled()
    steps = output - 1
    assert ALBUM.final_context_sum == pytest.approx(float((steps * (prompts + output)).mean()), rel=0.02)
