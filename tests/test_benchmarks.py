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
    command = [sys.executable, "-c", f"import {script}"]
    ended = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)
    if any(f"No module named '{extra}" in ended.stderr for extra in ("aiconfigurator", "simpy")):
        pytest.skip("needs a package of its own")
    assert ended.returncode == 0, ended.stderr
