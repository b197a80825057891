"""Exported files read back: how many replicas and devices they hold, and options that the named releases do not know."""

from __future__ import annotations

import csv
import io
import math
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from epd_opt.document import PlanDocument
from epd_opt.export import export
from support import engine_options as options

DEPLOYMENTS = ("vllm", "sglang", "dynamo", "llm-d")


def text(document: PlanDocument, to: str) -> str:
    """The exported file."""
    content = export(document, to).content
    assert isinstance(content, str)
    return content


def tree(document: PlanDocument, to: str) -> Any:
    """The exported file, parsed as YAML 1.2."""
    return YAML(typ="safe", pure=True).load(text(document, to))


def planned(document: PlanDocument) -> tuple[int, float]:
    """Replicas, spares included, and logical devices of a plan."""
    replicas = sum(pool.replicas + pool.spare_replicas for pool in document.pools)
    cards = document.cards["devices"]
    logical = {name: (card or {}).get("logical_devices_per_unit", 1) for name, card in cards.items()}
    return replicas, sum(pool.devices * logical.get(pool.device, 1) for pool in document.pools)


def held(document: PlanDocument, to: str, folder: Path) -> tuple[int, float]:
    """The same as a deployment file has them."""
    if to in ("vllm", "sglang"):
        rows = [line.split("\t") for line in run(_script(document, to, folder), "list")[1:]]
        return sum(int(row[1]) for row in rows), sum(int(row[1]) * int(row[3]) for row in rows)
    if to == "dynamo":
        workers = tree(document, to)["spec"]["components"][1:]
        each = [
            (w["replicas"], limit(w["podTemplate"]["spec"]) * w.get("multinode", {}).get("nodeCount", 1)) for w in workers
        ]
    else:
        values = tree(document, to)
        own = [values[role] for role in ("prefill", "decode") if values[role]["create"]]
        others = [(item["spec"]["replicas"], item["spec"]["template"]["spec"]) for item in values["extraObjects"]]
        each = [*((section["replicas"], limit(section)) for section in own), *((n, limit(spec)) for n, spec in others)]
    return sum(replicas for replicas, _ in each), sum(replicas * devices for replicas, devices in each)


def limit(spec: dict[str, Any]) -> int:
    """Devices of the one container of a pod."""
    (limits,) = [container["resources"]["limits"] for container in spec["containers"]]
    (count,) = limits.values()
    return int(count)


def unknown(document: PlanDocument, to: str, folder: Path) -> set[str]:
    """Options and fields of a deployment file that its target does not know."""
    if to in ("vllm", "sglang"):
        words = {word for word in _started(document, to, folder) if word.startswith("--")}
        assert "--port" in words
        return words - (options.VLLM if to == "vllm" else options.SGLANG)
    if to == "dynamo":
        spec = tree(document, to)["spec"]
        engine = spec["backendFramework"]
        known = options.VLLM | options.DYNAMO_VLLM if engine == "vllm" else options.SGLANG | options.DYNAMO_SGLANG
        found = set(spec) - options.GRAPH_FIELDS
        for component in spec["components"]:
            found |= set(component) - options.COMPONENT_FIELDS
            found |= {component["type"]} - options.COMPONENT_TYPES
            found |= set() if re.fullmatch(options.COMPONENT_NAME, component["name"]) else {component["name"]}
            (container,) = component["podTemplate"]["spec"]["containers"]
            found |= {word for word in container.get("args", []) if word.startswith("--")} - known
        return found
    values = tree(document, to)
    found = set(values) - options.CHART_FIELDS
    pods = [item["spec"]["template"]["spec"] for item in values["extraObjects"]]
    for role in ("prefill", "decode"):
        found |= set(values[role]) - options.CHART_ROLE_FIELDS
        if values[role]["create"]:
            found |= {values[role]["accelerator"]["type"]} - options.CHART_ACCELERATORS
            pods.append(values[role])
    for pod in pods:
        (container,) = pod["containers"]
        found |= {word for word in container["args"] if word.startswith("--")} - options.VLLM
        sidecars = pod.get("initContainers", [])
        found |= {word.split("=")[0] for one in sidecars for word in one["args"]} - options.SIDECAR
    return found


def run(script: Path, *arguments: str, **environment: str) -> list[str]:
    """Lines that a script prints."""
    if shutil.which("bash") is None:
        pytest.skip("scripts are for bash, which is not here")
    path = f"{script.parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", str(script), *arguments],
        env={"PATH": path, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.splitlines()


def _script(document: PlanDocument, to: str, folder: Path) -> Path:
    script = folder / f"{to}.sh"
    script.write_text(text(document, to), encoding="utf-8")
    return script


def _started(document: PlanDocument, to: str, folder: Path) -> Iterator[str]:
    """Words that the processes of one replica of each pool are started with."""
    script = _script(document, to, folder)
    for name in ("vllm", "python"):
        (folder / name).write_text('#!/usr/bin/env bash\nprintf "%s\\n" "$@"\n', encoding="utf-8")
        (folder / name).chmod(0o755)
    for number in range(1, len(document.pools) + 1):
        yield from run(script, "start", str(number), "4", "9000", ENCODER_URLS="http://e:1", HOST="h")


def bill(document: PlanDocument) -> dict[str, float]:
    """Sums of the columns of a bill of materials, the installed units among them."""
    rows = list(csv.DictReader(io.StringIO(text(document, "bom-csv"))))
    columns = ("x_CostPerHour", "x_CostPerMonth", "x_BilledPerHour", "x_Capex", "x_Upfront", "x_PowerKw")
    sums = {column: math.fsum(float(row[column]) for row in rows) for column in columns}
    return {**sums, "units": math.fsum(float(row["PricingQuantity"]) for row in rows if row["x_Item"] == "device")}
