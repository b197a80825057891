"""Benchmarks, which have commands of their own, still fit the program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize("script", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_every_benchmark_can_be_imported(script: str) -> None:
    """All that a script and its modules import is there."""
    ended = subprocess.run([sys.executable, "-c", f"import {script}"], cwd=FOLDER, capture_output=True, text=True, check=False)
    missing = "No module named 'aiconfigurator" in ended.stderr or "No module named 'simpy'" in ended.stderr
    if missing:
        pytest.skip("needs a package of its own")
    assert ended.returncode == 0, ended.stderr
