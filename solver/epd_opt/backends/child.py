"""The child process of :mod:`epd_opt.backends.process`: solves jobs and leaves each answer in its job's folder."""

from __future__ import annotations

import importlib
import os
import pickle
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from epd_opt.backends.base import Answer
from epd_opt.backends.process import ANSWER, INCUMBENT, JOB, STOP

_FAREWELL_S = 2.0
"""Time to stop in, for a solver whose parent is gone."""


class Desk:
    """Where a solver hands in what it finds, and hears that it should stop."""

    def __init__(self, folder: Path, deadline: float | None) -> None:
        self._folder = folder
        self._deadline = deadline
        self.stop: Callable[[], None] = lambda: None

    def seconds_left(self) -> float | None:
        """Until the wall-clock deadline; None where there is none."""
        return None if self._deadline is None else max(0.01, self._deadline - time.time())

    def hand_in(self, answer: Answer, *, final: bool = False) -> None:
        """Leave an answer so that it is there in whole or not at all."""
        draft = self._folder / "draft"
        draft.write_bytes(pickle.dumps(answer))
        draft.replace(self._folder / (ANSWER if final else INCUMBENT))


class _Office:
    """Jobs that wait, and the desk of the one at work."""

    def __init__(self) -> None:
        self.jobs: queue.Queue[Path | None] = queue.Queue()
        self.desk: Desk | None = None

    def listen(self) -> None:
        """Take jobs and wishes to stop from standard input, to its end."""
        for line in sys.stdin:
            if line.strip() != STOP:
                self.jobs.put(Path(line.rstrip("\n")))
            elif self.desk is not None:
                self.desk.stop()
        self.jobs.put(None)
        if self.desk is not None:
            self.desk.stop()
        time.sleep(_FAREWELL_S)
        os._exit(1)

    def work(self) -> None:
        """Solve jobs, one after another."""
        while (folder := self.jobs.get()) is not None:
            solver, arguments, deadline = pickle.loads((folder / JOB).read_bytes())
            module, _, function = solver.partition(":")
            desk = self.desk = Desk(folder, deadline)
            try:
                answer = getattr(importlib.import_module(module), function)(desk, *arguments)
            except Exception as error:
                traceback.print_exc()
                answer = Answer(termination="error", note=f"{type(error).__name__}: {error}")
            self.desk = None
            desk.hand_in(answer, final=True)


if __name__ == "__main__":
    office = _Office()
    threading.Thread(target=office.listen, daemon=True).start()
    office.work()
