"""What an exporter hands back, and how it becomes a file."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from epd_opt.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A plan in another format.

    Attributes
    ----------
    content : str or bytes
        The file; bytes where the format is binary.
    warnings : tuple of str
        What the format cannot say of this plan, a sentence each.
    """

    content: str | bytes
    warnings: tuple[str, ...] = ()

    def save(self, path: str | Path) -> None:
        """Write the file: the whole of it or, where that fails, nothing.

        Raises
        ------
        UsageError
            It cannot be written.
        """
        content = self.content.encode("utf-8", "surrogatepass") if isinstance(self.content, str) else self.content
        try:
            _write(Path(os.path.realpath(path)), content)
        except OSError as error:
            raise UsageError(f"{path}: cannot write: {error.strerror}") from None


def _write(path: Path, content: bytes) -> None:
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.chmod(temporary, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
