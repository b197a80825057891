"""A table of the study: rows known by their keys, each computed on its own, kept as CSV in the repository."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parents[2] / "docs" / "data"
Value = str | int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table.

    Attributes
    ----------
    name : str
        Of its file, `docs/data/encoder-NAME.csv`.
    keys : tuple of mapping
        What each row is about.
    cell : callable
        The rest of the row, given its key.
    """

    name: str
    keys: tuple[Mapping[str, Value], ...]
    cell: Callable[..., Mapping[str, Value]]

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return DATA / f"encoder-{self.name}.csv"

    def row(self, key: Mapping[str, Value]) -> dict[str, str]:
        """A row, computed anew, as it is written."""
        return {name: written(value) for name, value in {**key, **self.cell(**key)}.items()}

    def rows(self) -> Iterator[dict[str, str]]:
        """All rows, computed anew."""
        return (self.row(key) for key in self.keys)

    def write(self) -> None:
        """Compute all rows and keep them."""
        found = list(self.rows())
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(found)

    def kept(self) -> list[dict[str, str]]:
        """The rows as they are kept."""
        with self.path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))


def written(value: Value) -> str:
    """Numbers to four digits; nothing where there is none.

    >>> written(0.123456), written(1234567.0), written(3), written(float("nan")), written("a")
    ('0.1235', '1235000', '3', '', 'a')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        if math.isinf(value):
            return "inf"
        return f"{float(f'{value:.4g}'):g}" if abs(value) < 1e5 else f"{float(f'{value:.4g}'):.0f}"
    return str(value)


def number(text: str) -> float:
    """A kept number; nan where there is none."""
    return float(text) if text else math.nan
