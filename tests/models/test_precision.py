"""Formats take the bytes that their specifications print, and compute at the next format the device has a peak for."""

import pytest

from epd_models import catalog
from epd_models.precision import BYTES_PER_VALUE, UnsupportedPrecision, check_supported, compute_format


@pytest.mark.parametrize(
    ("weights", "values", "scale_bytes"),
    [("nvfp4", 16, 1), ("mxfp4", 32, 1), ("int4", 128, 2)],
)
def test_block_scales_are_counted(weights, values, scale_bytes):
    """A block holds half a byte per value and its scale."""
    assert BYTES_PER_VALUE[weights] * values == pytest.approx(values / 2 + scale_bytes)


@pytest.mark.parametrize(
    ("weights", "sku", "computed"),
    [
        ("bf16", "H100-SXM", "bf16"),
        ("fp8", "H100-SXM", "fp8"),
        ("nvfp4", "H100-SXM", "fp8"),
        ("mxfp4", "H200-SXM", "fp8"),
        ("nvfp4", "B200-SXM", "fp4"),
        ("fp8", "A100-80-SXM", "bf16"),
        ("nvfp4", "A100-80-SXM", "bf16"),
        ("int4", "B200-SXM", "bf16"),
        ("int8", "A100-80-SXM", "int8"),
    ],
)
def test_weights_are_multiplied_at_the_next_supported_peak(weights, sku, computed):
    """Weights narrower than the device computes run at the next wider peak."""
    assert compute_format(weights, catalog.device(sku).peaks) == computed


def test_a_device_without_a_fitting_peak_is_refused_with_what_it_has():
    """The message names the formats looked for and those on the card."""
    with pytest.raises(UnsupportedPrecision, match=r"stored as fp8 \(looked for fp8, bf16; the card has int8\)"):
        compute_format("fp8", {"int8": 1.0})


def test_an_unknown_format_is_refused_with_those_known():
    """A misspelt format is named, beside the formats that exist."""
    with pytest.raises(UnsupportedPrecision, match="unknown format 'fp5'; known are bf16, fp8"):
        compute_format("fp5", {"bf16": 1.0})


def test_storage_formats_are_those_of_the_card():
    """A format that the card lists passes, another one is refused with the list."""
    check_supported("X", "weights", "fp8", ("bf16", "fp8"))
    with pytest.raises(UnsupportedPrecision, match="X does not store weights as nvfp4; its card lists bf16, fp8"):
        check_supported("X", "weights", "nvfp4", ("bf16", "fp8"))
