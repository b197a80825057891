"""Commands and functions on plans and instances with scenarios: they take one scenario, all of them, or say why not."""

from __future__ import annotations

import csv
import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import epd_opt
from epd_opt import Plan
from epd_opt.errors import UsageError
from epd_opt.report import report_html
from epd_opt.sensitivity import tolerance
from support.commands import Run

INSTANCE: dict[str, Any] = {
    "schema": "epd-opt/instance/v1",
    "name": "desk",
    "candidates": {"modelled": False},
    "workload": {
        "classes": [
            {"name": "chat", "rate_per_s": 6},
            {"name": "photo", "rate_per_s": 2, "images": {"count": 1, "tokens": 256}},
        ]
    },
    "devices": [
        {"sku": "gpu", "price": {"usd_per_hour": 3}, "stock": 12},
        {"sku": "card", "price": {"usd_per_hour": 1}, "stock": 12},
    ],
    "workers": [
        {
            "name": "text",
            "sku": "gpu",
            "devices": 1,
            "stages": ["prefill", "decode"],
            "max_rate_per_s": {"chat": 4, "photo": 2},
        },
        {"name": "encoder", "sku": "card", "devices": 1, "stages": ["encode"], "max_rate_per_s": {"photo": 1.5}},
    ],
    "scenarios": [
        {"name": "usual", "weight": 3},
        {"name": "photos", "set": {"workload.classes.photo.rate_per_s": "x2", "workload.classes.chat.rate_per_s": "x0.5"}},
        {"name": "chats", "set": {"workload.classes.chat.rate_per_s": "x2", "workload.classes.photo.rate_per_s": "x0.5"}},
    ],
    "solver": {"gap": 0.0, "threads": 1},
}


@cache
def plan() -> Plan:
    """The plan of the instance."""
    return epd_opt.solve(INSTANCE)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """The instance and its plan as files."""
    instance, saved = tmp_path / "desk.yaml", tmp_path / "plan.json"
    instance.write_text(json.dumps(INSTANCE), encoding="utf-8")
    plan().save(saved)
    return str(instance), str(saved)


def test_the_fleet_is_the_one_found_by_hand() -> None:
    """Chats need 12/4 + 1/2 = 3.5 of a GPU, photos 3/4 + 4/2 = 2.75 and 4/1.5 cards: four GPUs and three cards, 15 USD/h."""
    assert {pool.name: pool.replicas for pool in plan().pools} == {"text-gpu": 4, "encoder-card": 3}
    assert plan().cost.usd_per_hour == pytest.approx(15.0)
    assert plan().robust.sized_by == {"text-gpu": "chats", "encoder-card": "photos"}
    regrets = {single.planned_for: single.regret_usd_per_hour for single in plan().robust.single_plans}
    assert regrets == {"usual": None, "photos": None, "chats": None}


@pytest.mark.parametrize(
    "command",
    [
        ("simulate", "PLAN", "--requests", "200", "--json"),
        ("report", "PLAN"),
        ("export", "PLAN", "--to", "bom-csv"),
        ("tolerance", "PLAN", "--json", "--workers", "1"),
        ("solve", "INSTANCE", "--json"),
        ("explain", "INSTANCE", "--runners-up", "0", "--json"),
        ("break-even", "INSTANCE", "card", "--json"),
    ],
    ids=lambda command: command[0],
)
def test_a_command_takes_one_scenario(command: tuple[str, ...], files: tuple[str, str], run: Run) -> None:
    """With --scenario it answers for that workload; of another name it lists those that there are."""
    arguments = [{"PLAN": files[1], "INSTANCE": files[0]}.get(part, part) for part in command]
    code, out, errors = run(*arguments, "--scenario", "photos")
    assert code == 0, errors
    assert "photos" in out or command[0] == "export"
    code, out, errors = run(*arguments, "--scenario", "phtos")
    assert (code, out) == (2, "")
    assert "chats; photos; usual" in errors


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("simulate", "PLAN"), "the plan is for several scenarios (chats; photos; usual)"),
        (("report", "PLAN"), "take one of them, with --scenario NAME"),
        (("export", "PLAN", "--to", "vllm"), "take one of them, with --scenario NAME"),
        (("tolerance", "PLAN"), "take one of them, with --scenario NAME"),
        (("explain", "PLAN"), "not the best plan of any one of them"),
        (("explain", "INSTANCE"), "an explanation takes one workload"),
        (("sensitivity", "INSTANCE", "--vary", "devices.card.price.usd_per_hour=1:2"), "a study takes one workload"),
        (("break-even", "INSTANCE", "card"), "a break-even takes one workload"),
        (("solve", "INSTANCE", "--simulate"), "planning with simulation takes one workload"),
    ],
    ids=lambda value: "-".join(value[:2]) if isinstance(value, tuple) else "",
)
def test_a_command_for_one_workload_says_so(
    command: tuple[str, ...], sentence: str, files: tuple[str, str], run: Run
) -> None:
    """Without --scenario nothing is answered for one workload as if it were for all; the way out is named."""
    arguments = [{"PLAN": files[1], "INSTANCE": files[0]}.get(part, part) for part in command]
    code, out, errors = run(*arguments)
    assert (code, out) == (2, "")
    assert sentence in errors


def test_whole_plans_are_compared(files: tuple[str, str], run: Run) -> None:
    """Compare takes them as they are: mean cost, and the pools that stand."""
    code, out, errors = run("compare", files[1], files[1])
    assert (code, errors) == (0, "")
    assert "15" in out


def test_the_bill_is_that_of_the_whole_fleet(files: tuple[str, str], run: Run) -> None:
    """What is bought is the same in all scenarios: lines for four GPUs and three cards that add up to the cost."""
    code, out, errors = run("export", files[1], "--to", "bom-csv")
    assert (code, errors) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {row["x_DeviceEntry"]: float(row["PricingQuantity"]) for row in rows} == {"gpu": 4.0, "card": 3.0}
    assert sum(float(row["x_CostPerHour"]) for row in rows) == pytest.approx(plan().cost.usd_per_hour)


def test_all_of_the_fleet_stands_when_inputs_move() -> None:
    """Four GPUs and three cards serve the usual photos up to 4.5 a second; those that run there alone would not."""
    report = tolerance(plan(), scenario="usual")
    photos = next(found for found in report.inputs if found.path == "workload.classes.photo.rate_per_s")
    assert photos.up.factor == pytest.approx(4.5 / 2, rel=0.01)


def test_a_plan_shows_itself(files: tuple[str, str], run: Run) -> None:
    """In a terminal, in a notebook and as a table: what stands, every scenario, and what plans for one of them lack."""
    code, text, _ = run("solve", files[0])
    assert (code, text) == (0, str(plan()))
    for part in ("one fleet for 3 scenarios", "most asked for by", "chats: text-gpu has 3 replicas", "photos"):
        assert part in text
    assert "one fleet for 3 scenarios" in plan()._repr_html_()
    frame = plan().to_frame()
    assert list(frame["scenario"].unique()) == ["chats", "photos", "usual"]
    assert set(frame["pool"]) == {"text-gpu", "encoder-card"}


def test_functions_refuse_as_commands_do() -> None:
    """Python callers are told of plan.in_scenario."""
    with pytest.raises(UsageError, match=r"plan\.in_scenario"):
        epd_opt.simulate(plan())
    with pytest.raises(UsageError, match=r"plan\.in_scenario"):
        report_html(plan().document)
    with pytest.raises(UsageError, match="the plan is for one workload, without scenarios"):
        plan().in_scenario("usual").in_scenario("usual")
