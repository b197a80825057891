"""Solvers in processes of their own, which can be ended whatever they are doing."""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from epd_opt.backends.base import Answer, SolverFailed, stopped_by
from epd_opt.backends.guard import Ending, supervise

JOB, INCUMBENT, ANSWER = "job.pickle", "incumbent.pickle", "answer.pickle"
"""Files of a job in its folder: what to solve, the best solution so far, and how it ended."""
STOP = "stop"
"""The line that asks a solver to stop, among lines that name the folders of jobs."""

_POLL_S = 0.005


def _spawn(command: list[str], log: IO[bytes], stdin: int) -> subprocess.Popen[bytes]:
    """A process in a session of its own: the keyboard is for this process to act on."""
    return subprocess.Popen(command, stdin=stdin, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with those that it has started."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


class Executable:
    """A run of an executable that stops at an interrupt."""

    def __init__(self, command: list[str], log: IO[bytes]) -> None:
        self._process = _spawn(command, log, subprocess.DEVNULL)

    def wait(self, seconds: float | None) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def ask_to_stop(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def give_up(self) -> None:
        _kill(self._process)


def run_executable(command: list[str], log: Path, time_limit_s: float | None) -> Ending:
    """Run a solver to its end, the limit or an interrupt; it is gone afterwards."""
    with log.open("wb") as stream:
        run = Executable(command, stream)
        try:
            return supervise(run, time_limit_s)
        finally:
            run.give_up()


class Child:
    """A Python process that solves one job after another; see :mod:`epd_opt.backends.child`.

    It ends when its standard input does, so also when this process dies.
    """

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        command = [sys.executable, "-W", "ignore", "-m", "epd_opt.backends.child"]
        self._process = _spawn(command, self._log, subprocess.PIPE)
        self._answered: Callable[[], bool] = lambda: True

    @property
    def alive(self) -> bool:
        """Whether it can take another job."""
        return self._process.poll() is None

    def last_words(self) -> str:
        """The last line that it wrote, or its exit code."""
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {self._process.poll()}"

    def start(self, folder: Path) -> None:
        """Begin the job of this folder."""
        self._answered = (folder / ANSWER).exists
        self._say(str(folder))

    def wait(self, seconds: float | None) -> bool:
        end = None if seconds is None else time.monotonic() + seconds
        while self.alive and not self._answered():
            if end is not None and time.monotonic() >= end:
                return False
            time.sleep(_POLL_S)
        return True

    def ask_to_stop(self) -> None:
        self._say(STOP)

    def give_up(self) -> None:
        _kill(self._process)
        self._log.close()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()


_IDLE: list[Child] = []
"""Children that wait for a job. Starting one takes as long as importing its solver, so they are kept."""


@atexit.register
def _dismiss() -> None:
    while _IDLE:
        child = _IDLE.pop()
        if child.owner == os.getpid():
            child.give_up()


@contextlib.contextmanager
def _child() -> Iterator[Child]:
    """An idle child or a new one; it is kept if it is idle again, and gone otherwise."""
    child: Child | None = None
    while _IDLE and child is None:
        idle = _IDLE.pop()
        child = idle if idle.owner == os.getpid() and idle.alive else None
    child = child or Child()
    kept = False
    try:
        yield child
        kept = child.alive and child.wait(0.0)
    finally:
        if kept:
            _IDLE.append(child)
        else:
            child.give_up()


def solve_in_child(solver: str, arguments: tuple[Any, ...], time_limit_s: float | None) -> Answer:
    """Solve by a function in a Python process of its own.

    Parameters
    ----------
    solver : str
        The function, as ``module:name``; takes a :class:`epd_opt.backends.child.Desk` and the arguments, and returns an
        :class:`Answer`.
    arguments : tuple
        What can be pickled.
    time_limit_s : float or None
        Wall-clock limit, the start of the process included.

    Raises
    ------
    SolverFailed
        The process ended without an answer, of its own accord.
    """
    deadline = None if time_limit_s is None else time.time() + time_limit_s
    with tempfile.TemporaryDirectory(prefix="epd-opt-") as place, _child() as child:
        folder = Path(place)
        (folder / JOB).write_bytes(pickle.dumps((solver, arguments, deadline)))
        child.start(folder)
        ending = supervise(child, None if deadline is None else deadline - time.time())
        if (folder / ANSWER).exists():
            return stopped_by(_read(folder / ANSWER), ending)
        if ending == "ended":
            raise SolverFailed(f"the process of a solver ended without an answer: {child.last_words()}")
        child.give_up()
        best = _read(folder / INCUMBENT) if (folder / INCUMBENT).exists() else Answer(termination="time_limit")
        return stopped_by(best, ending)


def _read(file: Path) -> Answer:
    answer: Answer = pickle.loads(file.read_bytes())
    return answer
