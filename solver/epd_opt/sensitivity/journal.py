"""Points of studies on disk, a line each as they come, so that work that was interrupted goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from epd_opt._version import __version__
from epd_opt.errors import UsageError
from epd_opt.sensitivity.point import Answer, Job
from epd_opt.sensitivity.rates import Rates
from epd_opt.sensitivity.spending import Spending

_FINAL = ("optimal", "feasible", "infeasible")


def study_hash(document: Mapping[str, Any], fleet: Mapping[str, int]) -> str:
    """SHA-256 (hex) of what every point of a study rests on: the instance, today's fleet and this version."""
    return _sha256([document, fleet, __version__])


def _sha256(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Journal:
    """The file ``points.jsonl`` of a folder.

    Each line is ``{"study": HASH, "point": POINT, "made_for": RATES, "paid": {"plan": ..., "kept": ...}}``, the last of them
    what the fleets are paid for. Points of the same hash, place and rates that operating points are made for are not solved
    again, unless they had failed or were stopped; lines of other studies stay as they are. Points that follow from prices
    are written for the reader alone.

    Raises
    ------
    UsageError
        The folder cannot be made or written to.
    """

    def __init__(self, folder: Path, study: str) -> None:
        self._path, self._study = folder / "points.jsonl", study
        self._known: dict[str, Answer] = {}
        self._followed: set[str] = set()
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
        if not isinstance(entry, dict) or entry.get("study") != self._study or "paid" not in entry:
            return
        if entry["point"]["status"] in _FINAL:
            point, made_for = entry["point"], entry.get("made_for", [])
            place = _sha256([point["at"], made_for])
            if point["found"] == "between" and not made_for:
                self._followed.add(_sha256(point))
            elif point["kept_fleet"] is not None or place not in self._known:
                paid = entry["paid"]
                self._known[place] = Answer(point=point, plan=Spending.read(paid["plan"]), kept=Spending.read(paid["kept"]))

    def known(self, job: Job) -> Answer | None:
        """The point, where it was solved before."""
        found = self._known.get(_sha256([job.at, job.made_for]))
        return None if found is None or (job.fleet is not None and found.point["kept_fleet"] is None) else found

    def keep(self, answer: Answer, made_for: Sequence[Rates] = ()) -> None:
        """Write a point at once."""
        if not made_for and _sha256(answer.point) in self._followed:
            return
        paid = {
            name: None if spent is None else asdict(spent) for name, spent in (("plan", answer.plan), ("kept", answer.kept))
        }
        entry = {"study": self._study, "point": answer.point, "made_for": made_for, "paid": paid}
        json.dump(entry, self._file, ensure_ascii=False, allow_nan=False)
        self._file.write("\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
