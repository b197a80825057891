"""One time limit over many steps: the work before a solve, the solve, and those after it."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass

import pulp

from epd_opt.backends.base import Availability, Backend, Capabilities, Outcome, Settings


class OutOfTime(Exception):
    """The time limit passed before there was anything to solve."""


class Clock:
    """What is left of a wall-clock limit that begins now. An interrupt ends it early."""

    def __init__(self, time_limit_s: float) -> None:
        self._began = time.perf_counter()
        self._limit = time_limit_s

    @property
    def left_s(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._limit - (time.perf_counter() - self._began))

    @property
    def stopped(self) -> bool:
        """Whether an interrupt ended it."""
        return self._limit == 0.0

    def stop(self) -> None:
        """Leave no time."""
        self._limit = 0.0

    def check(self) -> None:
        """Do nothing while there is time.

        Raises
        ------
        OutOfTime
            There is none.
        """
        if self.left_s == 0.0:
            raise OutOfTime


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocked:
    """A back-end whose solves share a clock: each has what is left, and none begins after its end."""

    solver: Backend
    clock: Clock

    @property
    def name(self) -> str:
        """Of the solver."""
        return self.solver.name

    @property
    def capabilities(self) -> Capabilities:
        """Of the solver."""
        return self.solver.capabilities

    def availability(self) -> Availability:
        """Of the solver."""
        return self.solver.availability()

    def describe(self) -> str:
        """Of the solver."""
        return self.solver.describe()

    def solve(self, model: pulp.LpProblem, settings: Settings) -> Outcome:
        """Solve within what is left, whatever limit the settings name."""
        left = self.clock.left_s
        if left == 0.0:
            return out_of_time(self.solver)
        outcome = self.solver.solve(model, dataclasses.replace(settings, time_limit_s=left))
        if outcome.termination == "interrupted":
            self.clock.stop()
        return outcome


def out_of_time(solver: Backend) -> Outcome:
    """The outcome of a solve for which there was no time."""
    return Outcome(termination="time_limit", values=None, objective=None, bound=None, seconds=0.0, solver=solver.name)
