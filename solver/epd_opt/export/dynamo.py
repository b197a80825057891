"""NVIDIA Dynamo: a DynamoGraphDeployment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from epd_opt.document import PlanDocument
from epd_opt.errors import UsageError
from epd_opt.export import sglang, vllm
from epd_opt.export.exported import Exported
from epd_opt.export.fleet import Deployed, Fleet, fleet
from epd_opt.export.manifest import (
    component_name,
    encoder_notes,
    label_notes,
    node_selector,
    resource_notes,
    resources,
    slug,
    yaml_text,
)
from epd_opt.export.script import heading

VERSION = "1.6.1"
"""Release whose resource, options and images these are."""
MOST_COMPONENTS = 25

_TYPES = {"encode": "worker", "prefill": "prefill", "decode": "decode", "whole": "worker"}


def dynamo(document: PlanDocument) -> Exported:
    """One component a pool beside the frontend; with SGLang where the plan is for it, else with vLLM.

    Raises
    ------
    UsageError
        The plan has more pools than a deployment may have components.
    """
    deployed = fleet(document)
    if len(deployed.pools) >= MOST_COMPONENTS:
        raise UsageError(
            f"found {len(deployed.pools)} pools, expected at most {MOST_COMPONENTS - 1}: a DynamoGraphDeployment has "
            f"{MOST_COMPONENTS} components at most, one of them the frontend"
        )
    engine = "sglang" if document.cards.get("engine", {}).get("name") == "sglang" else "vllm"
    notes = [*deployed.notes, *_limits(deployed, engine), *resource_notes(deployed.pools), *label_notes(deployed.pools)]
    image = f"nvcr.io/nvidia/ai-dynamo/{engine}-runtime:{VERSION}"
    frontend = {
        "name": "Frontend",
        "type": "frontend",
        "replicas": 1,
        "podTemplate": _pod({"image": image, "command": ["python3", "-m", "dynamo.frontend"]}),
    }
    tree = {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": slug(document.instance, longest=40) or "fleet"},
        "spec": {
            "backendFramework": engine,
            "components": [frontend, *(_component(deployed, pool, engine, image) for pool in deployed.pools)],
        },
    }
    head = "\n".join(heading(deployed, f"Dynamo {VERSION} ({engine})", notes))
    return Exported(content=f"{head}\n{yaml_text(tree)}", warnings=tuple(notes))


def _component(deployed: Fleet, pool: Deployed, engine: str, image: str) -> dict[str, Any]:
    container = {
        "image": image,
        "command": ["python3", "-m", f"dynamo.{engine}"],
        "args": _sglang_args(deployed, pool) if engine == "sglang" else _vllm_args(deployed, pool),
        "envFrom": [{"secretRef": {"name": "hf-token-secret"}}],
        "resources": resources(pool),
    }
    annotations = {
        "epd-opt/pool": pool.pool.name,
        "epd-opt/placement": pool.pool.placement,
        "epd-opt/spare-replicas": str(pool.pool.spare_replicas),
    }
    return {
        "name": component_name(pool),
        "type": _TYPES[pool.role],
        "replicas": pool.replicas,
        **({"multinode": {"nodeCount": pool.nodes}} if pool.nodes > 1 else {}),
        "podTemplate": {
            "metadata": {"annotations": annotations},
            **_pod(container, nodeSelector=node_selector(pool)),
        },
    }


def _pod(container: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"spec": {**spec, "containers": [{"name": "main", **container}]}}


def _vllm_args(deployed: Fleet, pool: Deployed) -> list[str]:
    mode = {"whole": "agg"}.get(pool.role, pool.role)
    multimodal = deployed.has_vision or pool.role == "encode" or pool.receives_embeddings
    own = [option for option in vllm.arguments(deployed, pool, alone=True) if option != "--mm-encoder-only"]
    return [
        *("--model", deployed.model),
        *("--disaggregation-mode", mode),
        *(["--enable-multimodal"] if multimodal and "--language-model-only" not in own else []),
        *(["--route-to-encoder", "--enable-mm-embeds"] if pool.fed_by_pool else []),
        *own,
        *vllm.kv_cache(pool),
    ]


def _sglang_args(deployed: Fleet, pool: Deployed) -> list[str]:
    own = [option for option in sglang.arguments(deployed, pool, alone=True) if option != "--encoder-only"]
    split = pool.role in ("prefill", "decode")
    multimodal = deployed.has_vision or pool.role == "encode" or pool.receives_embeddings
    mode = {"encode": "encode", "whole": "pd"}.get(pool.role)
    prompts = [p for p in deployed.pools if p.role == "prefill"]
    encoded = pool.fed_by_pool or (pool.role == "decode" and any(p.fed_by_pool for p in prompts))
    return [
        *("--model-path", deployed.model),
        *(["--enable-multimodal"] if multimodal else []),
        *(["--dedicated-mm-encoder"] if encoded else []),
        *(["--disaggregation-mode", mode] if mode == "encode" or (mode and pool.fed_by_pool) else []),
        *own,
        *(["--disaggregation-transfer-backend", "nixl", "--host", "0.0.0.0"] if split else []),
    ]


def _limits(deployed: Fleet, engine: str) -> Iterator[str]:
    yield from (sglang.limits(deployed, engine="SGLang") if engine == "sglang" else vllm.limits(deployed, engine="vLLM"))
    for pool in deployed.pools:
        yield from encoder_notes(pool, runs="a worker")
    if any(pool.role == "encode" for pool in deployed.pools) and _has_video(deployed.document):
        yield "encode workers take images only: clips are encoded where they are prefilled"
    yield "images of the containers and the secret hf-token-secret are examples: replace them by your own"


def _has_video(document: PlanDocument) -> bool:
    return any(request.get("video") for request in document.instance_document["workload"]["classes"])
