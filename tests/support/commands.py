"""The shape of the fixture that runs the command line."""

from __future__ import annotations

from typing import Protocol


class Run(Protocol):
    """Arguments as they would be typed, and what stands on standard input."""

    def __call__(self, *arguments: object, stdin: str = "") -> tuple[int, str, str]:
        """Exit code, standard output and standard error."""
        ...
