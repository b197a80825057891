"""ENCODE: host work and vision transformer, per image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epd_models.architecture import VisionTower
from epd_models.device import Device
from epd_models.engine import Engine
from epd_models.precision import compute_format
from epd_models.ratios import ImageRatios
from epd_models.vision import ImageLoad, attention_flops, encode_flops


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodeTime:
    """Seconds of one image (or one step of a clip) on one logical device.

    Attributes
    ----------
    decode_s : float
        CPU time of decoding the source, on one core; the images of a request are decoded side by side.
    process_s : float
        CPU time of resizing, normalising and handing over, in the process that encodes, image by image.
    device_s : float
        Vision transformer, projector and launch overhead.
    """

    decode_s: float
    process_s: float
    device_s: float

    @property
    def host_s(self) -> float:
        """CPU time of an image, on one core."""
        return self.decode_s + self.process_s

    @property
    def serial_s(self) -> float:
        """Seconds that a process takes for an image whose source is decoded; a loop that encodes in line stands still."""
        return self.process_s + self.device_s

    def corrected(self, ratios: ImageRatios, *, received: float, uploaded: float) -> EncodeTime:
        """The same with the ratios of another source, for an image of so many megapixels as the model receives it and as
        it was uploaded."""
        device = 1.0 if ratios.device is None else float(ratios.device(np.array([received]))[0])
        host = 1.0 if ratios.host is None else float(ratios.host(np.array([uploaded]))[0])
        return EncodeTime(decode_s=self.decode_s * host, process_s=self.process_s * host, device_s=self.device_s * device)


def encode_time(
    tower: VisionTower,
    device: Device,
    engine: Engine,
    *,
    load: ImageLoad,
    megapixels: float,
    encoder_format: str = "bf16",
) -> EncodeTime:
    """Seconds of one image: matrices at the encoder's format, attention at 16 bits.

    The transformer runs on one logical device whatever the tensor degree: cutting it does not make it faster (492, 466
    and 524 ms at degree 2, 4 and 8 for a 72B model's tower on H20, a public measurement).
    """
    c = device.coefficients_for(engine.name)
    peak = device.peaks[compute_format(encoder_format, device.peaks)]
    attention = attention_flops(tower, load.positions, load.sequences)
    matrices = encode_flops(tower, load.positions, load.sequences) - attention
    working_s = matrices / (peak * c.encode_share) + attention / (device.peaks["bf16"] * c.encode_attention_share)
    resized = load.positions * tower.patch_px**2 / 1e6
    return EncodeTime(
        decode_s=engine.host_megapixel_s * megapixels,
        process_s=engine.host_image_s + engine.host_resized_megapixel_s * resized,
        device_s=c.image_overhead_s + working_s,
    )


def received_megapixels(tower: VisionTower, load: ImageLoad) -> float:
    """Megapixels that the vision transformer sees of one image."""
    return load.positions * tower.patch_px**2 / 1e6
