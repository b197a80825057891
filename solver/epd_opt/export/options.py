"""What the options of all engines have in common, and what they leave unsaid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from epd_opt.export.fleet import Deployed, Fleet


def given(*named: tuple[str, float | None]) -> list[str]:
    """Options with their numbers; where the plan has none, or 0, the engine's default is left."""
    return [
        word
        for name, number in named
        if number
        for word in (name, f"{number:g}" if isinstance(number, float) else str(number))
    ]


def encoder(pool: Deployed, *, only: str, memory: str, alone: bool) -> list[str]:
    """Options of one encoder process.

    Parameters
    ----------
    only, memory : str
        The options that make it an encoder, and that take its share of a device's memory.
    alone : bool
        Whether it has its device to itself, however many processes the plan has there.
    """
    return [only, *given((memory, pool.pool.operating_point.memory_fraction if alone else pool.encoder_memory))]


def formats(deployed: Fleet, pool: Deployed, known: Mapping[str, str]) -> list[str]:
    """Storage formats, as far as options set them: those of KV caches under the engine's names."""
    quantised = ["--quantization", "fp8"] if _online(deployed, pool) else []
    return [*quantised, *(["--kv-cache-dtype", known[pool.kv_cache]] if pool.kv_cache in known else [])]


def unset(deployed: Fleet, pool: Deployed, *, known: Mapping[str, str], engine: str) -> Iterator[str]:
    """Storage formats that no option sets, and devices that the engine does not run on by itself."""
    if pool.role != "encode":
        if pool.weights and pool.weights != deployed.native_weights and not _online(deployed, pool):
            yield f"{pool.label}: planned with weights in {pool.weights}: serve a checkpoint stored so"
        if pool.kv_cache and pool.kv_cache not in known:
            yield f"{pool.label}: {engine} has no option for a KV cache in {pool.kv_cache} as planned: its default is left"
    if pool.vendor not in ("NVIDIA", ""):
        yield f"{pool.label}: {pool.vendor} devices need a build or plug-in of {engine} made for them"


def planned_for(deployed: Fleet, engine: str) -> Iterator[str]:
    """Whether the plan has another engine in mind."""
    name = deployed.document.cards.get("engine", {}).get("name")
    if name != engine.lower():
        yield f"the plan counts on engine {name}; these are options of {engine}"


def undrafted(deployed: Fleet, means: str) -> Iterator[str]:
    """Whether tokens are drafted, by what the plan does not name."""
    if deployed.drafted:
        yield (
            f"speculative decoding with {deployed.drafted} drafted tokens needs {means} or draft model, which the plan "
            "does not name: not written"
        )


def _online(deployed: Fleet, pool: Deployed) -> bool:
    """Whether the engine itself stores the weights of a wider checkpoint in fp8."""
    return pool.weights == "fp8" and deployed.native_weights == "bf16"
