"""CBC, as an executable: the one that PuLP finds or brings."""

from __future__ import annotations

import dataclasses
import functools
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from epd_opt.backends.base import (
    Answer,
    Availability,
    Capabilities,
    Checked,
    Settings,
    SolverFailed,
    Termination,
    Vector,
    stopped_by,
)
from epd_opt.backends.guard import remaining
from epd_opt.backends.matrix import Matrix
from epd_opt.backends.mps import write_mps
from epd_opt.backends.process import run_executable

_USED_UP = 0.9
"""Share of the time limit from which CBC, stopped by the clock, may have called a model infeasible that is not."""


@functools.cache
def executable() -> str | None:
    """Path of CBC: on the search path, or the one that PuLP brings."""
    found = shutil.which("cbc")
    if found is not None:
        return found
    import pulp

    bundled = getattr(pulp, "PULP_CBC_CMD", None)
    return None if bundled is None else shutil.which(bundled.pulp_cbc_path)


@functools.cache
def _version(path: str) -> str | None:
    try:
        said = subprocess.run([path, "-quit"], capture_output=True, text=True, timeout=10.0, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"^Version:\s*(\S+)", said, re.MULTILINE)
    return found.group(1) if found else None


class Cbc(Checked):
    """COIN-OR branch and cut; one thread, on several of which its answers may depend on which is first."""

    name = "cbc"
    title = "CBC"
    capabilities = Capabilities(threads=False)

    def availability(self) -> Availability:
        """See :class:`epd_opt.backends.base.Backend`."""
        path = executable()
        if path is None:
            return Availability(missing="pip install 'pulp[cbc]', or put the executable cbc on the search path")
        return Availability(version=_version(path))

    def answer(self, matrix: Matrix, settings: Settings, start: Vector | None) -> Answer:
        """See :class:`epd_opt.backends.base.Checked`."""
        began = time.perf_counter()
        path = executable()
        assert path is not None
        with tempfile.TemporaryDirectory(prefix="epd-opt-") as name:
            folder = Path(name)
            model, solution, log = folder / "model.mps", folder / "solution", folder / "log"
            write_mps(matrix, model)
            limit = remaining(settings.time_limit_s, began)
            command = [path, str(model)]
            if limit is not None:
                command += ["-seconds", f"{max(0.01, limit):.3f}", "-timeMode", "elapsed"]
            command += ["-ratioGap", f"{settings.gap:.17g}", "-allowableGap", "0", "-increment", "0"]
            command += ["-primalTolerance", "1e-8", "-integerTolerance", "1e-7"]
            command += ["-solve", "-printingOptions", "all", "-solution", str(solution)]
            ending = run_executable(command, log, limit)
            said = log.read_text(errors="replace")
            if not solution.exists():
                if ending == "ended":
                    last = said.strip().splitlines()[-1:] or ["nothing said"]
                    raise SolverFailed(f"cbc ended without an answer: {last[0]}")
                answer = Answer(termination="time_limit")
            else:
                answer = _read(solution, said, matrix)
                spent = time.perf_counter() - began
                stopped = ending != "ended" or (limit is not None and spent >= _USED_UP * limit)
                if stopped and answer.values is None:
                    answer = Answer(termination="time_limit")
        return dataclasses.replace(stopped_by(answer, ending), version=_version(path) or "")


def _read(solution: Path, log: str, matrix: Matrix) -> Answer:
    """Status and values from the solution file, the bound from the log."""
    with solution.open(encoding="ascii", errors="replace") as lines:
        status = next(lines, "").lower()
        values = np.zeros(len(matrix.names))
        for line in lines:
            words = line.replace("**", "").split()
            if len(words) >= 3 and words[1].startswith("x"):
                values[int(words[1][1:])] = float(words[2])
    ending = status.partition("- objective value")[0]
    if "unbounded" in ending:
        return Answer(termination="infeasible_or_unbounded")
    if "infeasible" in ending:
        ambiguous = "infeasible or unbounded" in log and not np.isfinite([matrix.lower, matrix.upper]).all()
        return Answer(termination="infeasible_or_unbounded" if ambiguous else "infeasible")
    optimal = ending.startswith("optimal")
    stopped: Termination = "interrupted" if "ctrl-c" in log.lower() else "time_limit" if "time" in ending else "error"
    return Answer(
        termination="optimal" if optimal else stopped,
        values=None if "no integer solution" in ending else values,
        bound=_bound(log, float(matrix.cost @ values) if optimal else None),
        note="" if optimal or stopped != "error" else f"CBC ended with: {ending.strip()}",
    )


def _bound(log: str, optimum: float | None) -> float | None:
    """The last bound of the log, less what its three decimals hide; none is told of an optimum without a gap."""
    told = re.findall(r"^Lower bound:\s+(\S+)$", log, re.MULTILINE)
    return float(told[-1]) - 5e-4 if told else optimum
