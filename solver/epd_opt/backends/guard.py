"""Time limits that hold by the wall clock and interrupts that keep the incumbent, whatever a solver does about them."""

from __future__ import annotations

import time
from typing import Literal, Protocol

Ending = Literal["ended", "late", "interrupted"]

PATIENCE_S = 0.2
"""How long a solver may overrun its own limit before it is asked to stop."""
GRACE_S = 1.2
"""How long a solver that was asked to stop may take to hand over what it has; with the patience, and what a plan takes to be
routed and checked, less than the two seconds by which a limit may be passed."""
KEYBOARD_GRACE_S = 5.0
"""The same after an interrupt from the keyboard, where the incumbent matters more; a second interrupt ends the wait."""


class Run(Protocol):
    """A solver at work."""

    def wait(self, seconds: float | None) -> bool:
        """Wait for its end, at most so long; whether it has ended."""
        ...

    def ask_to_stop(self) -> None:
        """Ask it to stop and hand over what it has."""
        ...

    def give_up(self) -> None:
        """Wait no longer: end it where that is possible."""
        ...


def supervise(run: Run, time_limit_s: float | None) -> Ending:
    """Wait for a solver: to its end, the time limit or an interrupt from the keyboard, whichever comes first."""
    ending: Ending = "ended"
    try:
        if run.wait(None if time_limit_s is None else time_limit_s + PATIENCE_S):
            return ending
        ending = "late"
    except KeyboardInterrupt:
        ending = "interrupted"
    try:
        run.ask_to_stop()
        if not run.wait(GRACE_S if ending == "late" else KEYBOARD_GRACE_S):
            run.give_up()
    except KeyboardInterrupt:
        run.give_up()
        ending = "interrupted"
    return ending


def remaining(time_limit_s: float | None, since: float) -> float | None:
    """Seconds left of a limit that began at a time of ``time.perf_counter``."""
    return None if time_limit_s is None else max(0.0, time_limit_s - (time.perf_counter() - since))
