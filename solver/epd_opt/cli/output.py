"""Files that commands write with ``-o``."""

from __future__ import annotations

from pathlib import Path

from epd_opt.errors import UsageError


def check_output(
    output: str | None,
    *,
    option: str = "-o",
    to_standard_output: str = "the plan document goes to standard output with --json",
) -> None:
    """Complain before the work, not after it; nothing is left behind where there was no file.

    Raises
    ------
    UsageError
        The file cannot be written where it is wanted; ``-`` is answered by what goes to standard output instead.
    """
    if output is None:
        return
    if output == "-":
        raise UsageError(f"{option} -: {to_standard_output}")
    path = Path(output)
    try:
        if path.is_dir():
            raise UsageError(f"{option} {output}: is a directory")
        if not path.absolute().parent.is_dir():
            raise UsageError(f"{option} {output}: there is no directory {path.absolute().parent}")
        if not path.exists():
            path.open("xb").close()
            path.unlink()
        elif path.is_file():
            path.open("ab").close()
    except OSError as error:
        raise UsageError(f"{option} {output}: cannot write: {error.strerror}") from None


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
