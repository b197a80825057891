"""The storage format of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping

from epd_models.catalog.errors import CardError
from epd_models.huggingface.config import TEXT, Config


def native_weights(config: Config, name: str) -> str:
    """Storage format of the checkpoint from its quantisation, or bf16."""
    nested = [config[key] for key in TEXT if isinstance(config.get(key), Mapping)]
    for part in (config, *nested):
        quantisation = part.get("quantization_config") or part.get("compression_config")
        if isinstance(quantisation, Mapping):
            return _storage_format(quantisation, name)
    return "bf16"


def _storage_format(quantisation: Config, name: str) -> str:
    method = str(quantisation.get("quant_method", "")).lower()
    algorithm = str(quantisation.get("quant_algo", quantisation.get("quantization", {}).get("quant_algo", ""))).upper()
    groups = quantisation.get("config_groups") or {}
    weights: Config = next((group["weights"] for group in groups.values() if group.get("weights")), {})
    bits, number = weights.get("num_bits", quantisation.get("bits")), weights.get("type", "int")
    if method in ("fp8", "fbgemm_fp8") or algorithm.startswith("FP8"):
        return "fp8"
    if method in ("mxfp4", "nvfp4") or algorithm in ("NVFP4", "MXFP4"):
        return method if method in ("mxfp4", "nvfp4") else algorithm.lower()
    if bits in (4, 8):
        return {("int", 4): "int4", ("int", 8): "int8", ("float", 4): "nvfp4", ("float", 8): "fp8"}[number, bits]
    raise CardError(
        f"{name}: config.json",
        f"'quantization_config' of method {method or algorithm or 'unnamed'!r} is not known; known are fp8, mxfp4, "
        "nvfp4, modelopt, compressed-tensors, awq and gptq",
    )
