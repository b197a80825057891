"""Files of measurements that somebody with other coefficients would have made."""

import dataclasses
import itertools

from epd_models.measurements import read_measurements
from epd_models.serving import closed_loop, run_of

HEADER = "model,dtype,gpu,engine,n_gpu,tp,isl,osl,concurrency,ttft_ms,itl_ms"
SHAPES = ((512, 2048), (2048, 512), (8192, 1024), (1024, 256))


def measured_rows(
    true,
    *,
    models=("Llama-3.1-70B", "Qwen3-32B"),
    engine="vllm",
    gpu="H100-SXM",
    degrees=(2, 4, 8),
    clients=(1, 4, 16, 64, 192),
):
    """Lines of a file whose times come from the device with ``true`` figures in place of the card's."""
    lines = []
    for model, degree, (prompt, output), count in itertools.product(models, degrees, SHAPES, clients):
        setting = f"{model},fp8,{gpu},{engine},{degree},{degree},{prompt},{output},{count}"
        (row,) = read_measurements(f"{HEADER}\n{setting},,\n")
        run, _ = run_of(row)
        worker = run.decode.worker
        coefficients = {"default": dataclasses.replace(worker.coefficients, **true)}
        device = dataclasses.replace(worker.device, coefficients=coefficients)
        group = dataclasses.replace(run.decode, worker=dataclasses.replace(worker, device=device))
        times = closed_loop(dataclasses.replace(run, decode=group))
        lines.append(f"{setting},{times.ttft_s * 1e3:.6g},{times.itl_s * 1e3:.6g}")
    return lines
