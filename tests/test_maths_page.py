"""docs/maths.md and the code say the same."""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from epd_models.candidate import Candidate, Node
from epd_models.row import Row
from epd_opt import Instance, solve
from epd_opt.formulation import OccasionsFormulation, build, build_occasions
from epd_opt.formulation.constraints import FAMILIES
from epd_opt.formulation.objective import Scale
from epd_opt.formulation.occasions import COUPLINGS
from epd_opt.formulation.sets import Packed, Sets
from epd_opt.formulation.variables import Variables
from epd_opt.offering import Offering, offering
from epd_opt.problem import Aim, Demand, Limits, Occasion, Offer, PlanningProblem
from epd_opt.prune import prune
from epd_opt.resolve import resolve
from support.documents import measured, modelled
from support.problems import random_problem

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "maths.md").read_text(encoding="utf-8")
QUEUES = ("encode", "prefill")


def table(section: str, which: int = 0) -> list[list[str]]:
    """Rows of the first table below a heading, or of a later one, without its head."""
    _, _, after = PAGE.partition(f"\n{section}\n")
    assert after, f"no section {section}"
    blocks = itertools.groupby(after.splitlines(), key=lambda line: line.startswith("|"))
    lines = [list(block) for is_table, block in blocks if is_table][which]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return cells[2:]


def codes(cell: str) -> list[str]:
    """What a cell has in code type."""
    return re.findall(r"`([^`]+)`", cell)


def test_sections_stand_in_their_order() -> None:
    """Decision, sets, parameters, variables, objective, constraints, errors, what is left out, example."""
    assert re.findall(r"^## (.+)$", PAGE, flags=re.MULTILINE) == [
        "The decision",
        "Sets",
        "Parameters",
        "Variables",
        "Objective",
        "Constraints",
        "What is linearised, and its error",
        "What is left out",
        "An example solved by hand",
    ]


def test_families_are_those_of_the_code() -> None:
    """Each family once, in the order of the model, with the function that builds it."""
    rows = table("## Constraints")
    assert [row[0] for row in rows] == [family.__name__ for family in FAMILIES]
    assert [codes(row[4]) for row in rows] == [[f"{f.__module__}.{f.__qualname__}"] for f in FAMILIES]


def pattern(name: str) -> re.Pattern[str]:
    """Row or variable names as the page writes them: indices stand for numbers, KIND for any kind."""
    indices = ("c", "k", "r", "d", "h", "a", "g", "s", "p", "level")
    first, *rest = re.split(r"_(?=(?:[ckrdhagsp]|level)(?:_|$))", name)
    parts = ["[a-z_]+" if first == "KIND" else first, *(r"\d+" if part in indices else part for part in rest)]
    return re.compile("_".join(parts))


def test_row_names_are_those_of_the_code() -> None:
    """The docstring of a family and its rows in a model have the names that the page gives."""
    families = {family.__name__: family for family in FAMILIES}
    built = [build(prune(one.problem)) for one in offered()]
    for row in table("## Constraints"):
        family, names = families[row[0]], codes(row[3])
        assert all(f"``{name}``" in (family.__doc__ or "") for name in names)
        written = [name for one in built for name, _ in family(one.sets, one.variables)]
        assert written
        assert all(any(pattern(name).fullmatch(found) for name in names) for found in written)


def instances() -> list[dict[str, Any]]:
    """Instances that between them show every family and every kind of row."""
    limits = {"skus": 2, "require": ["gpu"], "usd_per_hour": 500, "devices": 500, "power_kw": 500}
    limits |= {"rack_kw": 40, "racks": 50}
    whole = modelled(limits=limits, redundancy={"spare_replicas": 1, "zones": 3, "survive_zones": 1})
    photo = whole["workload"]["classes"][1]
    photo["images"]["count"] = 10
    photo["interarrival_scv"] = 4
    whole["devices"][0]["stock"] = 64
    whole["devices"][1]["price"]["minimum"] = 2
    return [whole, measured(), in_servers()]


def in_servers() -> dict[str, Any]:
    """Groups of one, three and five devices in servers of eight, twelve devices owned."""
    workers = [
        {"name": f"of {n}", "sku": "H100-SXM", "devices": n, "stages": ["encode", "prefill", "decode"], "max_rate_per_s": n}
        for n in (1, 3, 5)
    ]
    devices = [{"sku": "H100-SXM", "price": {"usd_per_hour": 24, "per": "server"}, "owned": 12}]
    return measured(devices=devices, workers=workers)


@functools.cache
def offered() -> tuple[Offering, ...]:
    """What those instances offer."""
    return tuple(offering(resolve(Instance(**document))) for document in instances())


def kinds(problem: PlanningProblem) -> set[str]:
    """Kinds of rows, those of queues with QUEUE in place of the queue's name."""
    found = {row.kind for candidate in problem.candidates for row in candidate.rows}
    queued = {f"{queue}_{kind}": f"QUEUE_{kind}" for queue in QUEUES for kind in ("work", "burst", "peak", "minimum")}
    return {queued.get(kind, kind) for kind in found}


def test_row_kinds_are_those_of_the_candidates() -> None:
    """Every kind that candidates bring is on the page, and every kind on the page is brought by one."""
    listed = [codes(row[0]) for row in table("### Rows that candidates bring")]
    brought = set().union(*(kinds(one.problem) for one in offered()))
    assert {kind for (kind,) in listed} == brought


def test_no_other_kind_is_written_in_the_models() -> None:
    """Every kind named where a row is made, whether or not an instance here brings it, is on the page."""
    listed = {codes(row[0])[0].removeprefix("QUEUE_") for row in table("### Rows that candidates bring")}
    written = {
        keyword.value.value
        for path in (ROOT / "models" / "epd_models").rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ("Row", "_Term")
        for keyword in call.keywords
        if keyword.arg == "kind" and isinstance(keyword.value, ast.Constant)
    }
    assert {"work", "time", "rate", "link"} <= written
    assert written <= listed


def test_variables_are_those_of_the_code() -> None:
    """Each set of variables once, with the names that a model gives them."""
    rows = table("## Variables")
    fields = [f"Variables.{field.name}" for field in dataclasses.fields(Variables)]
    assert [codes(row[3])[0] for row in rows] == fields
    patterns = [pattern(name) for row in rows for name in codes(row[4])]
    problem = prune(offering(resolve(Instance(**measured()))).problem)
    packed = prune(offering(resolve(Instance(**in_servers()))).problem)
    built = [build(problem), build(dataclasses.replace(problem, least_served=0.5)), build(packed)]
    built += [build(dataclasses.replace(problem, zones=3, lost_zones=1)), build(prune(offered()[0].problem))]
    built += [build(random_problem(0))]
    names = [variable.name for one in built for variable in one.model.variables()]
    assert all(any(p.fullmatch(name) for p in patterns) for name in names)
    assert all(any(p.fullmatch(name) for name in names) for p in patterns)


def several() -> OccasionsFormulation:
    """A model of two occasions in which every coupling shows itself."""
    problem = prune(offering(resolve(Instance(**measured(limits={"skus": 2})))).problem)
    given = [Occasion(name=name, weight=0.5, problem=problem) for name in ("day", "peak")]
    return build_occasions(given, Aim(minimise="cvar", level=0.5, held_share=0.5), ["big"])


def test_couplings_of_occasions_are_those_of_the_code() -> None:
    """Each family that ties occasions together once, in the order of the model, with its rows and its function."""
    rows = table("### Several occasions", which=1)
    assert [row[0] for row in rows] == [coupling.__name__ for coupling in COUPLINGS]
    assert [codes(row[4]) for row in rows] == [[f"{c.__module__}.{c.__qualname__}"] for c in COUPLINGS]
    built = several()
    for row, coupling in zip(rows, COUPLINGS, strict=True):
        (name,) = codes(row[3])
        assert f"``{name}``" in (coupling.__doc__ or "")
        written = [re.sub(r"^s\d+_", "s0_", found) for found, _ in coupling(built)]
        assert written
        assert all(pattern(name).fullmatch(found) for found in written)


def test_variables_of_occasions_are_those_of_the_code() -> None:
    """What a model of several occasions has beside the variables of one is on the page."""
    alone = [pattern(codes(row[4])[0]) for row in table("## Variables")]
    beside = [pattern(codes(row[4])[0]) for row in table("### Several occasions")]
    names = [variable.name for variable in several().model.variables()]
    rest = [name for name in names if not any(p.fullmatch(re.sub(r"^s\d+_(?!left)", "", name)) for p in alone)]
    assert all(any(p.fullmatch(re.sub(r"^s\d+_", "s0_", name)) for p in beside) for name in rest)
    assert all(any(p.fullmatch(name) for name in rest) for p in beside)


def test_parameters_are_those_of_the_code() -> None:
    """Every figure of demands, offers and limits is on the page; every name on the page is one of the code's."""
    listed = {codes(row[3])[0] for row in table("## Parameters")}
    for kind in (Demand, Offer, Limits):
        fields = {f"{kind.__name__}.{field.name}" for field in dataclasses.fields(kind)}
        assert fields - {"Demand.name", "Offer.name", "Offer.sku"} == {
            n for n in listed if n.startswith(kind.__name__ + ".")
        }
    known = {
        kind.__name__: kind for kind in (Demand, Offer, Limits, PlanningProblem, Sets, Packed, Scale, Row, Candidate, Node)
    }
    for name in listed | {codes(row[2])[0] for row in table("## Sets")}:
        owner, attribute = name.split(".")
        assert hasattr(known[owner], attribute), name


def test_origins_are_keys_of_the_format() -> None:
    """What a parameter is said to come from can be written in an instance."""
    parts = (ROOT / "solver" / "epd_opt" / "instance").glob("*.py")
    schema = "".join(part.read_text(encoding="utf-8") for part in parts)
    for row in table("## Parameters"):
        for path in codes(row[4]):
            assert re.search(rf"\b{path.split('.')[-1]}\b", schema), path


def exists(name: str) -> bool:
    """Whether a dotted name can be imported."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        return all((found := getattr(found, part, None)) is not None for part in parts[cut:])
    return False


def test_every_function_named_exists() -> None:
    """Dotted names in code type can be imported."""
    names = sorted(set(re.findall(r"`(epd_(?:opt|models)[\w.]+)`", PAGE)))
    assert names
    assert [name for name in names if not exists(name)] == []


def test_links_lead_somewhere() -> None:
    """Pages that this one leans on are there."""
    for target in set(re.findall(r"\]\(([\w./-]+)\)", PAGE)):
        assert (ROOT / "docs" / target).is_file(), target


def test_queues_are_those_of_the_placements() -> None:
    """The page says that pools wait in encode and prefill queues; no placement has another."""
    found = set()
    for one in offered():
        for behaviour in one.behaviours.values():
            found |= {queue.name for queue in behaviour.pool.queues}
    assert found == set(QUEUES)


def test_the_example_is_solved_as_by_hand() -> None:
    """The instance on the page gives the replicas and the cost of its table."""
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    plan = solve(YAML(typ="safe").load(text))
    values = dict(row for row in table("## An example solved by hand"))
    replicas = {name.removesuffix(" replicas"): int(value) for name, value in values.items() if "replicas" in name}
    assert {pool.name: pool.replicas for pool in plan.pools} == replicas
    assert plan.cost.usd_per_hour == pytest.approx(float(values["cost, USD/h"]), rel=1e-9)
    assert plan.cost.usd_per_request == pytest.approx(float(values["cost per request, USD"].split("=")[1]), rel=2e-3)
    assert plan.cost.bound_usd_per_hour == pytest.approx(plan.cost.usd_per_hour)
