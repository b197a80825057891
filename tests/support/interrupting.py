"""`epd-opt solve` interrupted from the keyboard, not after some time but when it has come so far."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

SOLVING = "the solver is at work"
HALFWAY = "there are a plan and a bound"

_PROGRAM = f"""
import sys
from epd_opt.backends.highs import _Solve
from epd_opt.cli import main

wait, advanced, told = _Solve.wait, _Solve._advanced, set()

def waiting(self, seconds):
    print({SOLVING!r}, file=sys.stderr, flush=True)
    return wait(self, seconds)

def advancing(self, event):
    advanced(self, event)
    if self.values is not None and self.bound > 0 and self not in told:
        told.add(self)
        print({HALFWAY!r}, file=sys.stderr, flush=True)

_Solve.wait, _Solve._advanced = waiting, advancing
main()
"""


def interrupted(file: Path, *words: str) -> tuple[int, str, str]:
    """Solve a file with HiGHS; send Ctrl-C when standard error has held these words, one after another.

    Returns
    -------
    tuple of int, str and str
        Exit code, standard output and standard error.
    """
    command = [sys.executable, "-c", _PROGRAM, "solve", str(file), "--json", "--verbose"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        for word in words:
            line = ""
            while word not in line:
                line = process.stderr.readline()
                assert line, f"it ended before it said {word!r}: {said}"
                said += line
        process.send_signal(signal.SIGINT)
        out, rest = process.communicate(timeout=30.0)
    return process.returncode, out, said + rest
