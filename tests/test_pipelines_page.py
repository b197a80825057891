"""The job on the page about pipelines gates what it says it gates."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

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
  - {{sku: A, price: {{usd_per_hour: {price}}}, stock: 40}}
workers:
  - {{name: w, sku: A, devices: 1, stages: [prefill, decode], max_rate_per_s: 4}}
"""


def job(folder: Path, price: float) -> subprocess.CompletedProcess[str]:
    """Run the page's script on a fleet at this price, with the program of this interpreter."""
    (folder / "fleet.yaml").write_text(FLEET.format(price=price))
    program = folder / "bin" / "epd-opt"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from epd_opt.cli import main; main()" "$@"\n')
    program.chmod(0o755)
    script = re.search(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert script is not None
    environment = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(["sh", "-c", script[1]], cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_gate_on_the_page_works(tmp_path) -> None:
    """Ten per cent more stops, with the reasons written down."""
    approved = parse(FLEET.format(price=2), "approved").value
    epd_opt.solve(approved).save(tmp_path / "approved.json")
    done = job(tmp_path, 2.2)
    assert done.returncode == 1, done.stderr
    assert "a request costs too much more" in done.stdout
    assert (tmp_path / "changes.json").exists()
    changes = (tmp_path / "changes.txt").read_text(encoding="utf-8")
    assert "devices.A.price.usd_per_hour" in changes
    assert "A: another cost per unit" in changes
