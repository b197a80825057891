"""Shows that the README is true: its plan is what the program prints, its examples work, its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

import epd_opt
from epd_opt.render import plan_text

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "instances").glob("*.md")]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.S | re.M)


def test_the_plan_is_what_its_instance_gives_today() -> None:
    """After a change that alters the plan, docs/make_images.py prints it anew."""
    assert "epd-opt solve instances/ten-images.yaml" in blocks("sh")[0]
    plan = epd_opt.solve(epd_opt.read(ROOT / "instances" / "ten-images.yaml"))
    assert blocks("text") == [plan_text(plan.document, warnings=False)]


def test_the_instance_is_valid_and_solvable() -> None:
    plan = epd_opt.solve(YAML(typ="safe").load(blocks("yaml")[0]))
    assert plan.status == "optimal"
    assert {name for pool in plan.pools for name in pool.serves} == {"album", "chat"}


def test_the_python_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra: pip install -e '.[plot]'")
    (tmp_path / "instances").symlink_to(ROOT / "instances")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(blocks("python")[0], "README.md", "exec"), names)
    plan = names["plan"]
    assert isinstance(plan, epd_opt.Plan)
    assert epd_opt.Plan.load(tmp_path / "plan.json").to_dict() == plan.to_dict()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing
