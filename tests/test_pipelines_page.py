"""The job on the page about pipelines gates what it says it gates."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import epd_opt
from epd_opt.source import parse

PAGE = Path(__file__).parents[1] / "docs" / "pipelines.md"
FLEET = """\
schema: epd-opt/instance/v1
name: desk
candidates: {{modelled: false}}
workload:
  classes:
    - {{name: chat, rate_per_s: 9}}
devices:
  - {{sku: A, price: {{usd_per_hour: {price}}}, stock: {stock}}}
workers:
  - {{name: w, sku: A, devices: 1, stages: [prefill, decode], max_rate_per_s: 4}}
"""


def job(folder: Path, price: float, stock: int = 40) -> subprocess.CompletedProcess[str]:
    """Run the page's script on a fleet of this price and stock, with the program of this interpreter."""
    (folder / "fleet.yaml").write_text(FLEET.format(price=price, stock=stock))
    program = folder / "bin" / "epd-opt"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from epd_opt.cli import main; main()" "$@"\n')
    program.chmod(0o755)
    script = re.search(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert script is not None
    environment = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(["sh", "-c", script[1]], cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("price", "stock", "code", "said"), [(2.2, 40, 1, "a request costs too much more"), (2.0, 1, 4, "")]
)
def test_the_gate_on_the_page_works(tmp_path, price, stock, code, said) -> None:
    """Ten per cent more stops with the reasons written down; too little stock is infeasible and writes none."""
    approved = parse(FLEET.format(price=2, stock=40), "approved").value
    epd_opt.solve(approved).save(tmp_path / "approved.json")
    done = job(tmp_path, price, stock)
    assert done.returncode == code, done.stderr
    assert said in done.stdout
    assert (tmp_path / "changes.json").exists() == bool(said)
    if said:
        changes = (tmp_path / "changes.txt").read_text(encoding="utf-8")
        assert "devices.A.price.usd_per_hour" in changes
        assert "A: another cost per unit" in changes
