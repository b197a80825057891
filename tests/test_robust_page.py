"""Shows that docs/robust.md is true: its instance prints what the page says."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from ruamel.yaml import YAML

import epd_opt
from epd_opt import Instance, Plan
from support.documents import measured

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "robust.md").read_text(encoding="utf-8")


@cache
def plan(override: str = "") -> Plan:
    """The plan of the instance on the page."""
    return epd_opt.solve(epd_opt.read(ROOT / "instances" / "scenarios.yaml", [override] if override else []))


def test_the_page_prints_what_the_program_does() -> None:
    """The printed plan is that of the shipped instance."""
    (printed,) = re.findall(r"^```text\n(.*?)^```$", PAGE, re.S | re.M)
    assert printed == str(plan())


def test_the_table_is_that_of_its_plans() -> None:
    """Costs, share of weight and fleets under each of the aims."""
    overrides = {
        "expected_cost": "",
        "worst_cost": "robust.minimise=worst_cost",
        "served_share: 0.85": "robust.served_share=0.85",
    }
    for name, override in overrides.items():
        found = plan(override)
        costs = f"{found.robust.expected_usd_per_hour:.2f} | {found.robust.worst_usd_per_hour:.2f}"
        fleet = ", ".join(f"{pool.replicas} {pool.name}" for pool in found.pools)
        assert f"| {name} | {costs} | {found.robust.held_share:.0%} | {fleet} |" in PAGE


def test_the_scenarios_on_the_page_are_valid() -> None:
    """What the page shows of an instance reads as part of one."""
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.S | re.M)
    assert Instance(**measured(**YAML(typ="safe").load(text))).scenarios
