"""Single times asked in arrays are those of the planner's lines where these are exact, and lie below them elsewhere."""

import dataclasses

import numpy as np
import pytest

from epd_models import catalog
from epd_models.engine import Speculative
from epd_models.queries import StageTimes
from epd_models.ratios import Curve, ImageRatios, LanguageRatios
from epd_models.stages.decode import decode_step
from epd_models.stages.encode import encode_time
from epd_models.stages.prefill import prefill_time
from epd_models.vision import image_load
from support.workers import Told, constant, surface, worker

WORKERS = {
    "dense": {"model": "Qwen3-VL-8B"},
    "sliding": {"model": "gpt-oss-120b", "weights": "mxfp4"},
    "experts": {"model": "Qwen3-VL-235B-A22B", "sku": "H200-SXM", "weights": "fp8", "tensor": 8, "expert": 8},
    "hybrid": {"model": "Qwen3.5-122B-A10B", "sku": "B200-SXM", "weights": "fp8", "tensor": 2},
}


def drafting():
    """vLLM that drafts three tokens."""
    return dataclasses.replace(catalog.engine("vllm"), speculative=Speculative(draft_tokens=3, accepted_tokens=2.0))


@pytest.mark.parametrize("name", WORKERS)
@pytest.mark.parametrize("engine", ["vllm", "drafting"])
def test_a_line_touches_the_iterations_it_stands_for(name, engine):
    """Where a step is linearised it equals the time asked singly, and it is at least that at every other batch."""
    built = worker(**WORKERS[name], engine=drafting() if engine == "drafting" else engine)
    batch, context = np.array([1.0, 4.0, 32.0, 300.0]), np.array([50.0, 900.0, 5000.0, 100000.0])
    exact = StageTimes(built).decode_s(batch[:, None], context)
    for i, here in enumerate(batch):
        step = decode_step(built, sequences=here)
        line = np.array([[step.seconds(b, c) for c in context] for b in batch])
        assert line[i] == pytest.approx(exact[i], rel=1e-9)
        assert (line >= exact * (1 - 1e-9)).all()


def test_a_constant_ratio_multiplies_every_time():
    """A worker measured as twice as slow takes twice as long in every stage, to the last digit."""
    plain = worker("Qwen3-VL-30B-A3B", weights="fp8")
    slow = worker("Qwen3-VL-30B-A3B", weights="fp8", source=Told(constant(2.0)))
    one, two = decode_step(plain, sequences=40), decode_step(slow, sequences=40, contexts=(500.0, 3000.0))
    assert (two.fixed, two.per_sequence, two.per_context) == (2 * one.fixed, 2 * one.per_sequence, 2 * one.per_context)
    tokens = np.array([100.0, 2000.0])
    assert prefill_time(slow).busy_s(tokens) == pytest.approx(2 * prefill_time(plain).busy_s(tokens))
    assert prefill_time(slow).per_chunk == pytest.approx(2 * prefill_time(plain).per_chunk)
    assert StageTimes(slow).decode_s(7.0, 900.0) == pytest.approx(2 * StageTimes(plain).decode_s(7.0, 900.0))
    first = StageTimes(slow).first_token_s(2000.0) - StageTimes(plain).first_token_s(2000.0)
    plain_prefill = prefill_time(plain)
    assert first == pytest.approx(plain_prefill.busy_s(np.array([2000.0]))[0] + plain_prefill.per_chunk)


@pytest.mark.parametrize("name", ["dense", "experts"])
@pytest.mark.parametrize("low", [0.5, 1.5])
def test_a_line_over_ratios_is_safe_for_every_batch_it_is_meant_for(name, low):
    """The step of a worker whose ratio varies lies above its single times up to twice its batch, within its contexts."""
    table = surface({500.0: {1.0: low, 64.0: 1.2, 256.0: 0.9}, 8000.0: {1.0: 1.0, 32.0: 2.0}})
    built = worker(**WORKERS[name], source=Told(LanguageRatios(decode=table)))
    for here in (1.0, 20.0, 200.0):
        step = decode_step(built, sequences=here, contexts=(800.0, 4000.0))
        batch, context = np.geomspace(1.0, 2.0 * here, 9), np.geomspace(800.0, 4000.0, 5)
        single = StageTimes(built).decode_s(batch[:, None], context)
        line = np.array([[step.seconds(b, c) for c in context] for b in batch])
        assert (line >= single * 0.99).all()
        assert step.fixed > 0.0
        assert step.seconds(here, 2000.0) <= 2.5 * StageTimes(built).decode_s(here, 2000.0)


def test_images_are_asked_as_the_encoder_takes_them():
    """Distinct sizes come out as one by one, images multiply, and ratios act on host and transformer apart."""
    built = worker()
    tower = built.model.vision
    loads = [image_load(tower, 640, 480), image_load(tower, 1920, 1080)]
    each = [
        encode_time(tower, built.device, built.engine, load=load, megapixels=2.0, encoder_format="bf16") for load in loads
    ]
    positions = np.array([[loads[0].positions, loads[1].positions]] * 2)
    found = StageTimes(built).encode_s(np.array([[1.0], [3.0]]), positions, 2.0)
    assert found == pytest.approx(np.array([[1.0], [3.0]]) * [time.host_s + time.device_s for time in each])
    ratios = ImageRatios(device=Curve(at=(0.01, 100.0), ratios=(3.0, 3.0)))
    slow = StageTimes(worker(source=Told(LanguageRatios(), ratios))).encode_s(1.0, loads[0].positions, 2.0)
    assert slow == pytest.approx(each[0].host_s + 3.0 * each[0].device_s)


def test_a_model_without_a_vision_tower_encodes_nothing():
    """Asking a text model for images is an error that names it."""
    with pytest.raises(ValueError, match="no vision tower"):
        StageTimes(worker("Llama-3.1-8B", weights="fp8")).encode_s(1.0, 100.0)
