"""Every shipped instance solves as it stands, from the command line, into a document that pipelines can trust."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn

import jsonschema  # type: ignore[import-untyped]
import pytest
from ruamel.yaml import YAML

import epd_opt
from epd_models.catalog import device_from_card
from epd_opt.document import PlanDocument, plan_json_schema
from epd_opt.instance import instance_json_schema
from epd_opt.render import plan_text
from epd_opt.verify import verify
from support.commands import Run
from support.exports import DEPLOYMENTS, bill, held, planned, unknown
from support.ties import shuffled

FOLDER = Path(__file__).parents[2] / "instances"
STARTER = Path(str(files("epd_opt").joinpath("starter.yaml")))
SHIPPED = [*sorted(FOLDER.glob("*.yaml")), STARTER]

shipped = pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem, scope="module")
"""All that is shown of one instance, then of the next: while it is shown, the next is solved."""

ONE_BY_ONE = """
import contextlib, io, json, sys
from epd_opt.cli import main

for path in sys.argv[1:]:
    sys.argv = ["epd-opt", "solve", path, "--json"]
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")) as out:
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    print(json.dumps([code, out.buffer.getvalue().decode()]), flush=True)
"""


def refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is not JSON")


def strict(text: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(text, parse_constant=refuse)
    return parsed


Solved = Callable[[Path], tuple[int, str]]


@pytest.fixture(scope="module")
def solved(request: pytest.FixtureRequest) -> Iterator[Solved]:
    """Exit code and standard output of ``epd-opt solve PATH --json`` in another process, with hashes of its own."""
    here = [
        item.callspec.params for item in request.session.items if item.path == request.path and "path" in item.fixturenames
    ]
    paths = list(dict.fromkeys(parameters["path"] for parameters in here))
    found: dict[Path, tuple[int, str]] = {}
    command = [sys.executable, "-c", ONE_BY_ONE, *map(str, paths)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment) as process:
        assert process.stdout is not None
        lines = process.stdout

        def solved(path: Path) -> tuple[int, str]:
            while path not in found:
                code, out = json.loads(lines.readline())
                found[paths[len(found)]] = (code, out)
            return found[path]

        yield solved
        process.kill()


@pytest.fixture
def document(solved: Solved, path: Path) -> dict[str, Any]:
    """The plan of an instance."""
    return strict(solved(path)[1])


@shipped
def test_it_solves_to_one_strict_json_document(solved: Solved, path: Path) -> None:
    """Standard output holds the plan and nothing else, and the plan is proved."""
    code, out = solved(path)
    assert code == 0
    assert strict(out)["status"] == "optimal"


@shipped
def test_instance_and_plan_follow_their_schemas(document: dict[str, Any], path: Path) -> None:
    """The published schemas accept what is shipped and what comes of it."""
    for schema, given in ((instance_json_schema(), YAML(typ="safe", pure=True).load(path)), (plan_json_schema(), document)):
        assert list(jsonschema.Draft202012Validator(schema).iter_errors(given)) == []


@shipped
def test_the_reloaded_plan_verifies(document: dict[str, Any], path: Path) -> None:
    """Capacity, memory, targets and cost hold again from the document alone."""
    plan = epd_opt.Plan.load(document)
    verify(plan)
    for result in plan.classes.values():
        assert result.slo_met
        assert sum(route.rate_per_s for route in result.routes) == pytest.approx(result.rate_per_s, rel=1e-6)


@shipped
def test_the_embedded_instance_gives_the_plan_again(document: dict[str, Any], path: Path) -> None:
    """Solving what a plan embeds gives the same document to the last digit, but for the time it took."""
    again = epd_opt.solve(epd_opt.Instance(**document["instance_document"])).to_dict()
    for one in (document, again):
        one["provenance"]["seconds"] = 0
    assert json.dumps(again, sort_keys=True) == json.dumps(document, sort_keys=True)


@shipped
def test_every_replica_stands_in_one_server(document: dict[str, Any], path: Path) -> None:
    """Counted anew from sizes alone: each server holds what it has devices for, and together they hold all replicas."""
    plan = epd_opt.Plan.load(document)
    for name, use in plan.document.devices.items():
        pools = {pool.name: pool for pool in plan.pools if pool.device == name}
        card = plan.document.cards["devices"].get(name)
        if card is None or (plan.document.scenarios is not None and not use.nodes):
            continue
        size = {one: pool.devices / (pool.replicas + pool.spare_replicas) for one, pool in pools.items()}
        device = device_from_card(card, source=name)
        most = max(device.units_per_server, device.scaleup_domain / device.logical_per_unit)
        for node in use.nodes:
            taken = sum(size[one] * count for one, count in node.groups.items())
            assert taken + node.free == pytest.approx(node.units)
            assert node.units <= most
        for one, pool in pools.items():
            assert sum(node.count * node.groups.get(one, 0) for node in use.nodes) == pool.replicas + pool.spare_replicas


def views(plan: epd_opt.Plan) -> list[PlanDocument]:
    """The plan, or what it is in each of its scenarios or groups of hours."""
    scenarios = plan.document.scenarios
    return [plan.document] if scenarios is None else [plan.in_scenario(one.name).document for one in scenarios]


@shipped
@pytest.mark.parametrize("to", DEPLOYMENTS)
def test_deployment_files_hold_the_plan(document: dict[str, Any], path: Path, to: str, tmp_path: Path) -> None:
    """They parse, know no option or field that their target does not, and hold all replicas and devices."""
    for view in views(epd_opt.Plan.load(document)):
        assert held(view, to, tmp_path) == planned(view)
        assert not unknown(view, to, tmp_path)


@shipped
def test_the_bill_adds_up_to_the_plan(document: dict[str, Any], path: Path, tmp_path: Path) -> None:
    """Costs, power and units of the CSV are the plan's; of a day, hired units stand with their mean. The workbook has the
    same sums, as numbers."""
    plan = epd_opt.Plan.load(document)
    cost, devices = plan.cost, plan.document.devices.values()
    found = bill(plan.document)
    expected = {
        "x_CostPerHour": cost.usd_per_hour,
        "x_CostPerMonth": 730 * cost.usd_per_hour,
        "x_BilledPerHour": cost.billed_usd_per_hour,
        "x_Capex": cost.capex_usd,
        "x_Upfront": cost.upfront_usd,
        "x_PowerKw": cost.power_kw,
        "units": sum(use.bought + use.owned for use in devices),
    }
    if plan.document.hours is not None:
        hours = plan.document.hours
        hired = sum(sum(one.hired.values()) for one in hours.hours) / len(hours.hours)
        expected["units"] = hired + sum(one.units for one in hours.committed)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)
    openpyxl = pytest.importorskip("openpyxl", reason="workbooks need the extra: pip install -e '.[xlsx]'")
    plan.export("xlsx", tmp_path / "bill.xlsx")
    names, *rows, _ = openpyxl.load_workbook(tmp_path / "bill.xlsx")["Bill of materials"].iter_rows(values_only=True)
    for column in expected.keys() - {"units"}:
        assert math.fsum(row[names.index(column)] for row in rows) == pytest.approx(expected[column], rel=1e-9, abs=1e-9)


@shipped
def test_the_table_names_every_pool_and_class(document: dict[str, Any], path: Path) -> None:
    """People see each pool with its devices."""
    plan = epd_opt.Plan.load(document)
    text = plan_text(plan.document)
    for name in [*plan.classes, *(pool.name for pool in plan.pools)]:
        assert name in text


@shipped
def test_the_file_says_what_it_shows(path: Path) -> None:
    """A worked example opens with a comment, and its instance is called like its file."""
    assert path.read_text("utf-8").startswith("# ")
    assert path == STARTER or epd_opt.read(path).name == path.stem


def test_init_writes_the_starter(run: Run, tmp_path: Path) -> None:
    """What `epd-opt init` writes is the file whose solution is tested here."""
    target = tmp_path / "first.yaml"
    assert run("init", target)[0] == 0
    assert target.read_bytes() == STARTER.read_bytes()


def test_the_folder_lists_its_files() -> None:
    """The folder's guide has a line for each instance, and none for others."""
    listed = {
        line.split("`")[1] for line in (FOLDER / "README.md").read_text("utf-8").splitlines() if line.startswith("| `")
    }
    assert listed == {path.name for path in FOLDER.glob("*.yaml")}


@pytest.mark.parametrize(
    "path", [STARTER, FOLDER / "ten-images.yaml", FOLDER / "measured-workers.yaml"], ids=lambda p: p.stem
)
def test_order_does_not_matter(document: dict[str, Any], path: Path) -> None:
    """Another order of keys, classes and devices gives the same pools, routes and cost."""
    other = shuffled(YAML(typ="safe", pure=True).load(path), random.Random(7))
    again = epd_opt.solve(other).to_dict()
    assert again["cost"] == document["cost"]
    for part in ("pools", "classes", "devices"):
        assert json.dumps(again[part], sort_keys=True) == json.dumps(document[part], sort_keys=True)
