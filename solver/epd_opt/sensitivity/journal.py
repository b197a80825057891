"""Points of studies on disk, a line each as they come, so that work that was interrupted goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from epd_opt._version import __version__
from epd_opt.errors import UsageError
from epd_opt.sensitivity.point import Job

_FINAL = ("optimal", "feasible", "infeasible")


def study_hash(document: Mapping[str, Any], fleet: Mapping[str, int]) -> str:
    """SHA-256 (hex) of what every point of a study rests on: the instance, today's fleet and this version."""
    return _sha256([document, fleet, __version__])


def _sha256(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Journal:
    """The file ``points.jsonl`` of a folder.

    Each line is ``{"study": HASH, "point": POINT}``. Points of the same hash and place are not solved again, unless they
    had failed or were stopped; lines of other studies stay as they are.

    Raises
    ------
    UsageError
        The folder cannot be made or written to.
    """

    def __init__(self, folder: Path, study: str) -> None:
        self._path, self._study = folder / "points.jsonl", study
        self._known: dict[str, dict[str, Any]] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            text = self._path.read_text(encoding="utf-8") if self._path.exists() else ""
            self._file = self._path.open("a", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"-o {folder}: cannot write: {error.strerror}") from None
        if text and not text.endswith("\n"):
            self._file.write("\n")
        for line in text.splitlines():
            self._read(line)

    def _read(self, line: str) -> None:
        try:
            entry = json.loads(line)
        except ValueError:
            return
        if isinstance(entry, dict) and entry.get("study") == self._study and entry["point"]["status"] in _FINAL:
            place, point = _sha256(entry["point"]["at"]), entry["point"]
            if point["kept_fleet"] is not None or place not in self._known:
                self._known[place] = point

    def known(self, job: Job) -> dict[str, Any] | None:
        """The point, where it was solved before."""
        point = self._known.get(_sha256(job.at))
        return None if point is None or (job.fleet is not None and point["kept_fleet"] is None) else point

    def keep(self, point: Mapping[str, Any]) -> None:
        """Write a point at once."""
        json.dump({"study": self._study, "point": point}, self._file, ensure_ascii=False, allow_nan=False)
        self._file.write("\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
