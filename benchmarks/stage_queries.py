"""How many stage times one core answers per second, asked in arrays.

    python benchmarks/stage_queries.py [QUERIES]

Each line asks QUERIES times (default a million) of one stage and reports queries per second of CPU time. A worker with
measured ratios is asked beside the analytic ones: its times are interpolated on top.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[threads] = "1"

import numpy as np  # noqa: E402

from epd_models import catalog  # noqa: E402
from epd_models.parallelism import Parallelism  # noqa: E402
from epd_models.precision import Precision  # noqa: E402
from epd_models.queries import StageTimes  # noqa: E402
from epd_models.ratios import Curve, ImageRatios, LanguageRatios, Surface  # noqa: E402
from epd_models.sources.analytic import Analytic  # noqa: E402
from epd_models.vision import image_load  # noqa: E402
from epd_models.worker import Worker  # noqa: E402


class Ladders(Analytic):
    """Eight contexts with nine batches each, and curves of as many points: what a thorough bench sheet holds."""

    def language(self, worker: Worker) -> LanguageRatios:
        """The same ratios whatever the worker."""
        batches = tuple(2.0**k for k in range(9))
        curve = Curve(at=batches, ratios=tuple(1.0 + 0.05 * k for k in range(9)))
        prompts = Curve(at=tuple(64.0 * at for at in batches), ratios=curve.ratios)
        return LanguageRatios(
            decode=Surface(contexts=tuple(256.0 * 2**k for k in range(8)), curves=(curve,) * 8), prefill=prompts
        )

    def images(self, worker: Worker) -> ImageRatios:
        """The same ratios whatever the device."""
        return ImageRatios(device=Curve(at=(0.1, 1.0, 10.0), ratios=(1.2, 1.1, 1.0)))


def rate(ask: Callable[[], object], queries: int) -> float:
    """Queries per second of CPU time, the best of three."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        ask()
        best = min(best, time.process_time() - start)
    return queries / best


def main(queries: int = 1_000_000) -> None:
    """Print the table."""
    random = np.random.default_rng(0)
    batch = random.integers(1, 513, queries).astype(float)
    context = random.integers(100, 32_000, queries).astype(float)
    new = random.integers(16, 16_384, queries).astype(float)
    images = random.integers(1, 11, queries).astype(float)
    print(f"{'worker':42} {'decode':>10} {'prefill':>10} {'encode':>10}   million queries/s")
    for name, sku, weights, cut in (
        ("Qwen3-VL-8B", "H100-SXM", "bf16", Parallelism()),
        ("Qwen3-VL-235B-A22B", "H200-SXM", "fp8", Parallelism(tensor=8)),
    ):
        model = catalog.model(name)
        assert model.vision is not None
        loads = [image_load(model.vision, 64 * side, 48 * side) for side in range(4, 36)]
        positions = random.choice([float(load.positions) for load in loads], queries)
        for source, label in ((None, "analytic"), (Ladders(), "measured")):
            worker = Worker.checked(
                model=model,
                device=catalog.device(sku),
                cut=cut,
                precision=Precision(weights=weights, kv_cache=weights, encoder="bf16"),
                engine=catalog.engine("vllm"),
                source=source,
            )
            times = StageTimes(worker)
            rates = [
                rate(lambda t=times: t.decode_s(batch, context), queries),
                rate(lambda t=times: t.prefill_s(new), queries),
                rate(lambda t=times, p=positions: t.encode_s(images, p), queries),
            ]
            print(f"{f'{name} {sku} {cut.label}, {label}':42} " + " ".join(f"{r / 1e6:10.1f}" for r in rates))


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
