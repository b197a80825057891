"""`epd-opt report` writes its page to a file or a pipe, and says what is wrong with its inputs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

import epd_opt
from support.documents import measured


@pytest.fixture
def run(run, monkeypatch, tmp_path):
    """Run `epd-opt report` in a folder with a plan."""
    monkeypatch.chdir(tmp_path)
    epd_opt.solve(measured()).save("plan.json")
    return partial(run, "report")


def test_the_page_goes_to_a_file_or_to_standard_output(run):
    """-o FILE writes the page and prints nothing; -o -, no -o and a plan from a pipe give the same page."""
    assert run("plan.json", "-o", "report.html") == (0, "", "")
    page = Path("report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert run("plan.json") == (0, page, "")
    assert run("-", "-o", "-", stdin=Path("plan.json").read_text()) == (0, page, "")


def test_an_infeasible_document_has_a_page_too(run):
    """The page of why there is no plan ends with 0: it was asked for and is there."""
    epd_opt.solve(measured(limits={"devices": 2})).save("none.json")
    code, page, errors = run("none.json")
    assert (code, errors) == (0, "")
    assert "Why nothing fits" in page


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("absent.json",), 3, "absent.json: not a plan"),
        (("plan.json", "--study", "plan.json"), 3, "plan.json: schema: not an epd-opt/study/v1 document"),
        (("plan.json", "--simulation", "absent.json"), 3, "absent.json: not a simulation"),
        (("plan.json", "-o", "absent/report.html"), 2, "there is no directory"),
    ],
)
def test_wrong_inputs_are_named(run, arguments, code, said):
    """A missing or foreign file, and a folder that is not there, end with their codes and a sentence."""
    ended, out, errors = run(*arguments)
    assert (ended, out) == (code, "")
    assert said in errors
