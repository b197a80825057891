"""SCIP, through OR-Tools MathOpt, in a child process."""

from __future__ import annotations

from epd_opt.backends import mathopt
from epd_opt.backends.base import Answer, Availability, Capabilities, Checked, Settings, Vector
from epd_opt.backends.matrix import Matrix
from epd_opt.backends.process import solve_in_child


class Scip(Checked):
    """SCIP as a second opinion; one thread."""

    name = "scip"
    title = "SCIP through OR-Tools"
    capabilities = Capabilities(warm_start=True, threads=False)

    def availability(self) -> Availability:
        """See :class:`epd_opt.backends.base.Backend`."""
        return mathopt.availability()

    def answer(self, matrix: Matrix, settings: Settings, start: Vector | None) -> Answer:
        """See :class:`epd_opt.backends.base.Checked`."""
        arguments = ("GSCIP", matrix, settings, start)
        return solve_in_child("epd_opt.backends.mathopt:solve", arguments, settings.time_limit_s)
