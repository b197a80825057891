"""A study on a Dask cluster of this machine is the study of processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import epd_opt
from support.commands import Run
from support.documents import measured

distributed = pytest.importorskip("distributed", reason="needs pip install 'epd-opt[dask]'")

CHAT = "workload.classes.chat.rate_per_s"
STOCK = "devices.big.stock"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two worker processes."""
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        yield cluster


@pytest.mark.parametrize("vary", [{CHAT: "9:12:4"}, {CHAT: "9:12:3", STOCK: [12, 16]}], ids=["a line", "a grid"])
def test_a_cluster_finds_what_one_process_finds(cluster: Any, vary: dict[str, Any]) -> None:
    """Every number of the document is the same."""
    with distributed.Client(cluster) as client:
        far = epd_opt.sensitivity(measured(), vary, executor=client.get_executor())
    assert far.to_json() == epd_opt.sensitivity(measured(), vary).to_json()


def test_the_command_takes_the_address_of_a_scheduler(cluster: Any, tmp_path: Path, run: Run) -> None:
    """``--dask`` prints what ``--workers 1`` prints."""
    instance = tmp_path / "measured.json"
    instance.write_text(json.dumps(measured()), encoding="utf-8")
    study = ["sensitivity", instance, "--vary", f"{CHAT}=9:12:3", "--json", "-q"]
    code, far, _ = run(*study, "--dask", cluster.scheduler_address)
    assert (code, far) == run(*study, "--workers", 1)[:2]
    assert code == 0
