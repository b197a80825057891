"""What Kubernetes files have in common: YAML that every reader takes the same way, names, resources, nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from epd_opt.export.fleet import Deployed

NODE_LABEL = "epd-opt/sku"
"""Nodes are told apart by this label, which whoever runs the cluster sets."""

_RESOURCES = {
    ("NVIDIA", "gpu"): "nvidia.com/gpu",
    ("AMD", "gpu"): "amd.com/gpu",
    ("Google", "tpu"): "google.com/tpu",
    ("Intel", "gpu"): "gpu.intel.com/xe",
    ("Intel", "asic"): "habana.ai/gaudi",
}
_ATOM = "rebellions.ai/ATOM"
UNKNOWN_RESOURCE = "replace.me/accelerator"
"""No node offers it, so that nothing starts before it is replaced."""

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"}
_Tree = Mapping[str, Any] | Sequence[Any] | str | int | float | bool | None


def yaml_text(tree: Mapping[str, Any]) -> str:
    """Block YAML; texts that any version of YAML could take for something else are in double quotes."""
    return "\n".join(_block(tree, "")) + "\n"


def _block(tree: _Tree, indent: str) -> Iterator[str]:
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from _entry(f"{indent}{_scalar(key)}:", value, indent + "  ")
    elif isinstance(tree, Sequence) and not isinstance(tree, str):
        for value in tree:
            lines = list(_entry(f"{indent}-", value, indent + "  "))
            if len(lines) > 1:
                lines = [f"{indent}- {lines[1].lstrip()}", *lines[2:]]
            yield from lines


def _entry(head: str, value: _Tree, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping | list | tuple) and value:
        yield head
        yield from _block(value, indent)
    else:
        yield f"{head} {_scalar(value)}"


def _scalar(value: _Tree) -> str:
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, int | float):
        return repr(value)
    if not isinstance(value, str):
        return "[]"
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return '"' + "".join(_escaped(c) for c in value) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def slug(text: str, *, longest: int) -> str:
    """A text as part of a Kubernetes name.

    >>> slug("prefill_decode-A100 'x'", longest=63)
    'prefill-decode-a100-x'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:longest].strip("-")


def component_name(pool: Deployed) -> str:
    """Unique in the fleet and at most 40 characters."""
    return f"p{pool.number}-{slug(pool.pool.name, longest=34)}".rstrip("-")


def node_selector(pool: Deployed) -> dict[str, str]:
    """Nodes of the pool's SKU."""
    return {NODE_LABEL: re.sub(r"[^A-Za-z0-9._-]+", "-", pool.pool.sku).strip("._-")[:63].strip("._-") or "unnamed"}


def resource(pool: Deployed) -> str:
    """What the device plug-in of the pool's vendor calls its devices."""
    if pool.vendor == "Rebellions" and "ATOM" in pool.pool.sku.upper():
        return _ATOM
    return _RESOURCES.get((pool.vendor, pool.kind), UNKNOWN_RESOURCE)


def resources(pool: Deployed) -> dict[str, Any]:
    """Devices of one pod of the pool."""
    return {"limits": {resource(pool): str(-(-pool.logical_devices // pool.nodes))}}


def resource_notes(pools: Sequence[Deployed]) -> Iterator[str]:
    """What the files cannot say of devices."""
    for pool in pools:
        if resource(pool) == UNKNOWN_RESOURCE:
            whose = pool.vendor or pool.pool.sku
            yield f"{pool.label}: the resource name of {whose} devices is not known: replace {UNKNOWN_RESOURCE}"


def encoder_notes(pool: Deployed, *, runs: str) -> Iterator[str]:
    """What becomes of encoder processes where `runs`, such as a pod, holds one process."""
    if pool.pool.placement == "shared":
        yield (
            f"{pool.label}: encoder processes beside the engine on the same device (planned: {pool.encoders}) cannot be "
            "written: the engine encodes itself, as in placement integrated, and may miss the plan's targets"
        )
    elif pool.encoder_processes > 1:
        yield (
            f"{pool.label}: {pool.encoder_processes} encoder processes per replica are planned, {runs} runs "
            "one: it may encode less than planned"
        )


def label_notes(pools: Sequence[Deployed]) -> Iterator[str]:
    """Labels that nodes need."""
    for label in dict.fromkeys(node_selector(pool)[NODE_LABEL] for pool in pools):
        yield f"nodes need labels: kubectl label node NODE {NODE_LABEL}={label}"
