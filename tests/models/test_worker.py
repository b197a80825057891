"""A worker exists only where model, device, cut and formats agree, and derives its rates from the card."""

from fractions import Fraction

import pytest

from epd_models import catalog
from epd_models.parallelism import IllegalParallelism, Parallelism
from epd_models.precision import Precision, UnsupportedPrecision
from epd_models.worker import Worker


def worker(name="Llama-3.1-8B", sku="H100-SXM", *, weights="fp8", kv_cache="fp8", engine="vllm", **degrees):
    """A worker of the catalogue."""
    return Worker.checked(
        model=catalog.model(name),
        device=catalog.device(sku),
        cut=Parallelism(**degrees),
        precision=Precision(weights=weights, kv_cache=kv_cache),
        engine=catalog.engine(engine),
    )


@pytest.mark.parametrize(
    ("changed", "error", "text"),
    [
        ({"weights": "nvfp4", "sku": "MI300X"}, UnsupportedPrecision, "MI300X does not store weights as nvfp4"),
        ({"kv_cache": "int8"}, UnsupportedPrecision, "H100-SXM does not store the KV cache as int8; its card lists bf16"),
        ({"weights": "fp7"}, UnsupportedPrecision, "fp7; its card lists bf16, fp8"),
        ({"tensor": 3}, IllegalParallelism, "degrees that do: 1, 2, 4, 8"),
    ],
)
def test_workers_that_cannot_exist_are_refused_with_the_reason(changed, error, text):
    """Formats of weights and cache and the cut are checked at once."""
    with pytest.raises(error, match=text):
        worker(**changed)


def test_rates_are_peaks_times_achieved_shares():
    """Bandwidth and links carry their share; the peak is that of the format in which weights are multiplied."""
    built = worker(tensor=2)
    c = catalog.device("H100-SXM").coefficients_for("vllm")
    assert built.coefficients is c
    assert built.peak == 1979e12
    assert built.bandwidth == pytest.approx(3350e9 * c.bandwidth_share)
    assert built.link == pytest.approx(450e9 * c.link_share)
    assert worker(weights="bf16").peak == 989e12
    assert worker(weights="nvfp4").peak == 1979e12
    assert worker(sku="L40S", weights="bf16", tensor=2).link < 32e9


def test_engines_have_their_own_coefficients():
    """TensorRT-LLM launches the layers of a step faster than vLLM."""
    assert worker(engine="trtllm").coefficients.layer_overhead_s < worker().coefficients.layer_overhead_s


def test_replicas_are_counted_in_sold_units():
    """Four logical devices sit in one ATOM-Max: degree 2 takes half a card, degree 8 two."""
    kwargs = {"sku": "RBLN-ATOM-Max-CA25", "weights": "bf16", "kv_cache": "bf16"}
    assert worker(tensor=2, **kwargs).units == Fraction(1, 2)
    assert worker(tensor=8, **kwargs).units == 2
    assert worker(tensor=8).units == 8
