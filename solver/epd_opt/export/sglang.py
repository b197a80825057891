"""SGLang: a shell script that starts one replica of a pool on a host."""

from __future__ import annotations

from collections.abc import Iterator

from epd_opt.document import PlanDocument
from epd_opt.export.exported import Exported
from epd_opt.export.fleet import Deployed, Fleet, fleet
from epd_opt.export.options import encoder, formats, given, planned_for, undrafted, unset
from epd_opt.export.script import Launcher, script

VERSION = "0.5.23"
"""Release whose options these are."""

KV_CACHE = {"bf16": "bf16", "fp8": "fp8_e4m3", "nvfp4": "nvfp4"}


def sglang(document: PlanDocument) -> Exported:
    """Commands for every pool: replicas are started one by one, each with its devices and ports."""
    deployed = fleet(document)
    notes = [*deployed.notes, *limits(deployed, engine="SGLang")]
    if any(pool.role == "prefill" for pool in deployed.pools):
        notes.append(
            "python -m sglang_router.launch_router --pd-disaggregation in front pairs prefill with decode by its own rule"
        )
    if any(pool.encoders for pool in deployed.pools):
        notes.append("--encoder-only and --language-only work for the model families that SGLang lists, no others")
    return script(deployed, _LAUNCHER, notes)


def arguments(deployed: Fleet, pool: Deployed, *, alone: bool = False) -> list[str]:
    """Options of one engine of a pool, but for where embeddings come from.

    Parameters
    ----------
    alone : bool
        Whether an encoder has its device to itself, however many processes the plan has there.
    """
    point, cut = pool.pool.operating_point, pool.pool.parallelism
    if pool.role == "encode":
        return _encoder_options(pool, alone=alone)
    tensor = pool.logical_devices if pool.measured else cut.tensor * cut.attention_data
    options = ["--tp-size", str(tensor)]
    for name, value in (("pp", cut.pipeline), ("attn-dp", cut.attention_data), ("ep", cut.expert)):
        options += [f"--{name}-size", str(value)] if value > 1 else []
    options += given(
        ("--max-running-requests", point.max_sequences * cut.attention_data),
        ("--chunked-prefill-size", point.max_batched_tokens * cut.attention_data),
        ("--mem-fraction-static", point.memory_fraction),
        ("--context-length", point.max_context_tokens),
    )
    options += formats(deployed, pool, KV_CACHE)
    return [*options, *(["--disaggregation-mode", pool.role] if pool.role in ("prefill", "decode") else [])]


def limits(deployed: Fleet, *, engine: str) -> Iterator[str]:
    """What SGLang's options leave unsaid of a fleet's settings."""
    yield from planned_for(deployed, engine)
    if any(pool.pool.operating_point.memory_fraction for pool in deployed.pools):
        yield "--mem-fraction-static counts weights and KV cache only, the planned share activations too: lower it if short"
    for pool in deployed.pools:
        yield from unset(deployed, pool, known=KV_CACHE, engine=engine)
    yield from undrafted(deployed, "an algorithm")


def _encoder_options(pool: Deployed, *, alone: bool) -> list[str]:
    return encoder(pool, only="--encoder-only", memory="--mem-fraction-static", alone=alone)


def _encoder(deployed: Fleet, pool: Deployed) -> list[str]:
    return _encoder_options(pool, alone=False)


def _engine(deployed: Fleet, pool: Deployed) -> list[str]:
    return [*arguments(deployed, pool), *(["--language-only"] if pool.receives_embeddings else [])]


_LAUNCHER = Launcher(
    name="SGLang",
    version=VERSION,
    command=("python", "-m", "sglang.launch_server"),
    model_option=("--model-path",),
    encoder=_encoder,
    engine=_engine,
    environment=lambda pool, encoder: {},
    node_options=('--nnodes {nodes} --node-rank "$NODE_RANK" --dist-init-addr "$MASTER_ADDR:$((PORT + 30000))"', ""),
    needs_urls=True,
)
