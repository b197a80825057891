"""vLLM: a shell script that starts one replica of a pool on a host."""

from __future__ import annotations

import json
from collections.abc import Iterator

from epd_opt.document import PlanDocument
from epd_opt.export.exported import Exported
from epd_opt.export.fleet import Deployed, Fleet, fleet
from epd_opt.export.options import encoder, formats, given, planned_for, undrafted, unset
from epd_opt.export.script import Launcher, script

VERSION = "0.33.0"
"""Release whose options these are."""

KV_CACHE = {"bf16": "bfloat16", "fp8": "fp8", "nvfp4": "nvfp4"}


def vllm(document: PlanDocument) -> Exported:
    """Commands for every pool: replicas are started one by one, each with its devices and ports."""
    deployed = fleet(document)
    notes = [*deployed.notes, *limits(deployed, engine="vLLM")]
    if any(pool.receives_embeddings for pool in deployed.pools):
        notes.append(
            "a proxy in front must send images to the encoders and pass their ec_transfer_params on to the engines, as the "
            "router of llm-d does; it spreads them by its own rule"
        )
    elif any(pool.role == "prefill" for pool in deployed.pools):
        notes.append("a proxy in front pairs prefill with decode by its own rule")
    return script(deployed, _LAUNCHER, notes)


def arguments(deployed: Fleet, pool: Deployed, *, alone: bool = False) -> list[str]:
    """Options of one engine of a pool, but for how embeddings and KV cache travel.

    Parameters
    ----------
    alone : bool
        Whether an encoder has its device to itself, however many processes the plan has there.
    """
    point, cut = pool.pool.operating_point, pool.pool.parallelism
    if pool.role == "encode":
        return _encoder_options(pool, alone=alone)
    tensor = pool.logical_devices if pool.measured else cut.tensor
    options = ["--tensor-parallel-size", str(tensor)]
    for name, value in (("pipeline", cut.pipeline), ("data", cut.attention_data)):
        options += [f"--{name}-parallel-size", str(value)] if value > 1 else []
    options += ["--enable-expert-parallel"] if 1 < cut.expert == cut.tensor * cut.attention_data else []
    options += given(
        ("--max-num-seqs", point.max_sequences),
        ("--max-num-batched-tokens", point.max_batched_tokens),
        ("--gpu-memory-utilization", point.memory_fraction),
        ("--max-model-len", point.max_context_tokens),
    )
    options += formats(deployed, pool, KV_CACHE)
    text_only = deployed.has_vision and "encode" not in pool.pool.stages and not pool.receives_embeddings
    return [*options, *(["--language-model-only"] if text_only and pool.role == "whole" else [])]


def embeddings(deployed: Fleet, *, producer: bool) -> list[str]:
    """How embeddings travel: through host memory as large as the plan's encoder cache, over NIXL between hosts."""
    extra = {"ec_cpu_bytes": deployed.embeddings_bytes, "ec_enable_nixl": True}
    role = "ec_producer" if producer else "ec_consumer"
    return [
        "--ec-transfer-config",
        json.dumps({"ec_connector": "ECCPUConnector", "ec_role": role, "ec_connector_extra_config": extra}),
    ]


def kv_cache(pool: Deployed) -> list[str]:
    """How the KV cache travels, where it does."""
    role = {"prefill": "kv_producer", "decode": "kv_consumer"}.get(pool.role)
    if role is None:
        return []
    return ["--kv-transfer-config", json.dumps({"kv_connector": "NixlConnector", "kv_role": role})]


def limits(deployed: Fleet, *, engine: str) -> Iterator[str]:
    """What vLLM's options leave unsaid of a fleet's settings."""
    yield from planned_for(deployed, engine)
    for pool in deployed.pools:
        cut = pool.pool.parallelism
        if cut.expert not in (1, cut.tensor * cut.attention_data):
            yield (
                f"{pool.label}: experts are planned over {cut.expert} of {cut.tensor * cut.attention_data} ranks; {engine} "
                "takes all of them or none: written without expert parallelism"
            )
        yield from unset(deployed, pool, known=KV_CACHE, engine=engine)
    yield from undrafted(deployed, "a method")


def _encoder_options(pool: Deployed, *, alone: bool) -> list[str]:
    return encoder(pool, only="--mm-encoder-only", memory="--gpu-memory-utilization", alone=alone)


def _encoder(deployed: Fleet, pool: Deployed) -> list[str]:
    return [*_encoder_options(pool, alone=False), *embeddings(deployed, producer=True)]


def _engine(deployed: Fleet, pool: Deployed) -> list[str]:
    received = embeddings(deployed, producer=False) if pool.receives_embeddings else []
    return [*arguments(deployed, pool), *received, *kv_cache(pool)]


def _environment(pool: Deployed, encoder: bool) -> dict[str, str]:
    found = {"VLLM_USE_V2_MODEL_RUNNER": "1"} if encoder or pool.receives_embeddings else {}
    if encoder:
        found |= {"VLLM_EC_SIDE_CHANNEL_HOST": "$HOST", "VLLM_EC_SIDE_CHANNEL_PORT": "$((port + 10000))"}
    elif pool.role in ("prefill", "decode"):
        found |= {"VLLM_NIXL_SIDE_CHANNEL_HOST": "$HOST", "VLLM_NIXL_SIDE_CHANNEL_PORT": "$((port + 20000))"}
    return found


_LAUNCHER = Launcher(
    name="vLLM",
    version=VERSION,
    command=("vllm", "serve"),
    model_option=(),
    encoder=_encoder,
    engine=_engine,
    environment=_environment,
    node_options=('--nnodes {nodes} --node-rank "$NODE_RANK" --master-addr "$MASTER_ADDR"', "--headless"),
    needs_urls=False,
)
