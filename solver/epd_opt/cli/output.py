"""Files that commands write with ``-o``."""

from __future__ import annotations

from pathlib import Path

from epd_opt.errors import UsageError


def check_output(
    output: str | None, *, to_standard_output: str = "the plan document goes to standard output with --json"
) -> None:
    """Complain before the work, not after it.

    Raises
    ------
    UsageError
        The file cannot be written where it is wanted; ``-`` is answered by what goes to standard output instead.
    """
    if output is None:
        return
    if output == "-":
        raise UsageError(f"-o -: {to_standard_output}")
    if Path(output).is_dir():
        raise UsageError(f"-o {output}: is a directory")
    if not Path(output).absolute().parent.is_dir():
        raise UsageError(f"-o {output}: there is no directory {Path(output).absolute().parent}")


def write_text(output: str, text: str) -> None:
    """Write a file in UTF-8.

    Raises
    ------
    UsageError
        The file cannot be written.
    """
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"-o {output}: cannot write: {error.strerror}") from None
