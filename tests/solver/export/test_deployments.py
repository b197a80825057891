"""Shows that deployment files hold the whole fleet, with options that the named releases know, whatever names say."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

import epd_opt
from epd_opt.document import PlanDocument
from epd_opt.export import export
from epd_opt.export.bill import bill_of_materials
from epd_opt.export.fleet import Deployed, fleet
from support import engine_options as options
from support.documents import measured, modelled
from support.exported_plans import CASES, ODD, odd, pinned
from support.exports import limit, run, text, tree

GOLDEN = Path(__file__).parent / "golden"
SUFFIX = {"vllm": "sh", "sglang": "sh", "dynamo": "yaml", "llm-d": "yaml"}


@pytest.fixture(scope="module")
def solved() -> dict[str, PlanDocument]:
    return {name: epd_opt.solve(case).document for name, case in {**CASES, "odd": odd()}.items()}


def devices_of(document: PlanDocument) -> float:
    return sum(pool.devices for pool in document.pools)


def replicas_of(document: PlanDocument) -> int:
    return sum(pool.replicas + pool.spare_replicas for pool in document.pools)


RECORDER = """
import json, os, sys, time
print(json.dumps([os.environ.get("CUDA_VISIBLE_DEVICES", ""), *sys.argv[1:]]), flush=True)
started = os.environ["STARTED"]
open(os.path.join(started, str(os.getpid())), "w").close()
while len(os.listdir(started)) < int(os.environ["PROCESSES"]):
    time.sleep(0.01)
"""


@pytest.fixture
def recorder(tmp_path: Path) -> Path:
    """A folder with a vllm and a python that print what they are given and end when all processes have started."""
    for name in ("vllm", "python"):
        program = tmp_path / name
        program.write_text(f"#!{sys.executable}{RECORDER}", encoding="utf-8")
        program.chmod(0o755)
    return tmp_path


def launched(document: PlanDocument, to: str, folder: Path) -> list[list[list[str]]]:
    """Processes of one replica of each pool."""
    script = folder / f"{to}.sh"
    script.write_text(text(document, to), encoding="utf-8")
    return [_replica(script, pool, ENCODER_URLS="http://e:1 http://e:2", HOST="h") for pool in fleet(document).pools]


def _replica(script: Path, pool: Deployed, **environment: str) -> list[list[str]]:
    started = script.parent / f"{script.name}-{pool.number}"
    started.mkdir()
    processes = pool.encoder_processes + (pool.role != "encode")
    environment |= {"STARTED": str(started), "PROCESSES": str(processes)}
    found = [json.loads(line) for line in run(script, "start", str(pool.number), "4", "9000", **environment)]
    assert len(found) == processes
    return found


@pytest.mark.parametrize("to", ["vllm", "sglang"])
@pytest.mark.parametrize("case", [*CASES, "odd"])
def test_scripts_list_the_whole_fleet(case: str, to: str, solved: dict[str, PlanDocument], tmp_path: Path) -> None:
    document = solved[case]
    script = tmp_path / "fleet.sh"
    script.write_text(text(document, to), encoding="utf-8")
    rows = [line.split("\t") for line in run(script, "list")[1:]]
    assert sum(int(row[1]) for row in rows) == replicas_of(document)
    assert sum(int(row[2]) for row in rows) == sum(pool.spare_replicas for pool in document.pools)
    assert sum(int(row[1]) * int(row[3]) for row in rows) == devices_of(document)


@pytest.mark.parametrize("case", [*CASES, "odd"])
def test_graph_deployments_hold_the_whole_fleet(case: str, solved: dict[str, PlanDocument]) -> None:
    document = solved[case]
    graph = tree(document, "dynamo")
    assert (graph["apiVersion"], graph["kind"]) == ("nvidia.com/v1beta1", "DynamoGraphDeployment")
    frontend, *workers = graph["spec"]["components"]
    assert frontend["type"] == "frontend"
    assert sum(worker["replicas"] for worker in workers) == replicas_of(document)
    assert sum(worker["replicas"] * limit(worker["podTemplate"]["spec"]) for worker in workers) == devices_of(document)
    names = [worker["podTemplate"]["metadata"]["annotations"]["epd-opt/pool"] for worker in workers]
    assert names == [pool.name for pool in document.pools]


@pytest.mark.parametrize("case", [*CASES, "odd"])
def test_chart_values_hold_the_whole_fleet(case: str, solved: dict[str, PlanDocument]) -> None:
    document = solved[case]
    values = tree(document, "llm-d")
    own = [values[role] for role in ("prefill", "decode") if values[role]["create"]]
    others = [(item["spec"]["replicas"], item["spec"]["template"]["spec"]) for item in values["extraObjects"]]
    sizes = [*((section["replicas"], limit(section)) for section in own), *((n, limit(spec)) for n, spec in others)]
    assert sum(replicas for replicas, _ in sizes) == replicas_of(document)
    assert sum(replicas * devices for replicas, devices in sizes) == devices_of(document)


@pytest.mark.parametrize("case", CASES)
def test_vllm_is_started_as_planned(case: str, solved: dict[str, PlanDocument], recorder: Path) -> None:
    document = solved[case]
    for pool, processes in zip(fleet(document).pools, launched(document, "vllm", recorder), strict=True):
        ports = [_value(arguments, "--port") for arguments in processes]
        assert sorted(ports) == [str(9000 + i) for i in range(len(processes))]
        for visible, *arguments in processes:
            assert {a for a in arguments if a.startswith("--")} <= options.VLLM
            assert arguments[:1] == ["serve"]
            if not pool.measured:
                assert visible.split(",")[0] == "4"
            sent = _value(arguments, "--kv-cache-dtype")
            assert sent is None or sent in options.VLLM_KV_CACHE
            embeddings = json.loads(_value(arguments, "--ec-transfer-config") or "{}")
            encodes = "--mm-encoder-only" in arguments
            expected = "ec_producer" if encodes else "ec_consumer" if pool.receives_embeddings else None
            assert embeddings.get("ec_role") == expected
            assert not embeddings or embeddings["ec_connector"] in options.EC_CONNECTORS
            cache = json.loads(_value(arguments, "--kv-transfer-config") or "{}")
            assert cache.get("kv_role") == {"prefill": "kv_producer", "decode": "kv_consumer"}.get(pool.role)
            assert not cache or cache["kv_connector"] in options.KV_CONNECTORS
            point = pool.pool.operating_point
            if not encodes:
                assert _value(arguments, "--max-num-seqs") == (str(point.max_sequences) if point.max_sequences else None)
                assert float(_value(arguments, "--gpu-memory-utilization") or 0) == point.memory_fraction
                assert int(_value(arguments, "--max-model-len") or 0) == point.max_context_tokens
                assert int(_value(arguments, "--max-num-batched-tokens") or 0) == point.max_batched_tokens


@pytest.mark.parametrize("case", CASES)
def test_sglang_is_started_as_planned(case: str, solved: dict[str, PlanDocument], recorder: Path) -> None:
    document = solved[case]
    for pool, processes in zip(fleet(document).pools, launched(document, "sglang", recorder), strict=True):
        for _, *arguments in processes:
            assert arguments[:2] == ["-m", "sglang.launch_server"]
            assert {a for a in arguments if a.startswith("--")} <= options.SGLANG
            encodes = "--encoder-only" in arguments
            assert _value(arguments, "--kv-cache-dtype") in {None, *options.SGLANG_KV_CACHE}
            if encodes:
                continue
            mode = pool.role if pool.role in ("prefill", "decode") else None
            assert _value(arguments, "--disaggregation-mode") == mode
            urls = arguments[arguments.index("--encoder-urls") + 1 :] if "--encoder-urls" in arguments else []
            beside = [f"http://h:{9000 + i}" for i in range(len(processes) - 1)]
            assert urls == ((beside or ["http://e:1", "http://e:2"]) if pool.receives_embeddings else [])
            assert ("--language-only" in arguments) == pool.receives_embeddings


def _value(arguments: list[str], option: str) -> str | None:
    return arguments[arguments.index(option) + 1] if option in arguments else None


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize("case", CASES)
def test_graph_deployments_use_known_fields(case: str, engine: str, solved: dict[str, PlanDocument]) -> None:
    document = solved[case]
    document = document.model_copy(
        update={"cards": {**document.cards, "engine": {**document.cards["engine"], "name": engine}}}
    )
    spec = tree(document, "dynamo")["spec"]
    known = options.VLLM | options.DYNAMO_VLLM if engine == "vllm" else options.SGLANG | options.DYNAMO_SGLANG
    assert set(spec) == options.GRAPH_FIELDS
    assert spec["backendFramework"] == engine
    names = [component["name"].lower() for component in spec["components"]]
    assert len(set(names)) == len(names)
    for component in spec["components"]:
        assert set(component) <= options.COMPONENT_FIELDS
        assert component["type"] in options.COMPONENT_TYPES
        assert re.fullmatch(options.COMPONENT_NAME, component["name"])
        (container,) = component["podTemplate"]["spec"]["containers"]
        assert container["name"] == "main"
        assert {a for a in container.get("args", []) if a.startswith("--")} <= known
    pools = fleet(document).pools
    for pool, component in zip(pools, spec["components"][1:], strict=True):
        arguments = component["podTemplate"]["spec"]["containers"][0]["args"]
        routed = "--route-to-encoder" if engine == "vllm" else "--dedicated-mm-encoder"
        fed = pool.receives_embeddings or (engine == "sglang" and pool.role == "decode" and case in ("three", "measured"))
        assert (routed in arguments) == (fed and pool.pool.placement != "shared")
        if pool.role != "whole":
            assert _value(arguments, "--disaggregation-mode") == pool.role
        if engine == "vllm":
            cache = json.loads(_value(arguments, "--kv-transfer-config") or "{}")
            assert cache.get("kv_role") == {"prefill": "kv_producer", "decode": "kv_consumer"}.get(pool.role)


@pytest.mark.parametrize("case", CASES)
def test_chart_values_use_known_fields(case: str, solved: dict[str, PlanDocument]) -> None:
    values = tree(solved[case], "llm-d")
    assert set(values) == options.CHART_FIELDS
    for role in ("prefill", "decode"):
        assert set(values[role]) <= options.CHART_ROLE_FIELDS
        if values[role]["create"]:
            assert values[role]["accelerator"]["type"] in options.CHART_ACCELERATORS
            (container,) = values[role]["containers"]
            given = {a for a in container["args"] if a.startswith("--")}
            assert given <= options.VLLM - {"--tensor-parallel-size", "--data-parallel-size", "--port"}
    selectors = [json.dumps(item["spec"]["selector"], sort_keys=True) for item in values["extraObjects"]]
    assert len(set(selectors)) == len(selectors)
    for item in values["extraObjects"]:
        (container,) = item["spec"]["template"]["spec"]["containers"]
        assert {a for a in container["args"] if a.startswith("--")} <= options.VLLM
        for sidecar in item["spec"]["template"]["spec"].get("initContainers", []):
            assert {a.split("=")[0] for a in sidecar["args"]} <= options.SIDECAR


def test_what_a_target_cannot_say_is_in_its_head_and_warned_of(solved: dict[str, PlanDocument]) -> None:
    told = {
        ("shared", "dynamo"): "encoder processes beside the engine on the same device (planned: 2) cannot be written",
        ("shared", "llm-d"): "encoder processes beside the engine on the same device (planned: 2) cannot be written",
        ("split", "dynamo"): "4 encoder processes per replica are planned, a worker runs one",
        ("measured", "vllm"): "how a replica is cut over its 2 devices is not in the plan",
        ("measured", "dynamo"): "the resource name of small devices is not known: replace replace.me/accelerator",
        ("measured", "sglang"): "the plan names no model",
        ("three", "sglang"): "the plan counts on engine vllm; these are options of SGLang",
    }
    for (case, to), sentence in told.items():
        exported = export(solved[case], to)
        assert any(sentence in warning for warning in exported.warnings), (case, to)
        assert isinstance(exported.content, str)
        assert sentence in exported.content


def test_planned_routes_are_named_where_nothing_expresses_them(solved: dict[str, PlanDocument]) -> None:
    document = solved["split"]
    text_only = document.classes["chat"].model_copy(update={"routes": [*document.classes["chat"].routes] * 2})
    mixed = document.model_copy(update={"classes": {**document.classes, "chat": text_only}})
    for to in SUFFIX:
        assert any("left to the router" in warning for warning in export(mixed, to).warnings)
        assert not any("left to the router" in warning for warning in export(document, to).warnings)


def test_formats_and_degrees_beyond_the_default(solved: dict[str, PlanDocument]) -> None:
    document = modelled_at(solved["integrated"], {"weights": "fp8", "kv_cache": "fp8"}, tensor=2, attention_data=2, expert=4)
    told = text(document, "vllm")
    for option in ("--quantization fp8", "--kv-cache-dtype fp8", "--data-parallel-size 2", "--enable-expert-parallel"):
        assert option in told
    told = text(document, "sglang")
    for option in (
        "--tp-size 4",
        "--attn-dp-size 2",
        "--ep-size 4",
        "--kv-cache-dtype fp8_e4m3",
        "--max-running-requests 512",
    ):
        assert option in told
    document = modelled_at(
        solved["integrated"], {"weights": "int4", "kv_cache": "int8"}, tensor=2, attention_data=2, expert=2
    )
    exported = export(document, "vllm")
    assert "--quantization" not in str(exported.content)
    assert "--enable-expert-parallel" not in str(exported.content)
    for sentence in ("weights in int4", "no option for a KV cache in int8", "experts are planned over 2 of 4 ranks"):
        assert any(sentence in warning for warning in exported.warnings)


def modelled_at(document: PlanDocument, precision: dict[str, str], **cut: int) -> PlanDocument:
    plain = document.model_dump(mode="json", by_alias=True)
    plain["instance_document"]["precision"] = precision
    for pool in plain["pools"]:
        pool["parallelism"] |= cut
        pool["devices"] = 4.0 * (pool["replicas"] + pool["spare_replicas"])
    return PlanDocument.model_validate(plain)


def test_replicas_over_several_servers(solved: dict[str, PlanDocument], recorder: Path) -> None:
    plain = solved["integrated"].model_dump(mode="json", by_alias=True)
    for pool in plain["pools"]:
        pool["parallelism"]["tensor"] = 16
        pool["devices"] = 16.0 * pool["replicas"]
    document = PlanDocument.model_validate(plain)
    script = recorder / "fleet.sh"
    script.write_text(text(document, "vllm"), encoding="utf-8")
    ((visible, *arguments),) = _replica(script, fleet(document).pools[0], NODE_RANK="1", MASTER_ADDR="m")
    assert visible == "4,5,6,7,8,9,10,11"
    assert arguments[-7:] == ["--nnodes", "2", "--node-rank", "1", "--master-addr", "m", "--headless"]
    worker = tree(document, "dynamo")["spec"]["components"][1]
    assert worker["multinode"] == {"nodeCount": 2}
    assert limit(worker["podTemplate"]["spec"]) == 8


def test_cards_of_several_logical_devices() -> None:
    """A quarter of an ATOM-Max a replica: files count devices as engines see them, bills count sold units."""
    case = modelled(placements=["encoder_pool", "prefill_decode"])
    case["devices"][0]["stages"] = ["prefill", "decode"]
    case["workload"]["classes"][1]["slo"]["ttft_ms"] = 20000
    card = {"sku": "RBLN-ATOM-Max-CA25", "precision": {"encoder": "int8"}, "stages": ["encode"]}
    case["devices"][1] = {**card, "price": {"usd_per_hour": 0.2}}
    document = epd_opt.solve(case).document
    (encoders,) = [pool for pool in fleet(document).pools if pool.role == "encode"]
    assert encoders.logical_devices * encoders.replicas == 4 * encoders.pool.devices
    assert encoders.pool.devices % 1
    (component,) = [c for c in tree(document, "dynamo")["spec"]["components"] if "encoder" in c["name"]]
    limits = component["podTemplate"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"rebellions.ai/ATOM": str(encoders.logical_devices)}
    lines = [line for line in bill_of_materials(document) if line.device == "RBLN-ATOM-Max-CA25"]
    assert sum(line.quantity for line in lines) == document.devices["RBLN-ATOM-Max-CA25"].bought
    assert [line.role for line in lines] == ["new", "unused"]
    assert lines[1].reason == "comes with whole units"
    assert any("the encoder is planned in int8" in warning for warning in export(document, "vllm").warnings)
    assert any("Rebellions devices need a build or plug-in" in warning for warning in export(document, "vllm").warnings)


def test_a_plan_for_no_requests_deploys_nothing() -> None:
    case = measured()
    for request in case["workload"]["classes"]:
        request.pop("mean_rate_per_s", None)
        request["rate_per_s"] = 0
    document = epd_opt.solve(case).document
    assert text(document, "bom-csv").count("\n") == 1
    for to in SUFFIX:
        with pytest.raises(epd_opt.UsageError, match="nothing to deploy"):
            export(document, to)


def test_more_pools_than_a_graph_takes(solved: dict[str, PlanDocument]) -> None:
    (pool,) = solved["integrated"].pools
    many = solved["integrated"].model_copy(update={"pools": [pool] * 25})
    with pytest.raises(epd_opt.UsageError, match="found 25 pools, expected at most 24"):
        export(many, "dynamo")
    assert len(tree(many, "llm-d")["extraObjects"]) == 25


def test_odd_names_run_nothing(solved: dict[str, PlanDocument], recorder: Path) -> None:
    document = solved["odd"].model_copy(update={"instance_document": {**solved["odd"].instance_document, "model": ODD}})
    for to in ("vllm", "sglang"):
        for processes in launched(document, to, recorder):
            assert processes
            assert all(any(ODD.split("\n")[0] in argument for argument in arguments) for arguments in processes)
    assert not (recorder / "x").exists()
    for item in tree(document, "llm-d")["extraObjects"]:
        assert "{{ .Values" not in json.dumps(item)


@pytest.mark.parametrize("to", SUFFIX)
def test_golden(to: str) -> None:
    """A change that is meant: write the new text over the golden file."""
    assert text(pinned(), to) == (GOLDEN / f"{to}.{SUFFIX[to]}").read_text(encoding="utf-8")


def test_golden_bill(solved: dict[str, PlanDocument]) -> None:
    """Of measured workers, which no change of the models moves."""
    assert text(solved["measured"], "bom-csv") == (GOLDEN / "bom.csv").read_text(encoding="utf-8")
