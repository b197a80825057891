"""Request classes and the network, in SI units."""

from __future__ import annotations

from epd_models.distribution import Distribution
from epd_models.transfer import Network
from epd_models.workload import Images, RequestClass, Targets, Video
from epd_opt import instance as user


def request_of(request: user.RequestClass, growth: float) -> RequestClass:
    slo = request.slo
    images, video = request.images, request.video
    return RequestClass(
        name=request.name,
        rate=request.rate_per_s * growth,
        mean_rate=request.rate_per_s if request.mean_rate_per_s is None else request.mean_rate_per_s,
        text_tokens=request.text_tokens.distribution(),
        output_tokens=request.output_tokens.distribution() if request.output_tokens else Distribution.constant(1),
        cached_tokens=request.cached_tokens,
        interarrival_scv=request.interarrival_scv,
        images=None
        if images is None or not request.has_images
        else Images(
            count=images.count.distribution(),
            width_px=images.width_px,
            height_px=images.height_px,
            max_tokens=images.max_tokens,
            tokens=images.tokens,
            source_megapixels=images.source_megapixels,
            cached_share=images.cached_share,
        ),
        video=None
        if video is None
        else Video(
            seconds=video.seconds,
            fps=video.fps,
            max_frames=video.max_frames,
            width_px=video.width_px,
            height_px=video.height_px,
            max_tokens_per_frame=video.max_tokens_per_frame,
        ),
        targets=Targets(
            ttft_s=_seconds(slo.planned_ttft_ms or slo.ttft_ms),
            ttft_probability=(slo.ttft_percentile or slo.percentile) / 100.0,
            itl_s=_seconds(slo.planned_itl_ms or slo.itl_ms),
            itl_probability=(slo.itl_percentile or slo.percentile) / 100.0,
            e2e_s=_seconds(slo.e2e_ms),
            e2e_probability=(slo.e2e_percentile or slo.percentile) / 100.0,
        ),
    )


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1e3


def network_of(network: user.Network) -> Network:
    stated = network.gbit_per_s_per_device
    latency = {} if network.latency_us is None else {"latency_s": network.latency_us * 1e-6}
    return Network(
        bandwidth_per_unit=None if stated is None else stated * 1e9 / 8,
        conversion_factor=network.conversion_factor,
        forbidden_pairs=frozenset(frozenset(pair) for pair in network.forbidden_kv_pairs),
        **latency,
    )
