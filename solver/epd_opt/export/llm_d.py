"""llm-d: values for its Helm chart llm-d-modelservice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from epd_opt.document import PlanDocument
from epd_opt.export import vllm
from epd_opt.export.exported import Exported
from epd_opt.export.fleet import Deployed, Fleet, fleet
from epd_opt.export.manifest import (
    UNKNOWN_RESOURCE,
    component_name,
    encoder_notes,
    label_notes,
    node_selector,
    resource,
    resource_notes,
    resources,
    slug,
    yaml_text,
)
from epd_opt.export.script import heading

VERSION = "llm-d-modelservice v0.4.12"
"""Chart whose values these are."""
IMAGE = f"vllm/vllm-openai:v{vllm.VERSION}"
SIDECAR = "ghcr.io/llm-d/llm-d-routing-sidecar:latest"

_ACCELERATORS = {
    "nvidia.com/gpu": "nvidia",
    "amd.com/gpu": "amd",
    "google.com/tpu": "google",
    "gpu.intel.com/xe": "intel-xe",
    "habana.ai/gaudi": "intel-gaudi",
    "rebellions.ai/ATOM": "rebellions-atom",
}


def llm_d(document: PlanDocument) -> Exported:
    """The chart's own ``prefill`` and ``decode`` where a plan has one pool of each, and further Deployments for the rest.

    The chart knows no encoders, and its sidecar no embeddings: encoders, and decode pools of plans with encoders, are
    Deployments among ``extraObjects``.
    """
    deployed = fleet(document)
    notes = [*deployed.notes, *_limits(deployed), *resource_notes(deployed.pools), *label_notes(deployed.pools)]
    by_role = {role: [pool for pool in deployed.pools if _role(pool) == role] for role in ("encode", "prefill", "decode")}
    own = {
        role: pools[0]
        for role, pools in by_role.items()
        if len(pools) == 1 and (role == "prefill" or (role == "decode" and not by_role["encode"]))
    }
    others = [pool for pool in deployed.pools if pool not in own.values()]
    sidecar = _sidecar(bool(by_role["encode"])) if by_role["prefill"] or by_role["encode"] else None
    labels = {"llm-d.ai/inference-serving": "true", "llm-d.ai/model": slug(deployed.model, longest=63)}
    tree = {
        "multinode": False,
        "modelArtifacts": {
            "name": deployed.model,
            "uri": "hf://" + _literal(deployed.model),
            "authSecretName": "llm-d-hf-token",
            "labels": labels,
        },
        "routing": {
            "servicePort": 8000,
            "proxy": {"enabled": "decode" in own and bool(by_role["prefill"]), "targetPort": 8200, "connector": "nixlv2"},
        },
        "decode": _section(deployed, own.get("decode")),
        "prefill": _section(deployed, own.get("prefill")),
        "extraObjects": [_deployment(deployed, pool, labels, sidecar) for pool in others],
    }
    head = "\n".join(heading(deployed, f"{VERSION} and vLLM {vllm.VERSION}", notes))
    return Exported(content=f"{head}\n{yaml_text(tree)}", warnings=tuple(notes))


def _role(pool: Deployed) -> str:
    return "decode" if pool.role == "whole" else pool.role


def _section(deployed: Fleet, pool: Deployed | None) -> dict[str, Any]:
    """``prefill`` or ``decode`` of the chart, which adds the model, port, degrees and devices itself."""
    if pool is None:
        return {"create": False}
    cut = pool.pool.parallelism
    tensor = pool.logical_devices if pool.measured else cut.tensor
    container = {
        "name": "vllm",
        "image": IMAGE,
        "modelCommand": "vllmServe",
        "args": _without(_options(deployed, pool), "--tensor-parallel-size", "--data-parallel-size"),
        "env": _environment(pool),
        "resources": resources(pool),
        "mountModelVolume": False,
        "volumeMounts": _MOUNTS,
    }
    return {
        "create": True,
        "replicas": pool.replicas,
        "podAnnotations": _annotations(pool),
        "nodeSelector": node_selector(pool),
        "accelerator": {"type": _ACCELERATORS.get(resource(pool), "cpu")},
        "parallelism": {"tensor": tensor, "data": cut.attention_data, "dataLocal": cut.attention_data, "workers": 1},
        "containers": [container],
        "volumes": _VOLUMES,
    }


def _deployment(deployed: Fleet, pool: Deployed, labels: dict[str, str], sidecar: dict[str, Any] | None) -> dict[str, Any]:
    """A Deployment; its texts pass through Helm's templates."""
    behind = sidecar is not None and _role(pool) == "decode"
    chosen = {**labels, "llm-d.ai/role": _role(pool), "epd-opt/component": component_name(pool)}
    container = {
        "name": "vllm",
        "image": IMAGE,
        "command": ["vllm", "serve"],
        "args": [_literal(a) for a in (deployed.model, "--port", "8200" if behind else "8000", *_options(deployed, pool))],
        "env": [*_environment(pool), _TOKEN],
        "ports": [{"containerPort": 8200 if behind else 8000, "protocol": "TCP"}],
        "resources": resources(pool),
        "volumeMounts": _MOUNTS,
    }
    spec: dict[str, Any] = {
        "nodeSelector": node_selector(pool),
        **({"initContainers": [sidecar]} if behind else {}),
        "containers": [container],
        "volumes": _VOLUMES,
    }
    annotations = {key: _literal(value) for key, value in _annotations(pool).items()}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": component_name(pool), "labels": chosen},
        "spec": {
            "replicas": pool.replicas,
            "selector": {"matchLabels": chosen},
            "template": {"metadata": {"labels": chosen, "annotations": annotations}, "spec": spec},
        },
    }


_MOUNTS = [{"name": "shm", "mountPath": "/dev/shm"}]
_VOLUMES = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
_TOKEN = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "llm-d-hf-token", "key": "HF_TOKEN"}}}


def _sidecar(embeddings: bool) -> dict[str, Any]:
    """What stands before a decode engine and has requests encoded and prefilled."""
    connectors = ["--kv-connector=nixlv2", "--ec-connector=ec-nixl"] if embeddings else ["--connector=nixlv2"]
    return {
        "name": "routing-proxy",
        "image": SIDECAR,
        "args": ["--port=8000", "--vllm-port=8200", *connectors, "--secure-proxy=false"],
        "ports": [{"containerPort": 8000, "protocol": "TCP"}],
        "restartPolicy": "Always",
    }


def _options(deployed: Fleet, pool: Deployed) -> list[str]:
    own = vllm.arguments(deployed, pool, alone=True)
    moved = pool.role == "encode" or pool.fed_by_pool
    return [*own, *(vllm.embeddings(deployed, producer=pool.role == "encode") if moved else []), *vllm.kv_cache(pool)]


def _without(options: list[str], *names: str) -> list[str]:
    left = []
    for before, option in zip([None, *options], options, strict=False):
        if option not in names and before not in names:
            left.append(option)
    return left


def _environment(pool: Deployed) -> list[dict[str, Any]]:
    here = {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    found: list[dict[str, Any]] = []
    if pool.role == "encode" or pool.fed_by_pool:
        found.append({"name": "VLLM_USE_V2_MODEL_RUNNER", "value": "1"})
    if pool.role == "encode":
        found.append({"name": "VLLM_EC_SIDE_CHANNEL_HOST", **here})
    if pool.role in ("prefill", "decode"):
        found.append({"name": "VLLM_NIXL_SIDE_CHANNEL_HOST", **here})
    return found


def _annotations(pool: Deployed) -> dict[str, str]:
    return {"epd-opt/pool": pool.pool.name, "epd-opt/spare-replicas": str(pool.pool.spare_replicas)}


def _literal(text: str) -> str:
    """As it comes out of Helm's templates."""
    return text.replace("{{", '{{ "{{" }}')


def _limits(deployed: Fleet) -> Iterator[str]:
    yield from vllm.limits(deployed, engine="vLLM")
    for pool in deployed.pools:
        yield from encoder_notes(pool, runs="a pod")
        if pool.nodes > 1:
            yield f"{pool.label}: a replica spans {pool.nodes} servers, which these values do not say: use LeaderWorkerSets"
        if resource(pool) == UNKNOWN_RESOURCE:
            yield f"{pool.label}: the chart has no accelerator type for {pool.vendor or pool.pool.sku}: cpu is written"
    if any(pool.role == "encode" for pool in deployed.pools):
        yield "routing-proxy must be a release that takes --ec-connector, as the guides of llm-d use it"
    yield "images of the containers and the secret llm-d-hf-token are examples: replace them by your own"
    yield "the router (endpoint picker) is a chart of its own: give it a profile for encode, prefill and decode as needed"
