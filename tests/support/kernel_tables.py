"""A stand-in for the package of kernel tables."""

from __future__ import annotations

from epd_models.sources.kernel_tables import Question


class Engine:
    """Milliseconds by a formula: 5 per iteration and 0.1 per sequence, 0.05 per prompt token; batches above 512 fail."""

    def __init__(self, factor: float) -> None:
        self._factor = factor

    def predict_decode_latency(self, bs: int, isl: int, osl: int = 2) -> float:
        """One iteration."""
        if bs > 512:
            raise RuntimeError("perf database error: no such batch")
        return self._factor * (5.0 + 0.1 * bs + 1e-6 * bs * isl)

    def predict_prefill_latency(self, bs: int, isl: int, prefix: int = 0) -> float:
        """One prompt."""
        return self._factor * (2.0 + 0.05 * bs * (isl - prefix))


class FakePackage:
    """A package with three systems and three models, which remembers what it was asked."""

    def __init__(self, factor: float = 1.0) -> None:
        self.version = "1.0" if factor == 1.0 else f"1.0 times {factor:g}"
        self.asked: list[Question] = []
        self._factor = factor

    def knows(self, checkpoint: str) -> bool:
        """Three models of the catalogue, one of them in FP8 too."""
        models = ("Qwen/Qwen3-32B", "Qwen/Qwen3-32B-FP8", "deepseek-ai/DeepSeek-V3", "Qwen/Qwen3-VL-8B-Instruct")
        return checkpoint in models

    def has_system(self, system: str) -> bool:
        """Three systems."""
        return system in ("a100_sxm", "h100_sxm", "h200_sxm")

    def compile(self, question: Question) -> Engine:
        """Refuses eight-way tensor parallelism."""
        self.asked.append(question)
        if question.tensor == 8:
            raise AssertionError("num_heads 64 is not what\nwas collected")
        return Engine(self._factor)
