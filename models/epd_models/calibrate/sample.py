"""Measured rows sorted by the coefficients they can tell of; those that cannot tell say why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from epd_models import catalog
from epd_models.catalog.coefficient_card import named_card
from epd_models.measurements import Measurement, duplicates
from epd_models.plausible import contradiction
from epd_models.serving import Run, Unpredictable, run_of

GROUP = ("model", "gpu", "engine", "isl", "osl")
"""Columns whose rows are left out together: one of them foretells the others too easily."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What shares coefficients: a coefficients card (an accelerator architecture) and an engine."""

    architecture: str
    engine: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Usable:
    """A row that coefficients can be fitted to."""

    row: Measurement
    run: Run
    family: Family

    @property
    def group(self) -> tuple[str, ...]:
        """The group it is left out with."""
        return tuple(self.row.text(column) for column in GROUP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A row that is not fitted to, by its line in the file."""

    line: int
    reason: str


def sort_rows(rows: Iterable[Measurement]) -> tuple[list[Usable], list[Dropped]]:
    """Rows that coefficients can be fitted to, and the others with their reasons; in the order of the file."""
    rows = tuple(rows)
    repeats = dict(duplicates(rows))
    usable, dropped = [], []
    for row in rows:
        try:
            if row.line in repeats:
                raise Unpredictable(f"says the same as line {repeats[row.line]}")
            usable.append(_usable(row))
        except Unpredictable as error:
            dropped.append(Dropped(line=row.line, reason=str(error)))
    return usable, dropped


def _usable(row: Measurement) -> Usable:
    if row.text("quality") not in ("", "ok"):
        raise Unpredictable(f"its quality is marked {row.text('quality')!r}")
    if row.ttft_s is None and row.itl_s is None:
        raise Unpredictable("neither ttft_ms nor itl_ms is given")
    run, _ = run_of(row)
    if run.prefill is not None:
        raise Unpredictable("prefill and decode apart: coefficients are fitted on workers that do both")
    worker = run.decode.worker
    if worker.engine.speculative is not None:
        raise Unpredictable("speculative decoding is only assumed: public runs of this checkpoint use it unflagged")
    because = contradiction(run, ttft_s=row.ttft_s, itl_s=row.itl_s)
    if because:
        raise Unpredictable(because)
    architecture = named_card(catalog.device_card(worker.device.sku)["coefficients"])
    if architecture is None:
        raise Unpredictable(f"{worker.device.sku} has coefficients of its own, which start from no card")
    return Usable(row=row, run=run, family=Family(architecture=architecture, engine=worker.engine.name))
