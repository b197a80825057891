"""Number formats: bytes per stored value, and the peak a device computes them at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

BYTES_PER_VALUE: Mapping[str, float] = {
    "bf16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "int4": 0.5 + 2 / 128,
    "nvfp4": 0.5 + 1 / 16,
    "mxfp4": 0.5 + 1 / 32,
}
"""Bytes per value, block scales included: one FP8 scale per 16 values for NVFP4, one byte per 32 for MXFP4 (OCP MX
specification), one FP16 scale per 128 for INT4."""

_COMPUTE_CHAIN: Mapping[str, tuple[str, ...]] = {
    "bf16": ("bf16",),
    "fp8": ("fp8", "bf16"),
    "int8": ("int8", "bf16"),
    "int4": ("bf16",),
    "nvfp4": ("fp4", "fp8", "bf16"),
    "mxfp4": ("fp4", "fp8", "bf16"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Storage formats of the weights, the KV cache and the encoder's weights."""

    weights: str
    kv_cache: str
    encoder: str = "bf16"


class UnsupportedPrecision(ValueError):
    """A device cannot hold or compute a format."""


def compute_format(weights: str, peaks: Mapping[str, float]) -> str:
    """Format in which weights stored as ``weights`` are multiplied: the next wider one that the device has a peak for.

    >>> compute_format("nvfp4", {"bf16": 1.0, "fp8": 2.0})
    'fp8'

    Raises
    ------
    UnsupportedPrecision
        The format is unknown, or the device has no peak for any format of its chain.
    """
    chain = _COMPUTE_CHAIN.get(weights)
    if chain is None:
        raise UnsupportedPrecision(f"unknown format {weights!r}; known are {', '.join(_COMPUTE_CHAIN)}")
    for candidate in chain:
        if peaks.get(candidate):
            return candidate
    raise UnsupportedPrecision(
        f"no compute peak for weights stored as {weights} (looked for {', '.join(chain)}; "
        f"the card has {', '.join(sorted(peaks)) or 'none'})"
    )


def check_supported(sku: str, what: str, wanted: str, supported: tuple[str, ...]) -> None:
    """Raise :class:`UnsupportedPrecision` unless ``wanted`` is among the formats the device stores."""
    if wanted not in supported:
        raise UnsupportedPrecision(
            f"{sku} does not store {what} as {wanted}; its card lists {', '.join(supported) or 'no format'}"
        )
