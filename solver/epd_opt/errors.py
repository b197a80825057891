"""What goes wrong and the exit code it ends with; complaints about files carry their positions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar


class EpdError(Exception):
    """Root of this program's own errors; ``exit_code`` is what the command line ends with."""

    exit_code: ClassVar[int] = 1


class UsageError(EpdError):
    """A command, an option or an argument that cannot be meant."""

    exit_code = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One complaint about one place of an input.

    Attributes
    ----------
    file : str
        File name, ``<stdin>``, ``--set PATH``, or empty for values that came from Python.
    line, column : int or None
        Counted from one; None where the input has no text.
    path : str
        Address of the value, as in ``workload.classes.album.images.count``; empty for the whole document.
    message, hint : str
        What was found and expected; how to mend it (may be empty).
    location : tuple of str or int
        Keys and list indices from the root of the document to the value.
    about_key : bool
        Whether the key at the location is wrong, not its value.
    """

    file: str = ""
    line: int | None = None
    column: int | None = None
    path: str = ""
    message: str
    hint: str = ""
    location: tuple[str | int, ...] = ()
    about_key: bool = False

    def __str__(self) -> str:
        """As ``file:line:column: path: message (hint)``.

        >>> print(Problem(file="a.yaml", line=3, column=7, path="model", message="found 4", hint="quote it"))
        a.yaml:3:7: model: found 4 (quote it)
        """
        place = self.file if self.line is None else f"{self.file}:{self.line}:{self.column}"
        text = ": ".join(part for part in (place, self.path, self.message) if part)
        return f"{text} ({self.hint})" if self.hint else text


class InvalidInput(EpdError):
    """An input breaks its rules; all its problems together, in the order of the file."""

    exit_code = 3

    def __init__(self, problems: Iterable[Problem]) -> None:
        ordered = sorted(problems, key=lambda p: (p.file, p.line or 0, p.column or 0, p.path, p.message))
        self.problems: tuple[Problem, ...] = tuple(dict.fromkeys(ordered))
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self) -> tuple[type[InvalidInput], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)
