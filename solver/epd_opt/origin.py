"""Where the values of an instance stand: in its file, in files that it refers to, or in an assignment that overrode it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from epd_opt.errors import InvalidInput, Problem
from epd_opt.fields import Location
from epd_opt.paths import walked
from epd_opt.source import Source, parse


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Origin:
    """What an instance was read from.

    Attributes
    ----------
    source : Source
        The instance's own text.
    document : Mapping
        Its values after the assignments, references to other files not yet followed.
    assigned : Mapping[Location, str]
        What to call each value that was assigned, as in ``--set solver.gap``.
    files : Mapping[Location, tuple of str and bytes]
        Name and content of the files that stand in place of their paths.
    """

    source: Source
    document: Mapping[str, Any]
    assigned: Mapping[Location, str] = field(default_factory=dict)
    files: Mapping[Location, tuple[str, bytes]] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        """Always: two instances that say the same are equal, wherever they were read."""
        return True

    def __hash__(self) -> int:
        return 0

    def place(self, problem: Problem) -> Problem:
        """The problem with the place of its value, or of the nearest thing around it; as it is where it has one."""
        if problem.file:
            return problem
        location = problem.location or walked(self.document, problem.path)
        for length in range(len(location), 0, -1):
            if location[:length] in self.files and length < len(location):
                return self._in_file(replace(problem, location=location[length:]), *self.files[location[:length]])
            origin = self.assigned.get(location[:length])
            if origin is not None:
                return from_assignment(problem, origin)
        return self.source.place(replace(problem, location=location))

    def _in_file(self, problem: Problem, file: str, content: bytes) -> Problem:
        try:
            return parse(content, file).place(problem)
        except InvalidInput:
            return replace(problem, file=file)


def from_assignment(problem: Problem, origin: str) -> Problem:
    """The problem of an assigned value; the origin says its path already, unless it lies deeper."""
    return replace(problem, file=origin, path="" if origin == f"--set {problem.path}" else problem.path)
